#!/usr/bin/env python3
"""Call stacks of real programs: whose functions are named, and how their shares agree with what the program does.

    stacks_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import glob
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

ARGS = argparse.Namespace(bin="build")
LIMIT = 60
INPUT, USAGE = 3, 2

# One thread burns three quarters of its time in `three`, one in `one`; `copier` lives in the kernel; `sleeper` waits.
HOT = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
static double cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
#define BURN(seconds) do { double end = cpu() + (seconds); while (cpu() < end) for (int i = 0; i < 20000; ++i) sink += i; } while (0)
__attribute__((noinline)) void three(void) { BURN(0.03); sink++; }
__attribute__((noinline)) void one(void) { BURN(0.01); sink++; }
__attribute__((noinline)) void both(double seconds) {
  double end = cpu() + seconds;
  while (cpu() < end) { three(); one(); }
  sink++;
}
static void *copier(void *seconds) {
  pthread_setname_np(pthread_self(), "copier");
  static char room[1 << 20];
  double end = cpu() + *(double *)seconds;
  int from = open("/dev/zero", O_RDONLY);
  while (cpu() < end) if (read(from, room, sizeof room) < 0) break;
  return NULL;
}
__attribute__((noinline)) void rest(void) { usleep(20000); sink++; }
static void *sleeper(void *seconds) {
  pthread_setname_np(pthread_self(), "sleeper");
  for (double at = 0; at < *(double *)seconds; at += 0.02) rest();
  return NULL;
}
int main(int count, char **values) {
  double seconds = atof(values[1]);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, copier, &seconds);
  pthread_create(&threads[1], NULL, sleeper, &seconds);
  both(seconds);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  return 0;
}
"""

# Waits briefly many times and long once, in one system call, each `argv[1]` times.
WAITS = r"""
#include <stdlib.h>
#include <unistd.h>
volatile char sink;
__attribute__((noinline)) void brief(void) { usleep(100); sink++; }
__attribute__((noinline)) void request(void) { brief(); sink++; }
__attribute__((noinline)) void lengthy(void) { volatile char room[200]; room[0] = 0; usleep(20000); sink += room[0]; }
__attribute__((noinline)) void lock(void) { lengthy(); sink++; }
int main(int count, char **values) {
  for (int i = 0; i < atoi(values[1]); ++i) {
    for (int j = 0; j < 30; ++j) request();
    lock();
  }
  return 0;
}
"""

PYTHON = """
import time
def busy_leaf(until):
    n = 0
    while time.process_time() < until:
        for i in range(1000):
            n += i
    return n
def calls_the_leaf():
    return busy_leaf(time.process_time() + 1.0)
calls_the_leaf()
"""

# A thread burns three quarters of its time on the CPU in `three`, one in `one`, called back from C code, and rests; another process does the same; the
# first thread waits for both.
RUNNING = """
import functools, multiprocessing, sys, threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for i in range(1000):
            pass
def three(_):
    burn(0.09)
    return 0
def one(_):
    burn(0.03)
    return 0
class Worker:
    def rest(self):
        time.sleep(0.06)
    async def part(self):
        sorted([1], key=three)
        sorted([1], key=one)
    def run(self):
        while True:
            try:
                self.part().send(None)
            except StopIteration:
                self.rest()
def start():
    threading.Thread(target=Worker().run, daemon=True).start()
    while True:
        time.sleep(60)
if __name__ == "__main__":
    multiprocessing.get_context("fork").Process(target=start, daemon=True).start()
    start()
"""


