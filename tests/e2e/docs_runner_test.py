#!/usr/bin/env python3
"""The runner of the examples in the documents: that it finds them, and that it fails when they are wrong."""

import contextlib
import io
import os
import tempfile
import unittest

import docs_examples


class Parsing(unittest.TestCase):
    def test_takes_only_console_blocks(self):
        text = "```sh\n$ no\n```\n```console\n$ yes\nout\n```\n    ```\n$ no\n```\n"
        self.assertEqual(docs_examples.examples(text), [(5, "yes", ["out"])])

    def test_several_commands_in_one_block(self):
        text = "```console\n$ a\n1\n2\n$ b\n```\n"
        self.assertEqual(docs_examples.examples(text), [(2, "a", ["1", "2"]), (5, "b", [])])

    def test_joins_continued_commands(self):
        text = "```console\n$ a \\\n    b \\\n    c\nout\n```\n"
        self.assertEqual(docs_examples.examples(text), [(2, "a b c", ["out"])])

    def test_refuses_an_open_block(self):
        with self.assertRaises(ValueError):
            docs_examples.examples("```console\n$ a\n")


class Matching(unittest.TestCase):
    def test_equal_text(self):
        self.assertTrue(docs_examples.matches(["a  b", "c"], ["a  b  ", "c"]))
        self.assertFalse(docs_examples.matches(["a b"], ["a  b"]))
        self.assertFalse(docs_examples.matches(["a"], ["a", "more"]))
        self.assertFalse(docs_examples.matches(["a", "more"], ["a"]))

    def test_wildcard_in_a_line(self):
        self.assertTrue(docs_examples.matches(["took ... ms"], ["took 12.5 ms"]))
        self.assertFalse(docs_examples.matches(["took ... ms"], ["took 12.5 s"]))

    def test_wildcard_lines(self):
        self.assertTrue(docs_examples.matches(["a", "...", "z"], ["a", "b", "c", "z"]))
        self.assertTrue(docs_examples.matches(["a", "...", "z"], ["a", "z"]))
        self.assertFalse(docs_examples.matches(["a", "...", "z"], ["a", "b"]))

    def test_other_characters_are_literal(self):
        self.assertFalse(docs_examples.matches(["a.c"], ["abc"]))


class Running(unittest.TestCase):
    def check(self, block):
        with tempfile.TemporaryDirectory() as source:
            with open(os.path.join(source, "README.md"), "w", encoding="utf-8") as out:
                out.write(f"```console\n{block}\n```\n")
            with contextlib.redirect_stdout(io.StringIO()):
                return docs_examples.check(os.path.join(source, "README.md"), source, source)

    def test_right_output(self):
        self.assertEqual(self.check("$ echo hello\nhello"), (1, 0))

    def test_wrong_output(self):
        self.assertEqual(self.check("$ echo hello\ngoodbye"), (1, 1))

    def test_output_that_is_not_shown(self):
        self.assertEqual(self.check("$ echo hello"), (1, 1))

    def test_failing_command(self):
        self.assertEqual(self.check("$ false"), (1, 1))

    def test_failing_command_in_a_pipe(self):
        self.assertEqual(self.check("$ false | cat"), (1, 1))

    def test_files_written_are_there_for_the_next_example(self):
        self.assertEqual(self.check("$ echo x > f\n$ cat f\nx"), (2, 0))

    def test_programs_of_the_build_are_found_first(self):
        with tempfile.TemporaryDirectory() as source:
            os.makedirs(source + "/bin")
            with open(source + "/bin/culprit", "w", encoding="utf-8") as out:
                out.write("#!/bin/sh\necho built\n")
            os.chmod(source + "/bin/culprit", 0o755)
            self.assertEqual(docs_examples.run("culprit", source, source + "/bin"), (0, ["built"]))


if __name__ == "__main__":
    unittest.main()
