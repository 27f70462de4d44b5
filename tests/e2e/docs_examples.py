#!/usr/bin/env python3
"""Runs every ```console example of README.md and docs/**/*.md and compares what it prints.

    docs_examples.py --bin BUILD_DIR --source ROOT [FILE.md...]

In a ```console block, a line "$ COMMAND" is run by bash from the root of the tree with the built programs on PATH (a trailing
backslash continues it). It must end with exit code 0. The lines up to the next "$ " are its expected standard output and
error; without any the command must print nothing. "..." stands for anything: within a line, or, alone on a line, for any
number of lines. Spaces at line ends do not count.

The root is a scratch folder with a link to everything of the tree, so that examples may write files into it. The examples of
one document share it and run in order.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile


def examples(text):
    """[(line number, command, expected output lines)] of the ```console blocks of a Markdown text."""
    found, fence, current = [], None, None
    for number, line in enumerate(text.splitlines(), 1):
        opening = re.match(r"\s*(`{3,}|~{3,})\s*(\S*)", line)
        if fence is None:
            if opening:
                fence, console = opening.group(1), opening.group(2) == "console"
                current = None
            continue
        if opening and opening.group(1).startswith(fence) and not opening.group(2):
            if console and current:
                found.append(current)
            fence, current = None, None
            continue
        if not console:
            continue
        if current and current[1].endswith("\\") and not current[2]:
            current = (current[0], current[1][:-1] + line.lstrip("> "), [])
        elif line.startswith("$ "):
            if current:
                found.append(current)
            current = (number, line[2:], [])
        elif current:
            current[2].append(line.rstrip())
    if fence is not None:
        raise ValueError("a code block is not closed")
    return found


def matches(expected, printed):
    """Whether the printed lines are what the expected lines, with their "..." wildcards, describe."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("...")) + r"[ \t]*\n"
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in printed)) is not None


def run(command, root, bin_folder):
    """(exit code, output lines) of a command; standard error is part of the output."""
    env = dict(os.environ, PATH=bin_folder + os.pathsep + os.environ["PATH"], NO_COLOR="1", LC_ALL="C.UTF-8", COLUMNS="120")
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=root, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace").splitlines()


def check(path, source, bin_folder):
    """Runs the examples of one document; prints one line each; the number of examples and of failures."""
    with open(path, encoding="utf-8") as text:
        found = examples(text.read())
    failures = 0
    with tempfile.TemporaryDirectory() as root:
        for name in os.listdir(source):
            if not name.startswith((".git", "build")):
                os.symlink(os.path.join(source, name), os.path.join(root, name))
        for number, command, expected in found:
            code, printed = run(command, root, bin_folder)
            where = f"{os.path.relpath(path, source)}:{number}: $ {command}"
            if code == 0 and matches(expected, printed):
                print(f"ok {where}")
                continue
            failures += 1
            print(f"FAILED {where}\n  exit code {code}; printed:")
            print("".join(f"    {line}\n" for line in printed), end="")
            if not matches(expected, printed):
                print("  expected:")
                print("".join(f"    {line}\n" for line in expected), end="")
    return len(found), failures


def documents(source):
    yield os.path.join(source, "README.md")
    for folder, _, names in sorted(os.walk(os.path.join(source, "docs"))):
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.join(folder, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    source, bin_folder = os.path.abspath(args.source), os.path.abspath(args.bin)
    total = failed = 0
    for path in args.files or documents(source):
        count, failures = check(os.path.abspath(path), source, bin_folder)
        total += count
        failed += failures
    print(f"{total} examples, {failed} failed")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main())
