#!/usr/bin/env python3
"""A real server that marks no steps: its units of work are counted as it counts them itself, and less demand is no regression.

Usage: work_units_test.py --bin BUILD [unittest arguments]"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

arguments = argparse.ArgumentParser()
arguments.add_argument("--bin", default="build-debug")
args, sys.argv[1:] = arguments.parse_known_args()
CULPRIT = os.path.join(args.bin, "culprit")

SERVER = r"""
import select, socket, sys, time
listener = socket.create_server(("127.0.0.1", 0)); print(listener.getsockname()[1], flush=True)
poll = select.epoll(); poll.register(listener, select.EPOLLIN); peers = {}; answered = 0
while True:
    for fd, _ in poll.poll():
        if fd == listener.fileno():
            peer, _ = listener.accept(); peers[peer.fileno()] = peer; poll.register(peer, select.EPOLLIN)
            continue
        data = peers[fd].recv(100)
        if data == b"end": print(answered, flush=True); sys.exit()
        if not data: poll.unregister(fd); peers.pop(fd).close(); continue
        if data.startswith(b"slow"): time.sleep(0.004)
        sum(range(2000)); peers[fd].send(data.ljust(len(data) + data.count(b"+"))); answered += 1
"""

# The same over a Unix socket with the path of the argument.
UNIX = SERVER.replace('socket.create_server(("127.0.0.1", 0)); print(listener.getsockname()[1], flush=True)',
                      'socket.socket(socket.AF_UNIX); listener.bind(sys.argv[1]); listener.listen(); print(0, flush=True)')

FAST, UNIX_FAST = (text.replace("sum(range(2000)); ", "") for text in (SERVER, UNIX))

THREADED = r"""
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b"x" * 2000)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler); print(server.server_port, flush=True); server.serve_forever()
"""


# One thread for each connection, which asks a backend for each answer.
PROXY = r"""
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0)); print(listener.getsockname()[1], flush=True)
answered = [0]
def serve(peer):
    backend = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    while data := peer.recv(100):
        if data == b"end": print(answered[0], flush=True)
        else: backend.sendall(data); answered[0] += 1; peer.sendall(backend.recv(100))
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

