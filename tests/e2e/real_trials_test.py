#!/usr/bin/env python3
"""scripts/test-real says what it skipped, what failed and what went well, and its exit code is of that.

    real_trials_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = argparse.Namespace(bin="build")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Trials(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("trials need root")
        folder = tempfile.TemporaryDirectory(prefix="culprit-trials-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def command(self, *parts):
        return [os.path.join(ROOT, "scripts", "test-real"), "--servers", self.folder, "--build", ARGS.bin, "--short", *parts]

    def run_parts(self, *parts):
        return subprocess.run(self.command(*parts), capture_output=True, text=True, check=False)

    def test_what_is_missing_is_skipped_and_counted(self):
        done = self.run_parts("vllm", "compiled", "pairs")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stdout, rf"(?m)^skipped +vllm .*there is no environment {self.folder}/vllm$")
        self.assertIn("0 ok, 0 wrong, 3 skipped", done.stdout)

    def test_the_notebook_needs_a_server_and_the_environment_of_the_package(self):
        done = self.run_parts("notebook")
        self.assertRegex(done.stdout, r"(?m)^skipped +notebook .*there is no server$")
        os.makedirs(os.path.join(self.folder, "vllm", "bin"))
        for name in ("vllm/bin/python", "serve", "load.py"):
            os.symlink("/bin/false", os.path.join(self.folder, name))
        done = subprocess.run([*self.command("notebook"), "--build", self.folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stdout, rf"(?m)^skipped +notebook .*there is no environment with the package in {self.folder}/python ")

    def test_a_notebook_that_cannot_run_is_no_success(self):
        """What it takes, without a server."""
        trial = os.path.join(ROOT, "scripts", "trial-serving-notebook")
        for arguments, said in (((), "--servers and --serve are needed"), (("--servers", self.folder, "--serve", "serve", "other"), "'other' is neither vllm nor sglang"),
                                (("--servers", self.folder, "--serve", "serve", "--build", self.folder), "there is no environment with the package")):
            done = subprocess.run([trial, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(said, done.stderr)

    def test_a_part_that_fails_is_one_of_the_summary(self):
        os.makedirs(os.path.join(self.folder, "torch", "bin"))
        os.symlink("/bin/false", os.path.join(self.folder, "torch", "bin", "python"))
        done = self.run_parts("compiled", "sglang")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^WRONG +compiled .*exit code 1$")
        self.assertIn("0 ok, 1 wrong, 1 skipped", done.stdout)

    def test_a_part_that_is_interrupted_is_one_of_the_summary(self):
        python, begun = os.path.join(self.folder, "torch", "bin", "python"), os.path.join(self.folder, "begun")
        os.makedirs(os.path.dirname(python))
        with open(python, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n: >{begun}\nexec sleep 60\n")
        os.chmod(python, 0o755)
        trials = subprocess.Popen(self.command("vllm", "compiled", "sglang"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        end = time.monotonic() + 30
        while not os.path.exists(begun) and time.monotonic() < end:
            time.sleep(0.01)
        os.killpg(trials.pid, signal.SIGINT)
        said, _ = trials.communicate(timeout=60)
        self.assertEqual(trials.returncode, 130, said)
        self.assertRegex(said, r"(?m)^interrupted +compiled ")
        self.assertIn("0 ok, 0 wrong, 1 skipped, 0 skipped within parts, interrupted", said)

    def test_an_unknown_part_is_an_error(self):
        done = self.run_parts("nothing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("sglang-overlap", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    _, rest = parser.parse_known_args(namespace=ARGS)
    ARGS.bin = os.path.abspath(ARGS.bin)
    unittest.main(argv=[sys.argv[0], *rest])
