#!/usr/bin/env python3
"""scripts/gpu-samples where there is no GPU: what it refuses, ends, leaves out, and finds in what was collected.

    gpu_samples_test.py --bin BUILD_DIR --source ROOT [unittest options]

Stand-ins take the places of PyTorch, ncu and the worker processes; no test touches a device. What an H100 gave is in tests/data/gpu.
"""

import argparse
import gzip
import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from unittest import mock

ARGS = argparse.Namespace(bin=".", source=".")
sys.dont_write_bytecode = True

WORKER = '''
import json, os, sys
sys.path.insert(0, sys.argv[1])
import gpu_samples_checks as checks
if sys.argv[2] == "load":
    print("ready", flush=True)
    sys.stdin.read()
for phase in ("prefill", "decode", "train") if sys.argv[2] == "profile" else ():
    open(phase + ".json", "w").write(checks.TRACE)
    rule = "-" * 40 + "  " + "-" * 12 + "  " + "-" * 12
    rows = [("Name", "Self CUDA", "# of Calls"), ("void f<float, 4>(float*, T)", "1.250us", "1"),
            ("void ns::g(int)", "2.500us", "1")]
    rows = ["  ".join((a.rjust(40), b.rjust(12), c.rjust(12))) for a, b, c in rows]
    open(phase + ".txt", "w").write("\\n".join([rule, rows[0], rule, *rows[1:], rule]) + "\\n")
'''
NCU = '''#!{python}
import sys
if "--version" in sys.argv:
    print("Version 2025.1.0.0 (build 1)")
    sys.exit()
sys.path.insert(0, {scripts!r})
import gpu_samples_checks as checks
mode, text = {mode!r}, checks.NCU
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
if "decode" not in sys.argv:  # one step instead of two
    text = "".join(line + "\\n" for line in text.splitlines() if not line.startswith('"1"'))
if mode == "permission":
    text = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\\n"
if mode == "metric" and checks.TENSOR[0] in metrics:
    text = "==ERROR== Failed to find metric " + checks.TENSOR[0] + "\\n"
if mode == "broken":
    text = "==ERROR== LibraryNotLoaded\\n"
open(sys.argv[sys.argv.index("--log-file") + 1], "w").write(text)
sys.exit("==ERROR==" in text)
'''


