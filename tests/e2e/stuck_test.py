#!/usr/bin/env python3
"""A program that stops doing steps while it is recorded: held, hung, in an endless loop, or without anything to do; and one that did so before.

    stuck_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = argparse.Namespace(bin="build")
SECONDS = 5

STEPS = r"""
import signal, sys, threading
now = []
signal.signal(signal.SIGUSR1, lambda *_: now.append(sys.argv[1]))
held = threading.Lock()
held.acquire()

def step(n):
    if "hang" in now:
        held.acquire()
    while "loop" in now:
        pass
    return sum(range(n))
"""

# A step for each byte that comes.
PROGRAM = r"""
import socket, threading, time
import steps
here, there = socket.socketpair()

def ask():
    while "idle" not in steps.now:
        there.send(b"x")
        time.sleep(0.01)

threading.Thread(target=ask, daemon=True).start()
while here.recv(1):
    steps.step(20000)
"""

DEADLOCK = r"""
import threading
first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)

def take(one, other):
    with one:
        both.wait()
        with other:
            pass

threads = [threading.Thread(target=take, args=pair, daemon=True) for pair in ((first, second), (second, first))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

SERVER = r"""
import socket, threading
lock = threading.Lock()
lock.acquire()
threading.Thread(target=lock.acquire, daemon=True).start()
with socket.create_server(("127.0.0.1", 0)) as listening:
    listening.accept()
"""


def ran(pid):
    """How long the threads of a process have run so far, each."""
    times = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
            times[tid] = file.read().split()[0]
    return times


def wait_until_asleep(pid, threads):
    """It has so many threads, and none of them has run for two seconds."""
    deadline = time.monotonic() + 60
    before, now = None, ran(pid)
    while (now != before or len(now) != threads) and time.monotonic() < deadline:
        time.sleep(2)
        before, now = now, ran(pid)


@unittest.skipUnless(os.geteuid() == 0, "eBPF needs privileges")
class Asleep(unittest.TestCase):
    """Of programs whose threads all sleep before they are recorded."""

    def answers(self, command, threads, preset="deep"):
        """Of `info`, `cycles` and `diagnose`, the last one as JSON; and the file's facts."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "asleep.pftrace")
            program = subprocess.Popen(command)
            try:
                wait_until_asleep(program.pid, threads)
                done = subprocess.run([os.path.join(ARGS.bin, "culprit"), "record", "-q", "-o", path, "-p", str(program.pid), "--preset", preset,
                                       "--duration", "2s"], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
            finally:
                program.kill()
                program.wait()
            texts = []
            for arguments in (["info"], ["cycles"], ["diagnose"], ["diagnose", "--json"]):
                done = subprocess.run([os.path.join(ARGS.bin, "culprit"), *arguments, path], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 3 if arguments == ["cycles"] else 0, done.stdout + done.stderr)
                texts.append(" ".join(done.stdout.split()))
            if "sched" not in texts[0] and "slept in" not in texts[0]:
                self.skipTest("eBPF cannot be used here")
            return *texts[:3], json.loads(texts[3])

    def test_a_deadlock_before_the_recording_hangs(self):
        info, cycles, diagnose, answer = self.answers([sys.executable, "-c", DEADLOCK], 3)
        for text in (info, cycles, diagnose):
            self.assertIn("idle: none of its threads ran, they slept in futex (3)", text)
        self.assertEqual([(v["cause"], v["detail"], v["state"]) for v in answer["verdicts"]], [("hang", "wait", "latent")])
        self.assertIn("Every thread waits for another", diagnose)

    def test_diff_tells_a_deadlock_beside_one_that_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, f"{name}.pftrace") for name in ("runs", "hangs")]
            for path, code in zip(paths, ["import time\nwhile True: time.sleep(0.001)", DEADLOCK]):
                program = subprocess.Popen([sys.executable, "-c", code])
                try:
                    if code == DEADLOCK:
                        wait_until_asleep(program.pid, 3)
                    else:
                        time.sleep(2)
                    subprocess.run([os.path.join(ARGS.bin, "culprit"), "record", "-q", "-o", path, "-p", str(program.pid), "--duration", "2s"],
                                   check=True, capture_output=True)
                finally:
                    program.kill()
                    program.wait()
            done = subprocess.run([os.path.join(ARGS.bin, "culprit"), "diff", *paths, "--json"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = json.loads(done.stdout)
            if "slept in" not in said["why"]:
                self.skipTest("eBPF cannot be used here")
            self.assertEqual([(v["cause"], v["side"], v["state"]) for v in said["verdicts"]], [("hang", "candidate", "latent")])
            text = subprocess.run([os.path.join(ARGS.bin, "culprit"), "diff", *paths], capture_output=True, text=True, check=False).stdout
            self.assertIn("Every thread waits for another", " ".join(text.split()))

    def test_an_idle_server_has_no_cause(self):
        info, cycles, diagnose, answer = self.answers([sys.executable, "-c", SERVER], 2, preset="watch")
        for text in (info, cycles, diagnose):
            self.assertRegex(text, r"idle: none of its threads ran, they slept in (futex \(1\), accept4 \(1\)|accept4 \(1\), futex \(1\))")
        self.assertEqual(answer["verdicts"], [])
        self.assertIn("slept in", answer["idle"])

    def test_who_sleeps_by_time_has_no_cause(self):
        info, _, diagnose, answer = self.answers(["sleep", "1000"], 1)
        self.assertIn("they slept in clock_nanosleep (1)", info)
        self.assertIn("they slept in clock_nanosleep (1)", diagnose)
        self.assertEqual(answer["verdicts"], [])


@unittest.skipUnless(os.geteuid() == 0, "eBPF needs privileges")
class Stuck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, text in (("steps.py", STEPS), ("program.py", PROGRAM)):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)

    def recording(self, what, sent=signal.SIGUSR1, before=0):
        """Of a program that does `what` from the middle of it on, or, where it is sent a signal before, all the time."""
        path = os.path.join(self.folder, what + ".pftrace")
        program = subprocess.Popen([sys.executable, os.path.join(self.folder, "program.py"), what])
        try:
            if before:
                time.sleep(1)
                program.send_signal(before)
            recorder = subprocess.Popen([os.path.join(ARGS.bin, "culprit"), "record", "-q", "-o", path, "-p", str(program.pid), "--python",
                                         "steps:step(n) as step", "--duration", f"{SECONDS}s"], stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 60
            while not os.path.exists(path) and recorder.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(SECONDS * 0.4)
            program.send_signal(sent)
            errors = recorder.communicate(timeout=60)[1]
            self.assertEqual(recorder.returncode, 0, errors)
        finally:
            program.kill()
            program.wait()
        return path

    def answer(self, base, *candidates):
        done = subprocess.run([os.path.join(ARGS.bin, "culprit"), "diff", "--json", base, "--vs", *candidates], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_why_a_program_does_no_steps_any_more(self):
        base = self.recording("on", sent=0)
        info = subprocess.run([os.path.join(ARGS.bin, "culprit"), "info", "--json", base], capture_output=True, text=True, check=True)
        if not json.loads(info.stdout)["scheduling"]["threads"]:
            self.skipTest("eBPF cannot be used here")
        still = self.recording("still on", sent=0)
        same = self.answer(base, still)
        if same["baseline"]["cycles"] < 100:
            self.skipTest("steps of Python are not seen here")
        self.assertNotIn("ended", same["why"])
        # Steps before it may be slower as well, beside other tests.
        hung = self.answer(base, self.recording("hang"))
        self.assertIn(hung["outcome"], ("inconclusive", "regression"), hung["why"])
        self.assertRegex(" ".join([hung["why"], *hung["notes"]]), r"a step that began [\d.]+s before the end of the candidate has not ended: .+ was blocked in futex")
        self.assertIn("hang/wait", [f"{v['cause']}/{v['detail']}" for v in hung["verdicts"]])
        looping = self.answer(base, self.recording("loop"))
        self.assertIn(looping["outcome"], ("inconclusive", "regression"), looping["why"])
        self.assertRegex(" ".join([looping["why"], *looping["notes"]]), r"has not ended: .+ was on a CPU for [\d.]+s of that")
        idle = self.answer(base, self.recording("idle"))
        self.assertNotRegex(" ".join([idle["why"], *idle["notes"]]), "has not ended|no step began")
        stopped = self.answer(base, self.recording("stopped", sent=signal.SIGSTOP))
        self.assertEqual(stopped["outcome"], "regression", stopped["why"])
        self.assertEqual(stopped["verdicts"][0]["cause"], "process_stopped")
        never = self.recording("never", sent=0, before=signal.SIGSTOP)
        self.assertEqual(self.answer(base, never)["outcome"], "regression")
        for candidates in ((never, still), (still, never)):
            both = self.answer(base, *candidates)
            self.assertRegex(" ".join(both["notes"]), "1 of 2 recordings of the candidate did no step, .+ left out: .+never")
            self.assertEqual((both["outcome"], both["findings"]), (same["outcome"], same["findings"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
