#!/usr/bin/env python3
"""The Python package, in the environment that scripts/python-env makes.

    python_package_test.py --env BUILD_DIR/python --bin BUILD_DIR --source SOURCE_DIR [unittest options]
"""

import argparse
import collections
import gc
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(env="build/python", bin="build", source=".")
WHY = None
try:
    import culprit
    import culprit._culprit
except ImportError as error:
    WHY = str(error)


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, **options)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="culprit-python-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.trace = Case.trace = cls.made("trace.json", "1")

    def setUp(self):
        if WHY is not None:
            self.skipTest(WHY)

    @classmethod
    def at(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def made(cls, name, seed, *options, steps=30):
        path = cls.at(name)
        done = run(os.path.join(ARGS.bin, "culprit-tracegen"), "-q", "--steps", str(steps), "--layers", "2", "--seed", seed, *options, "-o", path)
        assert done.returncode == 0, done.stderr
        return path

    def program(self, *arguments):
        done = run(os.path.join(ARGS.bin, "culprit"), *arguments)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return json.loads(done.stdout)


class Tables(Case):
    def test_slices_are_those_of_the_file(self):
        with open(self.trace, encoding="utf-8") as file:
            events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
        slices = culprit.load(self.trace).slices()
        self.assertEqual(len(slices), len(events))
        self.assertEqual(sorted(set(slices["name"])), sorted({e["name"] for e in events}))
        self.assertAlmostEqual(sum(slices["duration_ns"]) / 1e3, sum(e["dur"] for e in events), delta=len(events) * 0.001)

    def test_a_run_says_what_it_is(self):
        loaded = culprit.load(self.trace)
        on_devices = sum(value is not None for value in loaded.slices()["device"])
        self.assertRegex(repr(loaded), rf"^<culprit.Run of '{os.path.basename(self.trace)}': {len(loaded.slices()):,} slices in [\d.]+ s, {on_devices:,} of them on devices(, see losses)?>$")

    def test_top_is_that_of_the_program(self):
        for by in ("name", "short-name", "kind", "phase"):
            ours = culprit.load(self.trace).top(by=by, classes="gpu")
            theirs = self.program("top", self.trace, "--by", by, "--class", "gpu", "--json")["tables"][0]["rows"]
            self.assertEqual([row["self_ns"] for row in ours], [row["self_ns"] for row in theirs])
            self.assertEqual(ours["calls"], [row["calls"] for row in theirs])

    def test_cycles_are_those_of_the_program(self):
        ours = culprit.load(self.trace).cycles()
        theirs = self.program("cycles", self.trace, "--json")["tables"][0]["rows"]
        for column in ("period_ns", "batch", "tokens"):
            self.assertEqual(ours[column], [row[column] for row in theirs])
        self.assertGreater(len(set(ours["batch"])), 1)
        self.assertRegex(ours.notes[1], r"^\d+% that a cycle is one step, \d+% that")
        self.assertIn("whole", ours.columns)

    def test_counters_and_markers_tell_their_rank(self):
        """Of ranks in containers, which all have one number of a process."""
        paths = []
        for rank in range(2):
            events = [{"ph": "C", "name": "load", "pid": 7, "ts": 10 * i, "args": {"value": 100 * rank + i}} for i in range(3)]
            events += [{"ph": "i", "s": "t", "name": f"mark {rank}", "pid": 7, "tid": 7, "ts": 5}, {"ph": "X", "name": "op", "pid": 7, "tid": 7, "ts": 0, "dur": 30}]
            paths.append(self.at(f"of_rank{rank}.json"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                json.dump({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}, file)
        loaded = culprit.load(paths)
        self.assertEqual(sorted((row["rank"], row["value"]) for row in loaded.counters()), [(rank, 100 * rank + i) for rank in range(2) for i in range(3)])
        self.assertEqual({row["rank"]: row["name"] for row in loaded.markers()}, {0: "mark 0", 1: "mark 1"})

    def test_kernels_blocks_and_profile(self):
        loaded = culprit.load(self.trace)
        self.assertGreater(len(loaded.kernels().launches), 0)
        self.assertGreater(len(loaded.kernel_blocks()), 0)
        self.assertGreaterEqual(len(loaded.fusion()), 0)
        self.assertGreater(len(loaded.profile().functions), 0)
        self.assertIsInstance(loaded.losses, list)
        periods = {row["cycle"]: row["duration_ns"] for row in loaded.profile().cycles}
        host = {cycle: 0 for cycle in periods}
        for row in loaded.profile().ledger:
            host[row["cycle"]] += row["time_ns"] if row["device"] is None else 0
        self.assertEqual(host, {**periods, 30: 0})  # the end of the last is not known
        profile = loaded.profile()
        self.assertRegex(profile.cycles.notes[0], "^Cycles begin at ")
        self.assertEqual(profile.ledger.notes, ["1 of 30 cycles have no rows: their period is not known, as that of the last of a rank"])
        sums, windows = collections.Counter(), {}
        for row in profile.ledger:
            place = row["cycle"], row["device"]
            sums[place] += row["time_ns"]
            windows[place] = row["window_ns"]
        self.assertEqual(dict(sums), windows)

    def test_what_a_fusion_saves_is_that_of_the_program(self):
        ours = culprit.load(self.trace).fusion()
        theirs = self.program("kernels", self.trace, "--show", "fusion", "--limit", "0", "--json")["tables"][0]["rows"]
        for column in ("time_ns", "bound_ns", "careful_ns"):
            self.assertGreater(max(ours[column]), 0, column)
            self.assertEqual(ours[column], [row[column] for row in theirs], column)

    def test_unknown_words_are_errors_with_the_remedy(self):
        with self.assertRaises(culprit.Error) as caught:
            culprit.load(self.trace).top(by="colour")
        self.assertEqual(caught.exception.kind, "usage")
        self.assertIn("short-name", str(caught.exception))
        with self.assertRaises(KeyError):
            culprit.load(self.trace).slices()["colour"]

    def test_an_anchor_without_cycles_is_an_error(self):
        loaded = culprit.load(self.trace)
        with self.assertRaisesRegex(culprit.Error, "an anchor begins cycles") as caught:
            loaded.top(anchor="step[...]")
        self.assertEqual(caught.exception.kind, "usage")
        self.assertEqual(len(loaded.top(by="cycle", anchor="step[...]")), len(loaded.top(by="cycle")))

    def test_each_text_of_a_column_is_made_once(self):
        names = culprit.load(self.trace).slices()["name"]
        self.assertLess(len({id(name) for name in names}), len(names) / 10)
        self.assertEqual(len({id(name) for name in names}), len(set(names)))

    def test_clocks_are_those_that_are_told(self):
        with open(self.trace, encoding="utf-8") as file:
            base = json.load(file)["baseTimeNanoseconds"]
        loaded = culprit.load(self.trace)
        begins = loaded.cycles()["begin_ns"]
        self.assertEqual([base + begin for begin in begins], loaded.profile().cycles["begin_ns"])
        slices = [(row["begin_ns"], row["name"]) for row in loaded.slices() if row["class"] == "kernel"]
        first, launches = min(slices), loaded.kernels().launches
        self.assertEqual((launches["begin_ns"][0], launches["kernel"][0]), (0, first[1]))
        self.assertEqual(launches["begin_ns"][-1], max(slices)[0] - first[0])
        step = min(row["begin_ns"] for row in loaded.slices() if row["name"].startswith("step["))
        self.assertEqual(begins[0], step)

    def test_lists_make_tables(self):
        import numpy

        table = culprit.Table.from_columns("k", [("a", [1, None]), ("b", [0.5, 2]), ("c", ["x", "x"])])
        self.assertEqual(table.to_dict(), {"a": [1, None], "b": [0.5, 2.0], "c": ["x", "x"]})
        with self.assertRaises(ValueError):
            culprit.Table.from_columns("k", [("a", [1]), ("b", [1, 2])])
        large = [2**53 + 1, -(2**62) - 1]
        self.assertEqual(culprit.Table.from_columns("k", [("a", numpy.array(large)), ("b", [numpy.float32(0.5), None])]).to_dict(), {"a": large, "b": [0.5, None]})

    def test_numbers_of_threads_may_be_negative(self):
        path = self.at("threads.json")
        with open(path, "w", encoding="ascii") as file:
            json.dump({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": str(tid), "ts": 1, "dur": 2, "pid": 1, "tid": tid} for tid in (-1029147072, 7, "worker")]}, file)
        slices = culprit.load(path).slices()
        self.assertEqual(dict(zip(slices["name"], slices["tid"])), {"-1029147072": -1029147072, "7": 7, "worker": None})

    def test_types_of_columns_do_not_depend_on_what_is_in_them(self):
        import pyarrow

        def types(table):
            return {field.name: str(field.type) for field in pyarrow.table(table).schema}

        loaded = culprit.load(self.trace)
        empty = types(loaded.top(filter="no function of this name"))
        self.assertEqual(types(loaded.top()), empty)
        self.assertEqual((empty["self_ns"], empty["average_ns"], empty["share"]), ("int64", "double", "double"))
        self.assertRegex(empty["name"], "^dictionary<values=string")
        same, other = culprit.diff(self.trace, self.trace), culprit.diff(self.trace, self.made("of_types.json", "7"))
        for name in ("effects", "findings", "waterfall", "causes", "resources", "environment", "off_cpu"):
            with self.subTest(name):
                self.assertEqual(types(getattr(same, name)()), types(getattr(other, name)()))
        self.assertEqual(len(same.effects()), 0)
        self.assertEqual((types(same.effects())["ratio"], types(same.effects())["baseline_n"]), ("double", "int64"))
        table = culprit.Table.from_columns("k", [("a", [None]), ("b", [1]), ("c", [None])], types={"a": str, "b": float, "c": int})
        self.assertEqual([t[:10] for t in types(table).values()], ["dictionary", "double", "int64"])

    def test_a_side_is_paths_or_runs(self):
        with self.assertRaises(TypeError):
            culprit.diff([self.trace, culprit.load(self.trace)], self.trace)
        self.assertTrue(culprit.diff((path for path in [self.trace]), self.trace).data["same_recording"])


class Arrow(Case):
    def test_pyarrow(self):
        import pyarrow

        loaded = culprit.load(self.trace)
        for table in (loaded.slices(), loaded.counters(), loaded.markers(), loaded.devices, loaded.cycles(), loaded.top(), *loaded.kernels(), *loaded.profile()):
            read = pyarrow.table(table)
            read.validate(full=True)
            self.assertEqual(read.num_rows, len(table))
            self.assertEqual(read.to_pydict(), table.to_dict())
        self.assertTrue(pyarrow.types.is_dictionary(pyarrow.table(loaded.slices()).schema.field("name").type))

    def test_columns_are_not_copied_and_outlive_the_run(self):
        import pyarrow

        slices = culprit.load(self.trace).slices()
        first, second = (pyarrow.table(slices)["begin_ns"].chunk(0).buffers()[1].address for _ in range(2))
        self.assertEqual(first, second)
        read, sums = pyarrow.table(slices), sum(slices["duration_ns"])
        del slices
        gc.collect()
        self.assertEqual(sum(read["duration_ns"].to_pylist()), sums)

    def test_polars_pandas_and_duckdb(self):
        import duckdb
        import polars

        slices = culprit.load(self.trace).slices()
        total = sum(slices["duration_ns"])
        self.assertEqual(polars.DataFrame(slices)["duration_ns"].sum(), total)
        self.assertEqual(int(slices.to_pandas()["duration_ns"].sum()), total)
        import pandas

        if hasattr(pandas.DataFrame, "from_arrow"):
            self.assertEqual(int(pandas.DataFrame.from_arrow(slices)["duration_ns"].sum()), total)
        self.assertEqual(duckdb.sql("select sum(duration_ns) from slices").fetchall()[0][0], total)

    def test_a_stream_that_nobody_reads_is_freed(self):
        slices = culprit.load(self.trace).slices()
        for _ in range(1000):
            slices.__arrow_c_stream__()

    def test_names_that_are_no_text_are_mended(self):
        import pyarrow

        path = self.at("bytes.json")
        with open(path, "wb") as file:
            file.write(b'{"traceEvents":[{"ph":"X","name":"a\xff\xfeb","cat":"cpu_op","pid":1,"tid":1,"ts":0,"dur":1}]}')
        table = culprit.load(path).slices()
        pyarrow.table(table).validate(full=True)
        pyarrow.table(culprit.load(path).top(classes="all")).validate(full=True)
        self.assertTrue(table["name"][0].startswith("a"))


class Comparisons(Case):
    def test_it_says_what_the_program_says(self):
        slow = self.made("slow.json", "2", "--fault", "gpu_clock_drop", steps=200)
        self.assertIn("gpu_clock_drop", culprit.diff(self.made("usual.json", "1", steps=200), slow).causes()["cause"])
        ours = culprit.diff(self.trace, slow)
        self.assertEqual(ours.data, self.program("diff", self.trace, slow, "--json"))
        self.assertEqual(len(ours.findings()), len(ours.data["findings"]))
        self.assertEqual(ours.effects()["phase"], [row["phase"] for row in ours.data["cycle_time"]])
        self.assertEqual(len(ours.causes()), len(ours.verdicts))
        changes = {}
        for line in ours.waterfall():
            changes.setdefault((line["phase"], line["device"]), 0)
            changes[line["phase"], line["device"]] += line["change_ns"]
        for fall in ours.data["waterfall"]:
            self.assertAlmostEqual(changes[fall["phase"], fall["device"]], fall["ns_per_cycle"][1] - fall["ns_per_cycle"][0], delta=1)
        for table in (ours.resources(), ours.environment()):
            self.assertIsInstance(table.rows(), list)
        self.assertEqual([[row["ci_low_ns"], row["ci_high_ns"]] for row in ours.findings()], [row["ci"] for row in ours.data["findings"]])
        for table, key in ((ours.effects(), "cycle_time"), (ours.findings(), "findings"), (ours.causes(), "verdicts"), (ours.resources(), "resources")):
            self.assertEqual({name for row in ours.data[key] for name, value in row.items() if not isinstance(value, (list, dict))} - set(table.columns), set())

    def test_the_host_is_no_device(self):
        """Of steps in which nothing runs on a device."""
        paths = []
        for duration in (1000, 4000):
            paths.append(self.at(f"host{duration}.json"))
            events = [
                {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": 5000 * i, "dur": duration + 10 * (i * 7 % 5) - less}
                for i in range(40)
                for category, name, less in (("user_annotation", f"ProfilerStep#{i}", 0), ("cpu_op", "aten::mm", 100))
            ]
            with open(paths[-1], "w", encoding="utf-8") as file:
                json.dump({"traceEvents": events}, file)
        compared = culprit.diff(*paths)
        self.assertEqual({fall["device"] for fall in compared.data["waterfall"]}, {-1})
        self.assertEqual(set(compared.waterfall()["device"]), {None})

    def test_the_same_is_no_change(self):
        loaded = culprit.load(self.trace)
        self.assertTrue(culprit.diff(loaded, loaded).data["same_recording"])

    def test_sides_of_several_and_history(self):
        runs = [self.made(f"run{i}.json", str(10 + i)) for i in range(6)]
        compared = culprit.diff(runs[:2], [culprit.load(path) for path in runs[2:3]], history=runs[3:])
        self.assertEqual(compared.data["baseline"]["recordings"], 2)
        self.assertNotEqual(compared.outcome, "not_comparable")
        for one in (runs[3], culprit.load(runs[3])):
            with self.assertRaises(TypeError):
                culprit.diff(runs[0], runs[1], history=one)

    def table(self, name, us, pids=(7,)):
        """A profile table: ten cycles of about so many microseconds for each process, half of each in one kernel."""
        with open(self.at(name), "w", encoding="ascii") as file:
            file.write("cycle,pid,beta_pct,function_name,metric_name,device,func_type,mu_pct,duration,anchor_name,anchor_dur_us,instances_count,simple_name\n")
            for pid in pids:
                for i in range(10):
                    file.write(f"{i + 1},{pid},50,f,gpu_usage,GPU 0,gpu_compute,50,{us / 2},step,{us * (1 + 0.001 * (i % 3))},4,f\n")
        return self.at(name)

    def test_of_tables_it_says_what_the_program_says(self):
        good, bad = self.table("good_perf_data.csv", 1000), self.table("bad_perf_data.csv", 1500)
        compared = culprit.diff(good, [bad])
        self.assertEqual(compared.outcome, "regression")
        self.assertEqual(compared.data, self.program("diff", good, bad, "--json"))
        self.assertEqual(json.loads(compared.to_json()), compared.data)
        self.assertEqual(compared.to_markdown().strip(), run(os.path.join(ARGS.bin, "culprit"), "diff", good, bad, "--format", "markdown").stdout.strip())
        self.assertIn("Profile tables hold sums of each cycle", " ".join(str(compared).split()))
        self.assertEqual(compared.findings()["function"], ["f"])
        self.assertEqual(len(compared.waterfall()), 0)
        of_traces = culprit.diff(self.trace, self.trace)
        for name in ("effects", "findings", "waterfall", "causes", "resources", "environment", "off_cpu"):
            self.assertEqual(getattr(compared, name)().columns, getattr(of_traces, name)().columns)
        self.assertIn("regression", compared._repr_html_())
        self.assertTrue(culprit.diff(good, good).data["same_recording"])
        self.assertEqual(culprit.diff(good, bad, tolerance=0.7).outcome, self.program("diff", good, bad, "--tolerance", "70%", "--json")["outcome"])

    def test_tables_of_several_processes_are_several_comparisons(self):
        good, bad = self.table("good2_perf_data.csv", 1000, (7, 9)), self.table("bad2_perf_data.csv", 1500, (7, 9))
        compared = culprit.diff_tables(good, bad)
        self.assertEqual(list(compared), [f"good2_perf_data.csv_vs_bad2_perf_data.csv_pid{pid}_strict_comparison" for pid in (7, 9)])
        self.assertEqual([one.data for one in compared.values()], self.program("diff", good, bad, "--json")["comparisons"])
        with self.assertRaisesRegex(culprit.Error, r"2 pairs of processes.*diff_tables") as caught:
            culprit.diff(good, bad)
        self.assertEqual(caught.exception.kind, "usage")

    def test_of_tables_the_errors_are_the_programs_own(self):
        good, bad = self.table("a.csv", 1000), self.table("b.csv", 1500)
        with open(self.at("no_table.csv"), "w", encoding="ascii") as file:
            file.write("cycle,pid\n1,2\n")
        folder = self.at("folder.csv")
        os.mkdir(folder)
        for sides, further, options, kind in (
            ((good, self.trace), {}, (), "usage"),
            ((self.trace, bad), {}, (), "usage"),
            (([good, bad], bad), {}, (), "usage"),
            ((good, folder), {}, (), "usage"),
            ((good, self.at("no_table.csv")), {}, (), "input"),
            ((good, self.at("nothing.csv")), {}, (), "input"),
            ((good, bad), {"anchor": "step"}, ("--anchor", "step"), "usage"),
            ((good, bad), {"threads": 1}, ("--threads", "1"), "usage"),
            ((good, bad), {"max_expansion": 9}, ("--max-expansion", "9"), "usage"),
            ((good, bad), {"history": [self.trace]}, ("--history", self.trace), "usage"),
        ):
            before, after = ([side] if isinstance(side, str) else side for side in sides)
            with self.subTest(sides=sides, further=further):
                done = run(os.path.join(ARGS.bin, "culprit"), "diff", *before, "--vs", *after, *options)
                with self.assertRaises(culprit.Error) as caught:
                    culprit.diff(*sides, **further)
                self.assertEqual(caught.exception.kind, kind)
                self.assertIn(str(caught.exception), done.stderr)
        with self.assertRaisesRegex(culprit.Error, "is a profile table, the other side is a trace"):
            culprit.diff(culprit.load(self.trace), bad)
        with self.assertRaisesRegex(culprit.Error, "no share between 0 and 1"):
            culprit.diff(good, bad, tolerance=9)
        for call in (lambda: culprit.diff_tables([good], bad), lambda: culprit.diff_tables(good, b"b.csv"), lambda: culprit.diff_tables(good, bad, tolerance="3%")):
            with self.assertRaises(TypeError):
                call()

    def test_notebooks_show_them(self):
        compared = culprit.diff(self.trace, self.made("other.json", "3"))
        self.assertIn(compared.outcome.replace("_", " "), compared._repr_html_())
        hostile = culprit.Table.from_columns("k", [("a", ["<script>"])], title="<b>")._repr_html_()
        shown = culprit.Table.from_columns("k", [("begin_ns", [10667864000001]), ("time_ns", [1750000000001000000]), ("x_ns_per_cycle", [2.5e6]), ("pid", [12345])])._repr_html_()
        for cell in ("10,667,864,000,001", "1,750,000,000,001,000,000", "2.500 ms", "12345"):
            self.assertIn(f"<td>{cell}</td>", shown)
        self.assertNotIn("<script>", hostile)
        self.assertNotIn("<b>", hostile)

    def test_printed_they_show_their_first_rows(self):
        table = culprit.Table.from_columns("k", [("name", ["a\x1b[31m", "b" * 60] + ["c"] * 20), ("x_ns", [1_234_567, 5] + [0] * 20)], title="All")
        lines = str(table).splitlines()
        self.assertEqual(lines[:3], ["All", "name" + " " * 50 + "x_ns", "a\\x1b[31m" + " " * 41 + "1.235 ms"])
        self.assertEqual(lines[3], "b" * 45 + "..." + " " * 6 + "5 ns")
        self.assertEqual(lines[-1], "2 more rows")


class Profiler(Case):
    """The handler of torch.profiler."""

    def test_traces_of_a_profiler_are_kept_and_summed_up(self):
        import io

        import culprit.torch

        class Profiler:
            def export_chrome_trace(self, path):
                with open(Case.trace, "rb") as source, gzip.open(path, "wb") as target:
                    shutil.copyfileobj(source, target)

        said = io.StringIO()
        handler = culprit.torch.trace_handler(self.at("traces"), limit=3, name="mine", file=said)
        handler(Profiler())
        handler(Profiler())
        again = culprit.torch.trace_handler(self.at("traces"), summary=False, name="mine")
        again(Profiler())
        self.assertEqual(len({*handler.paths, *again.paths}), 3)
        self.assertEqual(len(handler.runs[1].slices()), len(culprit.load(self.trace).slices()))
        self.assertIn("Self", said.getvalue())

    def test_a_trace_that_is_none_does_not_end_the_run(self):
        import culprit.torch

        class Profiler:
            def __init__(self, content):
                self.content = content

            def export_chrome_trace(self, path):
                with gzip.open(path, "wt", encoding="ascii") as file:
                    file.write(self.content)

        handler = culprit.torch.trace_handler(self.at("broken"))
        with self.assertWarnsRegex(UserWarning, "culprit.torch: .*broken"):
            handler(Profiler("this is no trace"))
        self.assertEqual((len(handler.paths), len(handler.runs)), (1, 0))
        with self.assertWarns(UserWarning):
            culprit.torch.trace_handler(os.path.join(self.trace, "below"))(Profiler(""))

    def test_whatever_goes_wrong_does_not_end_the_run(self):
        import io

        import culprit.torch

        class Profiler:
            def export_chrome_trace(self, path):
                if self.fails:
                    raise RuntimeError("the profiler has no trace")
                with open(Case.trace, "rb") as source, gzip.open(path, "wb") as target:
                    shutil.copyfileobj(source, target)

        profiler, closed = Profiler(), io.StringIO()
        closed.close()
        handler = culprit.torch.trace_handler(self.at("wrong"), file=closed)
        for profiler.fails, said in ((True, "the profiler has no trace"), (False, "closed file")):
            with self.assertWarnsRegex(UserWarning, f"culprit.torch: .*{said}"):
                handler(profiler)
        self.assertEqual((len(handler.paths), len(handler.runs)), (1, 1))

    def test_what_is_no_place_and_no_text_file_is_refused_when_it_is_made(self):
        import io

        import culprit.torch

        with self.assertRaisesRegex(ValueError, "folder is a path, not ''"):
            culprit.torch.trace_handler("")
        with self.assertRaisesRegex(TypeError, "file is one that texts are written to"):
            culprit.torch.trace_handler(self.at("bytes"), file=io.BytesIO())

    def test_handlers_of_one_name_overwrite_nothing(self):
        """Both look for a name before either writes."""
        import culprit.torch

        class Profiler:
            def export_chrome_trace(self, path):
                if handlers:
                    handlers.pop()(self)
                with open(Case.trace, "rb") as source, gzip.open(path, "wb") as target:
                    shutil.copyfileobj(source, target)

        made = [culprit.torch.trace_handler(self.at("beside"), summary=False, name="one") for _ in range(3)]
        handlers = made[1:]
        made[0](Profiler())
        self.assertEqual([len(handler.runs) for handler in made], [1, 1, 1])
        self.assertEqual(len(set().union(*(handler.paths for handler in made))), 3)

    def test_there_may_be_hundreds_of_handlers_of_one_name(self):
        import culprit.torch

        class Profiler:
            def export_chrome_trace(self, path):
                with gzip.open(path, "wt") as target:
                    target.write('{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]}')

        paths = set()
        for _ in range(260):
            handler = culprit.torch.trace_handler(self.at("many"), summary=False, name="nightly")
            handler(Profiler())
            paths.update(handler.paths)
        self.assertEqual(len(paths), 260)
        self.assertIn("nightly-260.0.pt.trace.json.gz", {os.path.basename(path) for path in paths})

    def test_a_trace_that_was_not_written_leaves_no_file(self):
        import culprit.torch

        class Profiler:
            def export_chrome_trace(self, path):
                raise RuntimeError("the profiler has no trace")

        with self.assertWarns(UserWarning):
            culprit.torch.trace_handler(self.at("unwritten"))(Profiler())
        self.assertEqual(os.listdir(self.at("unwritten")), [])

    def test_a_trace_that_is_written_in_part_leaves_no_file(self):
        import culprit.torch

        class Profiler:
            def export_chrome_trace(self, path):
                with open(path, "wb") as file:
                    file.write(b"half of a trace")
                raise self.error

        profiler, handler = Profiler(), culprit.torch.trace_handler(self.at("cut_off"))
        profiler.error = OSError("no space left")
        with self.assertWarnsRegex(UserWarning, "no space left"):
            handler(profiler)
        profiler.error = KeyboardInterrupt()
        with self.assertRaises(KeyboardInterrupt):
            handler(profiler)
        self.assertEqual((os.listdir(self.at("cut_off")), handler.paths), ([], []))

    def test_where_warnings_are_errors_the_run_goes_on(self):
        program = """
import culprit, culprit.torch, sys
class Profiler:
    def export_chrome_trace(self, path): raise RuntimeError("no trace")
culprit.torch.trace_handler(sys.argv[1])(Profiler())
print("goes on")
"""
        done = run(sys.executable, "-W", "error", "-c", program, self.at("errors"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "goes on\n", "culprit.torch: no trace\n"))

    def test_the_last_runs_are_kept(self):
        import culprit.torch

        class Profiler:
            def export_chrome_trace(self, path):
                with open(Case.trace, "rb") as source, gzip.open(path, "wb") as target:
                    shutil.copyfileobj(source, target)

        for keep, kept in ((2, 2), (0, 0), (None, 3)):
            handler = culprit.torch.trace_handler(self.at("kept"), summary=False, keep=keep)
            for _ in range(3):
                handler(Profiler())
            self.assertEqual((len(handler.paths), len(handler.runs)), (3, kept))
        with self.assertRaisesRegex(ValueError, "^keep is "):
            culprit.torch.trace_handler(self.at("kept"), keep=-1)

    def test_what_a_handler_cannot_do_is_told_when_it_is_made(self):
        import culprit.torch

        for error, name, options in (
            (TypeError, "folder", {"folder": 3}), (TypeError, "folder", {"folder": b"bytes"}), (TypeError, "summary", {"summary": "no"}),
            (ValueError, "limit", {"limit": -1}), (TypeError, "limit", {"limit": "a"}), (TypeError, "name", {"name": 5}), (ValueError, "name", {"name": "../up"}),
            (ValueError, "name", {"name": "a/b"}), (ValueError, "name", {"name": "x" * 300}), (TypeError, "file", {"file": 3}),
        ):
            with self.subTest(options), self.assertRaisesRegex(error, f"^{name} is "):
                culprit.torch.trace_handler(**{"folder": self.at("never"), **options})
        self.assertFalse(os.path.exists(self.at("never")))

    def test_what_took_no_time_has_no_share(self):
        import culprit.torch

        path = self.at("instants.json")
        with open(path, "w", encoding="ascii") as file:
            file.write('{"traceEvents":[{"ph":"X","name":"quick","cat":"cpu_op","pid":1,"tid":1,"ts":0,"dur":0}]}')
        self.assertRegex(culprit.torch.summary_of(culprit.load(path).top(classes="all")), r"0 ns +1  quick")


class Notebooks(Case):
    """Each of examples/notebooks, from a clean kernel."""

    def executed(self, name):
        import nbformat
        from nbclient import NotebookClient
        from traitlets.config import Config

        made = os.path.join(self.folder.name, "notebooks")
        if not os.path.exists(os.path.join(made, "slow.json")):
            os.makedirs(made, exist_ok=True)
            self.made("notebooks/trace.json", "1", "--work-seed", "1", steps=200)
            self.made("notebooks/slow.json", "2", "--work-seed", "1", "--fault", "gpu_clock_drop", steps=200)
        with open(os.path.join(ARGS.source, "examples", "notebooks", name + ".ipynb"), encoding="utf-8") as file:
            notebook = nbformat.read(file, as_version=4)
        os.environ["CULPRIT_TRACES"] = made
        # Sockets of files: a port that was free may be taken by another program before the kernel has it.
        sockets = Config(KernelManager={"transport": "ipc", "ip": os.path.join(self.folder.name, "kernel")})
        NotebookClient(notebook, timeout=60, kernel_name="python3", config=sockets).execute()
        for cell in notebook.cells:
            if cell.cell_type == "code":
                self.assertTrue(cell.outputs, cell.source)
        return notebook

    def tables(self, name):
        """What its cells show, as text."""
        outputs = [output for cell in self.executed(name).cells if cell.cell_type == "code" for output in cell.outputs]
        return [output["data"]["text/plain"] for output in outputs]

    def ran(self, name):
        return json.dumps(self.executed(name))

    def test_read_a_trace(self):
        self.assertIn("kernel", self.ran("read_a_trace"))

    def test_steps_and_phases(self):
        shown = self.tables("steps_and_phases")
        self.assertIn("decode", shown[1])
        cycles = culprit.load(self.at("notebooks/trace.json")).cycles()
        cycle, batch = next((row["cycle"], row["batch"]) for row in cycles if row["batch"] is not None)
        self.assertRegex(shown[-1], rf"(?m)^{cycle} +{batch} +\d")

    def test_compare_two_runs(self):
        self.assertTrue("gpu_clock_drop" in self.ran("compare_two_runs"))

    def test_kernels(self):
        self.assertIn("culprit", self.ran("kernels"))

    def test_serving_steps(self):
        """As SGLang marks its steps, and as vLLM does."""
        made = self.at("notebooks")
        os.makedirs(made, exist_ok=True)
        path = os.path.join(made, "serving.json")
        self.made("notebooks/serving.json", "1", steps=60)
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        batches = {int(m[1]) for e in trace["traceEvents"] if (m := re.match(r"step\[DECODE bs=(\d+)", str(e.get("name"))))}
        self.assertGreater(len(batches), 1)
        sglang = self.tables("serving_steps")
        for event in trace["traceEvents"]:
            name = str(event.get("name"))
            name = re.sub(r"^step\[DECODE bs=(\d+) .*", r"execute_context_0(0)_generation_\1(\1)", name)
            event["name"] = re.sub(r"^step\[EXTEND bs=(\d+) toks=(\d+)\]", r"execute_context_\1(\2)_generation_0(0)", name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)
        vllm = self.tables("serving_steps")
        self.assertEqual(sglang[0], vllm[0])
        for batch in batches:
            self.assertRegex(sglang[0], rf"\b{batch} +\d")

    def test_serving_steps_of_real_servers(self):
        """One step each."""
        made = self.at("notebooks")
        os.makedirs(made, exist_ok=True)
        for name, phase, batch in (("sglang_qwen3_8b/prefilldecode", "prefill", 15), ("vllm_piecewise/graph_execution", "mixed", 46)):
            source = os.path.join(ARGS.source, "..", "shared", "corpus", "kineto", name + ".json.gz")
            if not os.path.exists(source):
                self.skipTest(f"there is no {source}")
            with open(source, "rb") as file, open(os.path.join(made, "serving.json"), "wb") as target:
                target.write(file.read())
            with self.subTest(name):
                self.assertRegex(self.tables("serving_steps")[0], rf"{phase} +{batch} +1\.0 +\d")
            os.remove(target.name)


class Running(Case):
    def test_errors_are_the_programs_own(self):
        with self.assertRaises(culprit.Error) as caught:
            culprit.load(self.at("nothing.json"))
        self.assertEqual(caught.exception.kind, "input")
        self.assertTrue(caught.exception.remedy)
        with open(self.at("broken.json"), "w", encoding="ascii") as file:
            file.write("this is no trace")
        with self.assertRaises(culprit.Error):
            culprit.load(self.at("broken.json"))

    def test_the_program_comes_along(self):
        done = run(sys.executable, "-m", "culprit", "--version")
        self.assertEqual(done.stdout.strip(), f"culprit {culprit.__version__}")
        with open(os.path.join(ARGS.source, "python", "pyproject.toml"), encoding="utf-8") as file:
            self.assertIn(f'\nversion = "{culprit.__version__}"\n', file.read())

    def test_importing_needs_nobody_else(self):
        program = "import sys; before = set(sys.modules); import culprit; {}; print(*set(sys.modules) - before)"
        for use, native in (("pass", False), ("import culprit.__main__", False), ("culprit.load", True)):
            loaded = set(run(sys.executable, "-c", program.format(use)).stdout.split())
            self.assertIn("culprit", loaded)
            self.assertEqual("culprit._culprit" in loaded, native, use)
            self.assertFalse(loaded & {"pyarrow", "pandas", "polars", "duckdb", "numpy", "json", "subprocess", "tempfile"})

    def test_what_the_package_has_is_there_when_asked_for(self):
        program = "import culprit; print(culprit.torch.trace_handler.__name__, *(name for name in culprit.__all__ if getattr(culprit, name).__name__ != name))"
        self.assertEqual(run(sys.executable, "-c", program).stdout, "trace_handler\n")
        self.assertLess({*culprit.__all__, "torch"}, set(dir(culprit)))
        with self.assertRaisesRegex(AttributeError, "colour"):
            culprit.colour

    def test_types_are_checked(self):
        checked = self.at("checked.py")
        with open(checked, "w", encoding="utf-8") as file:
            file.write('import culprit\nrun: culprit.Run = culprit.load("a")\nx: int = len(run.slices())\ny: str = culprit.diff("a", "b").outcome\nimport pathlib\nculprit.diff("a", ["b", pathlib.Path("c")])\nculprit.diff([run], run)\nz: culprit.Comparison = culprit.diff_tables("a", "b")["c"]\n')
        mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", self.at("mypy"), checked, os.path.dirname(culprit.__file__))
        done = run(*mypy)
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(checked, "w", encoding="utf-8") as file:
            file.write("import culprit\n" + "".join(f"culprit.{name}\n" for name in (*culprit.__all__, "torch.trace_handler", "__version__", "colour")))
        done = run(*mypy)
        self.assertRegex(done.stdout, r'has no attribute "colour"')
        self.assertRegex(done.stdout, r"(?m)^Found 1 error in 1 file ")


def main():
    global WHY
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", required=True)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    known, rest = parser.parse_known_args()
    ARGS.source = os.path.abspath(known.source)
    ARGS.env, ARGS.bin = os.path.abspath(known.env), os.path.abspath(known.bin)
    python = os.path.join(ARGS.env, "venv", "bin", "python")
    why = os.path.join(ARGS.env, "why")
    if os.path.exists(why):
        with open(why, encoding="utf-8") as file:
            WHY = file.read().strip()
    elif os.path.exists(python) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(ARGS.env, "venv")):
        # The module is built without sanitizers; the programs that it runs bring theirs.
        environment = {**os.environ, "PYTHONPATH": os.path.join(ARGS.env, "site")}
        os.execve(python, [python, *sys.argv], environment)
    elif not os.path.exists(python):
        WHY = "there is no environment for it: scripts/python-env"
    elif WHY is not None:
        sys.exit(f"the environment that scripts/python-env made is broken: {WHY}")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
