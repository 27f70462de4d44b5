"""What scripts/trial-pairs, scripts/trial-attach and scripts/bench-served share: vLLM and SGLang servers that were installed elsewhere, and processes with
their descendants."""

import contextlib
import glob
import os
import signal
import subprocess
import time
import urllib.request

PORTS = {"vllm": 8123, "sglang": 8124}
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


def end_all(process):
    """And all that it started."""
    for pid in descendants(process.pid):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    process.wait()


class LanguageModel:
    def __init__(self, name, options, clients=4, arguments=(), port=None, environment=None):
        self.name, self.clients, self.folder, self.serve = name, clients, options.servers, options.serve
        self.port = port or PORTS[name]
        self.started = subprocess.Popen([self.serve, name, self.folder, str(self.port), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True, env={**os.environ, **(environment or {})})
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                page_of(f"http://127.0.0.1:{self.port}/metrics")
                break
            except OSError:
                time.sleep(1)
        self.client(8).wait()  # warm

    def client(self, seconds, kind=""):
        """`kind`: "clients" are three times as many, "prompts" longer ones."""
        load = os.path.join(os.path.dirname(self.serve), "load.py")
        clients = self.clients * (3 if kind == "clients" else 1)
        longer = ["--prompt", "200,250,300"] if kind == "prompts" else []
        return subprocess.Popen([os.path.join(self.folder, self.name, "bin", "python"), load, str(self.port), str(seconds), str(clients), "7", *longer],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def done(self):
        """Steps since it was started, as the server counts them."""
        return sum(float(line.split()[-1]) for line in page_of(f"http://127.0.0.1:{self.port}/metrics").splitlines()
                   if line.startswith(STEPS[self.name]))
