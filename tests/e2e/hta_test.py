#!/usr/bin/env python3
"""The tables of the Python package beside those of HolisticTraceAnalysis, on real traces; docs/python.md says what is the same and why what differs does.

    hta_test.py --env BUILD_DIR/python --bin BUILD_DIR --source SOURCE_DIR [unittest options]
"""

import argparse
import functools
import logging
import os
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

ARGS = argparse.Namespace(env="build/python", bin="build", source=".")
WHY = None
try:
    import numpy
    import pandas
    import pyarrow  # noqa: F401
    from hta.trace_analysis import TraceAnalysis
    from hta.trace_diff import LabeledTrace, TraceDiff

    import culprit

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
except ImportError as error:
    WHY = str(error)

TRAIN = "train_2xv100/df_index_resolver.json.gz"
GRAPHS = "train_a100_graphs/rank0.json.gz"
OVERLAPS = "hta_trace_diff/control.json.gz"
AMD = "hta_small/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz"
COUNTERS = "hta_small/cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz"
PAIR = ("hta_small/trace_compare/base/base.json.gz", "hta_small/trace_compare/test/test.json.gz")
WORK = ("kernel", "memcpy", "memset")


def at(name):
    return os.path.join(ARGS.source, "..", "shared", "corpus", "kineto", name)


@functools.lru_cache(None)
def theirs(name, last=True):
    path = os.path.abspath(at(name))
    return TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path), include_last_profiler_step=last)


@functools.lru_cache(None)
def ours(name):
    return culprit.load(at(name))


@functools.lru_cache(None)
def slices(name):
    table = ours(name).slices().to_pandas()
    begin = table.begin_ns - table.begin_ns.min()  # columns with nulls become doubles, which hold days to the nanosecond, but no dates
    return table.assign(name=table["name"].astype(str), begin_ns=begin, end_ns=begin + table.duration_ns)


@functools.lru_cache(None)
def work(name):
    """Work of devices beside the call that launched it; none where the trace has no such call."""
    all_slices = slices(name)
    calls = all_slices[all_slices["class"].isin(("runtime", "driver")) & all_slices.correlation.notna()]
    done = all_slices[all_slices["class"].isin(WORK)].sort_values("begin_ns", kind="stable")
    return done.merge(calls[["rank", "correlation", "name", "begin_ns", "end_ns"]], on=["rank", "correlation"], how="left", suffixes=("", "_call"))


def steps(name):
    found = slices(name)
    return found[found.name.str.startswith("ProfilerStep#") & (found["class"] == "annotation")].sort_values("begin_ns")


def in_steps(name):
    """What HTA looks at where there are profiler steps: work that a call inside of one launched."""
    inside = numpy.zeros(len(work(name)), dtype=bool)
    for step in steps(name).itertuples():
        inside |= work(name).begin_ns_call.between(step.begin_ns, step.end_ns, inclusive="left").to_numpy()
    return work(name)[inside]


def busy_ns(spans):
    """How long at least one of them ran."""
    if len(spans) == 0:
        return 0
    spans = spans.sort_values("begin_ns")
    before = spans.end_ns.cummax().shift(fill_value=spans.begin_ns.min())
    return (spans.end_ns - numpy.maximum(spans.begin_ns, before)).clip(lower=0).sum()


def is_communication(spans):
    return spans.name.str.startswith("nccl")


def names_of(analysis, column):
    table = analysis.t.symbol_table.get_sym_table()
    return column.map(lambda code: table[code])


class Case(unittest.TestCase):
    def setUp(self):
        if WHY is not None:
            self.skipTest(WHY)
        if not os.path.isdir(at("")):
            self.skipTest("../shared is not there")

    def agree(self, expected, found, within=1e-6):
        """Two frames of the same columns, row by row of their index."""
        self.assertGreater(len(expected), 0)
        self.assertEqual(sorted(expected.index), sorted(found.index))
        self.assertLessEqual((expected.sort_index() - found[expected.columns].sort_index()).abs().max().max(), within)


