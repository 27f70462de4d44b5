#!/usr/bin/env python3
"""What the documents name exists: linked files, and paths of the tree in `code`.

    docs_test.py --source ROOT [unittest options]
"""

import argparse
import glob
import os
import re
import sys
import unittest

ARGS = argparse.Namespace(source=".")
DOCUMENTS = ["*.md", "docs/**/*.md", "src/*.md", "bench/*.md"]


def documents():
    for pattern in DOCUMENTS:
        for path in sorted(glob.glob(os.path.join(ARGS.source, pattern), recursive=True)):
            with open(path, encoding="utf-8") as text:
                yield path, text.read()


class Documents(unittest.TestCase):
    def test_links_lead_somewhere(self):
        count = 0
        for path, text in documents():
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                count += 1
                self.assertTrue(os.path.exists(os.path.join(os.path.dirname(path), target)), f"{path}: {target}")
        self.assertGreater(count, 5)

    def test_paths_exist(self):
        count = 0
        for path, text in documents():
            for name in re.findall(r"`((?:src|tests|scripts|cmake|bench|fuzz)/[A-Za-z0-9_./-]+)`", text):
                count += 1
                self.assertTrue(os.path.exists(os.path.join(ARGS.source, name)), f"{path}: {name}")
        self.assertGreater(count, 10)

    def test_every_stage_is_described(self):
        with open(os.path.join(ARGS.source, "src/README.md"), encoding="utf-8") as text:
            described = set(re.findall(r"^\| `([a-z_/]+)` \|", text.read(), re.MULTILINE))
        with open(os.path.join(ARGS.source, "src/CMakeLists.txt"), encoding="utf-8") as text:
            stages = set(re.findall(r"DIR src/([a-z_/]+)", text.read()))
        self.assertEqual(described, stages)

    def test_readme_names_the_commands_to_start_with(self):
        with open(os.path.join(ARGS.source, "README.md"), encoding="utf-8") as text:
            readme = text.read()
        for command in ("make demo", "make test", "make build"):
            self.assertIn(command, readme)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--source", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