BACKEND = r"""
import socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0)); print(listener.getsockname()[1], flush=True)
def serve(peer):
    while data := peer.recv(100): time.sleep(float(sys.argv[1])); peer.sendall(data)
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


class Server:
    def __init__(self, program=SERVER, *arguments):
        self.program = program
        self.arguments = arguments

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", self.program, *self.arguments], stdout=subprocess.PIPE,
                                        text=True)
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port))

    def answered(self):
        with self.connect() as peer:
            peer.sendall(b"end")
            return int(self.process.stdout.readline())


class UnixServer(Server):
    def __init__(self, path, program=UNIX):
        super().__init__(program, path)

    def connect(self):
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(self.arguments[0])
        return peer


def kernel_tells_arrivals():
    try:
        with open("/sys/kernel/btf/vmlinux", "rb") as types:
            return b"btf_trace_sk_data_ready" in types.read()
    except OSError:
        return False


def record(server, path, pause, seconds=3.0):
    """Records a server while one client asks it, and pauses; gives how often it answered meanwhile."""
    with server.connect() as peer:
        recorder = start_recorder(server, path)
        until = time.time() + seconds
        while time.time() < until:
            peer.sendall(b"ask")
            peer.recv(100)
            if pause:
                time.sleep(pause)
        time.sleep(0.2)
        recorder.terminate()
        _, error = recorder.communicate(timeout=60)
    answered = server.answered()
    return recorder.returncode, answered, error


def start_recorder(server, path, idle=0.5):
    """It is ready, and the server was idle for a while."""
    recorder = subprocess.Popen([CULPRIT, "record", "-p", str(server.process.pid), "-o", path, "--json"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    while not os.path.exists(path) or os.path.getsize(path) == 0:  # it has it when everything is attached
        if recorder.poll() is not None or time.monotonic() > limit:
            recorder.kill()
            raise AssertionError(f"the recorder does not begin: {recorder.communicate()[1]}")
        time.sleep(0.02)
    time.sleep(idle)
    return recorder


def stop_recorder(test, recorder):
    time.sleep(0.3)
    recorder.terminate()
    out, error = recorder.communicate(timeout=60)
    test.assertIn(recorder.returncode, (0, 128 + 15, -15), error)
    return json.loads(out)


def answer(*arguments):
    done = subprocess.run([CULPRIT, *arguments, "--json"], capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout) if done.stdout else {"error": done.stderr}


@unittest.skipUnless(os.geteuid() == 0, "eBPF needs privileges")
class WorkUnits(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name + ".pftrace")

    def recorded(self, name, pause):
        with Server() as server:
            code, answered, error = record(server, self.path(name), pause)
        self.assertIn(code, (0, 128 + 15, -15), error)
        info = answer("info", self.path(name))
        if not info["scheduling"]["threads"]:
            self.skipTest("eBPF cannot be used here")
        return answered, info

    @unittest.skipUnless(kernel_tells_arrivals(), "the kernel does not tell when data come to a socket")
    def test_so_many_requests_that_they_are_looked_at_in_windows_are_counted_exactly(self):
        seconds = 3.0
        for server in (Server(FAST), UnixServer(self.path("socket"), UNIX_FAST)):
            with self.subTest(server=type(server).__name__), server:
                recorder = start_recorder(server, self.path(type(server).__name__))
                peers = [server.connect() for _ in range(8)]
                until = time.time() + seconds
                while time.time() < until:
                    for peer in peers:
                        peer.send(b"ask")
                    for peer in peers:
                        peer.recv(100)
                for peer in peers:
                    peer.close()
                stop_recorder(self, recorder)
                answered = server.answered()
                info = answer("info", self.path(type(server).__name__))
                if not info["scheduling"]["threads"]:
                    self.skipTest("eBPF cannot be used here")
                unit = info["work_units"]["units"][0]
                self.assertEqual(unit["unit"], "request", unit)
                self.assertAlmostEqual(unit["count"] / answered, 1, delta=0.01)
                share = info["metadata"][0].get("syscalls.answers_share")
                if answered / seconds > 25_000:  # in fits and starts, some of it may be few
                    self.assertLess(float(share), 0.7)

    def test_requests_are_counted_as_the_server_counts_them(self):
        answered, info = self.recorded("busy", 0)
        unit = info["work_units"]["units"][0]
        self.assertEqual(unit["unit"], "request", unit)
        self.assertGreater(answered, 500)
        self.assertLessEqual(abs(unit["count"] - answered), max(2, 0.01 * answered), (unit, answered))

    def asked(self, name, requests, clients=1, seconds=3.0, server=None):
        """Several clients ask at once, each as fast as it can; how long each answer took them, and what is recorded."""
        took = []

        def ask(peer, until):
            while time.time() < until:
                for request in requests:
                    begin = time.monotonic()
                    peer.sendall(request)
                    peer.recv(1000)
                    took.append(time.monotonic() - begin)

        with server or Server() as server:
            peers = [server.connect() for _ in range(clients)]
            recorder = start_recorder(server, self.path(name))
            threads = [threading.Thread(target=ask, args=(peer, time.time() + seconds)) for peer in peers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            stop_recorder(self, recorder)
            for peer in peers:
                peer.close()
        info = answer("info", self.path(name))
        if not info["scheduling"]["threads"]:
            self.skipTest("eBPF cannot be used here")
        if not kernel_tells_arrivals():
            self.skipTest("the kernel does not tell when data come to a socket (Linux 6.3)")
        self.assertEqual(info["work_units"]["latency"]["what"], "answered in")
        return sorted(took), info["work_units"]

    def latency_as_for_who_asks(self, server):
        # Two clients wait for each other, though the server is woken only when both have asked. What a client itself waits for a CPU is no part of it: up to three times.
        apart = []
        for number in range(3):
            took, work = self.asked(f"slow{number}", [b"slow"], clients=2, server=server())
            latency = work["latency"]
            self.assertLessEqual(abs(latency["n"] - len(took)), max(4, 0.02 * len(took)), (latency, len(took)))
            apart.append(abs(latency["p50_ns"] / (took[len(took) // 2] * 1e9) - 1))
            if apart[-1] < 0.1:
                return latency
        self.fail(f"its median is not that of the clients: {apart}")

    def test_answers_take_as_long_as_for_who_asks(self):
        self.latency_as_for_who_asks(Server)

    def test_requests_that_always_come_in_one_order_are_transactions(self):
        took, work = self.asked("transactions", [b"begin", b"+" * 9, b"set++", b"set++", b"get+++++", b"commit"])
        unit = work["units"][0]
        self.assertEqual(unit["unit"], "transaction", unit)
        self.assertLessEqual(abs(unit["count"] - len(took) / 6), max(2, 0.01 * len(took) / 6), (unit, len(took)))

    def unix_server(self):
        return UnixServer(self.path("socket"))

    def test_answers_over_a_unix_socket_take_as_long_as_for_who_asks(self):
        self.assertEqual(self.latency_as_for_who_asks(self.unix_server)["port"], "Unix sockets")

    def test_requests_over_a_unix_socket_that_come_in_one_order_are_transactions(self):
        took, work = self.asked("unix", [b"begin", b"+" * 9, b"set++", b"set++", b"get+++++", b"commit"],
                                server=self.unix_server())
        unit = work["units"][0]
        self.assertEqual(unit["unit"], "transaction", unit)
        self.assertLessEqual(abs(unit["count"] - len(took) / 6), max(2, 0.01 * len(took) / 6), (unit, len(took)))

    def test_the_only_answer_of_a_unix_connection_counts(self):
        with self.unix_server() as server:
            recorder = start_recorder(server, self.path("unix"))
            for _ in range(300):
                with server.connect() as peer:
                    peer.sendall(b"ask")
                    peer.recv(100)
            stop_recorder(self, recorder)
        info = answer("info", self.path("unix"))
        if not info["scheduling"]["threads"]:
            self.skipTest("eBPF cannot be used here")
        if not kernel_tells_arrivals():
            self.skipTest("the kernel does not tell when data come to a socket (Linux 6.3)")
        work = info["work_units"]
        self.assertLessEqual(abs(work["units"][0]["count"] - 300), 3, work["units"][0])
        self.assertEqual(work["latency"]["what"], "answered in")
        self.assertLessEqual(abs(work["latency"]["n"] - 300), 3, work["latency"])

    def test_a_thread_for_each_connection_is_a_request_each(self):
        with Server(THREADED) as server:
            recorder = start_recorder(server, self.path("threads"))
            for _ in range(300):
                with server.connect() as peer:
                    peer.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    while peer.recv(4096):
                        pass
            stop_recorder(self, recorder)
        info = answer("info", self.path("threads"))
        if not info["scheduling"]["threads"]:
            self.skipTest("eBPF cannot be used here")
        unit = info["work_units"]["units"][0]
        self.assertEqual((unit["unit"], unit["calls"].split(",")[0]), ("request", "accept4"), unit)
        self.assertLessEqual(abs(unit["count"] - 300), 3, unit)
        self.assertGreaterEqual(unit["confidence"], 0.8)
        self.assertEqual(info["work_units"]["latency"]["what"], "thread lifetime")

    def test_an_idle_server_is_idle_and_its_recording_as_long_as_it_took(self):
        with Server() as server:
            recorder = start_recorder(server, self.path("idle"), 2.0)
            summary = stop_recorder(self, recorder)
        info = answer("info", self.path("idle"))
        if "work_units" not in info:
            self.skipTest("eBPF cannot be used here")
        self.assertTrue(info["work_units"]["idle"], info["work_units"])
        self.assertEqual(info["work_units"]["units"][0]["unit"], "window")
        self.assertAlmostEqual(info["duration_ns"] * 1e-9, summary["duration_ns"] * 1e-9, delta=0.01)

    def test_every_verb_takes_units_for_cycles(self):
        self.recorded("busy", 0.002)
        cycles = answer("cycles", self.path("busy"))
        self.assertEqual(cycles["cycles"]["method"] if "cycles" in cycles else cycles["method"], "work_unit", list(cycles))
        self.assertEqual(answer("info", self.path("busy"))["cycles"]["method"], "work_unit")
        for verb in (["profile"], ["top", "--by", "cycle"], ["top", "--cycle", "2-5"]):
            done = subprocess.run([CULPRIT, *verb, self.path("busy"), "--json"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, (verb, done.stderr))
        diff = answer("diff", self.path("busy"), self.path("busy"))
        self.assertIn("outcome", diff)

    def test_less_demand_is_no_regression(self):
        busy, _ = self.recorded("busy", 0)
        calm, _ = self.recorded("calm", 0.004)
        self.assertLess(calm, busy / 2)
        diff = answer("diff", self.path("busy"), self.path("calm"))
        # Whoever else runs on this machine may have taken CPUs, which is a reason.
        if sum(max(0, other["candidate"] - other["baseline"]) for other in diff["work"]["others"]) < 0.4:
            self.assertNotEqual(diff["outcome"], "regression", diff["work"])
        self.assertNotEqual(diff["outcome"], "improvement", diff["work"])
        back = answer("diff", self.path("calm"), self.path("busy"))
        self.assertNotEqual(back["outcome"], "improvement", back["work"])

    def test_a_slower_backend_is_no_lack_of_demand(self):
        for name, waits in (("fast", 0), ("slow", 0.01)):
            with Server(BACKEND, str(waits)) as backend, Server(PROXY, str(backend.port)) as proxy:
                code, answered, error = record(proxy, self.path(name), 0.002)
            self.assertIn(code, (0, 128 + 15, -15), error)
            unit = answer("info", self.path(name))["work_units"]["units"][0]
            self.assertAlmostEqual(unit["count"] / answered, 1, delta=0.06, msg=unit)
        diff = answer("diff", self.path("fast"), self.path("slow"))
        if not any(latency["what"].startswith("answered in") for latency in diff["work"]["latency"]):
            self.skipTest("how long connections wait for answers is not seen here")
        self.assertNotIn(diff["outcome"], ("no_change", "improvement"), diff["work"])
        back = answer("diff", self.path("slow"), self.path("fast"))
        self.assertNotIn(back["outcome"], ("no_change", "regression"), back["work"])
        # Whoever else runs on this machine may be a reason as well.
        if not any(max(other["baseline"], other["candidate"]) > 0.4 for other in diff["work"]["others"]):
            self.assertEqual((diff["outcome"], diff["work"]["waits_in"]), ("regression", "recvfrom"), diff["work"])

    def test_a_wait_is_no_anchor(self):
        self.recorded("busy", 0.002)
        done = subprocess.run([CULPRIT, "diff", self.path("busy"), self.path("busy"), "--anchor", "blocked:epoll_wait"],
                              capture_output=True, text=True)
        cycles = subprocess.run([CULPRIT, "cycles", self.path("busy"), "--anchor", "blocked:epoll_wait"],
                                capture_output=True, text=True)
        self.assertEqual(cycles.returncode, 2, cycles.stdout + done.stderr)
        self.assertIn("wait", cycles.stderr)


if __name__ == "__main__":
    unittest.main()
