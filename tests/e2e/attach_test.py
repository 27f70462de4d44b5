#!/usr/bin/env python3
"""Functions of running Python programs: the program says itself what it did, and goes on as if nothing had happened.

    attach_test.py --bin BUILD_DIR [unittest options]

Every interpreter that is there is tried: /usr/bin/python3 and those of $PYENV_ROOT (or ~/.pyenv).
"""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import textwrap
import time
import unittest

import attaching
import pftrace
from attaching import ARGS, LIMIT, PROGRAM, Case, interpreters

USAGE = 2

# Allocates, formats and sums without end, in two threads; the sum is the same whoever disturbs it.
BUSY = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <poll.h>
static volatile int stop = 0;
static void* work(void* out) {
  unsigned long* sum = out;
  double x = 1.0;
  for (long n = 0; !stop; ++n) {
    unsigned long round = 0;
    for (int i = 0; i < 200; ++i) {
      char* text = malloc(16 + (size_t)i);
      sprintf(text, "%d", i * 7);
      round = round * 31 + strlen(text) + (unsigned long)text[0];
      free(text);
      x = x * 1.0000001 + 1e-9;
    }
    if (n == 0) sum[0] = round;
    if (sum[0] != round || !(x > 0)) abort();
    errno = 77;
    if (poll(NULL, 0, 1) != 0) abort();
    if (errno != 77) abort();
  }
  return NULL;
}
int main(void) {
  unsigned long sums[2][8] = {{0}};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, sums[i]);
  char line[16];
  puts("ready");
  fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) return 3;
  stop = 1;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return sums[0][0] == sums[1][0] ? 0 : 4;
}
"""


class Functions(Case):
    def test_calls_of_every_kind_on_every_interpreter(self):
        self.assertTrue(interpreters(), "no interpreter to try")
        for python in interpreters():
            with self.subTest(python):
                child = self.program(python)
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:Server.run(n=len(batch.reqs), total=sum(batch.tokens), one=ones(batch.tokens), each=sum(batch.reqs[].real), extra, key) "
                                                    "as call[n={n} total={total} one={one} each={each} {extra:3=default}]",
                                         "__main__:Server.of_class(n)", "__main__:Server.of_none", "__main__:Server.wrapped", "__main__:Server.fails",
                                         "__main__:Server.deep", "__main__:numbers", "__main__:task", "__main__:maker.<locals>.closure",
                                         "__main__:nothing", name=name)
                self.attached(recorder, child)
                done = self.ask(child)
                self.assertEqual(done, {"runs": 200, "sum": 400, "tasks": 45})
                self.finish(recorder)
                calls = self.calls(name)
                self.assertEqual(calls["Server.run"], 200)
                self.assertEqual(calls["Server.of_class"], 200)
                self.assertEqual(calls["Server.of_none"], 200)
                self.assertEqual(calls["Server.wrapped"], 200)
                self.assertEqual(calls["Server.fails"], 200)
                self.assertEqual(calls["Server.deep"], 21)
                self.assertEqual(calls["numbers"], 10 * 4, "each time that it gives a number and gets its thread back")
                self.assertEqual(calls["task"], 10 * 2)
                facts = self.facts(name)
                self.assertEqual(calls["maker.<locals>.closure"], 200)
                self.assertIn("imported", facts["missing.python.__main__:nothing"])
                self.assertEqual(facts["cost.python.dropped"], "0")
                steps = self.calls(name, "all")
                for n in range(5):
                    # {"a": n, "b": 1}: one value of two is 1, or both.
                    self.assertEqual(steps[f"step: call[n={n} total={n + 1} one={2 if n == 1 else 1} each={n * (n - 1) // 2} default]"], 40)
                self.assertEqual(self.ask(child), {"runs": 200, "sum": 400, "tasks": 45})
                self.assertEqual(self.ask(child, "end"), {"same": True, "tools": []}, "everything is as it was")
                self.assertEqual(child.wait(timeout=LIMIT), 0)

    def test_a_function_that_does_not_exist_is_told_of(self):
        child = self.program()
        done = self.culprit("record", "--collect", "python", "-o", self.path(), "-p", str(child.pid), "--duration", "1s", "--python", "__main__:Server.walk",
                            "--python", "__main__:Server.run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("__main__:Server.walk: no such function was imported", done.stderr)
        self.assertNotIn("Server.run:", done.stderr)

    def test_a_started_program_is_no_stranger_because_it_has_just_begun(self):
        with open(self.path("short.py"), "w", encoding="utf-8") as file:
            file.write("import time\ndef work(n):\n    time.sleep(0.01)\nfor n in range(200): work(n)\n")
        done = self.culprit("record", "--collect", "python", "-o", self.path(), "--python", "__main__:work(n)", "--", sys.executable, self.path("short.py"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("not seen", done.stderr)
        self.assertGreater(self.calls()["work"], 0)
        done = self.culprit("record", "--collect", "python", "-o", self.path("none.pftrace"), "--python", "__main__:work(n)", "--", "sleep", "0.5")
        self.assertIn("none of the processes executed Python", done.stderr)

    def test_of_a_started_program_the_file_tells_since_when_it_was_watched(self):
        with open(self.path("long.py"), "w", encoding="utf-8") as file:
            file.write("import time\ndef work(n):\n    time.sleep(0.01)\nend = time.monotonic() + 3\nwhile time.monotonic() < end: work(1)\n")
        # Loading the programs of the kernel holds up the beginning of the command.
        collect = "python,sched,syscalls,samples" if os.geteuid() == 0 else "python"
        waited = []
        for number in range(3):  # on a busy machine a look may be late
            path = self.path(f"{number}.pftrace")
            done = self.culprit("record", "--collect", collect, "-o", path, "--python", "__main__:work(n)", "--", sys.executable, self.path("long.py"))
            self.assertEqual(done.returncode, 0, done.stderr)
            after = [(key, value) for key, value in self.facts(path).items() if key.startswith("python.watched_after_ms.")]
            self.assertEqual(len(after), 1, after)
            pid = after[0][0].rpartition(".")[2]
            self.assertGreater(float(after[0][1]), 0)
            self.assertGreater(self.calls(path)["work"], 100)
            waited.append(float(after[0][1]))
            if waited[-1] < 900:
                break
        self.assertLess(min(waited), 900, "it is looked at again before a second is over")
        self.assertRegex(done.stderr, rf"Python functions of process {pid}, from 0\.\d\d s of the recording on: calls before are missing")
        child = self.program()
        recorder = self.recorder(child.pid, "__main__:Server.run", name="there.pftrace")
        self.attached(recorder, child)
        self.finish(recorder)
        self.assertEqual([key for key in self.facts("there.pftrace") if key.startswith("python.watched_after_ms")], [], "who was there is watched from the begin")

    def test_the_agent_is_no_thread_of_the_program(self):
        if os.geteuid() != 0:
            self.skipTest("system calls need root")
        collect = "python,sched,syscalls,samples"
        child = self.program()
        recorder = self.recorder(child.pid, "__main__:Server.run", collect=collect)
        self.attached(recorder, child)
        time.sleep(2)  # it waits in a futex all the while
        self.ask(child)
        self.finish(recorder)
        with open(self.path("one.py"), "w", encoding="utf-8") as file:
            file.write("import time\ndef work(n):\n    time.sleep(0.01)\nend = time.monotonic() + 2\nwhile time.monotonic() < end: work(1)\n")
        done = self.culprit("record", "-q", "--collect", collect, "-o", self.path("started.pftrace"), "--python", "__main__:work(n)", "--", sys.executable, self.path("one.py"))
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("run.pftrace", "started.pftrace"):
            with self.subTest(name):
                if self.facts(name).get("sched.source") != "ebpf":
                    self.skipTest("no programs in the kernel here")
                self.assertGreater(int(self.facts(name)["cost.python.agent_cpu_ns"]), 0, "what it cost is told")
                calls = self.culprit("top", "--json", "--limit", "0", "--by", "thread-call", self.path(name))
                self.assertEqual(calls.returncode, 0, calls.stderr)
                self.assertNotIn("culprit-agent", calls.stdout)
                self.assertRegex(self.culprit("info", self.path(name)).stdout, r"\b1 thread\b")

    def test_what_a_function_makes_is_asked_for_by_locals(self):
        text = "import sys\ndef maker(k):\n    def inner(n): return n + k\n    return inner\nmade = maker(5)\nprint('ready', flush=True)\nfor line in sys.stdin:\n    print(made(1), flush=True)\n"
        for python in interpreters():
            with self.subTest(python):
                child = self.program(python, text)
                name = f"{len(self.children)}.pftrace"
                inner = "__main__:maker.<locals>.inner(k) as made[{k}]"
                recorder = self.recorder(child.pid, "__main__:maker.inner(n)", "__main__:maker.other", inner, name=name)
                self.attached(recorder, child)
                self.assertEqual(self.ask(child), 6)
                self.finish(recorder)
                calls, facts = self.calls(name, "all"), self.facts(name)
                self.assertEqual(facts["missing.python.__main__:maker.inner(n)"], "is made by maker: ask for maker.<locals>.inner")
                self.assertEqual(facts["missing.python.__main__:maker.other"], "no such function was imported")
                # What lies around a function is seen from 3.12 on.
                missing = facts.get("missing.python.__main__:maker.<locals>.inner(k)")
                if attaching.version_of(python) >= (3, 12):
                    self.assertIsNone(missing)
                    self.assertEqual(calls["step: made[5]"], 1)
                else:
                    self.assertEqual(missing, "has no argument k: its numbers are missing")
                child.stdin.close()
                self.assertEqual(child.wait(timeout=LIMIT), 0)

    def test_functions_for_a_collector_that_is_left_out_are_refused(self):
        for options, words in ((["--no-collect", "python"], ["--python", "--no-collect python"]), (["--collect", "host"], ["--python", "--collect"])):
            done = self.culprit("record", "-o", self.path("never.pftrace"), *options, "--python", "m:f", "--", "true")
            self.assertEqual(done.returncode, USAGE, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertFalse(os.path.exists(self.path("never.pftrace")))
        self.assertIn("outer.<locals>.inner", self.culprit("record", "--help").stdout.replace("\n", " "))

    def test_calls_whose_end_was_lost_do_not_last_to_the_end(self):
        """More calls in each turn than there is room for: its begin is seen, its end is not."""
        text = """import time
