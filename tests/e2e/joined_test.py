#!/usr/bin/env python3
"""A profiler's trace and a recording of the same seconds as one run. The trace is written by a small program that does what a profiler
does: it notes the begin and the end of its steps and operators by the clock, with its own ids. Skips where this machine has no eBPF.

    joined_test.py --bin BUILD_DIR --source ROOT [unittest options]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = argparse.Namespace(bin="build", source=".")
FINE, INPUT = 0, 3
LIMIT = 60

# Steps of 4 ms of work and 2 ms of sleep on one CPU, for SECONDS; a Kineto trace of them.
PROFILED = r"""
import json, os, sys, threading, time
path, seconds, cpu = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
os.sched_setaffinity(0, {cpu})
pid, tid, base = os.getpid(), threading.get_native_id(), time.time_ns()
events = []
def note(name, category, begin):
    events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": (begin - base) / 1000,
                   "dur": (time.time_ns() - begin) / 1000})
step = 0
while time.time_ns() - base < seconds * 1e9:
    begin = time.time_ns()
    work = time.thread_time_ns()
    while time.thread_time_ns() - work < 4_000_000:
        pass
    note("aten::mm", "cpu_op", begin)
    idle = time.time_ns()
    time.sleep(0.002)
    note("aten::wait", "cpu_op", idle)
    note(f"ProfilerStep#{step}", "user_annotation", begin)
    step += 1
json.dump({"schemaVersion": 1, "baseTimeNanoseconds": base, "traceEvents": events}, open(path, "w"))
"""


class Joined(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="culprit-joined-")
        cls.addClassCleanup(cls.folder.cleanup)
        probe = cls.culprit("record", "--json", "-o", cls.path("probe.pftrace"), "--", "true")
        for collector in json.loads(probe.stdout)["collectors"]:
            for missing in collector["missing"]:
                if missing["what"].startswith("context switches"):
                    raise unittest.SkipTest(f"no eBPF here: {missing['why']}")
    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def culprit(cls, *arguments, code=FINE):
        run = subprocess.run([os.path.join(ARGS.bin, "culprit"), *arguments], capture_output=True, text=True, timeout=LIMIT)
        assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
        return run

    def both(self, name, seconds=3):
        """Trace and recording of the same seconds, made when they are asked for first."""
        files = [self.path(f"{name}.json"), self.path(f"{name}.pftrace")]
        if not os.path.exists(files[0]):
            self.culprit("record", "-o", files[1], "--", sys.executable, "-c", PROFILED, files[0], str(seconds), "0")
        return files

    def busy(self):
        """The same beside a program that wants the same CPU."""
        rival = self.path("rival")
        os.symlink("/bin/sh", rival)
        child = subprocess.Popen(["taskset", "-c", "0", rival, "-c", "while :; do :; done"])
        try:
            return self.both("busy")
        finally:
            child.kill()
            child.wait()

    def test_steps_come_from_the_trace_and_what_they_waited_for_from_the_recording(self):
        for files in (self.both("normal"), self.both("normal")[::-1]):
            info = json.loads(self.culprit("info", "--json", *files).stdout)
            cycles = info["cycles"]
            self.assertEqual(cycles["method"], "marker")
            step = cycles["step"]
            self.assertGreater(step["cycles"], 20)
            whole = step["on_cpu_ns"] + step["run_queue_ns"] + step["blocked_ns"]
            self.assertAlmostEqual(whole / step["period_ns"], 1, delta=0.01)
            self.assertGreater(step["on_cpu_ns"], 3.9e6)
            self.assertGreater(step["blocked_ns"], 1.9e6)
            self.assertEqual(info["clock"], "realtime")
        text = self.culprit("info", *self.both("normal")).stdout
        self.assertIn("normal.pftrace", text)
        self.assertIn("per step", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_top_profile_and_export_take_both(self):
        self.assertIn("aten::mm", self.culprit("top", *self.both("normal")).stdout)
        self.culprit("profile", *self.both("normal"), "-o", self.path("profile"))
        self.culprit("export", *self.both("normal"), "-o", self.path("both.pftrace"))
        again = json.loads(self.culprit("info", "--json", self.path("both.pftrace")).stdout)
        self.assertEqual(again["cycles"]["method"], "marker")
        self.assertGreater(sum(thread["on_cpu_ns"] for thread in again["scheduling"]["threads"]), 1e8)

    def test_classes_of_rows_are_chosen(self):
        files = self.both("normal")
        rows = {}
        for name in ("functions", "sched", "syscall", "all"):
            answer = json.loads(self.culprit("top", *files, "--class", name, "--json", "--limit", "0").stdout)
            rows[name] = {row["name"]: row["calls"] for row in answer["tables"][0]["rows"]}
        self.assertIn("aten::mm", rows["functions"])
        self.assertFalse({"oncpu", "runq"} & rows["functions"].keys())
        self.assertIn("oncpu", rows["sched"])
        self.assertNotIn("aten::mm", rows["sched"])
        self.assertNotIn("aten::mm", rows["syscall"])
        for name in ("functions", "syscall"):
            self.assertLessEqual(rows[name].items(), rows["all"].items())
        # Among all classes the blocked states stand under their reasons.
        for name in ("oncpu", "runq"):
            self.assertEqual(rows["sched"][name], rows["all"][name])

    def test_a_competitor_shows_as_run_queue_and_by_its_name(self):
        files = [*self.both("normal"), "--vs", *self.busy()]
        text = self.culprit("diff", *files).stdout
        self.assertIn("regression", text.splitlines()[0])
        self.assertIn("rival took", text)
        host = json.loads(self.culprit("diff", "--json", *files).stdout)["host"]
        step = {state["what"]: (state["baseline"], state["candidate"]) for state in host["step_thread"]}
        queue = step["runnable, in the run queue"]
        self.assertGreater(queue[1] - queue[0], 0.5e6)
        rival = next(other for other in host["beside"] if other["what"] == "rival")
        self.assertGreater(rival["candidate"], rival["baseline"] + 0.05)

    def test_other_seconds_are_refused(self):
        normal, other = self.both("first", 1), self.both("second", 1)
        run = self.culprit("info", normal[0], other[1], code=INPUT)
        self.assertIn("are of different times", run.stderr)
        run = self.culprit("diff", *normal, "--vs", other[0], normal[1], code=INPUT)
        self.assertIn("are of different times", run.stderr)

    def test_a_recording_of_another_program_is_refused(self):
        other = self.path("other.pftrace")
        with subprocess.Popen([os.path.join(ARGS.bin, "culprit"), "record", "-q", "-o", other, "--", "sleep", "4"]) as recorder:
            while not (os.path.exists(other) and os.path.getsize(other) > 0):
                self.assertIsNone(recorder.poll(), "it records")
                time.sleep(0.05)
            subprocess.run([sys.executable, "-c", PROFILED, self.path("alone.json"), "1", "0"], timeout=LIMIT, check=True)
            self.assertEqual(recorder.wait(LIMIT), 0)
        run = self.culprit("info", self.path("alone.json"), self.path("other.pftrace"), code=INPUT)
        self.assertIn("no process in common", run.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
