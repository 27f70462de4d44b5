#!/usr/bin/env python3
"""scripts/trial-ab: its t-tests are Student's, it sees what stands still and what is left, and a `culprit ab` that is killed leaves nothing.

    trial_ab_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import math
import os
import signal
import subprocess
import sys
import time
import unittest

ARGS = argparse.Namespace(bin="build")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "trial-ab")
sys.path.insert(0, os.path.join(ROOT, "scripts"))

import ab_kills  # noqa: E402
import rivals  # noqa: E402


class Rivals(unittest.TestCase):
    def test_students_distribution(self):
        # Tables: what is exceeded with 5 % (two-sided).
        for dof, t in ((1, 12.706), (4, 2.776), (30, 2.042), (1000, 1.962)):
            self.assertAlmostEqual(rivals.student_p(t, dof), 0.05, places=4)
            self.assertAlmostEqual(rivals.student_p(-t, dof), 0.05, places=4)
        self.assertAlmostEqual(rivals.student_p(0, 7), 1)
        self.assertLess(rivals.student_p(50, 20), 1e-6)

    def test_two_samples_and_pairs(self):
        # By hand: t = 1 / sqrt(1/3 + 1/3), 4 degrees of freedom; of the pairs all differences are alike.
        self.assertAlmostEqual(rivals.welch([1, 2, 3], [2, 3, 4]), rivals.student_p(1 / math.sqrt(2 / 3), 4))
        self.assertEqual(rivals.paired([1, 2, 3], [2, 3, 4]), 0)
        self.assertEqual(rivals.welch([1, 1], [1, 1]), 1)
        self.assertAlmostEqual(rivals.paired([1, 2, 4], [2, 4, 5]), rivals.student_p((4 / 3) / (math.sqrt(1 / 3) / math.sqrt(3)), 2))

    def test_the_order_of_the_runs(self):
        for method, order in ((rivals.one_after_the_other, "aaabbb"), (rivals.in_turns, "ababab")):
            seen = []
            times = iter([1.0, 1.1, 1.2, 1.1, 1.0, 1.2])
            found = method(["a", "b"], lambda command: seen.append(command) or next(times), 0)
            self.assertEqual("".join(seen), order)
            self.assertEqual(found["runs"], [3, 3])
            self.assertFalse(found["different"])

    def test_a_line_counts_the_right_way_round(self):
        said = lambda ratio, different: {"t": {"ratio": ratio, "p": 0, "different": different, "runs": [5, 5], "seconds": 2.0}}
        line = rivals.summary("t", [(False, said(1.1, True)), (True, said(1 / 1.1, True)), (True, said(1.1, True)), (False, said(1.1, False))])
        self.assertIn("4 comparisons, 3 different (2 the right way round); median +10.0 %", line)


class Options(unittest.TestCase):
    def refused(self, *words):
        done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
        return done.stderr

    def test_what_cannot_be_done_is_refused(self):
        self.assertIn("needs --servers and --serve", self.refused("vllm"))
        self.assertIn("--rivals compares no sglang", self.refused("sglang", "--servers", "x", "--serve", "y", "--rivals"))
        self.assertIn("less than one of 6 layers more", self.refused("vllm", "--servers", "x", "--serve", "y", "--extra", "0,5"))
        self.assertIn("--signals is not of command", self.refused("command", "--signals"))


class Kills(unittest.TestCase):
    def program(self, text):
        started = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
        self.addCleanup(started.stdout.close)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        started.stdout.readline()
        return started.pid

    def patience(self, seconds):
        self.addCleanup(setattr, ab_kills, "PATIENCE", ab_kills.PATIENCE)
        ab_kills.PATIENCE = seconds

    def test_who_is_stopped_or_started_by_who_is_stopped_stands_still(self):
        parent = self.program("import subprocess, time\nchild = subprocess.Popen(['sleep', '60'])\nprint(child.pid, flush=True)\nchild.wait()")
        self.assertIsNone(ab_kills.how_it_stands(parent))
        child = next(pid for pid in ab_kills.descendants(parent) if pid != parent)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        os.kill(child, signal.SIGSTOP)
        self.assertTrue(ab_kills.wait_for(lambda: ab_kills.how_it_stands(parent) == "stopped"))
        ab_kills.set_going([parent])
        self.assertTrue(ab_kills.wait_for(lambda: ab_kills.how_it_stands(parent) is None))

    def test_what_stays_behind_is_told(self):
        self.patience(0.5)
        busy, idle = self.program("print(flush=True)\nwhile True: pass"), self.program("import time\nprint(flush=True)\ntime.sleep(60)")
        self.assertEqual(ab_kills.what_is_wrong([busy, busy], ab_kills.groups(), [], [busy]), [])
        self.assertEqual(ab_kills.what_is_wrong([busy, idle], ab_kills.groups(), [busy], [busy]),
                         [f"the candidate ({idle}) uses no CPU any more", f"process {busy} of it still runs"])
        os.kill(busy, signal.SIGSTOP)
        self.assertTrue(ab_kills.wait_for(lambda: ab_kills.how_it_stands(busy) == "stopped"))
        self.assertEqual(ab_kills.what_is_wrong([busy, busy], ab_kills.groups(), [], [busy]),
                         [f"the baseline ({busy}) stays stopped", f"the candidate ({busy}) stays stopped"])

    def test_a_group_that_is_left_and_frozen_is_seen(self):
        mount = next((mount for mount, controllers in ab_kills.hierarchies() if "freezer" in controllers), None)
        if os.geteuid() != 0 or mount is None:
            self.skipTest("needs root and the freezer of version 1")
        self.patience(0.5)
        busy = self.program("print(flush=True)\nwhile True: pass")
        before = ab_kills.groups()
        folder = os.path.join(mount, f"culprit-ab-{busy}-test")
        os.mkdir(folder)
        def put(group, name, value):
            with open(os.path.join(group, name), "w", encoding="utf-8") as file:
                file.write(str(value))
        try:
            put(folder, "cgroup.procs", busy)
            put(folder, "freezer.state", "FROZEN")
            self.assertTrue(ab_kills.wait_for(lambda: ab_kills.how_it_stands(busy) == "frozen"))
            self.assertEqual(ab_kills.what_is_wrong([busy], before, [], [busy]), [f"the baseline ({busy}) stays frozen", f"{folder} is left"])
            ab_kills.set_going([busy])
            self.assertIsNone(ab_kills.how_it_stands(busy))
        finally:
            put(folder, "freezer.state", "THAWED")
            put(mount, "cgroup.procs", busy)
            time.sleep(0.1)
            os.rmdir(folder)

    def test_a_killed_comparison_leaves_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("steps of running programs are seen by root")
        hidden = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0
        for more in ([], ["--signals"]) if hidden else ([],):
            done = subprocess.run([sys.executable, SCRIPT, "kill", "--runs", "2", "--within", "6", "--build", ARGS.bin, *more], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("2 of 2 fine", done.stdout)
            self.assertNotIn("stopped" if not more else "frozen", done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    _, rest = parser.parse_known_args(namespace=ARGS)
    ARGS.bin = os.path.abspath(ARGS.bin)
    unittest.main(argv=[sys.argv[0], *rest])