class Events(Case):
    """TraceAnalysis(...), t.get_trace, get_profiler_steps."""

    def test_the_events_of_steps_are_the_same(self):
        table = theirs(TRAIN).t.get_trace(0)
        expected = pandas.DataFrame({"at": table.ts * 1000, "duration_ns": table.dur * 1000, "name": names_of(theirs(TRAIN), table.name), "category": names_of(theirs(TRAIN), table.cat)})
        found = slices(TRAIN)[slices(TRAIN)["class"] != "other"]  # HTA leaves the span of the profiler itself out
        self.assertEqual(len(slices(TRAIN)) - len(found), 1)
        found = found.assign(at=found.begin_ns - found.begin_ns.min() + expected["at"].min(), category=found["category"].astype(str))[expected.columns]
        left, right = (frame.sort_values(list(expected.columns)).reset_index(drop=True) for frame in (expected, found))
        self.assertTrue(left.equals(right.astype(left.dtypes)))

    def test_the_last_step_is_left_out_unless_it_is_asked_for(self):
        table = theirs(GRAPHS, False).t.get_trace(0)
        done = in_steps(GRAPHS)
        done = done[done.begin_ns_call < steps(GRAPHS).begin_ns.max()]
        self.assertEqual([(table.stream >= 0).sum(), table[table.stream >= 0].dur.sum()], [len(done), done.duration_ns.sum() / 1e3])
        self.assertEqual(len(in_steps(GRAPHS)) - len(done), 1375)

    def test_steps_are_cycles(self):
        cycles = ours(GRAPHS).cycles().to_pandas()
        begins = steps(GRAPHS).begin_ns.to_numpy()
        self.assertEqual(theirs(GRAPHS).get_profiler_steps(), [int(name.split("#")[1]) for name in steps(GRAPHS).name])
        self.assertEqual(list(cycles.begin_ns - cycles.begin_ns[0]), list(begins - begins[0]))
        self.assertEqual(list(cycles.period_ns[:-1]), list(numpy.diff(begins)))  # a period lasts to the begin of the next, a ProfilerStep ends before


class Kernels(Case):
    """get_gpu_kernel_breakdown."""

    COLUMNS = {"sum (us)": "total_ns", "max (us)": "max_ns", "min (us)": "min_ns", "mean (us)": "average_ns", "stddev": "stddev_ns"}

    def by_name(self, name):
        found = ours(name).top(by="raw-name", classes="gpu").to_pandas()
        found = found.assign(stddev_ns=found.stddev_ns.fillna(0)).set_index("name")  # of one call: none, where HTA says 0
        return theirs(name).get_gpu_kernel_breakdown(visualize=False, num_kernels=10**6, duration_ratio=1.0), found

    def test_sums_by_name_are_the_same(self):
        (_, expected), found = self.by_name(OVERLAPS)
        expected = expected.set_index("name")[list(self.COLUMNS)].rename(columns=self.COLUMNS) * 1000
        self.agree(expected, found)
        self.assertEqual(len(expected), 174)

    def test_what_no_call_of_a_step_launched_is_ours_alone(self):
        (_, expected), found = self.by_name(GRAPHS)
        unlaunched = work(GRAPHS)[work(GRAPHS).begin_ns_call.isna()]
        more = found.total_ns.sub(expected.set_index("name")["sum (us)"] * 1000, fill_value=0)
        known = unlaunched.groupby("name").duration_ns.sum()
        self.assertEqual(more[more != 0].to_dict(), known.to_dict())
        self.assertEqual(len(unlaunched), 872)
        self.assertEqual([loss["count"] for loss in ours(GRAPHS).losses if loss["reason"] == "gpu_without_launcher"], [872])

    def test_types_that_overlap_are_exposed_time_here(self):
        types = self.by_name(OVERLAPS)[0][0].set_index("kernel_type")["sum"] * 1000
        functions = ours(OVERLAPS).profile().functions.to_pandas()
        exposed = functions.groupby(functions["kind"].astype(str)).exposed_ns.sum()
        computes, communicates = (types.index.str.contains(word) for word in ("COMPUTATION", "COMMUNICATION"))
        self.assertEqual(exposed["gpu_compute"], types[computes].sum())
        self.assertEqual(exposed["gpu_comm"], types[communicates & ~computes].sum())
        self.assertEqual(exposed[exposed.index.str.startswith("gpu_mem")].sum(), types[~communicates & ~computes].sum())

    def test_types_that_do_not_overlap_are_sums_by_kind(self):
        kinds = {row["name"]: row["total_ns"] for row in ours(TRAIN).top(by="kind", classes="gpu")}
        types = theirs(TRAIN).get_gpu_kernel_breakdown(visualize=False)[0].set_index("kernel_type")["sum"] * 1000
        memory = sum(time for kind, time in kinds.items() if kind.startswith("gpu_mem"))
        self.assertEqual([kinds["gpu_compute"], kinds["gpu_comm"], memory], [types[kind] for kind in ("COMPUTATION", "COMMUNICATION", "MEMORY")])


