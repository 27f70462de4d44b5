"""What scripts/trial-counts, scripts/trial-units, scripts/trial-network and scripts/calibrate share: other scripts of this folder as modules, and a recorder that is known to record."""

import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEGINS_WITHIN = 20  # s
SETTLES = 0.5  # s between the file's first bytes and the first thing that must be in it, and after the last one
ENDS_WITHIN = 120  # s


def script(name):
    """Another script of this folder, as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(ROOT, "scripts", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def recording_reader():
    """tests/e2e/pftrace.py, which knows the format's numbers and nothing of the recorder's code."""
    folder = os.path.join(ROOT, "tests", "e2e")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import pftrace
    return pftrace


class Recorder:
    """While it is entered, a process and its descendants are recorded into a file; `summary` is then what the recorder says."""

    def __init__(self, options, pid, path, *more):
        self.path, self.summary = path, {}
        self.command = [os.path.join(options.build, "culprit"), "record", "--json", "-q", "--force", *more, "-o", path, "-p", str(pid)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + BEGINS_WITHIN
        while not (os.path.exists(self.path) and os.path.getsize(self.path) > 0):
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                raise RuntimeError(f"the recorder does not begin: {self.process.communicate()[1].strip()}")
            time.sleep(0.02)
        time.sleep(SETTLES)
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            time.sleep(SETTLES)
        self.process.send_signal(signal.SIGINT)
        try:
            said, errors = self.process.communicate(timeout=ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            said, errors = self.process.communicate()
        if kind is None:
            if not said:
                raise RuntimeError(f"the recorder said nothing: {errors.strip()}")
            self.summary = json.loads(said)


def print_table(head, rows):
    """Markdown; all columns but the first two are numbers."""
    print("| " + " | ".join(head) + " |")
    print("|---|---|" + "--:|" * (len(head) - 2))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
