#!/usr/bin/env python3
"""The installed library, used by a project outside the tree: headers alone, find_package, pkg-config.

    install_test.py --source ROOT --bin BUILD --cxx COMPILER [--sanitize VALUE] [unittest options]
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(source=".", bin=".", cxx="c++", sanitize="")


class Installed(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name
        self.prefix = os.path.join(self.root, "prefix")
        self.run_command("cmake", "--install", ARGS.bin, "--prefix", self.prefix, "--component", "library")
        self.flags = ["-std=c++20"] + ([f"-fsanitize={ARGS.sanitize}"] if ARGS.sanitize else [])

    def run_command(self, *command, **environment):
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, " ".join(command) + "\n" + done.stdout + done.stderr)
        return done.stdout

    def check_example(self, program):
        self.run_command(os.path.join(ARGS.bin, "culprit-tracegen"), "-q", "--steps", "6", "-o", "run.json")
        output = self.run_command(program, "run.json")
        self.assertIn("6 cycles of", output)
        self.assertRegex(output, r"\d+\.\d{3} ms  \S+")
        done = subprocess.run([program, "no-such-file.json"], cwd=self.root, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("no-such-file.json", done.stderr)

    def test_headers_compile_alone(self):
        include = os.path.join(self.prefix, "include")
        headers = sorted(glob.glob(include + "/culprit/*.h"))
        self.assertGreater(len(headers), 5)
        for header in headers:
            with open(os.path.join(self.root, "alone.cpp"), "w", encoding="utf-8") as out:
                out.write(f"#include <culprit/{os.path.basename(header)}>\n" * 2)
            self.run_command(ARGS.cxx, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", include,
                             "alone.cpp")

    def test_cmake_project_outside_the_tree(self):
        shutil.copytree(os.path.join(ARGS.source, "examples/library"), os.path.join(self.root, "project"))
        self.run_command("cmake", "-S", "project", "-B", "out", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                         f"-DCMAKE_CXX_COMPILER={ARGS.cxx}", "-DCMAKE_CXX_FLAGS=" + " ".join(self.flags))
        self.run_command("cmake", "--build", "out")
        self.check_example(os.path.join(self.root, "out/where"))

    def test_pkg_config(self):
        folder = os.path.dirname(glob.glob(self.prefix + "/**/culprit.pc", recursive=True)[0])
        flags = self.run_command("pkg-config", "--cflags", "--libs", "culprit", PKG_CONFIG_PATH=folder).split()
        self.run_command(ARGS.cxx, *self.flags, os.path.join(ARGS.source, "examples/library/main.cpp"), *flags,
                         "-o", "where")
        self.check_example(os.path.join(self.root, "where"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--source", required=True)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--sanitize", default="")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
