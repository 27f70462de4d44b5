#!/usr/bin/env python3
"""Recorders that come to a program at the same moment, and threads that others keep from a CPU.

    attach_beside_test.py --bin BUILD_DIR [unittest options]
"""

import glob
import os
import signal
import subprocess
import sys
import time

import attaching
from attaching import ARGS, LIMIT, Case

ROUNDS = 3
IN_USE = "another recorder is attached to it"
NO_PYTHON = "there is no Python in this process"

# Threads that wait and allocate.
THREADS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int stop = 0;
static void* work(void* out) {
  while (!stop) {
    free(malloc(100));
    usleep(200);
  }
  return out;
}
int main(void) {
  char line[16];
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, NULL);
  puts("ready");
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return 2;
  stop = 1;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  return 0;
}
"""

# Holds the loader's lock while it waits in the kernel, where nobody can stop it, for a child that sleeps.
LOADS_SLOWLY = r"""
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((constructor)) static void wait(void) {
  if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, 0) == 0) _exit(sleep(3) != 0);
}
"""

# Its first thread loads that library, and says how long it took; another one computes.
LOADER = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static volatile int stop = 0;
static void* compute(void* n) {
  while (!stop) n = (char*)n + 1;
  return n;
}
int main(void) {
  char line[16];
  struct timespec begin, end;
  pthread_t thread;
  pthread_create(&thread, NULL, compute, NULL);
  puts("ready");
  fflush(stdout);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  if (!dlopen(LIBRARY, RTLD_NOW)) return 3;
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%f\n", (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9);
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return 2;
  stop = 1;
  pthread_join(thread, NULL);
  return 0;
}
"""

# Its thread waits in the kernel, where nobody can stop it, for a child that ends with the standard input.
DOES_NOT_STOP = r"""
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  char byte = 0;
  puts("ready");
  fflush(stdout);
  if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, 0) == 0) _exit(read(0, &byte, 1) < 0);
  return 0;
}
"""

# Does what it is told to.
ANSWERS = """
import json, subprocess, sys
def work(n): return n
def start(program):
    global child
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return child.stdout.readline().decode()
print("ready", flush=True)
for line in sys.stdin:
    if line == "end\\n":
        break
    print(json.dumps(eval(line)), flush=True)
"""

# One thread, which computes.
COMPUTES = """
import time
def work(n):
    return sum(range(n))
print("ready", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    work(10000)
"""


