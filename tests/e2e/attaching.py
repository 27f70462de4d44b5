"""What tests of attaching share: programs to attach to, and recorders of them."""

import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = argparse.Namespace(bin="build")
LIMIT = 60

PROGRAM = r"""
import asyncio, functools, json, os, sys, time

class Batch:
    def __init__(self, n):
        self.reqs = list(range(n))
        self.tokens = {"a": n, "b": 1}
        self.size = n

def decorated(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs)
    return inner

class Server:
    def run(self, batch, extra=3, *, key=4):
        return self.inner(batch)
    def inner(self, batch):
        return len(batch.reqs)
    @classmethod
    def of_class(cls, n):
        return n
    @staticmethod
    def of_none(n):
        return n
    @decorated
    def wrapped(self, n):
        return n
    def fails(self, n):
        raise ValueError(n)
    def deep(self, n):
        return 0 if n == 0 else 1 + self.deep(n - 1)

def numbers(n):
    for i in range(n):
        yield i

async def task(n):
    await asyncio.sleep(0)
    return n

def maker():
    def closure(n):
        return n
    return closure

def kept():
    functions = (Server.run, Server.fails, numbers, task)
    return [f.__code__.co_name + str(f.__code__.co_argcount) for f in functions]

def main():
    before = kept()
    codes = [id(f.__code__) for f in (Server.run, Server.fails, numbers, task)]
    closure = maker()
    server = Server()
    print("ready", flush=True)
    for line in sys.stdin:
        done = {"runs": 0, "sum": 0}
        if line.startswith("end"):
            break
        if line.startswith("import"):
            sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
            import late
            time.sleep(getattr(late, "UNTIL_CALLED", 1))
            for i in range(10):
                late.work(i)
        for i in range(200):
            done["sum"] += server.run(Batch(i % 5))
            done["runs"] += 1
            Server.of_class(i), Server.of_none(i), server.wrapped(i), closure(i)
            try:
                server.fails(i)
            except ValueError:
                pass
        server.deep(20)
        for _ in range(10):
            sum(numbers(3))
        async def all_tasks():
            return await asyncio.gather(*(task(i) for i in range(10)))
        done["tasks"] = sum(asyncio.run(all_tasks()))
        print(json.dumps(done), flush=True)
    tools = [sys.monitoring.get_tool(i) for i in range(6)] if hasattr(sys, "monitoring") else []
    same = codes == [id(f.__code__) for f in (Server.run, Server.fails, numbers, task)] and kept() == before
    print(json.dumps({"same": same, "tools": [t for t in tools if t]}), flush=True)

main()
"""

