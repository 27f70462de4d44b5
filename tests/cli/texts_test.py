#!/usr/bin/env python3
"""The manual pages and completions that the build made: formatted without a complaint, and tried in their shells.

    texts_test.py --share BUILD/share --program BUILD/culprit [unittest options]
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

ARGS = argparse.Namespace(share=".", program="culprit")


def verbs():
    text = subprocess.run([ARGS.program, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+) ", text.split("Verbs:")[1].split("Options:")[0], re.M)


class Manual(unittest.TestCase):
    def test_there_is_a_page_for_every_verb_and_no_other(self):
        pages = {os.path.basename(p) for p in glob.glob(ARGS.share + "/man/man1/*")}
        self.assertGreater(len(verbs()), 8)
        self.assertEqual(pages, {"culprit.1"} | {f"culprit-{v}.1" for v in verbs()})

    def test_pages_are_formatted_without_a_warning(self):
        groff = shutil.which("groff")
        if not groff:
            self.skipTest("no groff")
        for page in sorted(glob.glob(ARGS.share + "/man/man1/*.1")):
            done = subprocess.run([groff, "-man", "-Tascii", "-P-cbou", "-ww", "-rLL=80n", page], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page)
            self.assertIn("NAME", done.stdout)

    def test_pages_pass_the_lint_of_mandoc(self):
        mandoc = shutil.which("mandoc")
        if not mandoc:
            self.skipTest("no mandoc")
        done = subprocess.run([mandoc, "-Tlint", "-Wwarning", *sorted(glob.glob(ARGS.share + "/man/man1/*.1"))],
                              capture_output=True, text=True, check=False)
        findings = [line for line in done.stdout.splitlines() if "missing date" not in line]
        self.assertEqual(findings, [])


class Bash(unittest.TestCase):
    def complete(self, *words, cwd=None):
        """What bash offers for the last of `words`; it splits words at '='."""
        split = [part for word in words for part in re.split("(=)", word) if part or word == ""]
        if words[-1].endswith("="):
            split.append("")
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _culprit culprit; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", ARGS.share + "/bash-completion/completions/culprit", *split],
                              capture_output=True, text=True, check=True, cwd=cwd)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_verbs(self):
        self.assertEqual(self.complete("culprit", ""), set(verbs()) | {"help"})
        self.assertEqual(self.complete("culprit", "to"), {"top"})
        self.assertEqual(self.complete("culprit", "help", "dif"), {"diff"})
        self.assertIn("--version", self.complete("culprit", "--"))

    def test_every_option_of_every_verb(self):
        for verb in verbs():
            shown = subprocess.run([ARGS.program, verb, "--help"], capture_output=True, text=True, check=True).stdout
            names = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", shown, re.M))
            self.assertGreater(len(names), 1)
            self.assertLessEqual(names, self.complete("culprit", verb, "-"), verb)

    def test_values_from_a_fixed_list(self):
        self.assertEqual(self.complete("culprit", "top", "--look", ""), {"plain", "torch"})
        self.assertEqual(self.complete("culprit", "top", "--look=t"), {"torch"})
        self.assertEqual(self.complete("culprit", "top", "--look="), {"plain", "torch"})
        self.assertEqual(self.complete("culprit", "top", "--class", "gpu,py"), {"gpu,python"})
        self.assertEqual(self.complete("culprit", "info", "--threads", "t"), set())

    def test_files_also_with_spaces_in_their_names(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("run one.json", "run.json"):
                open(os.path.join(folder, name), "w", encoding="utf-8").close()
            self.assertEqual(self.complete("culprit", "top", "run.", cwd=folder), {"run.json"})
            self.assertEqual(self.complete("culprit", "info", "-o", "run.", cwd=folder), {"run.json"})
            self.assertEqual(self.complete("culprit", "top", "--limit", "run.", cwd=folder), set())
            self.assertEqual(self.complete("culprit", "top", "run ", cwd=folder), {"run", "one.json"})

    def test_a_command_behind_the_dashes_of_record(self):
        self.assertIn("bash", self.complete("culprit", "record", "--", "bas"))
        self.assertNotIn("bash", self.complete("culprit", "record", "bas"))


class OtherShells(unittest.TestCase):
    def check_syntax(self, shell, path):
        if not shutil.which(shell):
            self.skipTest(f"no {shell}")
        subprocess.run([shell, "-n", ARGS.share + path], check=True)

    def test_zsh_takes_its_completion(self):
        self.check_syntax("zsh", "/zsh/vendor-completions/_culprit")

    def test_fish_takes_its_completion(self):
        self.check_syntax("fish", "/fish/vendor_completions.d/culprit.fish")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--share", required=True)
    parser.add_argument("--program", required=True)
    ARGS, rest = parser.parse_known_args()
    ARGS.share = os.path.abspath(ARGS.share)
    unittest.main(argv=[sys.argv[0], *rest])
