#!/usr/bin/env python3
"""What a recording shows of each fault: tinyserve is recorded undisturbed and disturbed by `culprit inject`, and both files
are read with `culprit diff` and `culprit info`. A fault that this machine cannot do skips, with the reason that
`culprit inject` gives.

    record_faults_test.py --bin BUILD_DIR --source ROOT [--keep-normal PATH] [unittest options]

The undisturbed recording is at PATH for the processes of tests that follow, when `Normal` has put it there.

Prints the numbers it judges, normal -> disturbed. Other programs may keep the CPUs busy all along, and not evenly; so what is compared
is either absent without the fault, or a ratio that other programs move little. What they can move all the same is recorded anew, both
sides, up to three times: chance does not spoil all of them, a program that does not see the fault does.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = argparse.Namespace(bin="build", source=".", keep_normal=None)
SECONDS = 2.0  # disturbed, or not, after the first step
LIMIT = 60
REFUSED = 4
RECORDED = {}  # path and pid of the undisturbed run of this process of tests
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
RUNNABLE = "runnable"
LOAD = "culprit-load"  # threads of the injector

# A client and a server that talk over the loopback device, one byte at a time; the first answer is told in a file.
PING = r"""
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
for end in (client, server):
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def serve():
    while server.recv(1):
        server.send(b"x")
threading.Thread(target=serve, daemon=True).start()
for turn in range(10**9):
    client.send(b"x")
    client.recv(1)
    if turn == 0:
        open(sys.argv[1], "w").write("x")