def interpreters():
    """Of version 3.9 or newer."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = [path for path in ["/usr/bin/python3", *sorted(glob.glob(f"{root}/versions/3.*/bin/python3"))] if os.path.exists(path)]
    usable = []
    for path in found:
        if version_of(path) >= (3, 9):
            usable.append(path)
    return usable


def version_of(python):
    done = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


def is_restricted():
    with open("/proc/self/status", encoding="utf-8") as status:
        return re.search(r"^Seccomp:\s*0$", status.read(), re.MULTILINE) is None


EVERYDAY = sum(1 << number - 1 for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD))


class Case(unittest.TestCase):
    def setUp(self):
        if is_restricted():
            self.skipTest("all programs here are restricted by seccomp: nothing can be put into them")
        self.folder = tempfile.TemporaryDirectory(prefix="culprit-attach-")
        self.addCleanup(self.folder.cleanup)
        self.children = []
        self.masks = {}
        self.addCleanup(self.end_children)

    def path(self, name="run.pftrace"):
        return os.path.join(self.folder.name, name)

    def end_children(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()

    def start(self, command, **options):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        self.children.append(child)
        return child

    def program(self, python=sys.executable, text=PROGRAM):
        with open(self.path("program.py"), "w", encoding="utf-8") as file:
            file.write(text)
        child = self.start([python, self.path("program.py")])
        self.is_ready(child)
        return child

    def is_ready(self, child):
        self.assertEqual(child.stdout.readline(), "ready\n")
        # A thread that is just beginning, or starts one, blocks all signals for a moment.
        self.wait_until(lambda: not any(mask & EVERYDAY == EVERYDAY for mask in self.masks_of(child.pid)), "its threads do not begin")
        self.masks[child.pid] = self.masks_of(child.pid)

    @staticmethod
    def masks_of(pid):
        """The signals that its threads block, without the one that a handler of a test blocks."""
        masks = []
        for path in glob.glob(f"/proc/{pid}/task/*/status"):
            blocked = re.search(r"^SigBlk:\s*(\w+)$", Case.text_of(path), re.MULTILINE)
            if blocked:
                masks.append(int(blocked.group(1), 16) & ~(1 << signal.SIGALRM - 1))
        return sorted(masks)

    def wait_until(self, is_so, otherwise, seconds=30):
        end = time.monotonic() + seconds
        while not is_so():
            self.assertLess(time.monotonic(), end, otherwise)
            time.sleep(0.01)

    def attach_for(self, pid, duration="10ms", *options):
        return self.culprit("record", "--force", "--collect", "python", "-o", self.path("once.pftrace"), "-p", str(pid), "--duration", duration,
                            "--python", "a:b", "-v", *options)

    def put_in(self, pid):
        """The library came; there is nothing for it to do."""
        done = self.attach_for(pid)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("there is no Python in this process", done.stderr)

    def idle(self, child):
        """When it has no threads but its own, each with its own mask: a thread of an agent, and one that is borrowed, block all signals."""
        self.wait_until(lambda: self.masks_of(child.pid) == self.masks[child.pid], "an agent is in it still")

    def culprit(self, *arguments):
        return subprocess.run([os.path.join(ARGS.bin, "culprit"), *arguments], capture_output=True, text=True, timeout=LIMIT, check=False)

    def recorder(self, pid, *functions, name="run.pftrace", collect="python", says="-q"):
        command = [os.path.join(ARGS.bin, "culprit"), "record", says, "--collect", collect, "-o", self.path(name), "-p", str(pid)]
        for function in functions:
            command += ["--python", function]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.children.append(child)
        return child

    def attached(self, recorder, child):
        """When the agent has put its callbacks in place, and the recording has begun."""
        recording = recorder.args[recorder.args.index("-o") + 1]

        def has_begun():
            if recorder.poll() is not None:
                self.skip_or_fail(recorder)
            return os.path.exists(recording) and self.ring(child.pid)[20:24] == b"\1\0\0\0"  # its state: running

        self.wait_until(has_begun, "no agent came")

    @staticmethod
    def ring(pid):
        """What the agent shares with its recorder; nothing when there is none."""
        line = next((line for line in Case.text_of(f"/proc/{pid}/maps").splitlines() if "culprit-ring" in line and "s 00000000" in line), None)
        if line is None:
            return b""
        begin, end = (int(word, 16) for word in line.split()[0].split("-"))
        try:
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                memory.seek(begin)
                return memory.read(end - begin)
        except OSError:
            return b""

    @staticmethod
    def text_of(path):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except OSError:
            return ""

    def stop(self, process):
        process.send_signal(signal.SIGSTOP)
        self.wait_until(lambda: re.search(r"^State:\s*T", self.text_of(f"/proc/{process.pid}/status"), re.MULTILINE), "it does not stop")

    def skip_or_fail(self, recorder):
        errors = recorder.stderr.read()
        if "cannot stop a thread" in errors or "architecture" in errors:
            self.skipTest(errors.strip())
        self.fail(errors)

    def finish(self, recorder):
        recorder.send_signal(signal.SIGINT)
        _, errors = recorder.communicate(timeout=LIMIT)
        self.assertEqual(recorder.returncode, 0, errors)

    def ask(self, child, line="go"):
        child.stdin.write(line + "\n")
        child.stdin.flush()
        return json.loads(child.stdout.readline())

    def calls(self, name="run.pftrace", classes="python"):
        done = self.culprit("top", "--json", "--limit", "0", "--class", classes, self.path(name))
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["name"]: row["calls"] for row in json.loads(done.stdout)["tables"][0]["rows"]}

    def facts(self, name="run.pftrace"):
        done = self.culprit("info", "--json", self.path(name))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["metadata"][0]

    def compiled(self, name, text, compiler, *options):
        if not shutil.which(compiler):
            self.skipTest(f"no {compiler}")
        with open(self.path(name + ".c"), "w", encoding="utf-8") as file:
            file.write(text)
        program = self.path("python3-" + name)  # only what is called so is looked at
        subprocess.run([compiler, "-O1", "-w", *options, self.path(name + ".c"), "-o", program], check=True)
        child = self.start([program])
        self.is_ready(child)
        return child

    def count(self, pid, what):
        return len(os.listdir(f"/proc/{pid}/{what}"))

    def rings_of(self, child):
        with open(f"/proc/{child.pid}/maps", encoding="utf-8") as maps:
            return sum(1 for line in maps if "culprit-ring" in line)

    def goes_on(self, child):
        child.stdin.write("end\n")
        child.stdin.flush()
        self.assertEqual(child.wait(timeout=LIMIT), 0)

    def refused(self, pid, why):
        done = self.culprit("record", "--collect", "python", "-o", self.path("refused.pftrace"), "-p", str(pid), "--duration", "200ms", "--python",
                            "a:b", "-v", "--force")
        self.assertIn(why, done.stderr)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    _, rest = parser.parse_known_args(namespace=ARGS)
    ARGS.bin = os.path.abspath(ARGS.bin)
    unittest.main(argv=[sys.argv[0], *rest], module="__main__")
