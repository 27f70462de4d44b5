#!/usr/bin/env python3
"""Calls of the Python package beside threads, signals and odd arguments, in the environment that scripts/python-env makes.

    python_calls_test.py --env BUILD_DIR/python --bin BUILD_DIR --source SOURCE_DIR [unittest options]
"""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

from python_package_test import ARGS, WHY, Case, main, run

if WHY is None:
    import culprit
    import culprit._culprit


class Calls(Case):
    def test_threads_may_load_at_once(self):
        sums, errors = [], []

        def work():
            try:
                for _ in range(5):
                    sums.append(sum(culprit.load(self.trace).slices()["duration_ns"]))
            except BaseException as error:  # noqa: B902
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(len(set(sums)), 1)
        self.assertEqual(len(sums), 40)

    def test_nothing_leaks(self):
        def resident():
            gc.collect()
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        small, other = self.made("small.json", "1", steps=12), self.made("small_other.json", "2", steps=12)

        def work(times):
            for _ in range(times):
                loaded = culprit.load(small)
                loaded.slices()["name"]
                compared = culprit.diff(loaded, other)
                compared.findings()
                self.assertFalse(compared.data["same_recording"])

        work(100)
        growths = []
        for _ in range(3):  # the allocator makes an arena for another thread now and then; what leaks does so each time
            before = resident()
            work(300)
            growths.append(resident() - before)
        self.assertLess(min(growths), 1e6, growths)

    def test_ranks_have_the_same_numbers_in_all_tables(self):
        """Those of the files, also of one of several, or without the first."""
        events = []
        for step in range(6):
            begin = 1000 * step
            events += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 7, "tid": 7, "ts": begin, "dur": 900},
                       {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": begin + 10, "dur": 500},
                       {"ph": "C", "name": "load", "pid": 7, "ts": begin, "args": {"value": 1}}, {"ph": "i", "s": "t", "name": "mark", "pid": 7, "tid": 7, "ts": begin}]
        paths = {rank: self.at(f"numbered{rank}.json") for rank in (3, 5)}
        for rank, path in paths.items():
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"distributedInfo": {"rank": rank, "world_size": 8}, "traceEvents": events, "deviceProperties": [{"id": 0, "name": "GPU"}]}, file)
        for ranks in ([3], [5], [5, 3]):
            loaded = culprit.load([paths[rank] for rank in ranks])
            profile = loaded.profile()
            for table in (loaded.slices(), loaded.counters(), loaded.markers(), loaded.cycles(), loaded.devices, profile.cycles, profile.functions, profile.ledger):
                self.assertEqual(set(table["rank"]), set(ranks), table.key)
            said = json.loads(run(os.path.join(ARGS.bin, "culprit"), "cycles", *[paths[rank] for rank in ranks], "--json").stdout)
            self.assertEqual({row["rank"] for row in said["tables"][0]["rows"]}, set(ranks))

    def test_control_c_ends_a_load(self):
        large = self.made("large.json", "1", steps=20_000)
        program = f"import culprit\nprint('go', flush=True)\nwhile True: culprit.load({large!r})"
        started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.stdout.readline()
        time.sleep(0.5)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=30)
        self.assertIn("KeyboardInterrupt", said)

    def test_control_c_ends_waiting_for_a_pipe(self):
        pipe = self.at("pipe")
        os.mkfifo(pipe)
        for path in (pipe, "-"):
            with self.subTest(path), subprocess.Popen([sys.executable, "-c", f"import culprit\nprint('go', flush=True)\nculprit.load({path!r})"],
                                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
                started.stdout.readline()
                time.sleep(0.3)
                started.send_signal(signal.SIGINT)
                started.wait(timeout=30)
                self.assertIn("KeyboardInterrupt", started.stderr.read())

    def test_python_may_end_while_a_thread_loads(self):
        """A thread that nobody waits for wants the interpreter's lock while that ends, which ends the thread: in the middle of C++ that would end the program."""
        program = """
import culprit, sys, threading, time
def work():
    while True:
        culprit.load(sys.argv[1]).slices()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
        trace = self.made("while_it_ends.json", "1", steps=2_000)
        for _ in range(10):
            done = run(sys.executable, "-c", program, trace)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_a_thread_holds_when_python_ends_is_no_message(self):
        program = """
import culprit, sys, threading
held = threading.Event()
def hold():
    run = culprit.load(sys.argv[1])
    held.set()
    threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
"""
        done = run(sys.executable, "-c", program, self.trace)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_comes_last_when_python_ends_may_load(self):
        program = """
import atexit, sys
@atexit.register
def last():
    print(len(culprit.load(sys.argv[1]).slices()) > 0)
import culprit
culprit.load
"""
        done = run(sys.executable, "-c", program, self.trace)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "True\n", ""))

    def test_a_child_that_is_forked_during_a_call_loads_and_ends(self):
        pipe = self.at("forked")
        os.mkfifo(pipe)
        program = """
import contextlib, culprit, os, sys, threading
def wait():
    with contextlib.suppress(culprit.Error):
        culprit.load(sys.argv[1])
waiting = threading.Thread(target=wait)
waiting.start()
writer = os.open(sys.argv[1], os.O_WRONLY)  # comes back when the call has opened the other end
child = os.fork()
os.write(1, f"{len(culprit.load(sys.argv[2]).slices()) > 0}\\n".encode())  # whole, whoever else writes
if child != 0:
    print(os.waitpid(child, 0)[1])
    os.close(writer)
    waiting.join()
"""
        done = run(sys.executable, "-c", program, pipe, self.trace)
        self.assertEqual((done.returncode, done.stdout), (0, "True\nTrue\n0\n"), done.stderr)

    def test_control_c_ends_a_call_long_before_it_would_end(self):
        """How long each takes, and how long it goes on when Ctrl-C comes after a fifth of that: the best of five rounds, as others use the machine, too. What takes less
        than half a second comes again and again until that is over: Ctrl-C is looked for every 50 ms."""
        program = """
import culprit, os, signal, sys, threading, time
run, base, other = (culprit.load(path) for path in sys.argv[1:])
def share_until_it_ends(one):
    begin = time.perf_counter()
    one()
    times = max(1, round(0.5 / (time.perf_counter() - begin)))
    def call():
        for _ in range(times):
            one()
    begin = time.perf_counter()
    call()
    whole = time.perf_counter() - begin
    timer = threading.Timer(0.2 * whole, os.kill, (os.getpid(), signal.SIGINT))
    begin = time.perf_counter()
    try:
        timer.start()
        call()
        time.sleep(100)
    except KeyboardInterrupt:
        return (time.perf_counter() - begin) / whole
calls = {name: getattr(run, name) for name in ("kernels", "kernel_blocks", "fusion", "slices", "cycles", "profile")}
calls.update(top=lambda: run.top(classes="all"), top_by_cycle=lambda: run.top(by="cycle"), diff=lambda: culprit.diff(base, other))
for name, call in calls.items():
    share = 1
    for _ in range(5):
        if share >= 0.75:
            share = min(share, share_until_it_ends(call))
    print(name, share)
"""
        done = run(sys.executable, "-c", program, self.made("long.json", "1", steps=10_000), *(self.made(f"long{seed}.json", seed, steps=3_000) for seed in "12"))
        lines = [line.split() for line in done.stdout.splitlines()]
        calls = ["kernels", "kernel_blocks", "fusion", "slices", "cycles", "profile", "top", "top_by_cycle", "diff"]
        self.assertEqual([line[0] for line in lines], calls, done.stderr)
        for name, share in lines:
            self.assertLess(float(share), 0.75, name)

    def test_other_threads_go_on_during_a_call(self):
        """A thread that wakes up every millisecond: its longest sleep beside each call, in the best of five rounds, as others use the machine, too."""

        def longest_sleep(call):
            """As a share of the call."""
            stamps, done = [], threading.Event()

            def tick():
                while not done.is_set():
                    stamps.append(time.perf_counter())
                    time.sleep(0.001)

            ticker = threading.Thread(target=tick)
            ticker.start()
            begin = time.perf_counter()
            call()
            took = time.perf_counter() - begin
            done.set()
            ticker.join()
            return max(after - before for before, after in zip(stamps, [*stamps[1:], time.perf_counter()])) / took

        path = self.at("marks.json")
        with open(path, "w", encoding="ascii") as file:
            file.write('{"traceEvents":[{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":0,"dur":1}')
            for i in range(500_000):
                file.write(f',{{"ph":"i","s":"t","name":"m{i}","pid":1,"tid":1,"ts":{i}}},{{"ph":"C","name":"c{i % 10}","pid":1,"tid":1,"ts":{i},"args":{{"v":{i}}}}}')
            file.write("]}")
        marks, loaded = culprit.load(path), culprit.load(self.made("beside.json", "1", steps=5_000))
        for name, call in (("load", lambda: culprit.load(path)), ("markers", marks.markers), ("counters", lambda: [marks.counters() for _ in range(10)]), ("kernels", loaded.kernels)):
            with self.subTest(name):
                shares = []
                while len(shares) < 5 and min(shares, default=1) >= 0.5:
                    shares.append(longest_sleep(call))
                self.assertLess(min(shares), 0.5)

    def test_paths_need_not_be_utf8(self):
        folder = os.fsdecode(os.fsencode(self.folder.name) + b"/\xff\xfe")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "trace.json")
        with open(self.trace, "rb") as source, open(path, "wb") as target:
            target.write(source.read())
        self.assertEqual(len(culprit.load(path).slices()), len(culprit.load(self.trace).slices()))
        compared = culprit.diff(path, self.made("of_utf8.json", "2"))
        for told in (str(compared), compared.to_markdown(), compared.to_json()):
            self.assertIsInstance(told, str)
        missing = os.path.join(folder, "nothing.json")
        with self.assertRaises(culprit.Error) as caught:
            culprit.load(missing)
        self.assertIn(missing, str(caught.exception))
        self.assertEqual(caught.exception.where, missing)

    def test_a_null_character_is_in_no_path(self):
        for call in (lambda path: culprit.load(path), lambda path: culprit.diff(self.trace, path)):
            with self.assertRaises(ValueError):
                call(self.trace + "\0.json")

    def test_stubs_say_what_the_module_takes(self):
        with open(os.path.join(ARGS.source, "python", "culprit", "_culprit.pyi"), encoding="utf-8") as file:
            stubs = file.read()
        for name in re.findall(r"^ *def (\w+)", stubs, re.M):
            if not name.startswith("__"):
                self.assertTrue(any(hasattr(owner, name) for owner in (culprit._culprit, culprit._culprit.Run, culprit._culprit.Table)), name)
        # The module has no names of its arguments.
        arguments = [argument.split(":")[0] for taken in re.findall(r"def \w+\(([^)]*)\)", stubs) for argument in taken.split(", ") if ":" in argument]
        self.assertEqual([name for name in arguments if not name.startswith("__")], [])
        with self.assertRaises(TypeError):
            culprit._culprit.load_run(paths=[], threads=0, max_expansion=0)


if __name__ == "__main__":
    main()
