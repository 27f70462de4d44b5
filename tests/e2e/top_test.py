#!/usr/bin/env python3
"""What `top` counts, and how wide `top`, `info` and `kernels` are.

    top_test.py --bin BUILD_DIR --source ROOT [unittest options]
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(bin="build", source=".")


class Program(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, document):
        with open(self.path(name), "w", encoding="utf-8") as out:
            json.dump(document, out)
        return self.path(name)

    def answer_of(self, *arguments, program="culprit"):
        done = subprocess.run([os.path.join(ARGS.bin, program), *arguments], capture_output=True, text=True, timeout=200,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def output_of(self, *arguments, **options):
        code, output, error = self.answer_of(*arguments, **options)
        self.assertEqual(code, 0, error)
        return output


def operator(name, begin, duration, category="cpu_op", tid=1):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": begin, "dur": duration}


class PyTorchOnTheCpu(Program):
    """The shape of traces that PyTorch's profiler writes on the CPU; expected is what its key_averages() says."""

    EVENTS = [
        operator("ProfilerStep#7", 0, 100, "user_annotation"),
        operator("ProfilerStep#8", 100, 100, "user_annotation"),
        operator("aten::div_", 10, 50),
        operator("aten::div_", 15, 40),  # dispatches to itself
        operator("aten::to", 20, 10),
        operator("aten::add", 110, 10),
        operator("<built-in method unbind of Tensor object at 0x7fa2c8d01f90>", 130, 5, "python_function"),
        operator("<built-in method unbind of Tensor object at 0x7fa2c8d0aa10>", 140, 5, "python_function"),
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0,
         "dur": 250},
    ]
    EXPECTED = {  # calls, self, total in us
        "ProfilerStep#N": (2, 130, 200),
        "aten::div_": (1, 40, 50),
        "aten::to": (1, 10, 10),
        "aten::add": (1, 10, 10),
        "<built-in method unbind of Tensor object>": (2, 10, 10),
    }

    def table(self, *options):
        path = self.write("cpu.json", {"schemaVersion": 1, "traceEvents": self.EVENTS})
        return json.loads(self.output_of("top", path, "--class", "all", "--json", *options))["tables"][0]

    def test_calls_self_and_total_time_are_the_profilers(self):
        rows = {row["name"]: (row["calls"], row["self_ns"] / 1000, row["total_ns"] / 1000) for row in self.table()["rows"]}
        self.assertEqual(rows, self.EXPECTED)

    def test_the_profilers_own_span_is_left_out_and_said_so(self):
        self.assertIn("Left out: 1 span of the profiler itself, 250.000us", self.table()["notes"])
        self.assertAlmostEqual(sum(row["share"] for row in self.table()["rows"]), 1)

    def test_names_as_they_are_on_request(self):
        names = {row["name"] for row in self.table("--by", "raw-name")["rows"]}
        self.assertIn("ProfilerStep#7", names)
        self.assertIn("<built-in method unbind of Tensor object at 0x7fa2c8d01f90>", names)