def hot(n): return n
def turn(n):
    for k in range(100000): hot(k)
print("ready", flush=True)
input()
longest = 0
for _ in range(10):
    time.sleep(0.2)
    begin = time.perf_counter()
    turn(1)
    longest = max(longest, time.perf_counter() - begin)
print(longest, flush=True)
input()
"""
        child = self.program(text=text)
        recorder = self.recorder(child.pid, "__main__:turn", "__main__:hot")
        self.attached(recorder, child)
        child.stdin.write("go\n")
        child.stdin.flush()
        longest = float(child.stdout.readline())
        time.sleep(1)
        self.finish(recorder)
        self.assertGreater(int(json.loads(self.culprit("info", self.path(), "--json").stdout)["metadata"][0]["cost.python.dropped"]), 0)
        rows = json.loads(self.culprit("top", "--json", "--limit", "0", "--class", "python", self.path()).stdout)["tables"][0]["rows"]
        row = next(row for row in rows if row["name"] == "turn")
        self.assertLessEqual(row["calls"], 10)
        self.assertLessEqual(row["max_ns"] / 1e9, longest + 1e-3)

    def test_a_module_that_is_imported_later(self):
        self.imported_later("")

    def test_a_module_that_is_there_before_its_functions(self):
        self.imported_later("import time\ntime.sleep(1.5)\nUNTIL_CALLED = 5\n")

    def imported_later(self, first):
        with open(self.path("late.py"), "w", encoding="utf-8") as file:
            file.write(first + "def work(n):\n    return n\n")
        child = self.program()
        recorder = self.recorder(child.pid, "late:work")
        self.attached(recorder, child)
        self.ask(child, "import")
        self.finish(recorder)
        self.assertEqual(self.calls()["work"], 10)

    def test_a_program_is_recorded_again(self):
        child = self.program()
        for number in range(3):
            recorder = self.recorder(child.pid, "__main__:Server.run", name=f"{number}.pftrace")
            self.attached(recorder, child)
            self.ask(child)
            self.finish(recorder)
            self.assertEqual(self.calls(f"{number}.pftrace")["Server.run"], 200, number)
        self.assertEqual(self.ask(child, "end"), {"same": True, "tools": []})

    def test_a_recorder_that_comes_first_lets_the_borrowed_thread_run(self):
        """Both on one CPU: a recorder that waits awake there holds up whom it waits for."""
        child = self.program()
        cpu = max(os.sched_getaffinity(0))
        os.sched_setaffinity(child.pid, {cpu})
        stops = []
        for number in range(5):
            done = subprocess.run(["taskset", "-c", str(cpu), os.path.join(ARGS.bin, "culprit"), "record", "-q", "--collect", "python", "--python", "__main__:Server.run", "-p", str(child.pid),
                                   "--duration", "0.2s", "-o", self.path(f"{number}.pftrace")], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            facts = json.loads(self.culprit("info", self.path(f"{number}.pftrace"), "--json").stdout)["metadata"][0]
            if facts["record.scheduling"] != "realtime":
                self.skipTest("the recorder may not come first here")
            stops.append(int(facts["cost.python.stopped_ns"]))
            if stops[-1] < 25e6:
                break
        self.assertLess(min(stops), 25e6, stops)

    def test_members_that_change_their_list_or_are_none_break_nothing(self):
        members = textwrap.dedent("""
            class Member:
                batch = None
                @property
                def shrinks(self):
                    self.batch.reqs.clear()
                    return 7
                @property
                def raises(self):
                    raise KeyError(1)
                text = "3"
            class Batch:
                def __init__(self, n):
                    self.reqs = [Member() for _ in range(n)]
                    for member in self.reqs:
                        member.batch = self
                    self.by_name = {"a": Member()}
        """)
        for python in interpreters():
            with self.subTest(python):
                child = self.program(python, text=PROGRAM.replace("def decorated(f)", members + "\ndef decorated(f)"))
                name = f"{len(self.children)}.pftrace"
                recorder = self.recorder(child.pid, "__main__:Server.run(a=sum(batch.reqs[].raises), b=sum(batch.reqs[].text), c=sum(batch.reqs[].absent), d=sum(batch.by_name[].text), "
                                                    "e=ones(batch.reqs[].shrinks), f=sum(extra[].real), n=len(batch.reqs)) as call[{a} {b} {c} {d} {e} {f} {n}]", name=name)
                self.attached(recorder, child)
                self.assertEqual(self.ask(child)["runs"], 200)
                self.finish(recorder)
                steps = self.calls(name, "all")
                self.assertEqual(steps["step: call[? ? ? ? 0 ? 0]"], 160)
                self.assertEqual(steps["step: call[0 0 0 ? 0 ? 0]"], 40, "of no members")
                self.assertEqual(self.ask(child, "end"), {"same": True, "tools": []})

    def test_numbers_alone_are_in_the_file(self):
        child = self.program(text=PROGRAM.replace("self.size = n", "self.size = 'SECRET-PROMPT'"))
        recorder = self.recorder(child.pid, "__main__:Server.run(size=batch.size, length=len(batch.size), sum(batch.size)) as call[{size} {length}]")
        self.attached(recorder, child)
        self.ask(child)
        self.finish(recorder)
        self.assertEqual(self.calls(classes="all")["step: call[? 13]"], 200)
        plain = pftrace.plain(self.path())
        self.assertTrue(b"call[? 13]" in plain)
        self.assertFalse(b"SECRET-PROMPT" in plain)

    def test_wrong_functions_are_refused_before_anything_is_touched(self):
        for function, why in (("nothing", "':'"), ("a:b(", "')'"), ("a:1", "no function"), ("a b:c", "no module"), ("a:b(c d)", "no argument"),
                              ("a:b(c,)", "behind"), ("a:b(c) as step[{d}]", "none of its numbers"), ("a:b(sum(c[]))", "behind the '[]'"), ("a:b(len(c[].d))", "only a sum"), ("a:b(c) as step[{c]", "'}' is missing"), ("a:b(" + ",".join("abcdefghi") + ")", "more than 8")):
            done = self.culprit("record", "-o", self.path(), "--python", function, "--", "true")
            self.assertEqual(done.returncode, USAGE, function)
            self.assertIn(why, done.stderr, function)
        with open(self.path("list"), "w", encoding="utf-8") as file:
            file.write("# a list\n\nm:f\nwrong\n")
        done = self.culprit("record", "-o", self.path(), "--python", "@" + self.path("list"), "--", "true")
        self.assertIn("line 4", done.stderr)


WAITING = """
#include <stdio.h>
#include <unistd.h>
int main(void) {
  char line[16];
  puts("ready");
  fflush(stdout);
  return fgets(line, sizeof line, stdin) == NULL;
}
"""


class Attaching(Case):
    def busy(self):
        return self.compiled("busy", BUSY, "cc", "-pthread")

    def test_a_program_in_c_runs_on_however_the_recorder_ends(self):
        """Threads that allocate, format and check their registers; half of the recorders are killed at some moment."""
        child = self.busy()
        descriptors = self.count(child.pid, "fd")
        chance = random.Random(7)
        for _ in range(24):
            recorder = self.recorder(child.pid, "a:b", name="busy.pftrace")
            if chance.random() < 0.5:
                time.sleep(chance.uniform(0.0, 0.25))
                recorder.kill()
                recorder.wait()
            else:
                time.sleep(0.3)
                recorder.send_signal(signal.SIGINT)
                recorder.communicate(timeout=LIMIT)
            if os.path.exists(self.path("busy.pftrace")):
                os.remove(self.path("busy.pftrace"))
            self.assertIsNone(child.poll(), "it runs")
        self.idle(child)
        self.put_in(child.pid)
        self.idle(child)
        self.assertEqual(self.count(child.pid, "task"), 3)
        self.assertEqual(self.rings_of(child), 0)
        self.assertEqual(self.count(child.pid, "fd"), descriptors, "what killed recorders left is gone, too")
        self.goes_on(child)

    def test_a_killed_recorder_is_noticed(self):
        child = self.program()
        recorder = self.recorder(child.pid, "__main__:Server.run")
        self.attached(recorder, child)
        recorder.kill()
        recorder.wait()
        self.ask(child)
        self.idle(child)
        self.ask(child)
        self.assertEqual(self.ask(child, "end"), {"same": True, "tools": []})

    def test_two_recorders(self):
        child = self.program()
        first = self.recorder(child.pid, "__main__:Server.run")
        self.attached(first, child)
        second = self.culprit("record", "--collect", "python", "-o", self.path("second.pftrace"), "-p", str(child.pid), "--duration", "300ms",
                              "--python", "__main__:Server.run", "-v")
        self.assertIn("another recorder", second.stderr)
        self.ask(child)
        self.finish(first)
        self.assertEqual(self.calls()["Server.run"], 200)

    def test_a_stopped_program_is_refused_with_the_reason(self):
        child = self.program()
        os.kill(child.pid, signal.SIGSTOP)
        self.refused(child.pid, "stopped")
        os.kill(child.pid, signal.SIGCONT)

    def test_a_static_program_is_refused_with_the_reason(self):
        child = self.compiled("static", WAITING, "cc", "-static")
        self.refused(child.pid, "a static program")
        self.goes_on(child)

    def test_a_program_of_another_c_library_is_refused_with_the_reason(self):
        child = self.compiled("musl", WAITING, "musl-gcc")
        self.refused(child.pid, "its C library is musl")
        self.goes_on(child)

    def test_a_program_with_another_users_privileges_is_refused_with_the_reason(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become somebody else")
        child = self.compiled("other-user", WAITING.replace("puts(", 'if (seteuid(65534)) return 1;\n  puts('), "cc")
        self.refused(child.pid, "another user's privileges")
        self.goes_on(child)

    def test_a_traced_program_is_refused_with_the_reason(self):
        child = self.program()
        tracer = self.start([sys.executable, "-c", "import ctypes, sys; assert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0; "
                             "print('ready', flush=True); sys.stdin.readline()", str(child.pid)])  # PTRACE_SEIZE
        if tracer.stdout.readline() != "ready\n":
            self.skipTest("nobody may trace here")
        self.refused(child.pid, f"traced by process {tracer.pid}")
        self.goes_on(tracer)
        self.assertEqual(self.ask(child, "end"), {"same": True, "tools": []})

    @unittest.skipUnless(os.uname().machine == "x86_64", "a program for 32 bits")
    def test_a_program_of_another_architecture_is_refused_with_the_reason(self):
        base, headers = 0x8048000, 52 + 32
        code = bytes([0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7])  # pause, again and again
        program = self.path("python3-for-32-bits")
        with open(program, "wb") as file:
            file.write(struct.pack("<4sBBB9xHHIIIIIHHHHHH", b"\x7fELF", 1, 1, 1, 2, 3, 1, base + headers, 52, 0, 0, 52, 32, 1, 0, 0, 0))
            file.write(struct.pack("<IIIIIIII", 1, 0, base, base, headers + len(code), headers + len(code), 5, 0x1000) + code)
        os.chmod(program, 0o755)
        try:
            child = self.start([program])
        except OSError:
            self.skipTest("this kernel runs no programs of 32 bits")
        time.sleep(0.2)
        self.refused(child.pid, "another architecture")
        self.assertIsNone(child.poll(), "it runs")

    @staticmethod
    def filtered(answers):
        """The program, whose system calls a filter answers by number as containers do; others pass."""
        load, equal, answer = 0x20, 0x15, 0x06
        steps = [(load, 0, 0, 0)]
        for number, value in answers.items():
            steps += [(equal, 0, 1, number), (answer, 0, 0, value)]
        steps.append((answer, 0, 0, 0x7fff0000))
        install = f"""    import ctypes, struct
    code = b"".join(struct.pack("HBBI", *step) for step in {steps})
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", {len(steps)}, ctypes.addressof(buffer)), 16)
    assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0 and ctypes.CDLL(None).prctl(22, 2, ctypes.byref(program)) == 0