class Time(Case):
    """get_temporal_breakdown, get_comm_comp_overlap, get_idle_time_breakdown."""

    def test_idle_compute_and_the_rest(self):
        for name in (OVERLAPS, GRAPHS):
            done = in_steps(name)
            computes = done[(done["class"] == "kernel") & ~is_communication(done)]
            expected = theirs(name).get_temporal_breakdown(visualize=False).iloc[0] * 1000
            window, busy = done.end_ns.max() - done.begin_ns.min(), busy_ns(done)
            self.assertEqual(expected["idle_time(us)"], window - busy)
            self.assertEqual(expected["compute_time(us)"], busy_ns(computes))
            self.assertEqual(expected["non_compute_time(us)"], busy - busy_ns(computes))

    def test_the_ledger_divides_the_windows_of_cycles(self):
        ledger = ours(OVERLAPS).profile().ledger.to_pandas()
        device = ledger[ledger.device.notna()]
        done = in_steps(OVERLAPS)
        first = done.assign(step=numpy.searchsorted(steps(OVERLAPS).begin_ns.to_numpy(), done.begin_ns_call, side="right")).groupby(["step", "stream"]).begin_ns.min()
        main = done.groupby("stream").duration_ns.sum().idxmax()
        begins = first.xs(main, level="stream").to_numpy()
        self.assertEqual(list(device.groupby("cycle").time_ns.sum())[: len(begins) - 1], list(numpy.diff(begins)))
        inside = done.assign(begin_ns=done.begin_ns.clip(begins[0], begins[-1]), end_ns=done.end_ns.clip(begins[0], begins[-1]))
        works = device[(device.state == "function") & (device.cycle < len(begins))].time_ns.sum()
        self.assertEqual(works, busy_ns(inside))

    def test_overlap_of_communication_is_what_is_not_exposed(self):
        for name, itself_ns in ((OVERLAPS, 0), (GRAPHS, 2_251_000)):
            functions = ours(name).profile().functions.to_pandas()
            functions = functions[functions["kind"] == "gpu_comm"]
            busy = busy_ns(in_steps(name)[is_communication(in_steps(name))])
            expected = theirs(name).get_comm_comp_overlap(visualize=False).comp_comm_overlap_pctg[0]
            self.assertAlmostEqual(100 * (1 - functions.exposed_ns.sum() / busy), expected, delta=0.0051)
            self.assertEqual(functions.duration_ns.sum() - busy, itself_ns)  # where communication overlaps communication, HTA counts it once

    def test_why_streams_idle(self):
        found = {}
        for stream, done in in_steps(GRAPHS).groupby("stream"):
            before = done.end_ns.shift()
            gap, host = (done.begin_ns - before)[1:], (done.begin_ns_call > before)[1:]
            short = gap < 30_000
            found[stream] = [gap[host].sum(), gap[~host & short].sum(), gap[~host & ~short].sum()]
        expected = theirs(GRAPHS).get_idle_time_breakdown(ranks=[0], visualize=False)[0]
        expected = expected.pivot_table(index="stream", columns="idle_category", values="idle_time", fill_value=0)[["host_wait", "kernel_wait", "other"]] * 1000
        self.agree(expected, pandas.DataFrame.from_dict(found, orient="index", columns=expected.columns))