def script():
    """scripts/gpu-samples, loaded as a module."""
    folder = os.path.join(ARGS.source, "scripts")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    loader = importlib.machinery.SourceFileLoader("gpu_samples", os.path.join(folder, "gpu-samples"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def call(*options, **env):
    command = [sys.executable, os.path.join(ARGS.source, "scripts", "gpu-samples"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=250,
                          env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **env))


def alive(pid):
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as text:
            return text.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Refusals(unittest.TestCase):
    def missing(self, torch, *options):
        """Runs with a module in the place of torch; standard error of a run that must end with exit code 4 and leave nothing."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w", encoding="utf-8") as out:
                out.write(textwrap.dedent(torch))
            done = call("-o", os.path.join(folder, "out"), *options, PYTHONPATH=folder)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertFalse(os.path.exists(os.path.join(folder, "out")))
            return done.stderr

    def test_no_torch(self):
        self.assertIn("PyTorch", self.missing("raise ImportError('none here')"))

    def test_torch_that_dies(self):
        self.assertIn("a PyTorch that starts", self.missing("raise SystemExit('libcuda is broken')"))

    def test_no_device(self):
        self.assertIn("a CUDA device", self.missing("""
            __version__ = "2.0"
            class version: cuda = None
            class cuda:
                is_available = staticmethod(lambda: False)"""))

    def test_no_ncu(self):
        self.assertIn("--no-ncu", self.missing("""
            __version__ = "2.0"
            class version: cuda = "13.0"
            class Properties: name, major, minor, total_memory, multi_processor_count = "X", 9, 0, 1, 1
            class cuda:
                is_available = staticmethod(lambda: True)
                get_device_properties = staticmethod(lambda _: Properties)
            class backends:
                class cudnn: version = staticmethod(lambda: 1)""", "--ncu", "/nonexistent/ncu"))

    def test_no_culprit(self):
        done = call("--check", "--build", "/nonexistent")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("make build", done.stderr)

    def test_nothing_collected(self):
        with tempfile.TemporaryDirectory() as folder:
            done = call("--check", "-o", folder, "--build", ARGS.bin)
        self.assertEqual(done.returncode, 1, done.stderr)


class Collected(unittest.TestCase):
    def test_what_a_real_device_gave_is_read_as_its_tools_read_it(self):
        done = call("--check", "-o", os.path.join(ARGS.source, "tests", "data", "gpu"), "--build", ARGS.bin)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        checks = [line.split(": ")[-1] for line in done.stdout.splitlines() if line.startswith("ok ")]
        self.assertEqual({check: checks.count(check) for check in ("top equals key_averages()", "kernels equals the trace", "kernels equals ncu")},
                         {"top equals key_averages()": 12, "kernels equals the trace": 12, "kernels equals ncu": 3})
        self.assertEqual(sum(check.startswith("launched in the order") for check in checks), 12)

    def test_the_same_is_never_called_different(self):
        """Three processes that did the same, of few steps each."""
        folder = os.path.join(ARGS.source, "tests", "data", "gpu")
        for phase in ("prefill", "decode", "train"):
            base, *others = (os.path.join(folder, f"{phase}.{name}.json.gz") for name in ("quiet0", "quiet1", "quiet2"))
            for other in others:
                done = subprocess.run([os.path.join(ARGS.bin, "culprit"), "diff", base, other, "--json"], capture_output=True, text=True, check=True)
                answer = json.loads(done.stdout)
                self.assertNotIn(answer["outcome"], ("regression", "improvement"), other)
                self.assertEqual(answer["verdicts"], [], other)


class SelfTest(unittest.TestCase):
    def test_passes(self):
        done = call("--self-test")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" 0 failed", done.stdout)


class Processes(unittest.TestCase):
    def wait_until_gone(self, pid):
        end = time.monotonic() + 10
        while alive(pid):
            self.assertLess(time.monotonic(), end, f"process {pid} lives on")
            time.sleep(0.01)

    def test_a_limit_ends_what_the_command_started_too(self):
        begin = time.monotonic()
        done = script().run_limited(["bash", "-c", "sleep 300 & echo $!; wait"], 1)
        self.assertTrue(done.timed_out)
        self.assertLess(time.monotonic() - begin, 30)
        self.wait_until_gone(int(done.output))

    def load(self):
        return script().Load(["bash", "-c", "echo ready; exec sleep 300"], 10)

    def test_the_load_is_ended_after_an_error(self):
        with self.assertRaises(KeyError):
            with self.load() as load:
                self.assertTrue(load.alive())
                raise KeyError
        self.wait_until_gone(load.child.pid)

    def test_a_load_that_does_not_start_is_an_error_and_ended(self):
        for command in ("exec sleep 300", "exit 1"):
            load = script().Load(["bash", "-c", command], 0.5)
            with self.assertRaises(RuntimeError):
                load.__enter__()
            self.wait_until_gone(load.child.pid)

    def test_a_load_that_was_killed_is_noticed(self):
        with self.load() as load:
            os.kill(load.child.pid, signal.SIGKILL)
            self.wait_until_gone(load.child.pid)
            self.assertFalse(load.alive())


class Collecting(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.output = os.path.join(self.folder.name, "out")

    def collect(self, mode="", worker=WORKER, options=()):
        """Collects and checks with stand-ins; exit code and manifest."""
        module = script()
        stand_in, ncu = os.path.join(self.folder.name, "worker.py"), os.path.join(self.folder.name, "ncu")
        scripts = os.path.abspath(os.path.join(ARGS.source, "scripts"))
        with open(stand_in, "w", encoding="utf-8") as out:
            out.write(worker)
        with open(ncu, "w", encoding="utf-8") as out:
            out.write(NCU.format(python=sys.executable, scripts=scripts, mode=mode))
        os.chmod(ncu, 0o755)
        real = module.run_limited

        def run_limited(command, seconds, folder=None):
            if "probe" in command:
                return module.Finished(0, '{"torch": "2.0", "device": "X"}\n', False)
            return real(command, seconds, folder)

        arguments = ["gpu-samples", "-o", self.output, "--build", ARGS.bin, "--ncu", ncu, *options]
        handler = signal.getsignal(signal.SIGTERM)
        with mock.patch.object(module, "run_limited", run_limited), mock.patch.object(
                module, "worker", lambda name, *words: [sys.executable, stand_in, scripts, name, *words]), mock.patch.object(
                    sys, "argv", arguments):
            code = module.main()
        signal.signal(signal.SIGTERM, handler)
        if not os.path.exists(self.output + "/manifest.json"):
            return code, None
        with open(self.output + "/manifest.json", encoding="utf-8") as text:
            return code, json.load(text)

    def check(self):
        return call("--check", "-o", self.output, "--build", ARGS.bin)

    def test_everything_is_there_and_checked(self):
        code, manifest = self.collect(options=["--collect-only"])
        self.assertEqual(code, 0)
        self.assertEqual(len(manifest["files"]), 2 * 3 * 3 * 2 + 3)
        self.assertEqual({*manifest["files"], "manifest.json"}, set(os.listdir(self.output)))
        self.assertEqual(manifest["left_out"], {})
        self.assertEqual((manifest["versions"]["ncu"], manifest["files"]["decode.ncu.csv.gz"]["launches"]), ("2025.1.0.0", 2))
        checked = self.check()
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertEqual(checked.stdout.count("top equals key_averages()"), 18)
        self.assertEqual(checked.stdout.count("launched in the order of"), 18)

    def test_the_same_data_gives_the_same_bytes(self):
        first, second = (self.collect(options=["--collect-only"])[1] for _ in range(2))
        self.assertEqual(first["files"], second["files"])

    def test_without_permission_for_counters_the_rest_is_collected(self):
        code, manifest = self.collect("permission", options=["--collect-only"])
        self.assertEqual(code, 0)
        self.assertIn("ERR_NVGPUCTRPERM", manifest["left_out"]["ncu"])
        self.assertEqual(len(manifest["files"]), 36)

    def test_a_metric_that_the_device_lacks_is_replaced(self):
        code, manifest = self.collect("metric", options=["--collect-only"])
        self.assertEqual(code, 0)
        self.assertIn("decode.ncu.csv.gz", manifest["files"])
        self.assertTrue(any("sm__inst_executed_pipe_tensor" in command for command in manifest["commands"]), manifest["commands"])

    def test_an_ncu_that_breaks_is_a_failure_that_keeps_the_rest(self):
        code, manifest = self.collect("broken")
        self.assertEqual(code, 1)
        self.assertIn("LibraryNotLoaded", manifest["left_out"]["ncu, train"])
        self.assertEqual(len(manifest["files"]), 36)

    def test_too_large_traces_are_taken_with_fewer_steps_then_refused(self):
        noise = 'json.dumps({"traceEvents": [], "noise": os.urandom(80000 * int(json.loads(sys.argv[4])["train"])).hex()})'
        code, manifest = self.collect(worker=WORKER.replace("checks.TRACE", noise), options=["--collect-only", "--no-ncu"])
        self.assertEqual((code, manifest["steps"]), (0, {"prefill": 1, "decode": 2, "train": 1}))
        self.assertLess(sum(os.path.getsize(os.path.join(self.output, name)) for name in manifest["files"]), 2_000_000)

    def test_over_budget_with_the_fewest_steps_stores_nothing(self):
        noise = 'json.dumps({"traceEvents": [], "noise": os.urandom(400000).hex()})'
        self.assertEqual(self.collect(worker=WORKER.replace("checks.TRACE", noise)), (1, None))

    def test_without_time_nothing_is_stored(self):
        self.assertEqual(self.collect(options=["--seconds", "1"]), (1, None))

    def tamper(self, manifest, name, old, new, keep_digest=False):
        """Changes one file after collecting."""
        path = os.path.join(self.output, name)
        with gzip.open(path, "rt", encoding="utf-8") as text:
            data = text.read()
        self.assertIn(old, data)
        packed = gzip.compress(data.replace(old, new, 1).encode(), 9, mtime=0)
        with open(path, "wb") as out:
            out.write(packed)
        if keep_digest:
            manifest["files"][name]["sha256"] = script().hashlib.sha256(packed).hexdigest()
            with open(self.output + "/manifest.json", "w", encoding="utf-8") as out:
                json.dump(manifest, out)

    def test_changed_files_are_found_and_nothing_else(self):
        manifest = self.collect(options=["--collect-only"])[1]
        self.tamper(manifest, "prefill.quiet0.txt.gz", "Name", "name")
        self.tamper(manifest, "train.quiet0.txt.gz", "1.250us", "1.260us", keep_digest=True)
        self.tamper(manifest, "decode.ncu.csv.gz", "ns::g(int)", "ns::h(int)", keep_digest=True)
        checked = self.check()
        self.assertEqual(checked.returncode, 1, checked.stdout)
        failed = [line for line in checked.stdout.splitlines() if line.startswith("FAILED")]
        order = [line for line in failed if "launched in the order" in line]
        self.assertEqual(len(order), 6, failed)
        self.assertEqual(sorted(set(failed) - set(order)),
                         ["FAILED  prefill.quiet0.txt.gz: as collected", "FAILED  train.quiet0.json.gz: top equals key_averages()"])

    def test_hostile_names_in_a_manifest_stay_in_the_folder(self):
        self.collect(options=["--collect-only"])
        outside = os.path.join(self.folder.name, "precious")
        with open(outside, "w", encoding="utf-8") as out:
            out.write("mine")
        with open(self.output + "/manifest.json", "w", encoding="utf-8") as out:
            json.dump({"files": {"../precious": {}}}, out)
        self.assertEqual(self.collect(options=["--collect-only"])[0], 0)
        self.assertTrue(os.path.exists(outside))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
