#!/usr/bin/env python3
"""Whom `culprit record` takes: by name, the whole machine, control groups; what they are called; and two recorders of one file.

    record_select_test.py --bin BUILD_DIR --source ROOT [unittest options]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import pftrace
import record_test
from record_test import ARGS, FINE, INPUT, LIMIT, USAGE

# A program that calls itself argv[1] and tells so, with as many children as argv[2] says, who call themselves argv[3].
NAMED = r"""
import ctypes, os, sys, time
call_me = lambda name: ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
call_me(sys.argv[1])
pids = [os.getpid()]
for _ in range(int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        call_me(sys.argv[3])
        time.sleep(100)
    pids.append(pid)
time.sleep(0.1)
print(*pids, flush=True)
time.sleep(100)
"""


# A program that writes its first argument over all of them, as setproctitle(3) does.
TITLED = r"""
import ctypes, sys, time
fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
begin, end = int(fields[45]), int(fields[46])
title = sys.argv[1].encode()
ctypes.memset(begin, 0, end - begin)
ctypes.memmove(begin, title, len(title))
print(flush=True)
time.sleep(100)
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Selecting(record_test.Case):
    def setUp(self):
        super().setUp()
        self.tag = f"zq{os.getpid() % 10000:04}"  # no other process is called so; the kernel keeps 15 characters

    def named(self, name, children=0, child="", behind=False):
        """Pids of a program and its children; `behind` a shell of their own, which is their parent."""
        command = [sys.executable, "-c", NAMED, name, str(children), child]
        if behind:
            command = ["sh", "-c", '"$@"; true', "sh", *command]
        target = self.start(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(self.kill_group, target.pid)
        return [int(pid) for pid in target.stdout.readline().split()]

    def kill_group(self, pid):
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def names(self, path=None):
        return pftrace.Recording(path or self.path()).processes

    def record(self, *arguments):
        done = self.culprit("--duration", "300ms", "-o", self.path(), "--force", *arguments)
        self.assertEqual(done.returncode, FINE, done.stderr)
        return done

    def test_by_name_by_the_begin_of_it_and_mixed_with_ids(self):
        one, = self.named(f"{self.tag}-one")
        two, = self.named(f"{self.tag}-two")
        for arguments, expected in (
            ([f"{self.tag}-one"], {one}),
            ([f"{self.tag}-tw"], {two}),
            ([f"{self.tag.upper()}-ONE"], {one}),
            ([f"{one},{self.tag}-two"], {one, two}),
        ):
            with self.subTest(arguments=arguments):
                done = self.record("-p", *arguments)
                recorded = {pid for pid, name in self.names().items() if name.startswith(self.tag)}
                self.assertEqual(recorded, expected)
                self.assertIn("is process", done.stderr)

    def test_by_the_name_of_argv(self):
        target = self.start(["bash", "-c", f"exec -a {self.tag}-argv sleep 100"])
        self.until(lambda: self.tag in read(f"/proc/{target.pid}/cmdline").split("\0")[0], "it has its name")
        self.record("-p", f"{self.tag}-argv")
        self.assertEqual(self.names()[target.pid], "sleep")

    def test_a_family_is_recorded_whole(self):
        parent, *workers = self.named(f"{self.tag}-main", 2, f"{self.tag}-work")
        self.record("-p", f"{self.tag}-main")
        self.assertLessEqual({parent, *workers}, set(self.names()))
        done = self.record("-p", f"{self.tag}-work")
        names = self.names()
        self.assertLessEqual(set(workers), set(names))
        self.assertFalse(names.get(parent, "").startswith(self.tag), "only its children are meant")
        self.assertIn(f"{workers[0]}, {workers[1]}", done.stderr)

    def test_strangers_of_one_name_are_listed(self):
        one, = self.named(f"{self.tag}-same", behind=True)
        two, = self.named(f"{self.tag}-same", behind=True)
        for verb in (["record", "-o", self.path()], ["doctor"]):
            done = subprocess.run([os.path.join(ARGS.bin, "culprit"), *verb, "-p", f"{self.tag}-same"], capture_output=True,
                                  text=True, timeout=LIMIT, check=False)
            self.assertEqual(done.returncode, USAGE, done.stderr)
            for pid in (one, two):
                self.assertIn(f"{pid} ({self.tag}-same, user ", done.stderr)
        self.assertFalse(os.path.exists(self.path()))

    def test_nobody_of_a_name_is_an_error_with_the_nearest(self):
        self.named(f"{self.tag}-nearly")
        done = self.culprit("-o", self.path(), "-p", f"{self.tag}-naerly")
        self.assertEqual(done.returncode, INPUT, done.stderr)
        self.assertIn(f"did you mean '{self.tag}-nearly'?", done.stderr)

    def test_the_name_at_the_end_is_shown(self):
        program = ("import ctypes,sys,time\nsys.stdin.readline()\n"
                   f"ctypes.CDLL(None).prctl(15, b'{self.tag}-later', 0, 0, 0)\nprint(flush=True)\nsys.stdin.readline()")
        for ends_first in (False, True):
            target = self.start([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            path = self.path(f"{ends_first}.pftrace")
            recorder = self.recorder("-p", str(target.pid), "-o", path)
            self.recording_begun(path)
            target.stdin.write("go\n")
            target.stdin.flush()
            target.stdout.readline()
            if ends_first:
                target.kill()  # a zombie until the end of the test
            else:
                recorder.send_signal(signal.SIGINT)
            _, errors = recorder.communicate(timeout=LIMIT)
            self.assertEqual(recorder.returncode, FINE, errors)
            self.assertEqual(self.names(path)[target.pid], f"{self.tag}-later")

    def test_a_title_that_a_program_wrote_is_shown_whole(self):
        title = f"{self.tag}: a worker of many words, as long as they are"
        target = self.start([sys.executable, "-c", TITLED, title, "x" * 100], stdout=subprocess.PIPE, text=True)
        target.stdout.readline()
        done = self.record("-p", f"{self.tag}: a worker")
        self.assertIn(f"is process {target.pid}", done.stderr)
        self.assertEqual(self.names()[target.pid], title)
        self.assertNotIn(b"x" * 100, pftrace.plain(self.path()))

    def test_the_whole_machine(self):
        one, = self.named(f"{self.tag}-early")
        recorder = self.recorder("-a", "--json", "-o", self.path())
        self.recording_begun(self.path())
        late, = self.named(f"{self.tag}-late")
        time.sleep(0.5)
        recorder.send_signal(signal.SIGINT)
        out, errors = recorder.communicate(timeout=LIMIT)
        self.assertEqual(recorder.returncode, FINE, errors)
        names = self.names()
        self.assertEqual(names.get(one), f"{self.tag}-early")
        self.assertEqual(names.get(late), f"{self.tag}-late")
        self.assertIn(os.getpid(), names)
        self.assertEqual(json.loads(out)["processes_left_out"], 0)

    def group(self, name):
        """A control group of this test, in any hierarchy that has room for one."""
        for hierarchy in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup"):
            folder = os.path.join(hierarchy, name)
            try:
                os.mkdir(folder)
            except OSError:
                continue
            self.addCleanup(lambda: os.path.isdir(folder) and os.rmdir(folder))
            if os.path.exists(os.path.join(folder, "cgroup.procs")):
                return folder
        self.skipTest("no control group can be made here")
        return ""

    def test_a_control_group_and_who_joins_it(self):
        folder = self.group(f"{self.tag}-group")
        join = lambda pid: write(f"{folder}/cgroup.procs", str(pid))
        inside, = self.named(f"{self.tag}-inside")
        late, = self.named(f"{self.tag}-late")
        outside, = self.named(f"{self.tag}-outside")
        join(inside)
        recorder = self.recorder("--cgroup", folder, "-o", self.path())
        self.recording_begun(self.path())
        join(late)

        def is_known():
            try:
                return late in self.names()
            except (ValueError, IndexError):  # it is being written
                return False

        self.until(is_known, "who joined is in the file")
        for pid in (inside, late):
            os.kill(pid, signal.SIGKILL)
        self.until(lambda: not read(f"{folder}/cgroup.procs"), "the group is empty")
        time.sleep(0.3)
        self.assertIsNone(recorder.poll(), "somebody may come")
        os.rmdir(folder)
        _, errors = recorder.communicate(timeout=LIMIT)
        self.assertEqual(recorder.returncode, FINE, errors)
        recorded = {pid for pid, name in self.names().items() if name.startswith(self.tag)}
        self.assertEqual(recorded - {outside}, {inside, late})
        self.assertEqual(pftrace.Recording(self.path()).facts["record.end"], "target_ended")

    def test_a_container_by_the_begin_of_its_id(self):
        number = f"{os.getpid():x}".rjust(12, "b").ljust(64, "0")
        folder = self.group(f"docker-{number}.scope")
        inside, = self.named(f"{self.tag}-boxed")
        write(f"{folder}/cgroup.procs", str(inside))
        self.record("--container", number[:12])
        self.assertEqual(self.names()[inside], f"{self.tag}-boxed")
        os.kill(inside, signal.SIGKILL)
        self.until(lambda: not read(f"{folder}/cgroup.procs"), "the group is empty")


class Ring(record_test.Case):
    def files(self):
        return sorted(name for name in os.listdir(self.folder.name) if name.startswith("run."))

    def test_each_file_is_complete_and_the_last_are_kept(self):
        program = ("import threading, time\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
                   "def naps():\n while True: time.sleep(0.4)\n"
                   "threading.Thread(target=naps, daemon=True).start()\nwhile True: time.sleep(0.01)")
        target = self.start([sys.executable, "-c", program])
        done = self.culprit("-p", str(target.pid), "-o", self.path(), "--duration", "2300ms", "--switch-output", "500ms,3", "--json")
        self.assertEqual(done.returncode, FINE, done.stderr)
        written = json.loads(done.stdout)["files_written"]
        self.assertIn(written, (4, 5))  # a round takes up to 50 ms, and more on a busy machine
        self.assertEqual(self.files(), [f"run.{number:04}.pftrace" for number in range(written - 2, written + 1)])
        for name in self.files():
            recording = pftrace.Recording(self.path(name))
            last = name == self.files()[-1]
            self.assertEqual(recording.facts["record.end"], "duration" if last else "switched")
            self.assertEqual(recording.facts["record.preset"], "deep")
            self.assertIn("env.kernel.release", recording.facts)
            self.assertIn("sched.source", recording.facts)
            self.assertLess(int(recording.facts["record.duration_ns"]), 1_000_000_000, "of this file alone")
            self.assertIn(target.pid, recording.processes)
            self.assertIn(target.pid, recording.threads)
            if recording.facts["sched.source"] == "ebpf" and not last:
                sleeps = sum("nanosleep" in call for _, call, category, _ in recording.slices if category == "blocked")
                self.assertGreater(sleeps, 20)
            info = subprocess.run([os.path.join(ARGS.bin, "culprit"), "info", "--json", self.path(name)], capture_output=True,
                                  text=True, timeout=LIMIT, check=False)
            self.assertEqual(info.returncode, FINE, info.stderr)
            self.assertEqual(json.loads(info.stdout)["losses"], [], info.stdout)
            self.assertLess(json.loads(info.stdout)["duration_ns"], 1.2 * int(recording.facts["record.duration_ns"]) + 50_000_000)

    def test_each_file_says_that_its_calls_are_estimates(self):
        target = self.start([sys.executable, "-c", "import os\nwhile True: os.getppid()"])
        done = self.culprit("-p", str(target.pid), "-o", self.path(), "--duration", "7s", "--switch-output", "3s", "--preset", "watch")
        self.assertEqual(done.returncode, FINE, done.stderr)
        for name in self.files():
            facts = pftrace.Recording(self.path(name)).facts
            if facts["sched.source"] == "ebpf":
                self.assertIn("syscalls.counted_share", facts, name)
                self.assertLess(float(facts["syscalls.counted_share"]), 0.5, name)

    def test_files_that_exist_are_refused_before_anything_is_recorded(self):
        write(self.path("run.0007.pftrace"), "precious")
        done = self.culprit("-o", self.path(), "--switch-output", "1s", "--", "true")
        self.assertEqual(done.returncode, USAGE, done.stderr)
        self.assertIn("run.0007.pftrace", done.stderr)
        self.assertEqual(self.files(), ["run.0007.pftrace"])

    def test_what_is_no_time_is_refused(self):
        for text in ("5", "1ms", "1s,0", "1s,x", ",3", "1s,-1"):
            done = self.culprit("-o", self.path(), "--switch-output", text, "--", "true")
            self.assertEqual(done.returncode, USAGE, text)
        self.assertEqual(self.culprit("-o", "/dev/stderr", "--switch-output", "1s", "--", "true").returncode, USAGE)


class TwoRecorders(record_test.Case):
    def test_a_file_that_is_being_recorded_is_not_replaced(self):
        target = self.start(["sleep", "100"])
        first = self.recorder("-p", str(target.pid), "-o", self.path())
        self.recording_begun(self.path())
        second = self.culprit("--force", "-o", self.path(), "--", "true")
        self.assertEqual(second.returncode, USAGE, second.stderr)
        self.assertIn(f"is being written by process {first.pid}", second.stderr)
        first.send_signal(signal.SIGINT)
        _, errors = first.communicate(timeout=LIMIT)
        self.assertEqual(first.returncode, FINE, errors)
        self.assertIn(target.pid, pftrace.Recording(self.path()).processes)
        self.assertEqual(self.culprit("--force", "-o", self.path(), "--", "true").returncode, FINE)

    def test_what_a_recorder_left_that_was_killed_while_starting_is_removed(self):
        stale = self.path("run.pftrace.4194305.0.tmp")
        with open(stale, "w", encoding="ascii") as file:
            file.write("stale")
        self.assertEqual(self.culprit("-o", self.path(), "--", "true").returncode, FINE)
        self.assertEqual(os.listdir(self.folder.name), ["run.pftrace"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    _, rest = parser.parse_known_args(namespace=ARGS)
    ARGS.bin = os.path.abspath(ARGS.bin)
    unittest.main(argv=[sys.argv[0], *rest])
