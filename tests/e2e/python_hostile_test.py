#!/usr/bin/env python3
"""Hostile traces through the Python package, in the environment that scripts/python-env makes.

    python_hostile_test.py --env BUILD_DIR/python --bin BUILD_DIR --source SOURCE_DIR [unittest options]
"""

import gzip
import os
import random

from python_package_test import WHY, Case, main

if WHY is None:
    import culprit


class Hostile(Case):
    """Whatever a file holds: an error of the package, or tables, and nothing else."""

    EVENT = '{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":0,"dur":1}'
    # What is no trace.
    REFUSED = {
        "empty": b"",
        "text": b"this is no trace",
        "random": bytes((i * i * 31 + 7 * i) % 256 for i in range(20_000)),
        "gzip-head": b"\x1f\x8b\x08\x00\x00",
        "gzip-nonsense": b"\x1f\x8b\x08\x00" + bytes(range(256)) * 4,
        "zstd-nonsense": b"\x28\xb5\x2f\xfd" + bytes(range(256)) * 4,
        "sqlite-head": b"SQLite format 3\x00" + bytes(84),
        "number": b"12",
        "null": b"null",
        "nothing-in-it": b"{}",
        "events-are-a-number": b'{"traceEvents": 5}',
        "utf16": '{"traceEvents": []}'.encode("utf-16"),
    }
    # Traces in which nothing can be read.
    LOST = {
        "events-are-numbers": b'{"traceEvents": [1, 2, 3]}',
        "deep": b"[" * 1_000_000,
        "deep-arguments": b'{"traceEvents":[{"ph":"X","name":"a","args":' + b'{"a":' * 200_000,
        "half": b'{"traceEvents": [',
    }
    # Events that can be read but for their damage, by the loss that counts it.
    DAMAGED = {
        "not-a-number": (EVENT.replace('"ts":0', '"ts":NaN'), "time_invalid"),
        "infinite": (EVENT.replace('"dur":1', '"dur":Infinity'), "time_invalid"),
        "huge-time": (EVENT.replace('"ts":0', '"ts":1e308'), "time_invalid"),
        "huge-duration": (EVENT.replace('"dur":1', '"dur":1e300'), "time_invalid"),
        "many-digits": (EVENT.replace('"ts":0', '"ts":' + "9" * 5000), "time_invalid"),
        "negative": (EVENT.replace('"dur":1', '"dur":-5'), "duration_negative"),
        "time-is-a-text": (EVENT.replace('"ts":0', '"ts":"soon"'), "time_invalid"),
        "name-is-a-list": (EVENT.replace('"a"', "[[1]]", 1), "name_invalid"),
        "process-is-an-object": (EVENT.replace('"pid":1', '"pid":{}'), "pid_invalid"),
        "bytes-of-no-text": (EVENT.replace('"a"', '"\udcff\udcfe\udc80"', 1), "utf8_repaired"),
        "half-a-pair": (EVENT.replace('"a"', '"\\ud800"', 1), "utf8_repaired"),
        "null-in-a-name": (EVENT.replace('"a"', '"\\u0000"', 1), None),
        "long-name": (EVENT.replace('"a"', '"' + "a" * 1_000_000 + '"', 1), None),
    }

    def write(self, name, content):
        path = self.at(f"hostile-{name}.json")
        with open(path, "wb") as file:
            file.write(content)
        return path

    def read_all(self, path):
        """Everything that can be asked of a run; False: it raised what it may raise."""
        import pyarrow

        try:
            run = culprit.load(path)
        except culprit.Error as error:
            self.assertIn(error.kind, ("input", "environment"))
            self.assertTrue(error.what)
            self.assertIn(path, str(error))
            return False
        for ask in (run.slices, run.counters, run.markers, run.cycles, run.top, run.profile, run.kernels, run.kernel_blocks, run.fusion, lambda: run.devices):
            try:
                tables = ask()
            except culprit.Error:
                continue
            for table in [tables] if isinstance(tables, culprit.Table) else tables:
                pyarrow.table(table).validate(full=True)
        try:
            str(culprit.diff(run, self.trace))
        except culprit.Error:
            pass
        return True

    def test_what_is_no_trace_is_refused(self):
        for name, content in self.REFUSED.items():
            with self.subTest(name):
                self.assertFalse(self.read_all(self.write(name, content)))

    def test_damage_inside_is_counted(self):
        for name, content in self.LOST.items():
            with self.subTest(name):
                path = self.write(name, content)
                self.assertTrue(self.read_all(path))
                self.assertTrue(culprit.load(path).losses)
        for name, (event, loss) in self.DAMAGED.items():
            with self.subTest(name):
                text = f'{{"traceEvents":[{self.EVENT},{event},{self.EVENT}]}}'
                path = self.write(name, text.encode("utf-8", "surrogateescape"))
                self.assertTrue(self.read_all(path))
                run = culprit.load(path)
                self.assertGreaterEqual(len(run.slices()), 2)
                self.assertEqual([entry["reason"] for entry in run.losses], [loss] if loss else [])

    def test_a_cut_off_file_loses_its_tail(self):
        with open(self.trace, "rb") as file:
            whole = gzip.compress(file.read())
        slices = len(culprit.load(self.trace).slices())
        path = self.write("cut", whole[: len(whole) // 2])
        self.assertTrue(self.read_all(path))
        run = culprit.load(path)
        self.assertTrue(0 < len(run.slices()) < slices)
        self.assertTrue(run.losses)

    def test_what_becomes_too_large_is_refused(self):
        path = self.write("bomb", gzip.compress(b'{"traceEvents":[' + b" " * 100_000_000 + b"]}"))
        self.assertFalse(self.read_all(path))

    def test_bytes_that_changed_raise_nothing_else(self):
        with open(self.made("whole.json", "1", steps=3), "rb") as file:
            whole = file.read()
        for content in (whole, gzip.compress(whole)):
            for seed in range(20):
                dice = random.Random(seed)
                changed = bytearray(content)
                for _ in range(dice.randrange(1, 20)):
                    changed[dice.randrange(len(changed))] = dice.randrange(256)
                with self.subTest(gzip=content is not whole, seed=seed):
                    self.read_all(self.write("changed", bytes(changed)))

    def test_what_is_no_file_or_may_not_be_read(self):
        closed = self.write("closed", self.EVENT.encode())
        os.chmod(closed, 0)
        for path in (self.folder.name, os.path.join(self.trace, "below"), self.at("nothing.json"), closed):
            with self.subTest(path):
                root = path == closed and os.geteuid() == 0
                if root:  # whom no permission stops
                    os.chmod(self.folder.name, 0o755)
                    os.seteuid(65534)
                try:
                    with self.assertRaises(culprit.Error) as caught:
                        culprit.load(path)
                finally:
                    if root:
                        os.seteuid(0)
                self.assertTrue(caught.exception.remedy)
        self.assertIn("ermission denied", str(caught.exception))

    def test_arguments_of_other_types_are_type_errors(self):
        for wrong in (None, 5, [None], [b"bytes"], {"a": 1}.values()):
            with self.subTest(repr(wrong)), self.assertRaises(TypeError):
                culprit.load(wrong)
        for wrong in ([], ""):
            with self.subTest(repr(wrong)), self.assertRaises(culprit.Error):
                culprit.load(wrong)

    def test_arguments_that_are_none_are_named(self):
        import numpy

        run, of = culprit.load(self.trace), culprit.Table.from_columns
        for call, error, name in (
            (lambda: run.top(limit=-1), ValueError, "limit"),
            (lambda: run.top(limit=None), TypeError, "limit"),
            (lambda: run.top(limit=2**70), ValueError, "limit"),
            (lambda: run.top(by=3), TypeError, "by"),
            (lambda: run.top(filter="\ud800"), ValueError, "filter"),
            (lambda: run.top(classes=[3]), TypeError, "classes"),
            (lambda: run.top(classes=None), TypeError, "classes"),
            (lambda: run.top(reverse="no"), TypeError, "reverse"),
            (lambda: run.cycles(skip=-1), ValueError, "skip"),
            (lambda: run.cycles(anchor=None), TypeError, "anchor"),
            (lambda: run.profile(skip=1.5), TypeError, "skip"),
            (lambda: run.slices().rows(-1), ValueError, "most"),
            (lambda: culprit.load(self.trace, threads=-1), ValueError, "threads"),
            (lambda: culprit.load(self.trace, threads=100_000), ValueError, "threads"),
            (lambda: culprit.load(self.trace, max_expansion=-1), ValueError, "max_expansion"),
            (lambda: culprit.diff(self.trace, run, max_expansion=1.5), TypeError, "max_expansion"),
            (lambda: culprit.diff(self.trace, run, threads=None), TypeError, "threads"),
            (lambda: culprit.diff(self.trace, run, tolerance="3%"), TypeError, "tolerance"),
            (lambda: culprit.diff(self.trace, run, anchor=3), TypeError, "anchor"),
            (lambda: culprit.diff(3, run), TypeError, "baseline"),
            (lambda: culprit.diff(run, b"bytes"), TypeError, "candidate"),
            (lambda: culprit.diff([run, self.trace], run), TypeError, "baseline"),
            (lambda: culprit.diff(run, run, history=3), TypeError, "history"),
            (lambda: culprit.diff(run, run, history=[3]), TypeError, "history"),
            (lambda: culprit.load(3), TypeError, "paths"),
            (lambda: culprit.load(b"bytes"), TypeError, "paths"),
            (lambda: culprit.load([3]), TypeError, "each of paths"),
            (lambda: culprit.record(["true"], output=3), TypeError, "output"),
            (lambda: culprit.record(["a\0b"]), ValueError, "target"),
            (lambda: culprit.record("a\0b"), ValueError, "target"),
            (lambda: culprit.record(["a"], options=["\ud800"]), ValueError, "options"),
            (lambda: culprit.diff(run, run, tolerance=numpy.array([1, 2])), TypeError, "tolerance"),
            (lambda: of("k", [("a", [1, 2**70])]), ValueError, "a value of column 'a'"),
            (lambda: of("k", [("a", [1.0, 10**400])]), ValueError, "a value of column 'a'"),
            (lambda: of("k", [("a", [object()])]), TypeError, "a value of column 'a'"),
            (lambda: of("k", [("a", ["\ud800"])]), ValueError, "a value of column 'a'"),
            (lambda: of("k", [("a", [1.5])], types={"a": int}), TypeError, "a value of column 'a'"),
            (lambda: of("k", [("a", ["x"])], types={"a": float}), TypeError, "a value of column 'a'"),
            (lambda: of("k", [("a", [1])], types={"a": bool}), TypeError, "types: column 'a'"),
            (lambda: of("k", [("a", "text")]), TypeError, "column 'a'"),
            (lambda: of("k", [(1, [1])]), TypeError, "the name of a column"),
            (lambda: of(1, []), TypeError, "key"),
        ):
            with self.subTest(name=name, error=error), self.assertRaisesRegex(error, f"^{name} is "):
                call()
        with open(self.trace, "rb") as file, self.assertRaisesRegex(TypeError, "^paths is "):
            culprit.load(file)
        self.assertEqual(of("k", [("a", (True, None, 2)), ("b", (x for x in "xyz"))]).to_dict(), {"a": [1, None, 2], "b": ["x", "y", "z"]})

    def test_a_tolerance_is_a_share(self):
        other = self.made("other.json", "2")
        for tolerance in (float("nan"), 9, -1, 0, 1):
            with self.subTest(tolerance), self.assertRaisesRegex(culprit.Error, "no share between 0 and 1") as caught:
                culprit.diff(self.trace, other, tolerance=tolerance)
            self.assertEqual(caught.exception.kind, "usage")


if __name__ == "__main__":
    main()