"""


def setUpModule():
    # Server and injector meet on two CPUs, however many there are.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    RECORDED["folder"] = tempfile.mkdtemp(prefix="culprit-faults-", dir="/var/tmp")  # /tmp may be in memory: no disk to disturb


def tearDownModule():
    shutil.rmtree(RECORDED["folder"])


def culprit(*arguments):
    return subprocess.run([os.path.join(ARGS.bin, "culprit"), *arguments], capture_output=True, text=True, timeout=LIMIT,
                          check=False)


def until(true, what, limit=30):
    end = time.monotonic() + limit
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.02)


def has_content(path):
    return os.path.exists(path) and os.path.getsize(path) > 0


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


@contextlib.contextmanager
def running(command, **options):
    child = subprocess.Popen(command, **options)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.terminate()  # both record and inject put things in order then
            try:
                child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                child.kill()
        child.wait()


def inject(name, arguments, pid, seconds):
    """Disturbs for so many seconds, beginning when the injector says so; what it tells of itself, and its pid."""
    base = os.path.join(RECORDED["folder"], name)
    with open(f"{base}.inject", "w", encoding="utf-8") as errors:
        command = [os.path.join(ARGS.bin, "culprit"), "inject", *arguments, "--target", str(pid), "--duration", "60s", "-o", f"{base}.truth.json"]
        with running(command, stderr=errors) as injector:
            until(lambda: has_content(f"{base}.inject"), f"{name} begins")
            time.sleep(seconds)
            if injector.poll() is None:
                injector.send_signal(signal.SIGINT)
            code = injector.wait(timeout=LIMIT)
    with open(f"{base}.inject", encoding="utf-8") as errors:
        if code == REFUSED and not has_content(f"{base}.truth.json"):
            raise unittest.SkipTest(f"{name} is refused here: {errors.read()}")
        if code != 0:
            raise AssertionError(f"inject {name} ended with {code}: {errors.read()}")
    with open(f"{base}.truth.json", encoding="utf-8") as truth:
        return {**json.load(truth), "pid": injector.pid}


def tinyserve(log):
    return [PYTHON, os.path.join(ARGS.bin, "examples", "tinyserve", "tinyserve.py"), "--requests", "100000", "--rate", "0",
            "--faults", "--log-requests", log]


def ping(log):
    return [PYTHON, "-c", PING, log]


def record(name, fault=(), server=tinyserve, seconds=SECONDS):
    """Path of a recording of a server, and what the injector tells. The recording ends when the fault does."""
    base = os.path.join(RECORDED["folder"], name)
    truth = None
    with open(f"{base}.err", "w", encoding="utf-8") as errors:
        command = [os.path.join(ARGS.bin, "culprit"), "record", "--quiet", "-o", f"{base}.pftrace", "--", *server(f"{base}.log")]
        with running(command, stdout=subprocess.DEVNULL, stderr=errors, cwd=RECORDED["folder"]) as recorder:
            until(lambda: has_content(f"{base}.log") or recorder.poll() is not None, "the server makes a step")
            if recorder.poll() is None:
                if fault:
                    truth = inject(name, fault, children_of(recorder.pid)[0], seconds)
                else:
                    time.sleep(seconds)
                recorder.terminate()  # and its command
            code = recorder.wait(timeout=LIMIT)
    if code != 0:
        with open(f"{base}.err", encoding="utf-8") as errors:
            raise AssertionError(f"record ended with {code}: {errors.read()}")
    return f"{base}.pftrace", truth


def normal():
    if "normal" not in RECORDED:
        kept = ARGS.keep_normal
        RECORDED["normal"] = kept if kept and os.path.exists(kept) else record("normal")[0]
    return RECORDED["normal"]


def read(*arguments):
    done = culprit(arguments[0], "--json", *arguments[1:])
    if done.returncode != 0:
        raise AssertionError(f"culprit {arguments} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def info(path):
    if path not in RECORDED:
        RECORDED[path] = read("info", path)
    return RECORDED[path]


class Pair:
    """Two recordings, read as a user reads them. `states` and `moved` hold what `diff` lists: what is not there is alike."""

    def __init__(self, baseline, candidate, truth=None):
        self.truth = truth
        self.info = [info(path) for path in (baseline, candidate)]
        self.diff = read("diff", baseline, candidate)
        if "host" not in self.diff:
            raise AssertionError(f"no steps to compare: {self.diff}"[:1000])
        self.states = {s["what"]: (s["baseline"], s["candidate"]) for s in self.diff["host"]["states"]}
        self.moved = {c["what"]: (c["baseline"], c["candidate"]) for c in self.diff["host"]["counters"]}

    def mean(self, side, name, of=""):
        """Of the samples in a file; None without any."""
        counters = [c for c in self.info[side]["counters"] if c["name"] == name and of in c["of"]]
        return sum(c["mean"] for c in counters) if counters else None

    def counter(self, name):
        return tuple(self.mean(side, name) for side in (0, 1))

    def injector(self):
        """CPUs that the injector used, as the recording of the fault has it; 0 when it is not among the busy ones."""
        return max((c["mean"] for c in self.info[1]["counters"]
                    if c["name"] == "other.cpu" and c["of"] == f"culprit ({self.truth['pid']})"), default=0)

    def injector_time(self):
        """CPU seconds of the injector between the first and the last of its samples, one a second."""
        return max((c["mean"] * (c["samples"] - 1) for c in self.info[1]["counters"]
                    if c["name"] == "other.cpu" and c["of"] == f"culprit ({self.truth['pid']})"), default=0)

    def duration(self, side):
        """Seconds of a recording."""
        return self.info[side]["duration_ns"] / 1e9

    def threads(self, side):
        return self.info[side]["scheduling"]["threads"]

    def steps(self, side):
        return self.info[side]["cycles"]["count"]

    def blocked(self, call):
        """ns that all threads were blocked in a system call, per step."""
        return tuple(sum(b["time_ns"] for t in self.threads(side) for b in t["blocked_in"] if b["name"] == f"blocked:{call}") /
                     self.steps(side) for side in (0, 1))


class Case(unittest.TestCase):
    def need(self, *faults):
        """Skips where a fault is not possible, or scheduling cannot be recorded."""
        for fault in read("inject", "--list"):
            if fault["fault"] in faults and not fault["available"]:
                self.skipTest(f"{fault['fault']} is not possible here: {fault['reason']}")
        if "summary" not in RECORDED:
            RECORDED["summary"] = read("record", "-o", os.path.join(RECORDED["folder"], "probe.pftrace"), "--", "true")
        for collector in RECORDED["summary"]["collectors"]:
            for missing in collector["missing"]:
                if missing["what"].startswith("context switches"):
                    self.skipTest(f"no eBPF here: {missing['why']}")

    def pair(self, fault, *options):
        self.need(fault)
        return Pair(normal(), *record(fault, (fault, *options)))

    def in_one_of_three(self, check):
        """`check` gets a number for the names of its recordings."""
        for number in range(3):
            try:
                check(number)
                return
            except AssertionError as error:
                print(f"{self.id().split('.')[-1]}: try {number + 1}: {str(error).splitlines()[0]}", flush=True)
                if number == 2:
                    raise

    def fresh_pair(self, number, fault, *options, seconds=SECONDS):
        """The undisturbed side just before the disturbed one."""
        self.need(fault)
        baseline = record(f"{fault}-normal-{number}")[0]
        return Pair(baseline, *record(f"{fault}-{number}", (fault, *options), seconds=seconds))

    def show(self, what, values, scale=1.0, unit=""):
        if values is None:
            print(f"{self.id().split('.')[-1]}: {what}: alike", flush=True)
            return
        text = ["none" if v is None else f"{v * scale:.4g}" for v in values]
        print(f"{self.id().split('.')[-1]}: {what}: {text[0]} -> {text[1]} {unit}".rstrip(), flush=True)

    def grows(self, what, values, times, scale=1.0, unit=""):
        self.show(what, values, scale, unit)
        self.assertIsNotNone(values, f"{what} is alike")
        self.assertIsNotNone(values[0], f"{what} is not in the normal recording")
        self.assertIsNotNone(values[1], f"{what} is not in the disturbed recording")
        self.assertGreater(values[1], values[0] * times, what)

    def injector_works(self, pair, least):
        self.show("CPUs used by `culprit inject`", (0, pair.injector()))
        self.assertGreater(pair.injector(), least, "the recording does not name the injector among the busy programs")
        others = pair.counter("host.cpu.others")
        self.show("CPUs used by others", others)
        # Means are over other times: the injector's over its life, sampled every second, the others' over the recording.
        self.assertGreater(pair.injector_time(), 0, "the injector has two samples at least")
        self.assertGreater(others[1] * pair.duration(1), pair.injector_time() * 0.8, "the injector is one of the others")
        ran = tuple(sum(r["time_ns"] for t in pair.threads(side) for r in t["ran_instead"] if r["name"] == LOAD) for side in (0, 1))
        self.show("ms that the server waited for CPUs that the injector's threads had", ran, 1e-6)

    def nothing_held_back(self, pair):
        for name in ("throttled_periods", "throttled_time"):
            self.assertEqual([v for v in pair.counter(f"cgroup.cpu.{name}") if v], [])


class Normal(Case):
    def test_is_recorded_for_those_that_follow(self):
        self.need()
        path, _ = record("normal")
        self.assertGreater(info(path)["cycles"]["count"], 0)
        if ARGS.keep_normal:
            shutil.copyfile(path, ARGS.keep_normal)


class Faults(Case):
    def test_cpu(self):
        self.in_one_of_three(self.cpu)

    def cpu(self, number):
        pair = self.fresh_pair(number, "cpu", "--severity", "1", "--threads", "16", seconds=4)
        self.grows("ms runnable per step", pair.states.get(RUNNABLE), 1.5, 1e-6)
        self.show("ms running per step", pair.states.get("running"), 1e-6)
        self.injector_works(pair, 0.1)
        self.nothing_held_back(pair)

    def test_cgroup_throttle(self):
        pair = self.pair("cgroup-throttle", "--severity", "0.9")
        self.assertGreater(pair.truth["achieved"]["throttled_periods"], 0, "the fault had no effect")
        for name, scale, unit in (("throttled_periods", 1, "1/s"), ("throttled_time", 1e-6, "ms/s")):
            values = pair.moved.get(f"cgroup.cpu.{name}")
            self.show(f"cgroup.cpu.{name}", values, scale, unit)
            self.assertIsNotNone(values, "the recording does not show that the target was throttled")
            self.assertEqual(values[0] or 0, 0)
            self.assertGreater(values[1], 0)
        quota = pair.moved["cgroup.cpu.quota"]
        self.show("cgroup.cpu.quota", quota, 1, "CPUs")
        self.assertIsNone(quota[0])
        self.assertGreater(quota[1], 0)
        self.assertLess(quota[1], pair.truth["achieved"]["cpus_left"] * 1.01)
        # The time that the quota takes away is spent waiting; but in its own cgroup the target may stand better against others.
        self.show("ms runnable per step", pair.states.get(RUNNABLE), 1e-6)

    def test_pause(self):
        self.in_one_of_three(self.pause)

    def pause(self, number):
        pair = self.fresh_pair(number, "pause", "--severity", "0.5")
        self.show("ms stopped per step, all threads together", pair.states["stopped"], 1e-6)
        self.assertEqual(pair.states["stopped"][0], 0)
        self.assertGreater(pair.states["stopped"][1], 0)
        stopped = [max(t["stopped_ns"] for t in pair.threads(side)) for side in (0, 1)]
        self.show("ms that a thread was stopped", stopped, 1e-6)
        self.assertEqual(stopped[0], 0)
        told = pair.truth["achieved"]["stopped_ns"]
        self.assertGreater(stopped[1], told * 0.4)  # it stops when it gets a CPU to see the signal
        self.assertLess(stopped[1], told * 1.1)
        self.nothing_held_back(pair)

    def test_disk(self):
        self.in_one_of_three(self.disk)

    def disk(self, number):
        pair = self.fresh_pair(number, "disk", "--severity", "1")
        names = {c["name"] for c in pair.info[1]["counters"]}
        disks = {name for name in names if name.startswith("host.disk.") and name.endswith(".busy")}
        disk = max(sorted(disks), key=lambda name: pair.mean(1, name))
        self.grows(f"{disk}, share of the time", pair.counter(disk), 2.0)
        self.grows("host.pressure.io.some, share of the time", pair.counter("host.pressure.io.some"), 2.0)
        fsync = pair.blocked("fsync")
        self.assertGreater(fsync[0], 0, "the server's own fsync is in the recording")
        self.grows("ms blocked in fsync per step", fsync, 1.2, 1e-6)
        self.nothing_held_back(pair)

    def test_gil(self):
        self.in_one_of_three(self.gil)

    def gil(self, number):
        pair = self.fresh_pair(number, "gil", "--severity", "0.9", seconds=10)
        self.grows("ms blocked in futex per step", pair.states.get("blocked in futex"), 2.0, 1e-6)
        self.grows("ms running per step", pair.states.get("running"), 1.3, 1e-6)
        self.grows("ms per step", pair.states["period"], 1.3, 1e-6)
        # Who holds the lock is a thread of the server that hardly ran before, and no other program.
        holder = [max(t["on_cpu_ns"] for t in pair.threads(side) if t["tid"] != t["pid"] and t["thread"].startswith("python"))
                  for side in (0, 1)]
        self.grows("ms that the thread which holds the lock ran", holder, 5.0, 1e-6)
        self.assertGreater(holder[1], pair.truth["achieved"]["held_cpu_ns"] * 0.7)
        self.show("CPUs used by others", pair.moved.get("host.cpu.others"))
        self.show("CPUs used by `culprit inject`", (0, pair.injector()))
        self.assertLess(pair.injector(), 0.1)
        self.nothing_held_back(pair)

    def test_memory_bandwidth(self):
        self.in_one_of_three(self.memory_bandwidth)

    def memory_bandwidth(self, number):
        # Which accesses waited only a PMU could tell; the recording shows who took the CPUs, and that the server waits for them.
        pair = self.fresh_pair(number, "memory-bandwidth", "--severity", "1", "--threads", "4")
        self.assertGreater(pair.truth["achieved"]["bytes_per_s"], 1e8, "the fault had no effect")
        self.show("ms running per step", pair.states.get("running"), 1e-6)
        self.injector_works(pair, 0.1)
        self.nothing_held_back(pair)
        self.grows(f"ms {RUNNABLE} per step", pair.states.get(RUNNABLE), 1.3, 1e-6)

    def test_network(self):
        self.need("network")
        baseline, _ = record("network-normal", server=ping)
        candidate, _ = record("network", ("network", "--severity", "0.2"), server=ping)
        answers = [[b for t in info(path)["scheduling"]["threads"] for b in t["blocked_in"] if b["name"] == "blocked:recvfrom"]
                   for path in (baseline, candidate)]
        wait = [sum(b["time_ns"] for b in side) / sum(b["count"] for b in side) for side in answers]
        self.grows("ms blocked in recvfrom each time", wait, 3.0, 1e-6)
        self.assertGreater(wait[1], 5e6)  # 20 ms each way

    def test_nothing(self):
        self.need()
        self.in_one_of_three(self.nothing)

    def nothing(self, number):
        pair = Pair(record(f"same-{number}")[0], record(f"again-{number}")[0])
        self.assertEqual([t["stopped_ns"] for side in (0, 1) for t in pair.threads(side) if t["stopped_ns"]], [])
        self.assertNotIn("stopped", pair.states)
        self.assertNotIn("cgroup.cpu.quota", pair.moved)
        self.nothing_held_back(pair)
        for what, most in (("running", 1.3), ("period", 2.0), (RUNNABLE, 4.0)):
            values = pair.states.get(what)
            self.show(f"ms {what} per step", values, 1e-6)
            if values:  # else alike
                self.assertLess(max(values), most * min(values) + 1e6, what)
        self.assertIn(pair.diff["outcome"], ("no_change", "inconclusive"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--keep-normal", type=os.path.abspath)
    ARGS, rest = parser.parse_known_args()
    ARGS.bin = os.path.abspath(ARGS.bin)
    unittest.main(argv=[sys.argv[0], *rest])