def interpreters():
    """Those whose layout is known."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    found = ["/usr/bin/python3", *sorted(glob.glob(f"{root}/versions/3.*/bin/python3"))]
    version = "import sys; print(sys.version_info[0] == 3 and 9 <= sys.version_info[1] <= 13)"
    return [path for path in found if os.path.exists(path) and
            subprocess.run([path, "-c", version], capture_output=True, text=True, check=False).stdout.strip() == "True"]


def culprit(*arguments):
    return subprocess.run([os.path.join(ARGS.bin, "culprit"), *arguments], capture_output=True, text=True, timeout=LIMIT,
                          check=False)


def python_with_perf():
    """A Python that can name its functions for profilers, or None."""
    found = [shutil.which(f"python3.{minor}") for minor in (14, 13, 12)]
    found += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[2-9]*/bin/python3")))
    for program in found:
        if program and subprocess.run([program, "-X", "perf", "-c", "import sys; sys.exit(not sys.is_stack_trampoline_active())"],
                                      capture_output=True, check=False).returncode == 0:
            return program
    return None


class Stacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="culprit-stacks-")
        cls.addClassCleanup(cls.folder.cleanup)
        compiler = shutil.which("cc") or shutil.which("gcc")
        for name, text in (("hot", HOT), ("waits", WAITS)):
            with open(cls.path(name + ".c"), "w", encoding="utf-8") as file:
                file.write(text)
            subprocess.run([compiler, "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", cls.path(name + ".c"),
                            "-o", cls.path(name)], check=True)
        cls.recording = cls.path("hot.pftrace")
        for _ in range(3):  # who has hardly a CPU is hardly sampled
            done = culprit("record", "--json", "--force", "--collect", "sched,samples", "-o", cls.recording, "--", cls.path("hot"), "1.5")
            assert done.returncode == 0, done.stderr
            cls.summary = json.loads(done.stdout)
            found = json.loads(culprit("top", cls.recording, "--json", "--stacks", "on-cpu", "--filter", "both").stdout)
            if found["samples"] > 120 and abs(found["time_ns"] / 1e9 - 1.5) < 0.2:
                break

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def setUp(self):
        collector = next(c for c in self.summary["collectors"] if c["name"] == "samples")
        if not collector["collected"]:
            self.skipTest(f"no stacks can be taken here: {collector['missing'][0]['why']}")
        self.collector = collector

    def table(self, *arguments, recording=None):
        done = culprit("top", recording or self.recording, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        return answer, {row["function"]: row for row in answer["tables"][0]["rows"]}

    def folded(self, *arguments, recording=None):
        done = culprit("top", recording or self.recording, "--folded", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {}
        for line in done.stdout.splitlines():
            self.assertRegex(line, r"^[^;]+(;[^;]+)+ \d+$")
            stack, count = line.rsplit(" ", 1)
            lines[tuple(stack.split(";"))] = int(count)
        return lines

    def test_shares_of_functions_are_those_of_the_program(self):
        answer, rows = self.table("--stacks", "on-cpu", "--filter", "both")
        samples = answer["samples"]
        self.assertGreater(samples, 100)
        share = rows["three"]["total_samples"] / samples
        # Of 150 samples a share of 0.75 varies by 0.035: four times that.
        self.assertAlmostEqual(share, 0.75, delta=0.14)
        self.assertAlmostEqual(rows["one"]["total_samples"] / samples, 0.25, delta=0.14)
        self.assertGreater(rows["both"]["total_samples"], 0.98 * samples)
        self.assertGreater(rows["main"]["total_samples"], 0.98 * samples)

    def test_samples_stand_for_the_cpu_time(self):
        answer, _ = self.table("--stacks", "on-cpu", "--filter", "both")
        self.assertAlmostEqual(answer["time_ns"] / 1e9, 1.5, delta=0.2)

    def test_callers_stand_before_whom_they_call_and_threads_have_their_names(self):
        stacks = self.folded("--stacks", "on-cpu")
        for stack in stacks:
            if "three" in stack:
                self.assertEqual(stack[0], "hot")
                self.assertEqual(stack[1], "hot")
                self.assertLess(stack.index("main"), stack.index("both"))
                self.assertLess(stack.index("both"), stack.index("three"))
        self.assertIn("copier", {stack[1] for stack in stacks})

    def test_callers_are_found_in_code_without_frame_pointers(self):
        compiler = shutil.which("cc") or shutil.which("gcc")
        program = self.path("bare")
        subprocess.run([compiler, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", self.path("hot.c"), "-o",
                        program], check=True)
        whole = {}
        for how in ("dwarf", "fp"):
            path = self.path(how + ".pftrace")
            done = culprit("record", "--collect", "sched,samples", "--call-graph", how, "-o", path, "--", program, "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            stacks = self.folded("--stacks", "on-cpu", recording=path)
            inner = {stack: count for stack, count in stacks.items() if "three" in stack or "one" in stack}
            self.assertGreater(sum(inner.values()), 100)
            callers = [count for stack, count in inner.items() if "main" in stack and "both" in stack[stack.index("main"):]]
            whole[how] = sum(callers) / sum(inner.values())
        if platform.machine() == "x86_64":
            self.assertGreater(whole["dwarf"], 0.95)
            self.assertLess(whole["fp"], 0.5)

    def test_the_kernel_is_named(self):
        stacks = self.folded("--stacks", "on-cpu", "--filter", "copier")
        total = sum(stacks.values())
        self.assertGreater(total, 100)
        in_kernel = sum(count for stack, count in stacks.items() if any(name.endswith("_[k]") for name in stack))
        self.assertGreater(in_kernel, 0.9 * total)
        if os.geteuid() == 0:  # others do not see the addresses
            self.assertTrue(any("zero" in name for stack in stacks for name in stack if name.endswith("_[k]")), stacks)

    def test_a_program_that_stays_out_of_the_kernel(self):
        stacks = self.folded("--stacks", "on-cpu", "--filter", "three")
        total = sum(stacks.values())
        in_kernel = sum(count for stack, count in stacks.items() if stack[-1].endswith("_[k]"))
        self.assertLess(in_kernel, 0.3 * total)

    def test_what_was_blocked_has_time(self):
        for _ in range(3):  # it may wake up late
            done = culprit("record", "--collect", "sched", "--force", "-o", self.path("sleep.pftrace"), "--", self.path("hot"), "0.5")
            self.assertEqual(done.returncode, 0, done.stderr)
            stacks = self.folded("--stacks", "off-cpu", "--filter", "sleeper", recording=self.path("sleep.pftrace"))
            blocked = sum(stacks.values()) / 1e6
            if blocked < 0.6:
                break
        self.assertAlmostEqual(blocked, 0.5, delta=0.1)  # 25 times 20 ms
        threads = json.loads(culprit("info", "--json", self.path("sleep.pftrace")).stdout)["scheduling"]["threads"]
        of_thread = sum(thread["blocked_ns"] for thread in threads if thread["thread"] == "sleeper") / 1e9
        self.assertAlmostEqual(blocked / of_thread, 1, delta=0.05)

    def test_a_long_wait_soon_after_a_short_one_in_the_same_call_stands_where_it_was(self):
        done = culprit("record", "--collect", "sched", "--force", "-o", self.path("waits.pftrace"), "--", self.path("waits"), "25")
        self.assertEqual(done.returncode, 0, done.stderr)
        stacks = self.folded("--stacks", "off-cpu", recording=self.path("waits.pftrace"))
        of = lambda name: sum(time for stack, time in stacks.items() if name in stack) / 1e6
        self.assertGreater(of("lock"), 0.5)  # 25 times 20 ms
        self.assertGreater(of("request"), 0.075)  # 750 times 100 us
        self.assertLess(of("[no stack]"), 0.05)

    def test_flame_graph_is_xml_that_asks_for_nothing(self):
        out = self.path("flame.svg")
        done = culprit("top", self.recording, "--stacks", "on-cpu", "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            text = file.read()
        root = xml.etree.ElementTree.fromstring(text)
        titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertTrue(any(title.startswith("three (") for title in titles), titles)
        self.assertNotRegex(text, r"href|url\(|<script")

    def test_forms_of_the_table(self):
        done = culprit("top", self.recording, "--stacks", "on-cpu", "--format", "csv")
        self.assertTrue(done.stdout.startswith("function,self_ns,self_share,total_ns"), done.stdout[:200])
        self.assertIn("| Function", culprit("top", self.recording, "--stacks", "on-cpu", "--format", "markdown").stdout)
        done = culprit("top", self.recording, "--stacks", "on-cpu", "--limit", "3")
        self.assertLessEqual(max(len(line) for line in done.stdout.splitlines()), 80)

    def test_wrong_use(self):
        self.assertEqual(culprit("top", self.recording, "--folded").returncode, USAGE)
        self.assertEqual(culprit("top", self.recording, "--stacks", "on-cpu", "--by", "kind").returncode, USAGE)
        self.assertEqual(culprit("top", self.recording, "--stacks", "on-cpu", "--folded", "--json").returncode, USAGE)
        trace = self.path("none.json")
        with open(trace, "w", encoding="utf-8") as file:
            file.write('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}')
        self.assertEqual(culprit("top", trace, "--stacks", "on-cpu", "--folded").returncode, INPUT)
        done = culprit("top", trace, "--stacks", "on-cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("holds no on-cpu stacks", done.stdout)

    def test_nothing_was_lost_and_the_rate_is_a_fact(self):
        self.assertEqual(self.collector["dropped"], 0)
        self.assertIn("samples.rate_hz", culprit("info", self.recording, "--all").stdout)

    def test_rate(self):
        out = self.path("rate.pftrace")
        for _ in range(3):
            done = culprit("record", "--collect", "samples", "--force", "--sample-rate", "500", "-o", out, "--", self.path("hot"), "0.5")
            self.assertEqual(done.returncode, 0, done.stderr)
            answer, _ = self.table("--stacks", "on-cpu", "--filter", "both", recording=out)
            if answer["samples"] > 180:
                break
        self.assertGreater(answer["samples"], 180)
        # Far from five times as much, as it would be with the usual rate taken for this one; on a crowded machine half a
        # second in many small pieces is met up to 1.4 times as often as its thread's clock says.
        self.assertAlmostEqual(answer["time_ns"] / 1e9, 0.5, delta=0.35)

    def test_a_rate_that_takes_too_much_is_lowered_and_times_stay_right(self):
        out = self.path("often.pftrace")
        done = culprit("record", "--json", "--collect", "samples", "--sample-rate", "3000", "-o", out, "--", self.path("hot"), "6")
        self.assertEqual(done.returncode, 0, done.stderr)
        collector = next(c for c in json.loads(done.stdout)["collectors"] if c["name"] == "samples")
        self.assertEqual(collector["dropped"], 0)
        self.assertRegex(collector["sees"][0], r"3000 times a second \([\d.]+ on average, [\d.]+ at least: more would take over 2 % of one CPU\)")
        answer, rows = self.table("--stacks", "on-cpu", "--filter", "both", recording=out)
        rates = answer["rate_hz"]
        self.assertEqual(rates["asked"], 3000)
        self.assertLess(rates["lowest"], 1600)
        self.assertGreaterEqual(rates["lowest"], 10)
        self.assertLess(rates["lowest"], rates["mean"])
        self.assertLess(rates["mean"], 2900)
        seconds = answer["time_ns"] / 1e9
        self.assertAlmostEqual(seconds, 6, delta=1.5)
        self.assertLess(answer["samples"] / 3000, 0.9 * seconds, "each for a period would be too little")
        self.assertAlmostEqual(rows["three"]["total_ns"] / answer["time_ns"], 0.75, delta=0.1)
        # Folded stacks count what samples stand for.
        folded = sum(self.folded("--stacks", "on-cpu", "--filter", "both", recording=out).values())
        self.assertAlmostEqual(folded / 3000, seconds, delta=0.1)
        self.assertIn("a second and CPU on average", culprit("top", out, "--stacks", "on-cpu").stdout)
        info = culprit("info", out, "--all").stdout
        for fact in ("samples.mean_rate_hz", "samples.lowest_rate_hz"):
            self.assertIn(fact, info)
        self.assertIn("a second and CPU on average", culprit("info", out).stdout)

    def test_a_rate_that_was_kept_is_no_remark(self):
        out = self.path("seldom.pftrace")  # so seldom that it is never lowered
        done = culprit("record", "--json", "--collect", "samples", "--sample-rate", "15", "-o", out, "--", self.path("hot"), "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer, _ = self.table("--stacks", "on-cpu", recording=out)
        self.assertEqual(answer["rate_hz"], {"asked": 15, "mean": 15, "lowest": 15})
        for text in (done.stdout, culprit("top", out, "--stacks", "on-cpu").stdout, culprit("info", out).stdout):
            self.assertNotIn("on average", text)

    @unittest.skipUnless(os.uname().machine == "x86_64", "frames of Python are followed on x86-64")
    def test_functions_of_python_programs_that_run_already(self):
        program = self.path("running.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(RUNNING)
        self.assertTrue(interpreters())
        for python in interpreters():
            with self.subTest(python):
                child = subprocess.Popen([python, program], start_new_session=True)
                try:
                    time.sleep(1)
                    out = self.path("running.pftrace")
                    done = culprit("record", "--force", "--collect", "sched,samples", "-o", out, "-p", str(child.pid), "--duration", "3s")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIsNone(child.poll())
                finally:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
                self.check_python(self.folded("--stacks", "on-cpu", recording=out), self.folded("--stacks", "off-cpu", recording=out))

    def check_python(self, on_cpu, off_cpu):
        def place(stack, function):
            return next((at for at, name in enumerate(stack) if name.split(" (running.py:")[0].split(".")[-1] == function), None)

        def samples_in(function):
            return sum(count for stack, count in on_cpu.items() if place(stack, function) is not None)

        total = sum(on_cpu.values())
        self.assertGreater(total, 100)
        # Of 150 samples a share of 0.75 varies by 0.035: four times that.
        self.assertAlmostEqual(samples_in("three") / total, 0.75, delta=0.14)
        self.assertAlmostEqual(samples_in("one") / total, 0.25, delta=0.14)
        self.assertGreater(samples_in("burn"), 0.95 * total)
        for stack in on_cpu:
            if place(stack, "three") is not None:
                order = [place(stack, name) for name in ("run", "part", "three")]
                self.assertNotIn(None, order, stack)
                self.assertEqual(order, sorted(order), stack)
        asleep = {stack: count for stack, count in off_cpu.items() if any("rest (" in name for name in stack)}
        by_sleep = sum(count for stack, count in off_cpu.items() if stack[-1] in ("clock_nanosleep", "select", "pselect6"))
        # Two workers rest a third of the time or less, and all that sleeps but the first threads is in `rest`.
        self.assertGreater(sum(asleep.values()), 0.2e6)
        waiting = sum(count for stack, count in off_cpu.items() if place(stack, "start") is not None and place(stack, "run") is None)
        self.assertGreater(sum(asleep.values()) + waiting, 0.95 * by_sleep)

    @unittest.skipUnless(os.uname().machine == "x86_64", "the code is of x86-64")
    def test_code_made_at_run_time_is_named_by_its_map_file(self):
        with open(self.path("jit.c"), "w", encoding="utf-8") as file:
            file.write(JIT)
        subprocess.run([shutil.which("cc") or shutil.which("gcc"), "-O1", "-fno-omit-frame-pointer", self.path("jit.c"), "-o",
                        self.path("jit")], check=True)
        out = self.path("jit.pftrace")
        done = culprit("record", "--collect", "samples", "-o", out, "--", self.path("jit"))
        if done.returncode == 2:
            self.skipTest("no memory may be written and run here")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer, rows = self.table("--stacks", "on-cpu", recording=out)
        self.assertGreater(answer["samples"], 50)
        self.assertGreater(rows["py::made_at_run_time:/srv/app.py"]["self_samples"], 0.9 * answer["samples"])

    def test_functions_of_python(self):
        program = python_with_perf()
        if program is None:
            self.skipTest("no Python with -X perf (3.12 or newer)")
        out = self.path("python.pftrace")
        done = culprit("record", "--collect", "samples", "-o", out, "--", program, "-X", "perf", "-c", PYTHON)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer, rows = self.table("--stacks", "on-cpu", recording=out)
        # Without frame pointers in the interpreter the trampolines are met only where they are themselves sampled.
        if not any(name.startswith("py::") and row["total_samples"] > row["self_samples"] for name, row in rows.items()):
            self.skipTest(f"{program} is built without frame pointers: no trampoline stands in a chain")
        leaf = sum(row["total_samples"] for name, row in rows.items() if name.startswith("py::busy_leaf:"))
        self.assertGreater(leaf, 0.5 * answer["samples"])


# Code that nobody but the program knows, named in a file for profilers.
JIT = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  /* push rbp; mov rbp, rsp; mov ecx, 1000000; 1: dec ecx; jnz 1b; pop rbp; ret */
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
  void *room = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return 2;
  memcpy(room, code, sizeof code);
  char name[64];
  snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
  FILE *map = fopen(name, "w");
  if (!map) return 3;
  fprintf(map, "%lx %zx py::made_at_run_time:/srv/app.py\n", (unsigned long)room, sizeof code);
  fclose(map);
  while (clock() < CLOCKS_PER_SEC) ((void (*)(void))room)();
  usleep(200000);
  unlink(name);
  return 0;
}
"""