class Beside(Case):
    def start_recorders(self, pid, count, *options):
        """All at the same moment; what each says, by its number, goes to a file."""
        recorders = []
        for number in range(count):
            for left in glob.glob(self.path(f"{number}.*")):
                os.remove(left)
            with open(self.path(f"{number}.said"), "w", encoding="utf-8") as said:
                recorders.append(subprocess.Popen([os.path.join(ARGS.bin, "culprit"), "record", "--collect", "python", "-o", self.path(f"{number}.pftrace"), "-p", str(pid),
                                                   "--python", "__main__:Server.run", "-v", *options], stdout=said, stderr=said, text=True))
        self.children += recorders
        return recorders

    def said(self, number):
        return self.text_of(self.path(f"{number}.said"))

    def begun(self, number):
        return os.path.exists(self.path(f"{number}.pftrace"))

    def state(self, child):
        maps = self.text_of(f"/proc/{child.pid}/maps")
        return (sorted(os.readlink(f"/proc/{child.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{child.pid}/fd")), self.count(child.pid, "task"), maps.count("culprit-ring"))

    @staticmethod
    def libraries(child):
        return sum("culprit-agent" in line and " r-xp " in line for line in Case.text_of(f"/proc/{child.pid}/maps").splitlines())

    def test_one_of_several_recorders_has_a_program_in_python(self):
        child = self.program()
        before = self.state(child)
        for count in (2, 4):
            for turn in range(ROUNDS):
                recorders = self.start_recorders(child.pid, count)
                self.wait_until(lambda: all(self.begun(n) or recorders[n].poll() is not None for n in range(count)), "they do not begin")
                self.wait_until(lambda: self.ring(child.pid)[20:24] == b"\1\0\0\0", "no agent came")
                self.ask(child)
                for recorder in recorders:
                    recorder.send_signal(signal.SIGINT)
                codes = [recorder.wait(timeout=LIMIT) for recorder in recorders]
                said = [self.said(number) for number in range(count)]
                self.assertEqual(codes, [0] * count, said)
                self.assertEqual(sorted(IN_USE in text for text in said), [False] + [True] * (count - 1), said)
                winner = next(number for number in range(count) if IN_USE not in said[number])
                self.assertEqual(self.calls(f"{winner}.pftrace")["Server.run"], 200, (turn, said[winner]))
                self.assertEqual(self.facts(f"{winner}.pftrace")["cost.python.dropped"], "0")
                self.idle(child)
                self.assertEqual(self.state(child), before)
                self.assertEqual(self.libraries(child), 1)
        self.assertEqual(self.ask(child, "end"), {"same": True, "tools": []})
        self.assertEqual(child.wait(timeout=LIMIT), 0)

    def test_who_comes_right_behind_a_killed_recorder_waits_until_its_agent_has_ended(self):
        child = self.program(text=COMPUTES)
        killed = self.recorder(child.pid, "__main__:work", name="killed.pftrace")
        self.attached(killed, child)
        killed.kill()
        killed.wait()
        done = self.culprit("record", "--collect", "python", "-o", self.path("second.pftrace"), "-p", str(child.pid), "--duration", "14s", "--python", "__main__:work", "-v")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.calls("second.pftrace").get("work", 0), 0, done.stderr)
        self.assertIn("calls before it could be attached to are missing", self.facts("second.pftrace")[f"missing.python.{child.pid}"])

    def test_several_recorders_leave_a_program_in_c_as_it_was(self):
        child = self.compiled("threads", THREADS, "cc", "-pthread")
        before = self.state(child)
        for count in (2, 4):
            for _ in range(ROUNDS):
                recorders = self.start_recorders(child.pid, count, "--duration", "50ms")
                codes = [recorder.wait(timeout=LIMIT) for recorder in recorders]
                said = [self.said(number) for number in range(count)]
                self.assertEqual(codes, [0] * count, said)
                for text in said:
                    self.assertTrue(NO_PYTHON in text or IN_USE in text, text)
                self.assertIsNone(child.poll(), "it runs")
                self.idle(child)
                self.assertEqual(self.state(child), before)
                self.assertEqual(self.libraries(child), 1)
        self.goes_on(child)

    def test_a_tracer_of_any_thread_is_respected(self):
        child = self.compiled("threads", THREADS, "cc", "-pthread")
        other = max(int(tid) for tid in os.listdir(f"/proc/{child.pid}/task"))
        self.assertNotEqual(other, child.pid)
        tracer = self.start([sys.executable, "-c", "import ctypes, sys; assert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0; "
                             "print('ready', flush=True); sys.stdin.readline()", str(other)])  # PTRACE_SEIZE
        self.addCleanup(tracer.kill)  # before the program, which cannot end without it
        if tracer.stdout.readline() != "ready\n":
            self.skipTest("nobody may trace here")
        before = self.state(child)
        self.refused(child.pid, f"traced by process {tracer.pid}")
        self.assertEqual(self.state(child), before)
        self.assertEqual(self.libraries(child), 0)
        self.assertIn(f"traced by process {tracer.pid}", self.culprit("doctor", "-p", str(child.pid)).stdout)
        self.goes_on(tracer)
        self.goes_on(child)

    def record_beside(self, duration, *children):
        """A recorder of all of them, when the first one is attached to and the recording has begun."""
        command = [os.path.join(ARGS.bin, "culprit"), "record", "--collect", "python", "-o", self.path(), "--duration", duration, "--python", "__main__:work"]
        for child in children:
            command += ["-p", str(child.pid)]
        recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.children.append(recorder)
        self.attached(recorder, children[0])
        return recorder

    def call_until_its_end(self, child, recorder):
        """How often it called `work`, and what the recorder said."""
        count = 0
        while recorder.poll() is None:
            self.ask(child, f"work({count})")
            count += 1
            time.sleep(0.05)
        return count, recorder.stderr.read()

    def missed_none(self, count, errors, duration):
        self.assertNotIn("stood still", errors)
        self.assertLess(int(self.facts()["record.duration_ns"]) / 1e9, duration + 0.5)
        self.assertGreater(self.calls()["work"], count * 0.8 - 10)  # what is called while it begins and ends is none of the recording

    def test_processes_that_do_not_stop_hold_up_nobody(self):
        child = self.program(text=ANSWERS)
        stuck = [self.compiled(name, DOES_NOT_STOP, "cc", "-D_GNU_SOURCE") for name in ("one", "other")]
        begin = time.monotonic()
        recorder = self.record_beside("4s", child, *stuck)
        count, errors = self.call_until_its_end(child, recorder)
        self.assertLess(time.monotonic() - begin, 4 + 5)
        self.missed_none(count, errors, 4)
        for one in stuck:
            self.assertIn(f"process {one.pid}: a thread of it gets no CPU", errors)
            self.assertIn("gets no CPU", self.facts()[f"missing.python.{one.pid}"])
            self.goes_on(one)
        self.goes_on(child)

    def test_one_that_joins_and_does_not_stop_holds_up_nobody(self):
        child = self.program(text=ANSWERS)
        self.goes_on(self.compiled("stuck", DOES_NOT_STOP, "cc", "-D_GNU_SOURCE"))
        recorder = self.record_beside("4s", child)
        self.assertEqual(self.ask(child, f"start({self.path('python3-stuck')!r})"), "ready\n")
        count, errors = self.call_until_its_end(child, recorder)
        self.missed_none(count, errors, 4)
        self.assertIn("a thread of it gets no CPU", errors)
        self.goes_on(child)

    def test_who_holds_the_lock_of_the_loader_goes_on(self):
        library = self.path("libslow.so")
        with open(self.path("slow.c"), "w", encoding="utf-8") as file:
            file.write(LOADS_SLOWLY)
        subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-shared", "-fPIC", self.path("slow.c"), "-o", library], check=True)
        child = self.compiled("loader", LOADER, "cc", "-D_GNU_SOURCE", "-pthread", f'-DLIBRARY="{library}"')
        done = self.culprit("record", "--collect", "python", "-o", self.path(), "-p", str(child.pid), "--duration", "8s", "--python", "__main__:work", "-v")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(float(child.stdout.readline()), 6, done.stderr)
        self.goes_on(child)

    def test_a_thread_that_hardly_gets_a_cpu_is_waited_for(self):
        """It comes behind another one on the same CPU."""
        child = self.program(text=COMPUTES)
        cpu = {max(os.sched_getaffinity(0))}
        os.sched_setaffinity(child.pid, cpu)
        os.sched_setscheduler(child.pid, os.SCHED_IDLE, os.sched_param(0))
        beside = self.start([sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass"])
        self.assertEqual(beside.stdout.readline(), "ready\n")
        os.sched_setaffinity(beside.pid, cpu)
        recorder = self.recorder(child.pid, "__main__:work", says="-v")
        # It has put the agent in and is back. Until that has its callbacks in place may take a minute more.
        self.wait_until(lambda: self.ring(child.pid)[268:272] == b"\1\0\0\0", "no agent came", LIMIT)
        recorder.send_signal(signal.SIGINT)
        errors = recorder.communicate(timeout=LIMIT)[1]
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertIn("recorded ", errors)
        self.assertNotIn(f"process {child.pid}: ", errors)


if __name__ == "__main__":
    attaching.main()
