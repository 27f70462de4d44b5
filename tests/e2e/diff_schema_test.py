#!/usr/bin/env python3
"""What `culprit diff --json` prints, held against docs/diff.schema.json.

    diff_schema_test.py --bin BUILD_DIR --source ROOT [unittest options]
"""

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

import jsonschema

ARGS = argparse.Namespace(bin="build", source=".")


def run(*command):
    return subprocess.run([os.path.join(ARGS.bin, command[0]), *command[1:]], capture_output=True, text=True, check=False)


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        with open(os.path.join(ARGS.source, "docs", "diff.schema.json"), encoding="utf-8") as file:
            cls.schema = json.load(file)
        jsonschema.Draft202012Validator.check_schema(cls.schema)
        cls.good = cls.make("good", "train", "1", "--steps", "24")
        cls.bad = cls.make("bad", "train", "2", "--steps", "24", "--fault", "gpu_clock_drop")
        cls.other = cls.make("other", "serve", "3", "--steps", "24")

    @classmethod
    def make(cls, name, workload, seed, *more):
        path = os.path.join(cls.folder.name, name + ".json.gz")
        done = run("culprit-tracegen", "-q", "--workload", workload, "--layers", "2", "--seed", seed, *more, "-o", path)
        assert done.returncode == 0, done.stderr
        return path

    def answer(self, *sides):
        done = run("culprit", "diff", *sides, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, self.schema, cls=jsonschema.Draft202012Validator)
        return answer

    def test_a_regression(self):
        answer = self.answer(self.good, self.bad)
        self.assertEqual(answer["outcome"], "regression")
        for waterfall in answer["waterfall"]:
            before, after = waterfall["ns_per_cycle"]
            self.assertAlmostEqual(sum(line["change_ns"] for line in waterfall["lines"]), after - before, delta=1e-3)
            for side in (0, 1):
                self.assertAlmostEqual(sum(line["ns_per_cycle"][side] for line in waterfall["lines"]), waterfall["ns_per_cycle"][side], delta=1e-3)
        self.assertTrue(answer["waterfall"])

    def test_one_recording_on_both_sides(self):
        self.assertTrue(self.answer(self.good, self.good)["same_recording"])

    def test_what_is_not_comparable(self):
        self.assertEqual(self.answer(self.good, self.other)["outcome"], "not_comparable")

    def test_replicates(self):
        more = [self.make(f"{name}{seed}", "train", seed, "--steps", "12", *fault) for name, seed, fault in
                (("a", "4", []), ("b", "5", []), ("c", "6", ["--fault", "gpu_clock_drop"]), ("d", "7", ["--fault", "gpu_clock_drop"]))]
        answer = self.answer(self.good, *more[:2], "--vs", self.bad, *more[2:])
        self.assertEqual(answer["cycle_time"][0]["recordings"], [3, 3])
        self.assertEqual(answer["outcome"], "regression")

    def test_the_schema_refuses_what_it_does_not_know(self):
        answer = self.answer(self.good, self.bad)
        for change in (lambda a: a.update(surprise=1), lambda a: a.pop("outcome"), lambda a: a["findings"][0].update(status="maybe")):
            wrong = copy.deepcopy(answer)
            change(wrong)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(wrong, self.schema, cls=jsonschema.Draft202012Validator)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", default=ARGS.bin)
    parser.add_argument("--source", default=ARGS.source)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
