#!/usr/bin/env python3
"""What must not change, or must change in a known way, when the traces that `culprit diff` compares are changed in one way.

    diff_metamorphic_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(bin="build")
FASTER = {"regression": "improvement", "improvement": "regression", "new": "gone", "gone": "new"}


def run(*command):
    done = subprocess.run([os.path.join(ARGS.bin, command[0]), *command[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def key_of(finding):
    return tuple(finding[name] for name in ("phase", "rank", "function", "device"))


def is_clear(finding):
    """Whether nothing that is added could change what is said of it, however many functions are compared then."""
    q = finding["q"]
    return q is not None and (q < 0.005 or (finding["status"] in ("same", "unknown") and q > 0.2))


class Metamorphic(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.pairs = [self.pair("train", "gpu_clock_drop"), self.pair("serve", "slow_function", "--severity", "0.9"), self.pair("train", "none")]

    def pair(self, workload, fault, *how):
        return [self.make(f"{workload}-{fault}-{seed}", "--workload", workload, "--seed", str(seed), *more)
                for seed, more in ((1, []), (2, ["--fault", fault, *how]))]

    def make(self, name, *options):
        path = os.path.join(self.folder, name + ".json")
        run("culprit-tracegen", "-q", "--compact", "--steps", "40", "--layers", "4", "--work-seed", "7", *options, "-o", path)
        return path

    def changed(self, path, change):
        """The trace with other events."""
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        trace["traceEvents"] = change(trace["traceEvents"])
        path = path[: -len(".json")] + "-changed.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)
        return path

    @staticmethod
    def diff(pair):
        return json.loads(run("culprit", "diff", "--json", *pair))

    def assert_close(self, one, other, what):
        """Numbers that may be null."""
        if one is None or other is None:
            self.assertEqual(one, other, what)
        else:
            self.assertAlmostEqual(one, other, delta=1e-4 * max(1.0, abs(one)), msg=what)

    def test_four_times_the_time_everywhere_changes_nothing_relative(self):
        factor = 4

        def slower(events):
            for event in events:
                for name in ("ts", "dur"):
                    if name in event:
                        event[name] = round(event[name] * factor, 3)
            return events

        for pair in self.pairs:
            before, after = self.diff(pair), self.diff([self.changed(path, slower) for path in pair])
            self.assertEqual(before["outcome"], after["outcome"], pair)
            self.assertEqual(before["comparability"], after["comparability"])
            self.assertEqual(len(before["cycle_time"]), len(after["cycle_time"]))
            for one, other in zip(before["cycle_time"], after["cycle_time"]):
                for name in ("phase", "outcome", "n", "tolerance", "usual_work"):
                    self.assertEqual(one[name], other[name], pair)
                for name in ("ratio", "ci_low", "ci_high", "detectable"):
                    self.assert_close(one[name], other[name], (pair, name))
                for side in ("baseline_ns", "candidate_ns"):
                    self.assert_close(one[side] and factor * one[side], other[side], (pair, side))
            found = {key_of(f): f for f in after["findings"]}
            self.assertEqual(len(found), len(before["findings"]))
            for one in before["findings"]:
                other = found[key_of(one)]
                self.assertEqual((one["status"], one["calls"]), (other["status"], other["calls"]), (pair, one["function"]))
                self.assert_close(one["work_ratio"], other["work_ratio"], one["function"])
                self.assert_close(factor * one["impact_ns_per_cycle"], other["impact_ns_per_cycle"], one["function"])

    def test_a_function_that_is_added_to_both_changes_no_finding(self):
        def with_another(events):
            steps = [e for e in events if e.get("cat") == "user_annotation" and (e["name"].startswith("ProfilerStep#") or e["name"].startswith("step["))]
            self.assertEqual(len(steps), 40)
            for number, step in enumerate(steps):
                events.append({"ph": "X", "cat": "cpu_op", "name": "aten::unrelated", "pid": step["pid"], "tid": 77,
                               "ts": step["ts"] + 0.2 * step["dur"], "dur": 20 + number % 3})
            return events

        for pair in self.pairs:
            before, after = self.diff(pair), self.diff([self.changed(path, with_another) for path in pair])
            self.assertEqual(before["outcome"], after["outcome"])
            self.assertEqual(before["cycle_time"], after["cycle_time"])
            found = {key_of(f): f for f in after["findings"]}
            added = [key for key in found if key[2] == "aten::unrelated"]
            self.assertTrue(added)
            self.assertEqual({found[key]["status"] for key in added} & {"changed", "new", "gone"}, set())
            self.assertEqual(len(found), len(before["findings"]) + len(added))
            clear = [f for f in before["findings"] if is_clear(f)]
            self.assertGreater(len(clear), 5)
            for one in clear:
                other = found[key_of(one)]
                self.assertEqual(one["status"], other["status"], (pair, one["function"]))
                self.assert_close(one["impact_ns_per_cycle"], other["impact_ns_per_cycle"], one["function"])

    def test_swapped_sides_mirror_the_whole_comparison(self):
        for pair in self.pairs:
            there, back = self.diff(pair), self.diff(pair[::-1])
            self.assertEqual(FASTER.get(there["outcome"], there["outcome"]), back["outcome"])
            self.assertEqual(there["comparability"]["level"], back["comparability"]["level"])
            self.assertEqual(there["baseline"], back["candidate"])
            for one, other in zip(there["cycle_time"], back["cycle_time"], strict=True):
                self.assertEqual(one["phase"], other["phase"])
                self.assertEqual(FASTER.get(one["outcome"], one["outcome"]), other["outcome"])
                self.assertEqual(one["n"], other["n"][::-1])
                for name, mirrored in (("ratio", "ratio"), ("ci_low", "ci_high")):
                    self.assert_close(one[name], other[mirrored] and 1 / other[mirrored], (pair, name))
            found = {key_of(f): f for f in back["findings"]}
            self.assertEqual(len(found), len(there["findings"]))
            for one in there["findings"]:
                other = found[key_of(one)]
                self.assertEqual(FASTER.get(one["status"], one["status"]), other["status"], (pair, one["function"]))
                self.assert_close(one["impact_ns_per_cycle"], -other["impact_ns_per_cycle"], one["function"])
                self.assertEqual(one["ns_per_cycle"], other["ns_per_cycle"][::-1])
            for one, other in zip(there["waterfall"], back["waterfall"], strict=True):
                self.assertEqual(one["cycles"], other["cycles"][::-1])
                lines = {(line["state"], line["function"]): line["change_ns"] for line in other["lines"]}
                for line in one["lines"]:
                    self.assert_close(line["change_ns"], -lines[line["state"], line["function"]], line["function"])
            self.assertEqual([(v["cause"], v["detail"], v["scope"]) for v in there["verdicts"]],
                             [(v["cause"], v["detail"], v["scope"]) for v in back["verdicts"]])
            self.assertTrue(all(v["side"] == "candidate" for v in there["verdicts"]))
            self.assertTrue(all(v["side"] == "baseline" for v in back["verdicts"]))

    def test_the_pairs_have_something_to_find(self):
        self.assertEqual([self.diff(pair)["outcome"] for pair in self.pairs[:2]], ["regression", "regression"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", default=ARGS.bin)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
