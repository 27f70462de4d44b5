#!/usr/bin/env python3
"""What `top` counts.

    top_test.py --bin BUILD_DIR --source ROOT [unittest options]
"""

import argparse
import json
import os
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", default=".")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
