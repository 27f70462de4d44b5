#!/usr/bin/env python3
"""What `diagnose` says of one run, of traces that culprit-tracegen makes and of one that changes in its middle.

    diagnose_test.py --bin BUILD_DIR [unittest options]
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


class Diagnose(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def run_program(self, program, *arguments, code=0):
        done = subprocess.run([os.path.join(ARGS.bin, program), *arguments], capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def generated(self, *arguments):
        path = os.path.join(self.folder, "run.json")
        self.run_program("culprit-tracegen", "-q", "--force", "-o", path, "--workload", "serve", "--steps", "60", *arguments)
        with open(os.path.join(self.folder, "run.truth.json"), encoding="utf-8") as file:
            return [rank["path"] for rank in json.load(file)["ranks"]]

    def steps(self, slower_from=None, times=1.3):
        """Marked steps of 10 ms with operators in them, all slower by so much from one on."""
        chance = random.Random(1)
        events = []
        at = 0.0
        for s in range(120):
            length = 10000 * chance.uniform(0.98, 1.02) * (times if slower_from is not None and s >= slower_from else 1)
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{s}", "pid": 1, "tid": 1, "ts": at, "dur": length - 10})
            for k in range(10):
                events.append({"ph": "X", "cat": "cpu_op", "name": f"aten::op{k}", "pid": 1, "tid": 1, "ts": at + 10 + k * length / 11,
                               "dur": length / 12})
            at += length
        path = os.path.join(self.folder, "steps.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"traceEvents": events}, out)
        return path

    def answer(self, *files):
        return json.loads(self.run_program("culprit", "diagnose", "--json", *files))

    def test_a_slow_rank_is_named_with_its_reason(self):
        verdicts = self.answer(*self.generated("--ranks", "4", "--counters", "--fault", "straggler", "--severity", "0.3"))["verdicts"]
        self.assertEqual([(v["cause"], v["detail"], v["scope"]["rank"]) for v in verdicts], [("straggler", "gpu_clock_drop", 3)])

    def test_collections_of_garbage_are_named(self):
        verdicts = self.answer(*self.generated("--python", "--fault", "gc_pause", "--severity", "0.5"))["verdicts"]
        self.assertEqual([(v["cause"], v["detail"]) for v in verdicts], [("host_bound", "gc")])

    def test_healthy_runs_have_none(self):
        for arguments in ([], ["--ranks", "4", "--counters"], ["--python", "--sched"]):
            answer = self.answer(*self.generated(*arguments))
            self.assertEqual(answer["verdicts"], [], arguments)
            self.assertIsNone(answer["change"], arguments)

    def test_the_step_from_which_all_is_slower_is_found(self):
        change = self.answer(self.steps(slower_from=70))["change"]
        self.assertAlmostEqual(change["cycle"], 71, delta=1)
        self.assertEqual(change["outcome"], "regression")
        self.assertAlmostEqual(change["cycle_time"][0]["ratio"], 1.3, delta=0.03)
        self.assertEqual(change["verdicts"][0]["cause"], "cpu_contention")
        self.assertIn("From step 7", self.run_program("culprit", "diagnose", self.steps(slower_from=70)))
        self.assertIsNone(self.answer(self.steps())["change"])

    def test_parts_of_a_device_sum_to_the_step(self):
        answer = self.answer(*self.generated("--ranks", "2"))
        time = sum(row["time_ns"] for row in answer["tables"][0]["rows"] if row["where"] == "GPU 0 of rank 0")
        self.assertAlmostEqual(time / answer["step_ns"], 1, delta=1e-3)

    def test_phases_are_held_against_each_other(self):
        files = self.generated()
        tables = {table["table"]: table["rows"] for table in self.answer(*files)["tables"]}
        phases = {row["phase"]: row for row in tables["phases"]}
        self.assertEqual(set(phases), {"prefill", "decode"})
        self.assertAlmostEqual(sum(row["share"] for row in phases.values()), 1, delta=1e-6)
        self.assertGreater(phases["prefill"]["step_ns"], phases["decode"]["step_ns"])
        for row in phases.values():
            self.assertGreaterEqual(row["steps"], 5)
            if row["where"] is not None:
                self.assertGreaterEqual(row["part_share"] - row["others_share"], 0.05)
        self.assertIn("Phases against each other", self.run_program("culprit", "diagnose", *files))
        one = self.answer(self.steps())  # steps of one phase
        self.assertEqual([table["table"] for table in one["tables"]], ["step_parts"])

    def test_a_trace_without_steps_is_refused(self):
        path = os.path.join(self.folder, "none.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}, out)
        self.assertIn("no cycles", self.run_program("culprit", "diagnose", path, code=3))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", default=ARGS.bin)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
