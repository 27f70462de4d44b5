#!/usr/bin/env python3
"""`culprit record` where processes come and go, are many, or the recorder itself is held up: it never ends by accident, and says what it
lost in `info` and in `diff`. Tests that need eBPF skip where this machine has none.

    record_limits_test.py --bin BUILD_DIR --source ROOT [unittest options]

CULPRIT_LIMITS=full in the environment: many more processes and threads, and longer, which takes some minutes.
"""

import argparse
import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
import unittest

import record_test
from record_test import ARGS, FINE, LIMIT

PING_PONG = r"""
import os, threading, time
a, b = os.pipe(), os.pipe()
def pong():
    while True:
        os.read(a[0], 1)
        os.write(b[1], b"x")
threading.Thread(target=pong, daemon=True).start()
end = time.monotonic() + float(os.environ["CULPRIT_TEST_SECONDS"])
while time.monotonic() < end:
    os.write(a[1], b"x")
    os.read(b[0], 1)
"""

# Sleeps in 4096 places, each with callers of its own.
PLACES = r"""
#include <pthread.h>
#include <time.h>
static void walk(unsigned bits, int depth);
static void left(unsigned bits, int depth) { walk(bits >> 1, depth - 1); }
static void right(unsigned bits, int depth) { walk(bits >> 1, depth - 1); }
static void walk(unsigned bits, int depth) {
  if (depth > 0) return bits & 1 ? right(bits, depth) : left(bits, depth);
  nanosleep(&(struct timespec){0, 1500000}, 0);
}
static void *thread(void *number) {
  for (unsigned bits = (unsigned)(unsigned long)number; bits < 4096; bits += 8) walk(bits, 12);
  return 0;
}
int main(void) {
  pthread_t threads[8];
  for (unsigned long i = 0; i < 8; ++i) pthread_create(threads + i, 0, thread, (void *)i);
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], 0);
  return 0;
}
"""


def sized(usual, full):
    return full if os.environ.get("CULPRIT_LIMITS") == "full" else usual


