#!/usr/bin/env python3
"""The steps of examples/ci/github-actions.yml and github-actions-ab.yml, run as GitHub runs them.

    diff_ci_test.py --bin BUILD_DIR --source ROOT [unittest options]
"""

import argparse
import os
import stat
import subprocess
import sys
import tempfile
import textwrap
import unittest

ARGS = argparse.Namespace(bin="build", source=".")
# It stands in the checkout that it traces; each trace has a seed of its own, as two runs of a program are never the same.
BENCHMARK = """#!/bin/sh
seed=$(printf %s "$1" | cksum | cut -d' ' -f1)
exec culprit-tracegen -q --workload train --steps 24 --layers 2 --seed "$((seed % 100000))" $(cat options) -o "$1"
"""


def run_blocks(text):
    """{name of the step: its script} of a workflow whose scripts are literal blocks (`run: |`) or single lines without quotes of YAML around them."""
    scripts, name, lines, depth = {}, None, None, 0
    for line in [*text.splitlines(), "end"]:
        indent = len(line) - len(line.lstrip())
        if lines is not None and line.strip() and indent <= depth:
            scripts[name] = textwrap.dedent("\n".join(lines)) + "\n"
            lines = None
        if lines is not None:
            lines.append(line)
        elif line.strip().startswith("- name:"):
            name = line.split(":", 1)[1].strip()
        elif line.strip() == "run: |":
            lines, depth = [], indent
        elif line.strip().startswith("run:"):
            scripts[name] = line.split(":", 1)[1].strip() + "\n"
            if scripts[name][0] in "|>\"'":
                raise ValueError(f"neither a block nor a plain line: {line}")
    return scripts


class GitHubActions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.summary = os.path.join(self.folder, "summary.md")
        self.benchmark = os.path.join(self.folder, "benchmark")
        with open(self.benchmark, "w", encoding="utf-8") as file:
            file.write(BENCHMARK)
        os.chmod(self.benchmark, os.stat(self.benchmark).st_mode | stat.S_IXUSR)
        with open(os.path.join(ARGS.source, "examples", "ci", "github-actions.yml"), encoding="utf-8") as file:
            self.scripts = run_blocks(file.read())

    def job(self, options_of_new):
        """Exit codes of the steps up to the first that fails."""
        for side, options in (("old", ""), ("new", options_of_new)):
            os.mkdir(os.path.join(self.folder, side))
            with open(os.path.join(self.folder, side, "options"), "w", encoding="utf-8") as file:
                file.write(options)
        env = dict(os.environ, PATH=os.path.abspath(ARGS.bin) + os.pathsep + os.environ["PATH"], LC_ALL="C.UTF-8",
                   BENCHMARK=self.benchmark, GITHUB_STEP_SUMMARY=self.summary)
        codes = []
        for name, script in self.scripts.items():
            path = os.path.join(self.folder, "script.sh")
            with open(path, "w", encoding="utf-8") as file:
                file.write(script)
            done = subprocess.run(["bash", "-e", path], cwd=self.folder, env=env, capture_output=True, text=True, timeout=100, check=False)
            codes.append(done.returncode)
            self.assertIn(done.returncode, (0, 1), f"{name}: {done.stderr}")
            if done.returncode:
                break
        return codes

    def report(self):
        with open(self.summary, encoding="utf-8") as file:
            return file.read()

    def test_it_records_and_then_compares(self):
        self.assertEqual(list(self.scripts), ["Record both, in turns", "Compare"])

    def test_the_same_passes(self):
        self.assertEqual(self.job(""), [0, 0])
        self.assertTrue(self.report().startswith("# old-1.json.gz and 2 more against new-1.json.gz and 2 more\n"), self.report())
        self.assertNotIn("regression;", self.report())

    def test_what_became_slower_does_not(self):
        self.assertEqual(self.job("--fault gpu_clock_drop"), [0, 1])
        self.assertIn("regression; cycle time +", self.report())


class GitHubActionsWithTurns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, path, text, runs=False):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if runs:
            os.chmod(path, 0o755)

    def test_a_branch_that_is_slower_fails_with_its_summary(self):
        ci = os.path.join(ARGS.source, "examples", "ci")
        with open(os.path.join(ci, "github-actions-ab.yml"), encoding="utf-8") as file:
            scripts = run_blocks(file.read())
        self.assertEqual(list(scripts), ["compare", "summary"])
        # Looks at a share of the budget: sooner than of ten minutes.
        self.assertIn("BUDGET=10m", scripts["compare"])
        scripts["compare"] = scripts["compare"].replace("BUDGET=10m", "BUDGET=3m")
        with open(os.path.join(ci, "ab.sh"), encoding="utf-8") as file:
            recipe = file.read()
        for tree, seconds in (("old", 0.1), ("new", 0.2)):
            self.write(f"{tree}/Makefile", f"bench:\n\tprintf '#!/bin/sh\\nsleep {seconds}\\n' > bench && chmod +x bench\n")
            self.write(f"{tree}/examples/ci/ab.sh", recipe, runs=True)
        self.write("bin/sudo", "#!/bin/sh\nexec \"$@\"\n", runs=True)  # who runs the tests may not become root
        summary = os.path.join(self.folder, "job.md")
        env = dict(os.environ, PATH=os.pathsep.join([os.path.join(self.folder, "bin"), os.path.abspath(ARGS.bin), os.environ["PATH"]]), LC_ALL="C.UTF-8", GITHUB_STEP_SUMMARY=summary)
        codes = [subprocess.run(["bash", "-e", "-c", script], cwd=self.folder, env=env, capture_output=True, text=True, timeout=250, check=False) for script in scripts.values()]
        self.assertEqual([done.returncode for done in codes], [1, 0], codes[0].stderr)
        with open(summary, encoding="utf-8") as file:
            self.assertIn("regression", file.read())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", default=ARGS.bin)
    parser.add_argument("--source", default=ARGS.source)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