class Launches(Case):
    """get_cuda_kernel_launch_stats, get_queue_length_…, get_memory_bw_…"""

    def launched(self):
        """HTA leaves out what graphs launched: many operations by one call."""
        done = in_steps(GRAPHS)
        return done[done.name_call != "cudaGraphLaunch"]

    def test_delays_of_launches(self):
        done = self.launched()
        expected = theirs(GRAPHS).get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0].set_index("correlation") * 1000
        found = {"cpu_duration": done.end_ns_call - done.begin_ns_call, "gpu_duration": done.duration_ns, "launch_delay": (done.begin_ns - done.end_ns_call).clip(lower=0)}
        self.agree(expected, pandas.DataFrame(found).set_index(done.correlation.astype(int)))
        graphs = in_steps(GRAPHS)[in_steps(GRAPHS).name_call == "cudaGraphLaunch"]
        self.assertEqual([len(graphs), graphs.correlation.nunique()], [345, 70])

    def test_lengths_of_queues(self):
        def lengths(at, stream, change):
            both = pandas.DataFrame({"at": at, "stream": stream, "change": change}).sort_values("at", kind="stable")
            both["length"] = both.groupby("stream").change.cumsum()
            return both.groupby("stream").length.agg(["size", "max", "mean"])

        done = self.launched()
        found = lengths(pandas.concat([done.begin_ns_call, done.begin_ns]), pandas.concat([done.stream] * 2), [1] * len(done) + [-1] * len(done))
        series = theirs(GRAPHS).get_queue_length_time_series(ranks=[0])[0]
        expected = series.groupby("stream").queue_length.agg(["size", "max", "mean"])
        self.agree(expected[["size", "max"]], found)
        self.agree(expected[["mean"]], found, within=0.01)  # events of one instant come in another order

    def test_bandwidth_is_bytes_by_time(self):
        done = in_steps(GRAPHS)
        done = done[done["class"] != "kernel"].sort_values(["begin_ns", "stream"])
        table = theirs(GRAPHS).t.get_trace(0)
        table = table[(table.stream >= 0) & (table.bytes >= 0)].sort_values(["ts", "stream"])
        self.assertEqual(list(done.bytes), list(table.bytes))
        # HTA takes what the profiler wrote, from durations that it rounded to microseconds only afterwards.
        exact = table.bytes.to_numpy() / table.memory_bw_gbps.to_numpy()
        self.assertLessEqual(numpy.abs(exact - done.duration_ns.to_numpy()).max(), 1001)


class Annotations(Case):
    """get_gpu_user_annotation_breakdown, and what has fractions of microseconds."""

    def test_annotations_of_the_host(self):
        columns = Kernels.COLUMNS
        expected = theirs(TRAIN).get_gpu_user_annotation_breakdown(use_gpu_annotation=False, visualize=False, num_kernels=10**6, duration_ratio=1.0)
        found = ours(TRAIN).top(by="raw-name", classes="annotation").to_pandas()
        self.agree(expected.set_index("name")[list(columns)].rename(columns=columns) * 1000, found.assign(stddev_ns=found.stddev_ns.fillna(0)).set_index("name"))

    def test_annotations_on_devices_are_cut_to_microseconds_by_hta(self):
        expected = theirs(AMD).get_gpu_user_annotation_breakdown(visualize=False).set_index("name")["sum (us)"]
        found = slices(AMD)[slices(AMD)["class"] == "gpu_annotation"].set_index("name").duration_ns
        self.assertEqual(sorted(expected.index), sorted(found.index))
        for name, time in found.items():
            self.assertLess(abs(time / 1e3 - expected[name]), 2)

    def test_the_annotation_that_work_of_a_device_stands_in(self):
        """The shortest of those on its stream that overlap it."""
        expected = theirs(AMD).get_gpu_kernels_with_user_annotations(0, expand_names=False).set_index("correlation").user_annotation
        expected = names_of(theirs(AMD), expected[expected >= 0]).reindex(expected.index).fillna("")
        done = slices(AMD)[slices(AMD)["class"].isin(WORK)].set_index("correlation")
        found = pandas.Series("", index=done.index)
        for annotation in slices(AMD)[slices(AMD)["class"] == "gpu_annotation"].sort_values("duration_ns", ascending=False).itertuples():
            here = (done.pid == annotation.pid) & (done.tid == annotation.tid)
            found[here & (done.begin_ns < annotation.end_ns) & (done.end_ns > annotation.begin_ns)] = annotation.name
        self.assertEqual(found.to_dict(), expected.to_dict())
        self.assertEqual(found.value_counts().to_dict(), {"ProfilerStep#1": 8, "": 7, "Optimizer.step#SGD.step": 1})

    def test_hta_cuts_times_to_microseconds(self):
        expected = theirs(AMD).get_temporal_breakdown(visualize=False).iloc[0]
        done = in_steps(AMD)
        less = busy_ns(done) / 1e3 - expected["compute_time(us)"] - expected["non_compute_time(us)"]
        self.assertGreater(less, 0)
        self.assertLess(less, 2 * len(done))  # both ends of each


