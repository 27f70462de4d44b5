"""What scripts/trial-pairs, scripts/trial-ab, scripts/trial-attach and scripts/bench-served share: vLLM and SGLang servers that were installed elsewhere, processes with
their descendants, and a quota on them."""

import contextlib
import glob
import json
import os
import signal
import subprocess
import time
import urllib.request

PORTS = {"vllm": 8123, "sglang": 8124}
LAYERS = {"vllm": "--hf-overrides", "sglang": "--json-model-override-args"}  # the option before {"num_hidden_layers": N}
STEPS = {"vllm": "vllm:iteration_tokens_total_count", "sglang": "sglang:cuda_graph_passes_total"}


def add_options(parser):
    parser.add_argument("--servers", metavar="DIR", help="in which vLLM and SGLang were installed")
    parser.add_argument("--serve", metavar="FILE", help="the script that starts them: SCRIPT vllm|sglang DIR PORT; load.py lies beside it")


def page_of(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def descendants(pid):
    found = [pid]
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
            for child in file.read().split():
                found += descendants(int(child))
    return found


def end_all(process, within=60):
    """And all that it started; what does not end by itself within so many seconds is killed."""
    pids = descendants(process.pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(within)
            return


def number_of(usual, kind):
    """Of clients."""
    return {"clients": 3 * usual, "fewer": 1}.get(kind, usual)


@contextlib.contextmanager
def standing_still(pids):
    """These and all that they started, while it is entered."""
    stopped = [pid for root in pids for pid in descendants(root)]
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in stopped:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)


def answer_of(options, *arguments):
    """What the program says, as JSON."""
    return json.loads(subprocess.run([os.path.join(options.build, "culprit"), *arguments, "--json"], capture_output=True, text=True, check=True).stdout)


class Quota:
    """While it is entered, the processes have so many CPUs together. Needs root."""

    def __init__(self, pids, cpus):
        self.pids, self.cpus = pids, cpus
        v1 = "/sys/fs/cgroup/cpu"
        self.root = v1 if os.path.isdir(v1) else "/sys/fs/cgroup"
        self.group = os.path.join(self.root, "culprit-trial")

    @staticmethod
    def put(folder, name, value):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(str(value))

    def move_to(self, group):
        for pid in self.pids():
            with contextlib.suppress(OSError):  # it has ended
                self.put(group, "cgroup.procs", pid)

    def __enter__(self):
        os.makedirs(self.group, exist_ok=True)
        if self.root.endswith("/cpu"):
            self.put(self.group, "cpu.cfs_quota_us", int(self.cpus * 100000))
        else:
            self.put(self.root, "cgroup.subtree_control", "+cpu")
            self.put(self.group, "cpu.max", f"{int(self.cpus * 100000)} 100000")
        self.move_to(self.group)
        return self

    def __exit__(self, *_):
        self.move_to(self.root)
        time.sleep(0.2)
        with contextlib.suppress(OSError):
            os.rmdir(self.group)


class LanguageModel:
    def __init__(self, name, options, clients=4, arguments=(), port=None, environment=None, log=None):
        """`log`: a file for what it prints, which nobody sees otherwise."""
        self.name, self.clients, self.folder, self.serve = name, clients, options.servers, options.serve
        self.port = port or PORTS[name]
        with open(log or os.devnull, "ab") as printed:
            self.started = subprocess.Popen([self.serve, name, self.folder, str(self.port), *arguments], stdout=printed, stderr=printed,
                                            start_new_session=True, env={**os.environ, **(environment or {})})
        end = time.monotonic() + 300
        while True:
            try:
                page_of(f"http://127.0.0.1:{self.port}/metrics")
                break
            except OSError:
                if self.started.poll() is not None or time.monotonic() > end:
                    end_all(self.started)
                    raise RuntimeError(f"{name} {' '.join(arguments)} does not serve") from None
                time.sleep(1)
        self.client(8).wait()  # warm

    def client(self, seconds, kind=""):
        """`kind`: "clients" are three times as many, "fewer" one, "prompts" longer ones."""
        load = os.path.join(os.path.dirname(self.serve), "load.py")
        clients = number_of(self.clients, kind)
        longer = ["--prompt", "200,250,300"] if kind == "prompts" else []
        return subprocess.Popen([os.path.join(self.folder, self.name, "bin", "python"), load, str(self.port), str(seconds), str(clients), "7", *longer],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def post(self, path, body, timeout=120):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.read().decode()

    def answers(self):
        """To the same questions each time, one after the other."""
        texts = []
        for k in range(6):
            body = {"model": "m", "prompt": " ".join(f"w{17 * k + i}" for i in range(10 + 5 * k)), "max_tokens": 16, "temperature": 0, "ignore_eos": True}
            texts.append(json.loads(self.post("/v1/completions", body))["choices"][0]["text"])
        return texts

    def done(self):
        """Steps since it was started, as the server counts them."""
        return sum(float(line.split()[-1]) for line in page_of(f"http://127.0.0.1:{self.port}/metrics").splitlines()
                   if line.startswith(STEPS[self.name]))
