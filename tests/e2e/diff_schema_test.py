#!/usr/bin/env python3
"""What `culprit diff --json` prints, held against docs/diff.schema.json.

    diff_schema_test.py --bin BUILD_DIR --source ROOT [unittest options]
"""

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

import jsonschema

ARGS = argparse.Namespace(bin="build", source=".")


def run(*command):
    return subprocess.run([os.path.join(ARGS.bin, command[0]), *command[1:]], capture_output=True, text=True, check=False)


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        with open(os.path.join(ARGS.source, "docs", "diff.schema.json"), encoding="utf-8") as file:
            cls.schema = json.load(file)
        jsonschema.Draft202012Validator.check_schema(cls.schema)
        cls.good = cls.make("good", "train", "1", "--steps", "24")
        cls.bad = cls.make("bad", "train", "2", "--steps", "24", "--fault", "gpu_clock_drop")
        cls.other = cls.make("other", "serve", "3", "--steps", "24")

    @classmethod
    def make(cls, name, workload, seed, *more):
        path = os.path.join(cls.folder.name, name + ".json.gz")
        done = run("culprit-tracegen", "-q", "--workload", workload, "--layers", "2", "--seed", seed, *more, "-o", path)
        assert done.returncode == 0, done.stderr
        return path

    def answer(self, *sides):
        done = run("culprit", "diff", *sides, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, self.schema, cls=jsonschema.Draft202012Validator)
        return answer

    def test_a_regression(self):
        answer = self.answer(self.good, self.bad)
        self.assertEqual(answer["outcome"], "regression")
        for waterfall in answer["waterfall"]:
            before, after = waterfall["ns_per_cycle"]
            self.assertAlmostEqual(sum(line["change_ns"] for line in waterfall["lines"]), after - before, delta=1e-3)
            for side in (0, 1):
                self.assertAlmostEqual(sum(line["ns_per_cycle"][side] for line in waterfall["lines"]), waterfall["ns_per_cycle"][side], delta=1e-3)
        self.assertTrue(answer["waterfall"])

    @classmethod
    def two_devices(cls, name, send_us, waits):
        """Steps in which a kernel of device 0 begins when what device 1 sends has come."""
        events = []

        def slice_of(category, called, pid, tid, begin, duration, **arguments):
            events.append({"ph": "X", "cat": category, "name": called, "pid": pid, "tid": tid, "ts": begin, "dur": duration, "args": arguments})

        at = 0
        for step in range(30):
            call = 100 * step + 1
            came = at + 30 + send_us

            def host(called, begin, number):
                slice_of("cuda_runtime", called, 4242, 4242, at + begin, 1, correlation=number)

            def kernel(called, device, stream, begin, duration, number):
                slice_of("kernel", called, device, stream, begin, duration, correlation=number, device=device, stream=stream)

            length = 600 + step % 7
            slice_of("user_annotation", f"ProfilerStep#{step}", 4242, 4242, at, 900 + send_us)
            host("cudaLaunchKernel", 5, call)
            kernel("first", 0, 7, at + 8, 72, call)
            host("cudaLaunchKernel", 10, call + 1)
            kernel("send", 1, 20, at + 30, send_us, call + 1)
            host("cudaEventRecord", 12, call + 2)
            host("cudaStreamWaitEvent", 14, call + 3)
            if waits:
                slice_of("cuda_sync", "Stream Wait Event", 0, 7, at + 14, 1, cuda_sync_kind="Stream Wait Event", stream=7, correlation=call + 3,
                         device=0, context=1, wait_on_stream=20, wait_on_cuda_event_record_corr_id=call + 2, wait_on_cuda_event_id=5)
            host("cudaLaunchKernel", 16, call + 4)
            kernel("gemm", 0, 7, came + 5, length, call + 4)
            at += 920 + send_us
        path = os.path.join(cls.folder.name, name + ".json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"traceEvents": events}, out)
        return path

    def test_time_that_a_device_waits_for_another_one(self):
        for waits in (True, False):
            short = self.two_devices(f"short-{waits}", 200, waits)
            long = self.two_devices(f"long-{waits}", 500, waits)
            answer = self.answer(short, long)
            self.assertEqual([w["device"] for w in answer["waterfall"]], [0])
            waterfall = answer["waterfall"][0]
            for side in (0, 1):
                self.assertAlmostEqual(sum(line["ns_per_cycle"][side] for line in waterfall["lines"]), waterfall["ns_per_cycle"][side], delta=1e-3)
            found = {(line["state"], line["function"]): line["ns_per_cycle"] for line in waterfall["lines"] if line["state"] in ("idle, dependency", "idle, launched")}
            # From the end of the first kernel, at 80 us, until what was sent has come, 30 us and its length; 5 us of latency.
            expected = {("idle, dependency", "send"): [150e3, 450e3], ("idle, launched", ""): [5e3, 5e3]} if waits else {("idle, launched", ""): [155e3, 455e3]}
            for key, (before, after) in expected.items():
                # The launch of the first kernel adds its own latency of 2 us.
                extra = 2e3 if key[0] == "idle, launched" else 0
                self.assertAlmostEqual(found[key][0], before + extra, delta=1)
                self.assertAlmostEqual(found[key][1], after + extra, delta=1)
            self.assertEqual(len(found), len(expected))

    def test_one_recording_on_both_sides(self):
        self.assertTrue(self.answer(self.good, self.good)["same_recording"])

    def test_what_is_not_comparable(self):
        self.assertEqual(self.answer(self.good, self.other)["outcome"], "not_comparable")

    def test_replicates(self):
        more = [self.make(f"{name}{seed}", "train", seed, "--steps", "12", *fault) for name, seed, fault in
                (("a", "4", []), ("b", "5", []), ("c", "6", ["--fault", "gpu_clock_drop"]), ("d", "7", ["--fault", "gpu_clock_drop"]))]
        answer = self.answer(self.good, *more[:2], "--vs", self.bad, *more[2:])
        self.assertEqual(answer["cycle_time"][0]["recordings"], [3, 3])
        self.assertEqual(answer["outcome"], "regression")

    def test_waits_in_the_work(self):
        answer = self.answer(self.good, self.bad)
        self.assertEqual(answer["off_cpu"], {"per": "", "functions": [], "wakers": [], "rivals": []}, "no scheduling was recorded")
        row = {"name": "get (queue.py)", "call": "futex", "ns_per_unit": [4e6, 12e6], "per_unit": [2, 2], "changed": "longer"}
        answer["off_cpu"] = {"per": "step", "functions": [row], "wakers": [row], "rivals": [{**row, "call": "", "changed": "new"}]}
        jsonschema.validate(answer, self.schema, cls=jsonschema.Draft202012Validator)
        for change in ({"changed": "later"}, {"ns_per_unit": [1]}, {"colour": "red"}):
            wrong = copy.deepcopy(answer)
            wrong["off_cpu"]["wakers"][0].update(change)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(wrong, self.schema, cls=jsonschema.Draft202012Validator)

    def test_disk_requests(self):
        answer = self.answer(self.good, self.bad)
        self.assertEqual(answer["disk_requests"], {"per": "", "requests": []}, "nobody looked at them")
        row = {"name": "vda read", "count": [200, 800], "per_unit": [2, 8], "bytes_per_unit": [8192, 32768], "mean_ns": [150e3, 0]}
        answer["disk_requests"] = {"per": "step", "requests": [row]}
        jsonschema.validate(answer, self.schema, cls=jsonschema.Draft202012Validator)
        for change in ({"count": [200]}, {"count": [0.5, 1]}, {"mean_ns": [None, 1]}, {"colour": "red"}):
            wrong = copy.deepcopy(answer)
            wrong["disk_requests"]["requests"][0].update(change)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(wrong, self.schema, cls=jsonschema.Draft202012Validator)

    def test_the_schema_refuses_what_it_does_not_know(self):
        answer = self.answer(self.good, self.bad)
        for change in (lambda a: a.update(surprise=1), lambda a: a.pop("outcome"), lambda a: a["findings"][0].update(status="maybe")):
            wrong = copy.deepcopy(answer)
            change(wrong)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(wrong, self.schema, cls=jsonschema.Draft202012Validator)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", default=ARGS.bin)
    parser.add_argument("--source", default=ARGS.source)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