class Differences(Case):
    """TraceDiff."""

    def test_what_comes_in_the_place_of_another_is_its_successor(self):
        with tempfile.TemporaryDirectory(prefix="culprit-hta-") as folder:
            paths = [os.path.join(folder, name) for name in ("good.json", "bad.json")]
            for path, fault in zip(paths, ("none", "kernel_changed")):
                command = [os.path.join(ARGS.bin, "culprit-tracegen"), "-q", "--workload", "train", "--steps", "40", "--layers", "2", "--seed", "1", "--fault", fault, "-o", path]
                subprocess.run(command, check=True)
            good, bad = (LabeledTrace(path, t=TraceAnalysis(trace_files={0: path}, trace_dir=folder, include_last_profiler_step=True).t) for path in paths)
            expected = TraceDiff.ops_diff(good, bad, control_iteration=good.iterations(), test_iteration=bad.iterations())
            found = culprit.diff(*paths).findings().to_pandas()
            counts = TraceDiff.compare_traces(good, bad, control_iteration=good.iterations(), test_iteration=bad.iterations())
        # A kernel in the place of another one is its successor here.
        successors = found[found.was.fillna("") != ""]
        self.assertEqual([expected["added"], expected["deleted"]], [list(successors.function), list(successors.was)])
        self.assertEqual(set(successors.status), {"changed"})
        self.assertEqual(set(found.status) & {"new", "gone"}, set())
        kernels = found[found["kind"] == "gpu_compute"]
        for row in kernels.itertuples():  # ours are means per cycle
            self.assertAlmostEqual(counts.iloc[:, 0][row.was or row.function], row.baseline_calls * 40)
            self.assertAlmostEqual(counts.iloc[:, 2][row.function], row.candidate_calls * 40)

    def test_counts_of_names_are_those_of_slices(self):
        control, test = (LabeledTrace(name, t=theirs(name).t) for name in PAIR)
        expected = TraceDiff.compare_traces(control, test, control_iteration=control.iterations(), test_iteration=test.iterations())
        found = slices(PAIR[1]).name.value_counts().sub(slices(PAIR[0]).name.value_counts(), fill_value=0)
        shared = found[found.index.isin(expected.index)]
        self.assertEqual(shared.sort_index().to_dict(), expected.diff_counts.sort_index().to_dict())
        self.assertEqual(set(found[~found.index.isin(expected.index)]), {0})  # outside of steps, or launched by no known call


    def test_sums_of_operators_are_those_of_slices(self):
        labeled = LabeledTrace(PAIR[0], t=theirs(PAIR[0]).t)
        ops = labeled.extract_ops(iteration=labeled.iterations())
        expected = labeled.get_ops_summary(ops).set_index(["cat", "name"])[["counts", "total_duration"]]
        self.assertEqual(expected.counts.sum(), len(ops))
        lost = work(PAIR[0]).query("name_call.isna()")  # launched by no known call: in none of its steps
        self.assertGreater(len(lost), 0)
        rows = slices(PAIR[0])
        rows = rows[~pandas.MultiIndex.from_frame(rows[["name", "begin_ns"]]).isin(pandas.MultiIndex.from_frame(lost[["name", "begin_ns"]]))]
        groups = rows.groupby([rows["category"].astype(str), "name"]).duration_ns
        found = pandas.DataFrame({"counts": groups.size(), "total_duration": groups.sum() / 1000})
        self.agree(expected.astype(float), found[found.index.isin(expected.index)])


