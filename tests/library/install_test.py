#!/usr/bin/env python3
"""The installed library, used by a project outside the tree: headers alone, find_package, pkg-config.

    install_test.py --source ROOT --bin BUILD --cxx COMPILER [--sanitize VALUE] [unittest options]
"""

import argparse
import glob
import os
import re
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
        self.libdir = os.path.dirname(glob.glob(self.prefix + "/lib/**/libculprit.so", recursive=True)[0])
        self.flags = ["-std=c++20"] + ([f"-fsanitize={ARGS.sanitize}"] if ARGS.sanitize else [])

    def run_command(self, *command, **environment):
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, " ".join(command) + "\n" + done.stdout + done.stderr)
        return done.stdout

    def check_example(self, program):
        def tell(*arguments):
            return subprocess.run([program, *arguments], cwd=self.root, capture_output=True, text=True, check=False,
                                  env={**os.environ, "LD_LIBRARY_PATH": self.libdir})
        for name, *fault in (("run",), ("slow", "--seed", "2", "--fault", "gpu_clock_drop")):
            self.run_command(os.path.join(ARGS.bin, "culprit-tracegen"), "-q", "--force", "--workload", "train", "--steps", "40", *fault, "-o", name + ".json")
        done = tell("run.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("40 cycles of", done.stdout)
        self.assertRegex(done.stdout, r"\d+\.\d{3}ms +\d+\.\d{2}%")
        done = tell("run.json", "slow.json")
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        self.assertRegex(done.stdout, r"train_step: \+[0-9.]+% \(\+[0-9.]+% to \+[0-9.]+%\)")
        done = tell("no-such-file.json")
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

    def test_examples_of_the_documents_compile(self):
        with open(os.path.join(ARGS.source, "docs/library.md"), encoding="utf-8") as document:
            examples = re.findall(r"^```cpp\n(.*?)^```", document.read(), re.M | re.S)
        self.assertGreater(len(examples), 1)
        for example in examples:
            lines = example.splitlines()
            with open(os.path.join(self.root, "example.cpp"), "w", encoding="utf-8") as out:
                out.write("\n".join(["#include <culprit/load.h>", "#include <cstdio>"] +
                                    [line for line in lines if line.startswith("#include")] +
                                    ["int report(const std::string& text);",
                                     "void show(std::string_view step, std::uint64_t done, std::uint64_t total);",
                                     "int example();", "int example() {"] +
                                    [line for line in lines if not line.startswith("#include")] +
                                    ["  return 0;", "}", ""]))
            self.run_command(ARGS.cxx, "-std=c++20", "-Wall", "-Wno-unused-variable", "-Werror", "-fsyntax-only",
                             "-I", os.path.join(self.prefix, "include"), "example.cpp")

    def test_cmake_project_outside_the_tree(self):
        shutil.copytree(os.path.join(ARGS.source, "examples/library"), os.path.join(self.root, "project"))
        self.run_command("cmake", "-S", "project", "-B", "out", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                         f"-DCMAKE_CXX_COMPILER={ARGS.cxx}", "-DCMAKE_CXX_FLAGS=" + " ".join(self.flags))
        self.run_command("cmake", "--build", "out")
        self.check_example(os.path.join(self.root, "out/where"))
        self.run_command("cmake", "--build", "out", "--target", "where_static")
        self.assertNotIn("libculprit", self.run_command("ldd", "out/where_static"))
        self.check_example(os.path.join(self.root, "out/where_static"))

    def test_pkg_config(self):
        folder = os.path.dirname(glob.glob(self.prefix + "/**/culprit.pc", recursive=True)[0])
        flags = self.run_command("pkg-config", "--cflags", "--libs", "culprit", PKG_CONFIG_PATH=folder).split()
        self.run_command(ARGS.cxx, *self.flags, os.path.join(ARGS.source, "examples/library/main.cpp"), *flags,
                         "-o", "where")
        self.assertIn("libculprit.so.0.", self.run_command("ldd", "where", LD_LIBRARY_PATH=self.libdir))
        self.check_example(os.path.join(self.root, "where"))

    def test_the_shared_library_shows_what_the_headers_declare_and_nothing_else(self):
        library = os.path.join(self.libdir, "libculprit.so")
        shown = set()
        for line in self.run_command("nm", "-DC", "--defined-only", library).splitlines():
            name = line.split(" ", 2)[2]
            match = re.match(r"culprit::(\w+)(\[abi:cxx11\])?\(", name)
            self.assertTrue(match, name)
            shown.add(match.group(1))
        declared = set()
        for header in glob.glob(self.prefix + "/include/culprit/*.h"):
            with open(header, encoding="utf-8") as text:
                declared |= set(re.findall(r"^CULPRIT_API [^;{]*?(\w+)\(", text.read(), re.M))
        self.assertGreater(len(declared), 10)
        self.assertEqual(shown, declared)

    def test_the_shared_library_has_a_version_in_its_name(self):
        self.assertRegex(self.run_command("readelf", "-d", os.path.join(self.libdir, "libculprit.so")),
                         r"SONAME.*\[libculprit\.so\.\d+\.\d+\]")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--source", required=True)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--sanitize", default="")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
