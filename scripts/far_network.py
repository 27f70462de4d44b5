"""A second machine, as a server sees it: a network namespace behind a link whose delay and loss are those one asks for.

Both ends are tun devices; what one sends a process of its own hands to the other, later or not at all. Needs root and /dev/net/tun, and nothing of the
kernel's traffic control. What `culprit inject network` does needs that (sch_netem), which kernels of small virtual machines do not have.
"""

import asyncio
import fcntl
import heapq
import json
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def tun(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def relay(settings, namespace, near, far):
    """Hands packets over until it is ended; reads the file with delay (seconds) and loss (share) anew at SIGHUP."""
    names = [f"{namespace}-{end}" for end in "nf"]
    ends = [tun(name) for name in names]
    run("ip", "link", "set", names[1], "netns", namespace)
    run("ip", "address", "add", f"{near}/30", "dev", names[0])
    run("ip", "link", "set", names[0], "up")
    run("ip", "-n", namespace, "address", "add", f"{far}/30", "dev", names[1])
    for device in ("lo", names[1]):
        run("ip", "-n", namespace, "link", "set", device, "up")
    known = {}

    def look(*_):
        with open(settings, encoding="utf-8") as file:
            known.update(json.load(file))

    signal.signal(signal.SIGHUP, look)
    look()
    chance = random.Random(1)
    waiting, count = [], 0
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, end, packet = heapq.heappop(waiting)
            try:
                os.write(ends[end], packet)
            except BlockingIOError:
                pass  # a full queue, as of any link
        ready, _, _ = select.select(ends, [], [], max(0.0, waiting[0][0] - time.monotonic()) if waiting else 1.0)
        for fd in ready:
            for _ in range(64):
                try:
                    packet = os.read(fd, 65536)
                except BlockingIOError:
                    break
                if chance.random() >= known["loss"]:
                    count += 1
                    heapq.heappush(waiting, (time.monotonic() + known["delay"], count, 1 - ends.index(fd), packet))


async def forward(near, port):
    """Lets clients that know only 127.0.0.1 reach the near end's port, from the far one."""

    async def hand_over(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader, writer):
        far_reader, far_writer = await asyncio.open_connection(near, port)
        await asyncio.gather(hand_over(reader, far_writer), hand_over(far_reader, writer))

    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        print("ready", flush=True)
        await server.serve_forever()


class FarNetwork:
    """While it is entered, it is there. `set` changes the link."""

    def __init__(self, folder):
        pid = os.getpid()
        self.namespace = f"cul{pid}"  # a device's name has 15 characters at most
        self.near, self.far = (f"10.{200 + pid // 256 % 50}.{pid % 256}.{end}" for end in (1, 2))
        self.settings = os.path.join(folder, "link.json")
        self.processes = []

    def start(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{' '.join(command)} does not begin")
        return process

    def set(self, delay=0.0, loss=0.0):
        """One way each."""
        with open(self.settings + ".new", "w", encoding="utf-8") as file:
            json.dump({"delay": delay, "loss": loss}, file)
        os.replace(self.settings + ".new", self.settings)
        if self.processes:
            self.processes[0].send_signal(signal.SIGHUP)

    def there(self, *command):
        """The command as one of the far end."""
        return ["ip", "netns", "exec", self.namespace, *command]

    def forward(self, port):
        self.start(*self.there(sys.executable, os.path.abspath(__file__), "forward", self.near, str(port)))

    def __enter__(self):
        run("ip", "netns", "add", self.namespace)
        try:
            self.set()
            self.start(sys.executable, os.path.abspath(__file__), "relay", self.settings, self.namespace, self.near, self.far)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        run("ip", "netns", "delete", self.namespace)


if __name__ == "__main__":
    if sys.argv[1] == "relay":
        relay(*sys.argv[2:])
    else:
        asyncio.run(forward(sys.argv[2], int(sys.argv[3])))