class Limits(record_test.Case):
    def recorded(self, *arguments, code=FINE, **options):
        done = self.culprit("--json", "--force", "-o", self.path(), *arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotIn("internal error", done.stderr)
        return json.loads(done.stdout)

    def answer(self, verb, *arguments):
        done = subprocess.run([os.path.join(ARGS.bin, "culprit"), verb, *arguments], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, FINE, done.stderr)
        return done.stdout

    def losses(self, path=None):
        return {loss["reason"]: loss["count"] for loss in json.loads(self.answer("info", "--json", path or self.path()))["losses"]}

    def test_children_that_end_while_they_are_looked_at_end_nothing(self):
        script = f"i=0; while [ $i -lt {sized(200, 600)} ]; do /bin/true; i=$((i+1)); done; exit 7"
        for _ in range(sized(3, 50)):
            self.assertEqual(self.recorded("--", "sh", "-c", script, code=7)["end"], "target_ended")
        self.assertEqual(self.losses(), {})

    def test_fork_and_exec_in_a_row(self):
        program = (f"import os\nfor i in range({sized(500, 3000)}):\n os.waitpid(os.posix_spawn('/bin/true', ['true'], {{}}), 0)\nos._exit(5)")
        for _ in range(sized(1, 20)):
            self.assertEqual(self.recorded("--", sys.executable, "-c", program, code=5)["end"], "target_ended")
            self.assertEqual(self.losses(), {})

    def test_a_killed_recorder_has_said_that_calls_are_estimates(self):
        self.need_ebpf()
        target = self.start([sys.executable, "-c", "import os\nwhile True: os.getppid()"])
        recorder = self.recorder("--preset", "watch", "-p", str(target.pid), "-o", self.path())
        self.recording_begun(self.path())

        def share():
            try:
                return record_test.pftrace.Recording(self.path()).facts.get("syscalls.counted_share")
            except (ValueError, IndexError):  # it is being written
                return None

        self.until(share, "it says so")
        recorder.kill()
        recorder.wait()
        self.assertLess(float(share()), 0.5)

    def test_the_shortest_processes_have_the_name_of_their_program(self):
        self.need_ebpf()
        script = "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done"
        self.recorded("--", "sh", "-c", script)
        names = [process["process"] for process in json.loads(self.answer("info", "--json", self.path()))["scheduling"]["processes"]]
        self.assertEqual(names.count("true"), 400, set(names))
        self.assertIn("true (400 processes)", self.answer("top", self.path(), "--by", "call", "--wide", "--limit", "0"))
        rows = json.loads(self.answer("top", self.path(), "--by", "call", "--json"))["tables"][0]["rows"]
        self.assertEqual(sum(row["process"] == "true" and row["call"] == "execve" for row in rows), 400)

    def test_calls_that_outlast_their_window_are_told(self):
        self.need_ebpf()
        self.recorded("--preset", "watch", "--", sys.executable, "-c", "import time\nfor _ in range(90): time.sleep(0.06)")
        rows = json.loads(self.answer("top", self.path(), "--by", "call", "--json"))["tables"][0]["rows"]
        sleep = next(row for row in rows if row["call"] == "clock_nanosleep" and row["process"].startswith("python"))
        self.assertGreaterEqual(sleep["unended"], 1, sleep)
        self.assertLessEqual(sleep["unended"], 90)
        self.assertIn("too low by the others", self.answer("top", self.path(), "--by", "call", "--wide").replace("\n", " "))

    def need_flushes(self, folder):
        """A file system on a disk that has a cache to flush."""
        device = os.stat(folder).st_dev
        disk = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
        if not os.path.exists(disk):
            self.skipTest(f"{folder} is on no disk")
        if os.path.exists(os.path.join(disk, "partition")):
            disk = os.path.dirname(disk)
        with open(os.path.join(disk, "queue", "write_cache"), encoding="ascii") as file:
            if file.read().strip() != "write back":
                self.skipTest(f"{os.path.basename(disk)} has no cache to flush")

    def test_flushes_have_the_name_of_their_disk(self):
        self.need_ebpf()
        self.need_flushes("/var/tmp")
        program = ("import os, tempfile\nwith tempfile.NamedTemporaryFile(dir='/var/tmp') as f:\n"
                   " for _ in range(30): f.write(b'x' * 5000), f.flush(), os.fsync(f.fileno())")
        self.recorded("--", sys.executable, "-c", program)
        top = self.answer("top", "--by", "disk", "--format", "csv", self.path())
        disks = [row["disk"] for row in csv.DictReader(io.StringIO(top)) if row["operation"] == "flush"]
        self.assertNotEqual(disks, [], top)
        for disk in disks:
            self.assertTrue(os.path.exists(os.path.join("/sys/class/block", disk)), top)

    def test_calls_of_many_short_threads_are_all_counted(self):
        self.need_ebpf()
        threads = sized(500, 2000)
        program = (f"import threading, os, time\nfor b in range({threads // 100}):\n"
                   " ts = [threading.Thread(target=lambda: [os.getppid() for _ in range(10)]) for _ in range(100)]\n"
                   " [t.start() for t in ts]\n [t.join() for t in ts]\n")
        rarely = " time.sleep(0.1)\n"  # few enough a second to be counted without being asked for
        for options, program in ((["--every-call"], program), ([], program + rarely)):
            summary = self.recorded(*options, "--", sys.executable, "-c", program)
            recording = record_test.pftrace.Recording(self.path())
            lost = self.losses()
            self.assertEqual(summary["uncounted"], sum(lost.get(f"{what}_uncounted", 0) for what in ("calls", "requests", "times")))
            counted = sum(a["count"] for _, name, category, a in recording.slices if category == "syscall_total" and name == "getppid")
            self.assertEqual(counted + lost.get("calls_uncounted", 0), 10 * threads)

    def test_stacks_that_share_a_place_in_the_kernel_are_all_kept(self):
        self.need_ebpf()
        program = self.path("places")
        subprocess.run(["cc", "-O0", "-fno-omit-frame-pointer", "-pthread", "-x", "c", "-", "-o", program], input=PLACES, text=True, check=True,
                       timeout=LIMIT)
        self.recorded("--preset", "deep", "--no-collect", "syscalls", "--", program)
        self.assertEqual(self.losses(), {})
        stacks = {tuple(line.rpartition(" ")[0].split(";")) for line in self.answer("top", "--stacks", "off-cpu", "--folded", self.path()).splitlines()}
        places = {tuple(name for name in stack if name in ("left", "right")) for stack in stacks if stack[-1].endswith("nanosleep")}
        self.assertGreater(len(places), 0.9 * 4096, list(stacks)[:3])

    def test_who_waits_while_it_ends_has_no_stack_to_miss(self):
        self.need_ebpf()
        program = "import ctypes\nlibc = ctypes.CDLL(None)\nassert libc.inotify_add_watch(libc.inotify_init(), b'/', 0xfff) >= 0"
        self.recorded("--preset", "deep", "--no-collect", "syscalls", "--", sys.executable, "-c", program)
        self.assertEqual(self.losses(), {})

    def all_are_recorded_under(self, few):
        targets = [self.start(["sleep", "100"]) for _ in range(500)]
        summary = self.recorded("--duration", "1s", "-p", ",".join(str(target.pid) for target in targets),
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few))
        self.assertEqual(summary["end"], "duration")
        recording = record_test.pftrace.Recording(self.path())
        missing = [target.pid for target in targets if target.pid not in recording.processes]
        self.assertEqual(missing, [])

    def test_the_soft_limit_of_open_files_is_raised(self):
        self.all_are_recorded_under((64, 4096))

    def test_more_targets_than_open_files(self):
        self.all_are_recorded_under((64, 256))

    def test_a_started_command_keeps_its_limit_of_open_files(self):
        self.recorded("--", sys.executable, "-c", "import resource, sys\n"
                      "sys.exit(resource.getrlimit(resource.RLIMIT_NOFILE)[0] != 64)",
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096)))

    def test_what_a_recorder_that_was_stopped_lost_is_said_everywhere(self):
        self.need_ebpf()
        load = self.start([sys.executable, "-c", PING_PONG], env={**os.environ, "CULPRIT_TEST_SECONDS": "100"})
        recorder = self.recorder("--json", "--duration", "2s", "-o", self.path(), "-p", str(load.pid))
        self.recording_begun(self.path())
        recorder.send_signal(signal.SIGSTOP)
        time.sleep(sized(2, 10))
        recorder.send_signal(signal.SIGCONT)
        out, errors = recorder.communicate(timeout=LIMIT)
        self.assertEqual(recorder.returncode, FINE, errors)
        done = self.culprit("--duration", "0.2s", "-o", self.path("whole.pftrace"), "-p", str(load.pid))
        self.assertEqual(done.returncode, FINE, done.stderr)
        load.kill()
        dropped = json.loads(out)["dropped"]
        self.assertEqual(self.losses().get("recorder_dropped", 0), dropped)
        if dropped == 0:
            self.skipTest("this machine is too slow to fill the ring in two seconds")
        text = self.answer("diff", self.path("whole.pftrace"), self.path())
        self.assertIn("recorder_dropped", text)

    def test_many_marked_places_are_let_go_without_waiting(self):
        self.need_ebpf()
        places = 60
        source = self.path("marks.c")
        with open(source, "w", encoding="ascii") as file:
            file.write('#include "culprit_annotate.h"\n')
            for i in range(places):
                file.write(f'static void f{i}(void) {{ CULPRIT_STEP_BEGIN("s"); CULPRIT_STEP_END(); }}\n')
            file.write("#include <unistd.h>\nint main(void) { sleep(1); " + "".join(f"f{i}();" for i in range(places)) + " return 0; }\n")
        program = self.path("marks")
        subprocess.run(["cc", "-I", os.path.join(ARGS.source, "include"), "-o", program, source], check=True, timeout=LIMIT)
        begin = time.monotonic()
        summary = self.recorded("--", program)
        took = time.monotonic() - begin
        if any("USDT" in missing["what"] or "mark" in missing["what"] for c in summary["collectors"] for missing in c["missing"]):
            self.skipTest("no marks by eBPF here")
        self.assertEqual(summary["steps"], places)
        self.assertLess(took - summary["duration_ns"] / 1e9, 6, "0.1 s for each of 120 places")

    def test_where_processes_have_other_numbers_than_the_kernel_marks_are_refused(self):
        own = ["unshare", "--fork", "--pid", "--mount-proc"]
        if subprocess.run([*own, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no pid namespace may be made here")
        done = subprocess.run([*own, os.path.join(ARGS.bin, "culprit"), "record", "--collect", "annotate", "-o", self.path(), "--", "true"], capture_output=True, text=True,
                              timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("a pid namespace of its own", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    _, rest = parser.parse_known_args(namespace=ARGS)
    ARGS.bin = os.path.abspath(ARGS.bin)
    unittest.main(argv=[sys.argv[0], *rest])
