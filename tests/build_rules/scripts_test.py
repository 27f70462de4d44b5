#!/usr/bin/env python3
"""The scripts behind the make targets: what they count, list and refuse.

    scripts_test.py --source ROOT [unittest options]
"""

import argparse
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ARGS = argparse.Namespace(source=".")
sys.dont_write_bytecode = True


def script(name):
    """A script without suffix, loaded as a module."""
    path = os.path.join(ARGS.source, "scripts", name)
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class RunTests(unittest.TestCase):
    def classify(self, xml):
        return script("run-tests").classify(ElementTree.fromstring(xml))

    def test_counts_what_ran_as_passed(self):
        self.assertEqual(self.classify('<testcase name="a" status="run"/>'), ("passed", ""))

    def test_counts_a_failure(self):
        xml = '<testcase name="a" status="fail"><failure message=""/><system-out>boom</system-out></testcase>'
        self.assertEqual(self.classify(xml)[0], "failed")

    def test_a_program_that_could_not_be_started_is_a_failure(self):
        xml = '<testcase name="a" status="notrun"><skipped message="Unable to find executable"/></testcase>'
        self.assertEqual(self.classify(xml), ("failed", "Unable to find executable"))

    def test_takes_the_reason_of_a_skip_from_google_test(self):
        xml = """<testcase name="a" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>
[ RUN      ] Golden.Traces
/x/golden_test.cpp:12: Skipped
shared data missing: ../shared/corpus

[  SKIPPED ] Golden.Traces (0 ms)
</system-out></testcase>"""
        self.assertEqual(self.classify(xml), ("skipped", "shared data missing: ../shared/corpus"))

    def test_takes_the_reason_of_a_skip_from_unittest(self):
        xml = """<testcase name="a" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>
test_a (__main__.A) ... skipped 'no zstd here'
OK (skipped=1)</system-out></testcase>"""
        self.assertEqual(self.classify(xml), ("skipped", "no zstd here"))

    def tally(self, cmake, program=None, *options):
        """Runs scripts/run-tests on a project whose CMakeLists.txt ends with `cmake`, and that has a `program`."""
        with tempfile.TemporaryDirectory() as root:
            if program:
                with open(os.path.join(root, "program"), "w", encoding="utf-8") as out:
                    out.write(program)
                os.chmod(root + "/program", 0o755)
            with open(os.path.join(root, "CMakeLists.txt"), "w", encoding="utf-8") as out:
                out.write("cmake_minimum_required(VERSION 3.25)\nproject(tiny LANGUAGES NONE)\nenable_testing()\n" + cmake)
            subprocess.run(["cmake", "-S", root, "-B", root + "/out", "-G", "Ninja"], check=True, capture_output=True)
            command = [sys.executable, os.path.join(ARGS.source, "scripts/run-tests"), root + "/out", *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_last_line_counts_everything(self):
        code, output = self.tally("""
add_test(NAME good COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME other COMMAND ${CMAKE_COMMAND} -E echo "hello")
add_test(NAME bad COMMAND ${CMAKE_COMMAND} -E false)
add_test(NAME gone COMMAND /nonexistent/program)
add_test(NAME left COMMAND ${CMAKE_COMMAND} -E echo "x_test.cpp:1: Skipped\nno data\n[  SKIPPED ]")
set_tests_properties(left PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED")
""")
        self.assertEqual(output.splitlines()[-1], "2 passed, 2 failed, 1 skipped", output)
        self.assertIn("no data\n    left", output)
        self.assertEqual(code, 1)

    def test_success_when_all_pass(self):
        code, output = self.tally("add_test(NAME good COMMAND ${CMAKE_COMMAND} -E true)\n")
        self.assertEqual((code, output.splitlines()[-1]), (0, "1 passed, 0 failed, 0 skipped"))

    # As a program of Google Test, whose tests do what their names say.
    UNIT_TESTS = """#!/usr/bin/env python3
import os, sys, time
names = [a for a in sys.argv if a.startswith("--gtest_filter=")][0].split("=")[1].split(":")
print(f"Note: Google Test filter = {':'.join(names)}")
for name in names:
    print(f"[ RUN      ] {name}", flush=True)
    if "crash" in name:
        os.abort()
    time.sleep(100 if "hang" in name else 0.6 if "slow" in name else 0)
    if "skip" in name:
        print("x_test.cpp:12: Skipped\\nno data\\n")
    result = "  FAILED  " if "fail" in name else "  SKIPPED " if "skip" in name else "       OK "
    print(f"[{result}] {name} (0 ms)", flush=True)
failed = [name for name in names if "fail" in name]
for name in failed:
    print(f"[  FAILED  ] {name}")
sys.exit(23 if any("leak" in name for name in names) else bool(failed))
"""

    def unit_tests(self, *names):
        return "".join(f"add_test(NAME {name} COMMAND ${{CMAKE_SOURCE_DIR}}/program --gtest_filter={name})\n"
                       f"set_tests_properties({name} PROPERTIES LABELS unit)\n" for name in names)

    def test_unit_tests_of_one_process_are_counted_one_by_one(self):
        code, output = self.tally(self.unit_tests("A.a", "A.fail", "A.skip", "B.a") + "add_test(NAME other COMMAND ${CMAKE_COMMAND} -E true)\n", self.UNIT_TESTS)
        self.assertEqual((code, output.splitlines()[-1]), (1, "3 passed, 1 failed, 1 skipped"), output)
        self.assertIn("no data\n    A.skip", output)
        self.assertIn("FAILED:\n  A.fail", output)

    def test_unit_tests_behind_one_that_ends_the_process_run_all_the_same(self):
        code, output = self.tally(self.unit_tests("A.a", "A.crash", "A.b", "A.skip"), self.UNIT_TESTS)
        self.assertEqual((code, output.splitlines()[-1]), (1, "2 passed, 1 failed, 1 skipped"), output)
        self.assertIn("A.crash: ended with exit code -6", output)

    def test_what_leaks_is_found_among_those_of_its_process(self):
        code, output = self.tally(self.unit_tests("A.a", "A.b", "A.leak", "A.c"), self.UNIT_TESTS)
        self.assertEqual((code, output.splitlines()[-1]), (1, "3 passed, 1 failed, 0 skipped"), output)
        self.assertIn("A.leak: ended with exit code 23", output)

    def test_the_limit_is_of_one_test_not_of_all_of_a_process(self):
        slow = [f"A.slow{k}" for k in range(6)]
        code, output = self.tally(self.unit_tests(*slow), self.UNIT_TESTS, "--timeout", "2")
        self.assertEqual((code, output.splitlines()[-1]), (0, "6 passed, 0 failed, 0 skipped"), output)
        code, output = self.tally(self.unit_tests("A.a", "A.hang", "A.b"), self.UNIT_TESTS, "--timeout", "2")
        self.assertEqual((code, output.splitlines()[-1]), (1, "2 passed, 1 failed, 0 skipped"), output)
        self.assertIn("A.hang: took more than 2 s", output)

    def test_no_test_at_all_is_a_failure(self):
        code, output = self.tally("")
        self.assertEqual((code, output.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"), output)


class Deps(unittest.TestCase):
    def deps(self, *arguments, path=None):
        env = dict(os.environ, **({"PATH": path} if path else {}))
        command = [os.path.join(ARGS.source, "scripts/deps"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env)

    def test_lists_packages_of_a_group(self):
        done = self.deps("--list", "test")
        self.assertEqual(done.returncode, 0)
        self.assertIn("libgtest-dev", done.stdout.split())
        self.assertNotIn("cmake", done.stdout.split())

    def test_refuses_an_unknown_group(self):
        done = self.deps("--list", "nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no group 'nonsense'", done.stderr)

    def with_programs(self, **programs):
        """Runs scripts/deps with a PATH of stand-ins for the system's programs, which log what they are called with."""
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            for name, body in programs.items():
                path = os.path.join(folder, name.replace("_", "-"))
                with open(path, "w", encoding="utf-8") as out:
                    out.write(f'#!/bin/bash\necho "{name} $*" >>{log}\n{body}\n')
                os.chmod(path, 0o755)
            done = self.deps("fuzz", path=f"{folder}:/usr/bin:/bin")
            with open(log, encoding="utf-8") as text:
                return done, text.read()

    def test_nothing_is_installed_when_all_is_there(self):
        query = 'printf "clang installed\\nlibclang-rt-14-dev installed\\n"'
        done, log = self.with_programs(dpkg_query=query, apt_get="exit 1", id="echo 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("apt_get", log)

    def test_only_what_is_missing_is_installed_after_an_update(self):
        query = 'printf "clang installed\\nlibclang-rt-14-dev not-installed\\n"'
        done, log = self.with_programs(dpkg_query=query, apt_get="exit 0", id="echo 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = [line for line in log.splitlines() if line.startswith("apt_get")]
        self.assertEqual(len(calls), 2, log)
        self.assertIn("update", calls[0])
        self.assertTrue(calls[1].endswith("--no-install-recommends libclang-rt-14-dev"), calls)

    def test_sudo_is_used_when_not_root(self):
        done, log = self.with_programs(dpkg_query="exit 1", apt_get="exit 1", sudo="exit 0", id="echo 1000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sudo env DEBIAN_FRONTEND=noninteractive apt-get install", log)
        self.assertNotIn("apt_get", log)


class MakeTargets(unittest.TestCase):
    def test_every_promised_target_exists(self):
        for target in ["deps", "build", "demo", "test", "check", "fuzz", "bench"]:
            done = subprocess.run(["make", "-n", "-C", ARGS.source, target], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{target}: {done.stderr}")

    def test_continuous_integration_fails_without_shared_data(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(root + "/tree/.ci")
            with open(os.path.join(ARGS.source, ".ci/run"), encoding="utf-8") as text, open(
                    root + "/tree/.ci/run", "w", encoding="utf-8") as out:
                out.write(text.read())
            done = subprocess.run(["bash", root + "/tree/.ci/run"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("shared data missing", done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--source", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
