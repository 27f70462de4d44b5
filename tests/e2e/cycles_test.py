#!/usr/bin/env python3
"""What `cycles` and `profile` print.

    cycles_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(bin="build")


def operator(name, begin, duration, category="cpu_op", tid=1):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": begin, "dur": duration}


def steps(count, marked=True):
    """Steps of 1 ms on one thread; equal operators inside, another thread beside."""
    events = []
    for s in range(count):
        at = s * 1000
        if marked:
            events.append(operator(f"ProfilerStep#{s}", at, 990, "Operator"))
        for k, name in enumerate(["aten::embedding", "aten::linear", "aten::linear", "aten::multinomial"]):
            events.append(operator(name, at + 10 + k * 200, 150))
            events.append(operator("aten::empty", at + 20 + k * 200, 100))
        events.append(operator("aten::copy_", at + 300, 400, tid=2))
    return events


class Program(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def write(self, name, events):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"traceEvents": events}, out)
        return path

    def output_of(self, *arguments):
        done = subprocess.run([os.path.join(ARGS.bin, "culprit"), *arguments], capture_output=True, text=True,
                              timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Cycles(Program):
    def rows(self, *arguments):
        return len([l for l in self.output_of("cycles", *arguments).splitlines() if " other " in l])

    def test_prints_thirty_rows_unless_asked_otherwise(self):
        path = self.write("x.json", steps(50))
        self.assertEqual(self.rows(path), 30)
        self.assertIn("20 more rows; --all shows them", self.output_of("cycles", path))
        self.assertEqual(self.rows(path, "--all"), 50)
        self.assertEqual(self.rows(path, "--limit", "0"), 50)
        self.assertEqual(self.rows(path, "--limit", "7"), 7)
        self.assertEqual(len(json.loads(self.output_of("cycles", path, "--json"))["tables"][0]["rows"]), 50)

    def test_leaves_out_columns_that_hold_nothing(self):
        heading = [l for l in self.output_of("cycles", self.write("x.json", steps(5))).splitlines() if "Cycle " in l][0]
        self.assertNotIn("Device", heading)
        self.assertIn("Period", heading)


class Order(Program):
    def test_of_the_events_in_the_file_changes_nothing(self):
        for marked in (True, False):
            events = steps(20, marked)
            answers = set()
            for seed in range(3):
                if seed:
                    random.Random(seed).shuffle(events)
                path = self.write("x.json", events)
                answers.add((self.output_of("cycles", path, "--json"), self.output_of("profile", path, "--json")))
            self.assertEqual(len(answers), 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", default=ARGS.bin)
    ARGS, rest = parser.parse_known_args()
    ARGS.bin = os.path.abspath(ARGS.bin)
    unittest.main(argv=[sys.argv[0], *rest])
