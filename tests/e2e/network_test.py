#!/usr/bin/env python3
"""What a recording tells of its program's connections to another machine, which is a network namespace behind a link that delays or loses packets.

    network_test.py --bin BUILD_DIR --source ROOT [unittest options]
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(bin="build", source=".")
SECONDS = "4s"
MS = 1e6

# Answers each byte, to as many as come.
SERVER = """
import socket, threading
listener = socket.create_server(("0.0.0.0", 0))
print(listener.getsockname()[1], flush=True)
def serve(peer):
    while data := peer.recv(1):
        peer.send(data)
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
"""
CLIENT = """
import socket, sys
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print("connected", flush=True)
while True:
    peer.send(b"x")
    peer.recv(1)
"""


@contextlib.contextmanager
def running(*command):
    """The process, and the first line that it printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Network(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or not os.access("/dev/net/tun", os.W_OK) or not shutil.which("ip"):
            raise unittest.SkipTest("needs root, /dev/net/tun and ip (iproute2)")
        sys.path.insert(0, os.path.join(ARGS.source, "scripts"))
        from far_network import FarNetwork, tun
        try:
            os.close(tun(f"cut{os.getpid()}"))
        except OSError as error:
            raise unittest.SkipTest(f"no tun device can be made here: {error}") from error
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        try:
            cls.network = cls.enterClassContext(FarNetwork(cls.folder))
        except subprocess.CalledProcessError as error:
            if b"not permitted" not in error.stderr and b"denied" not in error.stderr:
                raise
            raise unittest.SkipTest(f"no network namespaces here: {error.stderr}") from error
        _, cls.port = cls.enterClassContext(running(sys.executable, "-c", SERVER))

    def counters(self, name, pid):
        path = os.path.join(self.folder, f"{name}.pftrace")
        done = subprocess.run([os.path.join(ARGS.bin, "culprit"), "record", "-q", "--force", "--collect", "host,sched", "-o", path, "-p", str(pid), "--duration", SECONDS],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        info = subprocess.run([os.path.join(ARGS.bin, "culprit"), "info", "--json", path], capture_output=True, text=True, check=True)
        return {c["name"]: c for c in json.loads(info.stdout)["counters"]}

    def over(self, name, delay=0.0, loss=0.0):
        """What is told of a client at the far end, which is in another network namespace than its recorder."""
        self.network.set(delay=delay)
        with running(*self.network.there(sys.executable, "-c", CLIENT, self.network.near, self.port)) as (client, told):
            self.assertEqual(told, "connected")
            self.network.set(delay=delay, loss=loss)
            return self.counters(name, client.pid)

    def test_delay_and_loss_of_the_way_to_other_machines_are_seen(self):
        plain = self.over("plain")
        self.assertEqual(plain["target.tcp.connections"]["mean"], 1)
        self.assertLess(plain["target.tcp.retransmits"]["mean"], 1)  # a relay that waits for a CPU is late, too
        self.assertGreater(plain["target.tcp.rtt"]["mean"], 0)
        slow = self.over("slow", delay=0.02)
        self.assertGreaterEqual(slow["target.tcp.rtt"]["mean"], 40 * MS)
        self.assertGreaterEqual(slow["target.tcp.rtt_least"]["mean"], 40 * MS)
        self.assertLess(slow["target.tcp.rtt_least"]["mean"], 120 * MS)
        lossy = self.over("lossy", loss=0.2)
        self.assertGreater(lossy["target.tcp.retransmits"]["mean"], plain["target.tcp.retransmits"]["mean"])
        # Who talks to its own machine only has none.
        with running(sys.executable, "-c", CLIENT, "127.0.0.1", self.port) as (client, _):
            told = self.counters("near", client.pid)
        self.assertFalse([name for name in told if name.startswith("target.tcp.")])
        self.assertIn("host.cpu.busy", told)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
