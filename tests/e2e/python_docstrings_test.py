#!/usr/bin/env python3
"""What the Python package says of itself: every column of every table, and every call.

    python_docstrings_test.py --env BUILD_DIR/python --bin BUILD_DIR --source SOURCE_DIR [unittest options]
"""

import inspect
import os
import re

from python_package_test import ARGS, WHY, Case, main

if WHY is None:
    import culprit
    import culprit.torch


def paragraph(call, table):
    """Of the docstring of a call that gives several tables, what it says of this one."""
    paragraphs = [text for text in inspect.getdoc(call).split("\n\n") if text.startswith(f"``{table}``")]
    return "".join(paragraphs)


def unnamed(columns, text):
    """Columns that no word of the text is; what stands in backticks names something else, and what stands in quotes is a value."""
    return sorted(set(columns) - set(re.findall(r"\w+", re.sub(r"``[^`]*``|\"[^\"]*\"", " ", text))))


def public_calls():
    """(name, what is called) for all that users of the package see; properties are among them."""
    for name in (*culprit.__all__, "torch.trace_handler", "torch.TraceHandler", "torch.summary_of"):
        value = culprit
        for part in name.split("."):
            value = getattr(value, part)
        yield name, value
        if inspect.isclass(value):
            for member in vars(value):
                if not member.startswith("_") and (callable(getattr(value, member)) or isinstance(vars(value)[member], property)):
                    yield f"{name}.{member}", getattr(value, member)


class Docstrings(Case):
    def test_columns_of_a_run_stand_in_the_docstring_of_their_call(self):
        loaded = culprit.load(self.trace)
        for name in ("slices", "counters", "markers", "cycles", "top", "kernel_blocks", "fusion"):
            with self.subTest(name):
                table = getattr(loaded, name)()
                self.assertGreater(len(table.columns), 4)
                self.assertEqual(unnamed(table.columns, inspect.getdoc(getattr(culprit.Run, name))), [])
        self.assertEqual(unnamed(loaded.devices.columns, inspect.getdoc(culprit.Run.devices)), [])
        for name in ("profile", "kernels"):
            for key, table in getattr(loaded, name)()._asdict().items():
                with self.subTest(f"{name}().{key}"):
                    self.assertEqual(unnamed(table.columns, paragraph(getattr(culprit.Run, name), key)), [])

    def test_columns_of_a_comparison_stand_in_the_docstring_of_their_call(self):
        compared = culprit.diff(self.trace, self.made("documented.json", "2"))
        for name in ("effects", "findings", "waterfall", "causes", "resources", "environment", "off_cpu"):
            with self.subTest(name):
                self.assertEqual(unnamed(getattr(compared, name)().columns, inspect.getdoc(getattr(culprit.Comparison, name))), [])

    def test_columns_that_may_be_absent_stand_there_as_such(self):
        """Which those are is told where the tables are made."""
        with open(os.path.join(ARGS.source, "src", "kernels", "launch_tables.cpp"), encoding="utf-8") as file:
            source = file.read()
        for function, key, count in (("launch_table", "launches", 9), ("name_table", "names", 8)):
            with self.subTest(key):
                body = re.search(rf"^Table {function}\(.*?^}}", source, re.M | re.S).group(0)
                columns = re.findall(r'\{\{"[^"]+", "(\w+)", ColumnType::\w+[^}]*\}(.*?)(?=\{\{"|\Z)', body, re.S)
                absent = [name for name, given in columns if re.search(r",\s*if_known\}", given)]
                self.assertEqual(len(absent), count, absent)
                always, _, may_be = paragraph(culprit.Run.kernels, key).partition("Absent where")
                self.assertEqual(unnamed(absent, may_be), [])
                self.assertEqual(unnamed([name for name, _ in columns if name not in absent], always), [])

    def test_a_column_that_is_not_named_is_found(self):
        self.assertEqual(unnamed(["begin_ns", "colour", "tid"], "begin_ns (of the colours), ``colour``, \"colour\", tid"), ["colour"])
        self.assertEqual(paragraph(culprit.Run.profile, "colours"), "")

    def test_every_public_call_has_a_docstring(self):
        calls = dict(public_calls())
        for name in ("load", "Run.top", "Run.devices", "Table.from_columns", "Comparison.outcome", "Comparison.to_json", "Recording.run", "torch.TraceHandler"):
            self.assertIn(name, calls)
        # What a class inherits from another one is not its own.
        self.assertEqual([name for name, call in calls.items() if not (getattr(call, "__doc__", None) or "").strip()], [])

    def test_calls_that_take_arguments_name_their_errors(self):
        takes = [(name, call) for name, call in public_calls() if inspect.isfunction(call) and set(inspect.signature(call).parameters) - {"self"}]
        self.assertIn("Run.cycles", dict(takes))
        # Tables that the package makes itself have the columns that the text is made of.
        self.assertEqual([name for name, call in takes if "Error" not in call.__doc__ and name != "torch.summary_of"], [])


if __name__ == "__main__":
    main()