"""
        return PROGRAM.replace('    print("ready"', install + '    print("ready"', 1)

    @unittest.skipUnless(os.uname().machine == "x86_64", "numbers of its system calls")
    def test_a_program_with_the_filter_of_a_container_is_attached_to(self):
        if os.geteuid() != 0:
            self.skipTest("filters are read by root alone")
        refuse, unknown = 0x00050001, 0x00050026
        child = self.program(text=self.filtered({101: refuse, 321: refuse, 435: unknown, 155: refuse, 248: refuse}))
        recorder = self.recorder(child.pid, "__main__:Server.run")
        self.attached(recorder, child)
        self.ask(child)
        self.finish(recorder)
        self.assertEqual(self.calls()["Server.run"], 200)
        self.assertEqual(self.ask(child, "end"), {"same": True, "tools": []})

    @unittest.skipUnless(os.uname().machine == "x86_64", "numbers of its system calls")
    def test_a_program_that_may_not_do_what_the_agent_does_is_refused_before_anything_is_touched(self):
        kill, memfd_create = 0x80000000, 319
        child = self.program(text=self.filtered({memfd_create: kill}))
        self.refused(child.pid, "memfd_create is not allowed" if os.geteuid() == 0 else "seccomp")
        self.assertEqual(self.ask(child)["runs"], 200)
        self.assertEqual(self.ask(child, "end"), {"same": True, "tools": []})

    def test_a_child_that_is_forked_meanwhile(self):
        text = PROGRAM.replace('    print("ready"', '    import multiprocessing\n    print("ready"', 1).replace(
            "done = {", "worker = multiprocessing.get_context('fork').Process(target=lambda: [server.run(Batch(2)) for _ in range(50)]); worker.start(); "
            "worker.join(); assert worker.exitcode == 0\n        done = {", 1)
        child = self.program(text=text)
        recorder = self.recorder(child.pid, "__main__:Server.run")
        self.attached(recorder, child)
        self.assertEqual(self.ask(child)["runs"], 200)
        self.finish(recorder)
        self.assertEqual(self.calls()["Server.run"], 200)
        self.assertEqual(self.ask(child, "end"), {"same": True, "tools": []})


if __name__ == "__main__":
    attaching.main()