class Whole(Case):
    """What TraceAnalysis.t says of a trace."""

    def test_how_long_it_is_and_when_it_began(self):
        begins = slices(AMD)[slices(AMD)["class"] != "other"].begin_ns
        self.assertLess(abs(theirs(AMD).t.get_trace_duration(0) * 1000 - (begins.max() - begins.min())), 2000)
        later = ours(AMD).profile().cycles["begin_ns"][0] - ours(AMD).cycles()["begin_ns"][0]
        first = min(row["begin_ns"] for row in ours(AMD).slices() if row["class"] != "other")
        self.assertGreater(later, 0)
        self.assertLess(abs(theirs(AMD).t.get_trace_start_unixtime_ns(0) - (first + later)), 2000)
        with self.assertRaises(KeyError):
            theirs(PAIR[0]).t.get_trace_start_unixtime_ns(0)
        self.assertEqual(ours(PAIR[0]).profile().cycles["begin_ns"], ours(PAIR[0]).cycles()["begin_ns"])

    def test_ranks_and_iterations(self):
        labeled = LabeledTrace(AMD, t=theirs(AMD).t)
        self.assertEqual([labeled.ranks(), theirs(AMD).t.get_ranks()], [sorted(set(ours(AMD).slices()["rank"]))] * 2)
        numbers = [int(name.split("#")[1]) for name in steps(AMD).name]
        self.assertEqual([labeled.iterations(), theirs(AMD).t.get_iterations(0)], [numbers] * 2)

    def test_names_need_no_decoding(self):
        path = os.path.abspath(at(PAIR[0]))
        analysis = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path), include_last_profiler_step=True)
        analysis.t.decode_symbol_ids(use_shorten_name=False)
        self.assertEqual(set(analysis.t.get_trace(0).s_name) - set(slices(PAIR[0]).name), set())


class Documented(unittest.TestCase):
    def test_every_public_call_stands_in_the_table(self):
        if WHY is not None:
            self.skipTest(WHY)
        with open(os.path.join(ARGS.source, "docs", "python.md"), encoding="utf-8") as file:
            told = set(re.findall(r"\w+", file.read().split("## From HTA to Culprit")[1].split("\n## ")[0]))
        for of in (TraceAnalysis, TraceDiff, LabeledTrace):
            calls = {name for name, value in vars(of).items() if not name.startswith("_") and (callable(value) or isinstance(value, (classmethod, staticmethod)))}
            self.assertGreater(len(calls), 3)
            self.assertEqual(calls - told, set(), of.__name__)


class Others(Case):
    """What asks another question, or has no like."""

    def test_sequences_of_an_operator(self):
        with tempfile.TemporaryDirectory(prefix="culprit-hta-") as folder:
            found = theirs(TRAIN).get_frequent_cuda_kernel_sequences("aten::addmm", folder, rank=0)
        operator, *kernels = found.pattern[0].split("|")
        stream = work(TRAIN).sort_values(["stream", "begin_ns"])
        follow = stream.name == kernels[0]
        for i, kernel in enumerate(kernels[1:], 1):
            follow &= stream.name.shift(-i) == kernel
        self.assertEqual([operator, follow.sum()], ["aten::addmm", found["count"][0]])
        self.assertGreater(len(ours(TRAIN).kernel_blocks()), 0)

    def test_ranges_of_counters_have_no_values_here(self):
        expected = theirs(COUNTERS).get_cupti_counter_data_with_operators(ranks=[0])[0]
        found = slices(COUNTERS)[slices(COUNTERS)["class"] == "counter_range"]
        self.assertEqual(sorted(names_of(theirs(COUNTERS), theirs(COUNTERS).t.get_trace(0).loc[expected["index"], "name"])), sorted(found.name))
        self.assertEqual(len(ours(COUNTERS).counters()), 0)


def main():
    global WHY
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", required=True)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    known, rest = parser.parse_known_args()
    ARGS.env, ARGS.bin, ARGS.source = (os.path.abspath(path) for path in (known.env, known.bin, known.source))
    environment = os.path.join(ARGS.env, "hta")
    python = os.path.join(environment, "bin", "python")
    reasons = [os.path.join(ARGS.env, name) for name in ("why", "hta-why") if os.path.exists(os.path.join(ARGS.env, name))]
    if reasons:
        with open(reasons[0], encoding="utf-8") as file:
            WHY = file.read().strip()
    elif os.path.exists(python) and os.path.realpath(sys.prefix) != os.path.realpath(environment):
        os.execve(python, [python, *sys.argv], {**os.environ, "PYTHONPATH": os.path.join(ARGS.env, "site")})
    elif not os.path.exists(python):
        WHY = "there is no environment for it: scripts/python-env"
    elif WHY is not None:
        sys.exit(f"the environment that scripts/python-env made is broken: {WHY}")
    unittest.main(argv=[sys.argv[0], *rest], warnings="ignore")


if __name__ == "__main__":
    main()