# 3,000 calls of getppid, 40 sleeps of 5 ms, 64 direct writes of 64 KiB with an fsync each.
COUNTED = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int main(int count, char **values) {
  for (int i = 0; i < 3000; ++i) syscall(SYS_getppid);
  struct timespec rest = {0, 5000000};
  for (int i = 0; i < 40; ++i) nanosleep(&rest, NULL);
  if (count > 1) {
    void *room;
    if (posix_memalign(&room, 4096, 65536)) return 1;
    memset(room, 1, 65536);
    int to = open(values[1], O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (to < 0) return 2;
    for (int i = 0; i < 64; ++i) {
      if (write(to, room, 65536) != 65536) return 3;
      if (fsync(to)) return 4;
    }
  }
  return 0;
}
"""


class Counted(unittest.TestCase):
    """What `top --by` says of a program whose calls are known."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="culprit-counted-", dir=os.environ.get("CULPRIT_TEST_DISK"))
        cls.addClassCleanup(cls.folder.cleanup)
        source = cls.path("counted.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(COUNTED)
        subprocess.run([shutil.which("cc") or shutil.which("gcc"), "-O1", source, "-o", cls.path("counted")], check=True)
        cls.recording = cls.path("counted.pftrace")
        cls.before = cls.sectors_written()
        done = culprit("record", "--json", "--collect", "sched,syscalls", "-o", cls.recording, "--", cls.path("counted"),
                       cls.path("data"))
        cls.after = cls.sectors_written()
        assert done.returncode in (0, 2), done.stderr
        cls.direct = done.returncode == 0  # 2: the file system has no direct I/O
        cls.summary = json.loads(done.stdout)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def sectors_written(cls):
        """Bytes written to every disk so far."""
        sectors = {}
        with open("/proc/diskstats", encoding="utf-8") as file:
            for line in file:
                words = line.split()
                sectors[words[2]] = int(words[9]) * 512
        return sectors

    def setUp(self):
        collector = next(c for c in self.summary["collectors"] if c["name"] == "syscalls")
        for missing in collector["missing"]:
            if missing["what"].startswith("system calls"):
                self.skipTest(f"no eBPF here: {missing['why']}")

    def rows(self, by):
        done = culprit("top", self.recording, "--by", by, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["tables"][0]["rows"]

    def call(self, name, by="call"):
        rows = [row for row in self.rows(by) if row["call"] == name]
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def test_calls_are_counted_and_their_quantiles_known(self):
        self.assertEqual(self.call("getppid")["count"], 3000)
        self.assertEqual(self.call("getppid", "thread-call")["count"], 3000)
        sleep = self.call("clock_nanosleep")
        self.assertEqual(sleep["count"], 40)
        # A sleep takes its 5 ms, and as long as it then waits for a CPU.
        self.assertGreater(sleep["p50_ns"], 5e6 / 1.13)
        self.assertGreaterEqual(sleep["p99_ns"], sleep["p50_ns"])
        self.assertGreaterEqual(sleep["longest_ns"], sleep["p99_ns"])
        self.assertGreaterEqual(sleep["longest_ns"], sleep["mean_ns"])
        self.assertAlmostEqual(sleep["total_ns"], sleep["mean_ns"] * 40, delta=40)
        self.assertLess(self.call("getppid")["p50_ns"], 20e3)

    def test_counts_are_those_of_strace(self):
        strace = shutil.which("strace")
        if strace is None:
            self.skipTest("no strace")
        done = subprocess.run([strace, "-f", "-c", "-o", self.path("strace"), self.path("counted")], capture_output=True, check=False)
        if done.returncode != 0:
            self.skipTest("strace cannot trace here")
        with open(self.path("strace"), encoding="utf-8") as file:
            counts = {line.split()[-1]: int(line.split()[3]) for line in file if line[:1] == " " and line.split()[-1] != "total"}
        ours = {row["call"]: row["count"] for row in self.rows("call")}
        self.assertEqual(ours["getppid"], counts["getppid"])
        self.assertEqual(ours["clock_nanosleep"], counts["clock_nanosleep"])

    def test_bytes_written_are_those_of_the_disk(self):
        if not self.direct:
            self.skipTest("the file system has no direct I/O")
        rows = self.rows("disk")
        own = [row for row in rows if row["process"] == "counted" and row["operation"] == "write"]
        if not rows:
            self.skipTest("the file system is on no disk of its own")
        # fsync writes the file system's journal, too.
        self.assertGreaterEqual(sum(row["bytes"] for row in own), 64 * 65536)
        self.assertLess(sum(row["bytes"] for row in own), 1.5 * 64 * 65536)
        # All of a disk's writes stand in the table: others may write before and after, but not less.
        for disk in {row["disk"] for row in own}:
            ours = sum(row["bytes"] for row in rows if row["disk"] == disk and row["operation"] == "write")
            theirs = self.after.get(disk, 0) - self.before.get(disk, 0)
            self.assertLessEqual(ours, theirs)
        for row in own:
            self.assertGreaterEqual(row["longest_ns"], row["p50_ns"])
            self.assertGreater(row["p50_ns"], 0)

    def test_page_faults_of_a_program_that_ends_at_once(self):
        path = self.path("short.pftrace")
        done = culprit("record", "--json", "--collect", "sched,syscalls", "-o", path, "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(culprit("top", path, "--by", "fault", "--json").stdout)["tables"][0]["rows"]
        self.assertGreater(rows[0]["minor"], 10, rows)  # a program cannot be loaded with fewer
        # What is counted before the recording begins makes it no longer.
        info = json.loads(culprit("info", path, "--json").stdout)
        self.assertLessEqual(info["duration_ns"], json.loads(done.stdout)["duration_ns"] + 1e6)

    def test_info_shows_them(self):
        done = culprit("info", self.recording, "--show", "calls,disks,faults")
        self.assertIn("clock_nanosleep", done.stdout)
        self.assertIn("Page faults", done.stdout)
        answer = json.loads(culprit("info", self.recording, "--json").stdout)
        self.assertEqual(next(row["count"] for row in answer["calls"] if row["call"] == "getppid"), 3000)
        self.assertIn("system calls", culprit("info", self.recording).stdout)

    def test_who_woke_whom(self):
        rows = self.rows("waker")
        self.assertTrue(any(row["thread"] == "counted" for row in rows), rows)

    def test_forms(self):
        for form in ("csv", "markdown"):
            for by in ("call", "thread-call", "disk", "fault", "waker", "rival"):
                self.assertEqual(culprit("top", self.recording, "--by", by, "--format", form).returncode, 0)
        self.assertEqual(culprit("top", self.recording, "--by", "call", "--class", "gpu").returncode, USAGE)
        self.assertLessEqual(max(len(line) for line in culprit("top", self.recording, "--by", "call").stdout.splitlines()), 80)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    known, rest = parser.parse_known_args()
    ARGS.bin = known.bin
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
