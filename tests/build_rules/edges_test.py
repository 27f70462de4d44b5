#!/usr/bin/env python3
"""The build refuses what the architecture forbids: these tests break each rule on a tiny tree and expect the refusal.

    edges_test.py --source ROOT [--cxx COMPILER] [unittest options]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(source=".", cxx="c++")

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
add_library(culprit_options INTERFACE)
include({source}/cmake/stages.cmake)
{stages}
"""


class TinyTree(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as out:
            out.write(text)

    def tree(self, stages, files):
        self.write("CMakeLists.txt", PROJECT.format(source=ARGS.source, stages=stages))
        for path, text in files.items():
            self.write(path, text)

    def run_cmake(self, *arguments):
        done = subprocess.run(["cmake", *arguments], cwd=self.root, capture_output=True, text=True, check=False)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def configure(self):
        return self.run_cmake("-S", ".", "-B", "out", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={ARGS.cxx}")

    def build(self):
        return self.run_cmake("--build", "out")


class Edges(TinyTree):
    FILES = {
        "src/core/a.h": "#pragma once\nint a();\n",
        "src/core/a.cpp": '#include "core/a.h"\nint a() { return 1; }\n',
        "src/model/m.h": '#pragma once\n#include "core/a.h"\n',
        "src/trace/t.h": "#pragma once\ninline int t() { return 2; }\n",
        "src/report/r.cpp": '#include "core/a.h"\nint r() { return a(); }\n',
    }
    ALLOWED = """culprit_stage(core DIR src/core)
culprit_stage(model DIR src/model DEPS core)
culprit_stage(trace DIR src/trace DEPS core model)
culprit_stage(report DIR src/report DEPS core model)
"""

    def test_allowed_edges_configure_and_build(self):
        self.tree(self.ALLOWED, self.FILES)
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        code, output = self.build()
        self.assertEqual(code, 0, output)

    def test_forbidden_edge_does_not_configure(self):
        self.tree(self.ALLOWED.replace("src/report DEPS core model", "src/report DEPS core model trace"), self.FILES)
        code, output = self.configure()
        self.assertNotEqual(code, 0, output)
        self.assertIn("stage 'report' may not use 'trace'", output)

    def test_formats_do_not_reach_into_profile(self):
        stages = self.ALLOWED + "culprit_stage(formats_kineto DIR src/formats/kineto DEPS profile)\n"
        self.tree(stages, {**self.FILES, "src/formats/kineto/k.cpp": "int k();\n"})
        code, output = self.configure()
        self.assertNotEqual(code, 0, output)
        self.assertIn("stage 'formats_kineto' may not use 'profile'", output)

    def test_lower_stage_does_not_use_a_higher_one(self):
        stages = self.ALLOWED.replace("culprit_stage(core DIR src/core)", "culprit_stage(core DIR src/core DEPS model)")
        self.tree(stages, self.FILES)
        code, output = self.configure()
        self.assertNotEqual(code, 0, output)
        self.assertIn("stage 'core' may not use 'model'", output)

    def test_stage_missing_from_the_table_does_not_configure(self):
        stages = self.ALLOWED + "culprit_stage(gadgets DIR src/gadgets DEPS core)\n"
        self.tree(stages, {**self.FILES, "src/gadgets/g.cpp": "int g();\n"})
        code, output = self.configure()
        self.assertNotEqual(code, 0, output)
        self.assertIn("stage 'gadgets' is not in the table", output)

    def test_header_of_a_stage_that_is_no_dependency_does_not_compile(self):
        self.tree(self.ALLOWED, {**self.FILES, "src/report/r.cpp": '#include "trace/t.h"\nint r() { return t(); }\n'})
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        code, output = self.build()
        self.assertNotEqual(code, 0, output)
        self.assertIn("trace/t.h", output)
        self.assertIn("No such file", output)

    def test_warnings_are_errors(self):
        stages = "set(CULPRIT_WARNINGS -Wall -Wextra -Werror)\n" + self.ALLOWED
        self.tree(stages, {**self.FILES, "src/report/r.cpp": "int r() { int unused = 1; return 2; }\n"})
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        code, output = self.build()
        self.assertNotEqual(code, 0, output)


class Lint(TinyTree):
    STAGES = """culprit_stage(core DIR src/core LIBS fmt::fmt)
culprit_stage(trace DIR src/trace DEPS core)  # a comment
culprit_stage(profile DIR src/profile DEPS core trace)
culprit_stage(compare DIR src/compare DEPS core profile)
"""

    def lint(self, files):
        self.write("src/CMakeLists.txt", self.STAGES)
        for path, text in files.items():
            self.write(path, text)
        command = [sys.executable, os.path.join(ARGS.source, "scripts/lint"), "--root", self.root]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
        return done.stdout

    def test_clean_tree_has_no_finding(self):
        self.assertEqual(self.lint({"src/profile/p.cpp": '#include "trace/t.h"\n#include "core/a.h"\n#include <map>\n'}), "")

    def test_header_of_a_dependencys_dependency_is_found(self):
        output = self.lint({"src/compare/c.cpp": '#include "profile/p.h"\n#include "trace/t.h"\n'})
        self.assertIn("src/compare/c.cpp:2", output)
        self.assertIn("stage 'compare' uses 'trace' without naming it", output)
        self.assertNotIn("c.cpp:1", output)

    def test_core_is_open_to_all(self):
        self.assertEqual(self.lint({"src/compare/c.cpp": '#include "core/a.h"\n'}), "")

    def test_relative_include_is_found(self):
        self.assertIn("name headers from src/", self.lint({"src/trace/t.cpp": '#include "../core/a.h"\n'}))
        self.assertIn("tests/trace/t.cpp:1", self.lint({"tests/trace/t.cpp": '#include "../help.h"\n'}))

    def test_long_file_is_found(self):
        self.assertEqual(self.lint({"src/core/long.cpp": "\n" * 600}), "")
        self.assertIn("601 lines", self.lint({"src/core/long.cpp": "\n" * 601}))

    def test_text_uses_the_words_of_the_field(self):
        output = self.lint({"src/core/a.cpp": "// One processor.\n", "docs/a.md": "needs the right to, or access rights\n"})
        self.assertIn('src/core/a.cpp:1: "processor": write CPU', output)
        self.assertIn('docs/a.md:1: "access rights": write permission or privilege', output)
        self.assertEqual(self.lint({"src/core/a.cpp": "// A multiprocessor, on the right.\n", "docs/a.md": "CPU\n"}), "")

    def test_header_without_guard_is_found(self):
        self.assertIn("no #pragma once", self.lint({"src/core/a.h": "int a();\n"}))

    def test_second_tool_for_one_purpose_is_found(self):
        for line, remedy in [
            ("h *= 0x9E3779B97F4A7C15u;", "core/hash.h"),
            ("std::ranges::nth_element(values, middle);", "stats/quantile.h"),
            (r'out += "{\"name\": \"" + name;', "core/json_writer.h"),
            ("#include <boost/math/distributions/normal.hpp>", "src/stats"),
            ("table.rows.push_back({name, total});", "model/table_rows.h"),
            ('table.columns = {{"Name", "name"}};', "model/table_rows.h"),
            ('model::Table table{"Run", "run", {{"What", "what"}}, {}, {}};', "model/table_rows.h"),
        ]:
            self.assertIn("src/trace/t.cpp:1: ", self.lint({"src/trace/t.cpp": line + "\n"}), line)
            self.assertIn(remedy, self.lint({"src/trace/t.cpp": line + "\n"}))
            os.remove(os.path.join(self.root, "src/trace/t.cpp"))

    def test_the_one_tool_is_not_found(self):
        self.assertEqual(self.lint({"src/core/hash.cpp": "return XXH3_64bits(p, n);\n"}), "")

    def test_folder_without_stage_is_found(self):
        self.assertIn("belongs to no stage", self.lint({"src/gadgets/g.cpp": "int g();\n"}))


class ThisTree(unittest.TestCase):
    def test_has_no_lint_finding(self):
        command = [sys.executable, os.path.join(ARGS.source, "scripts/lint"), "--root", ARGS.source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--source", required=True)
    parser.add_argument("--cxx", default="c++")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