class OrderOfEvents(Program):
    """The same events in another order are the same trace: byte for byte the same answers."""

    QUESTIONS = (("top", "--class", "all"), ("top", "--class", "all", "--by", "kind"), ("info",), ("kernels",))

    def assert_same_answers(self, document, seeds=(1, 2)):
        path = self.write("trace.json", document)
        expected = [self.answer_of(*question, path, "--json") for question in self.QUESTIONS]
        self.assertEqual(expected[0][0], 0, expected[0][2])
        for seed in seeds:
            random.Random(seed).shuffle(document["traceEvents"])
            self.write("trace.json", document)
            for question, answer in zip(self.QUESTIONS, expected):
                self.assertEqual(self.answer_of(*question, path, "--json"), answer, question)

    def test_simulated_steps_with_python_functions(self):
        for workload in ("serve", "train"):
            made = self.path(workload + ".json")
            self.output_of("--workload", workload, "--steps", "6", "--python", "--counters", "-o", made,
                           program="culprit-tracegen")
            with open(made, encoding="utf-8") as text:
                self.assert_same_answers(json.load(text))

    def test_spans_that_tie(self):
        events = [operator(name, begin, duration, category)
                  for begin in range(0, 400, 20) for duration in (0, 7, 19 + begin // 10) for name in "cab"
                  for category in ("cpu_op", "python_function", "user_annotation", "cuda_runtime")]
        self.assert_same_answers({"schemaVersion": 1, "traceEvents": events})

    def test_real_traces(self):
        corpus = os.path.join(ARGS.source, "..", "shared", "corpus")
        for name in ("real/sglang-n1.trace.json.gz", "kineto/sglang_qwen3_8b/prefilldecode.json.gz"):
            path = os.path.join(corpus, name)
            if not os.path.exists(path):
                self.skipTest("../shared is not there")
            with self.subTest(name), gzip.open(path, "rt", encoding="utf-8") as text:
                self.assert_same_answers(json.load(text), seeds=(1,))


class ExportedBytes(Program):
    """The same input gives the same bytes, whatever process, addresses and number of threads made them."""

    def test_two_processes_write_the_same_bytes(self):
        made = self.path("run.json")
        self.output_of("--workload", "serve", "--steps", "40", "--python", "--counters", "--ranks", "1", "-o", made,
                       program="culprit-tracegen")
        for end in ("pftrace", "json"):
            written = []
            for run, threads in enumerate(("1", "2", "5")):
                out = self.path(f"out{run}.{end}")
                self.output_of("export", made, "--threads", threads, "-o", out)
                with open(out, "rb") as file:
                    written.append(file.read())
            self.assertGreater(len(written[0]), 1000)
            self.assertEqual(written[0], written[1])
            self.assertEqual(written[0], written[2])


class WithoutGpu(Program):
    def test_the_hosts_functions_are_the_default(self):
        path = self.path("cpu.json")
        self.output_of("--workload", "serve", "--cpu", "--steps", "6", "-o", path, program="culprit-tracegen")
        self.assertEqual(self.output_of("top", path), self.output_of("top", path, "--class", "all"))
        self.assertNotIn("Nothing", self.output_of("top", path))


class Width(Program):
    """80 columns where the terminal does not say otherwise, whatever the names; one screen for `info`."""

    def setUp(self):
        super().setUp()
        self.trace = self.path("run.json")
        self.output_of("--workload", "serve", "--steps", "12", "--python", "--counters", "--ranks", "1", "-o", self.trace,
                       program="culprit-tracegen")
        self.log = self.path("launches.txt")
        with open(self.log, "w", encoding="utf-8") as out:
            out.write(self.output_of("kernels", self.trace, "--log"))

    def assert_fits(self, text):
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_every_answer_fits_into_80_columns(self):
        for question in (("top",), ("top", "--class", "all"), ("top", "--by", "kind"), ("top", "--by", "cycle"),
                         ("top", "--by", "device"), ("info",),
                         ("info", "--all"), ("cycles",), ("cycles", "--all"), ("profile",), ("profile", "--host"), ("kernels",),
                         ("kernels", "--show", "names,positions,fusion,launches"),
                         ("kernels", "--show", "names,blocks,classes,distribution,unstable", "--all")):
            with self.subTest(question):
                self.assert_fits(self.output_of(*question, self.trace))
        for verb in ("info", "top", "cycles", "profile", "kernels", "diff", "export", "record", "doctor", "inject"):
            with self.subTest(verb + " --help"):
                self.assert_fits(self.output_of(verb, "--help"))
        self.assert_fits(self.answer_of("doctor")[1])
        self.assert_fits(self.output_of("kernels", self.log))
        self.assert_fits(self.output_of("kernels", self.trace, "--vs", self.trace, "--all"))

    def test_names_are_cut_and_reasons_broken_between_words(self):
        name = "void at::native::" + "vectorized_elementwise_kernel_" * 6
        events = []
        for step in range(12):
            begin = 1000 * step
            events.append({"ph": "X", "cat": "user_annotation", "name": f"step[DECODE bs={step % 3} {'x' * 120}]", "pid": 1,
                           "tid": 1, "ts": begin, "dur": 900})
            for call in range(4):
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                               "ts": begin + 10 * call, "dur": 3, "args": {"correlation": 10 * step + call + 1}})
                events.append({"ph": "X", "cat": "kernel", "name": name + str(call), "pid": 0, "tid": 7,
                               "ts": begin + 100 * call + 50, "dur": 60,
                               "args": {"device": 0, "stream": 7, "correlation": 10 * step + call + 1}})
        path = self.write("long.json", {"traceEvents": events})
        for question in (("top",), ("cycles",), ("profile",), ("kernels",), ("info",), ("info", "--all")):
            with self.subTest(question):
                text = self.output_of(*question, path)
                self.assert_fits(text)
                if question[0] in ("top", "profile", "kernels"):
                    self.assertRegex(text, r"void at::native::\S*\.\.\.")
        heading = self.output_of("cycles", path).split("\n\n")[0]
        reason = json.loads(self.output_of("cycles", path, "--json"))["reason"]
        self.assertIn(" ".join(reason.split()), " ".join(heading.split()))
        self.assertIn("step[...]", self.output_of("info", path))
        self.assertIn("step[...]", self.output_of("cycles", path, "--anchor", "step[...]"))

    def launches(self, names, stream=7):
        return [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": 10 * at, "dur": 5,
                 "args": {"device": 0, "stream": stream}} for at, name in enumerate(names)]

    def test_blocks_have_a_limit_of_rows(self):
        events = [event for stream in range(30) for event in self.launches(["gemm", "softmax"] * 4, stream)]
        path = self.write("blocks.json", {"traceEvents": events})
        every = json.loads(self.output_of("kernels", path, "--show", "blocks", "--json"))["tables"][0]["rows"]
        self.assertEqual(len(every), 30)
        text = self.output_of("kernels", path, "--show", "blocks")
        self.assert_fits(text)
        self.assertIn("5 more rows; --all shows them", text)
        self.assertEqual(text.count("4 x [2 launches"), 25)
        self.assertNotIn("more rows", self.output_of("kernels", path, "--show", "blocks", "--all"))

    def test_a_block_with_as_many_long_as_short_copies_is_as_long_as_the_long_ones(self):
        short = ["gemm", "softmax", "norm", "add", "mul", "gelu", "copy_kernel", "rope"]
        path = self.write("copies.json", {"traceEvents": self.launches((short + ["extra"]) * 2 + short * 3)})
        rows = json.loads(self.output_of("kernels", path, "--show", "blocks", "--json"))["tables"][0]["rows"]
        self.assertEqual([(row["block"], row["copies"], row["launches"]) for row in rows],
                         [("4 x [9 launches, 42.500us]", 4, 34), ("8 launches, 40.000us", 1, 8)])

    def test_info_opens_with_one_screen(self):
        text = self.output_of("info", self.trace)
        self.assertLessEqual(len(text.splitlines()), 24)
        for what in ("duration", "GPU busy", "idle", "steps", "losses"):
            self.assertIn(what, text)
        self.assertGreater(len(self.output_of("info", self.trace, "--all").splitlines()), 24)
        shown = self.output_of("info", self.trace, "--show", "categories,losses")
        self.assertIn("Categories", shown)
        self.assertNotIn("Run", shown.split())

    def test_wide_tables_and_the_profilers_on_request(self):
        self.assertIn("Stddev", self.output_of("top", self.trace, "--wide"))
        self.assertNotIn("want of room", self.output_of("top", self.trace, "--wide"))
        self.assertIn("Self CUDA %", self.output_of("top", self.trace, "--look", "torch"))
        named = self.output_of("top", self.trace, "--name-width", "300")
        self.assertIn(json.loads(self.output_of("top", self.trace, "--json"))["tables"][0]["rows"][0]["name"], named)

    def test_csv_and_json_know_all_columns(self):
        heading = self.output_of("top", self.trace, "--format", "csv").splitlines()[0]
        self.assertIn("stddev_ns", heading)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", default=".")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
