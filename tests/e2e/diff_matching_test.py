#!/usr/bin/env python3
"""What `culprit diff` holds against what: ranks by their numbers whatever order files are named in, functions under two names, waits of an input.

    diff_matching_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(bin="build")
SERVE = ["--workload", "serve", "--layers", "2", "--work-seed", "7"]


def run(*command):
    done = subprocess.run([os.path.join(ARGS.bin, command[0]), *command[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def diff(base, candidate):
    return json.loads(run("culprit", "diff", "--json", *base, "--vs", *candidate))


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def make(self, name, ranks, *arguments):
        """Files by number of the rank."""
        given = SERVE[: SERVE.index("--layers")] + SERVE[SERVE.index("--layers") + 2 :] if "--layers" in arguments else SERVE
        run("culprit-tracegen", "-q", *given, "--ranks", str(ranks), *arguments, "-o", os.path.join(self.folder, f"{name}.json"))
        return [os.path.join(self.folder, f"{name}.rank{r}.json" if ranks > 1 else f"{name}.json") for r in range(ranks)]


class Order(Runs):
    def assert_alike(self, one, other):
        for answer in (one, other):
            for side in ("baseline", "candidate"):
                answer[side]["files"].sort()
        self.assertEqual(one, other)

    def test_the_order_of_ranks_changes_nothing(self):
        base = self.make("base", 3, "--steps", "40", "--seed", "1")
        late = self.make("late", 3, "--steps", "40", "--seed", "2", "--fault", "straggler", "--fault-rank", "1", "--severity", "0.5")
        answer = diff(base, late)
        self.assertEqual([(v["cause"], v["scope"]["rank"]) for v in answer["verdicts"][:1]], [("straggler", 1)])
        self.assert_alike(answer, diff([base[2], base[0], base[1]], [late[1], late[2], late[0]]))

    def test_a_rank_is_called_by_its_number(self):
        base = self.make("base", 12, "--steps", "24", "--seed", "1")
        late = self.make("late", 12, "--steps", "24", "--seed", "2", "--fault", "straggler", "--fault-rank", "10", "--severity", "0.7")
        verdicts = diff(sorted(base), sorted(late))["verdicts"]
        self.assertEqual([(v["cause"], v["scope"]["rank"]) for v in verdicts[:1]], [("straggler", 10)])
        found = json.loads(run("culprit", "diagnose", "--json", *sorted(late)))["verdicts"]
        self.assertIn(10, [v["scope"]["rank"] for v in found])

    def test_a_rank_that_one_side_lacks_moves_no_other(self):
        base = self.make("base", 4, "--steps", "40", "--seed", "1")
        late = self.make("late", 4, "--steps", "40", "--seed", "2", "--fault", "straggler", "--fault-rank", "3", "--severity", "0.5")
        answer = diff([base[0], base[2], base[3]], [late[0], late[1], late[3]])
        self.assertEqual([(v["cause"], v["scope"]["rank"]) for v in answer["verdicts"][:1]], [("straggler", 3)])
        pairs = {pair["rank"]: pair["pid"] for pair in answer["processes"]}
        self.assertEqual(sorted(pairs), [0, 1, 2, 3])
        self.assertIsNone(pairs[1][0])
        self.assertIsNone(pairs[2][1])

    def test_the_order_of_recordings_changes_nothing(self):
        base = [self.make(f"base{seed}", 1, "--steps", "20", "--seed", str(seed))[0] for seed in (1, 2, 3)]
        slow = [self.make(f"slow{seed}", 1, "--steps", "20", "--seed", str(seed), "--fault", "gpu_clock_drop")[0] for seed in (4, 5, 6)]
        self.assert_alike(diff(base, slow), diff([base[1], base[2], base[0]], [slow[2], slow[0], slow[1]]))

    def test_more_prefills_are_no_slower_link(self):
        few = self.make("few", 4, "--steps", "60", "--seed", "1", "--prefill-every", "16")
        many = self.make("many", 4, "--steps", "60", "--seed", "2", "--prefill-every", "3")
        self.assertNotIn("interconnect_contention", [v["cause"] for v in diff(few, many)["verdicts"]])


class Names(Runs):
    """Kernels of graphs, which nobody is known to have launched."""

    def renamed(self, name, *arguments):
        """A trace whose tiles are others than a usual one's."""
        (path,) = self.make(name, 1, "--steps", "40", "--graph", *arguments)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        changed = re.sub(r"stages_(\d+)x(\d+)", r"stages_\g<1>x1\2", text)
        self.assertNotEqual(changed, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
        return path

    def test_other_tiles_are_no_other_kernel(self):
        base = self.make("base", 1, "--steps", "40", "--graph", "--seed", "1")
        answer = diff(base, [self.renamed("same", "--seed", "2")])
        self.assertEqual(answer["verdicts"], [])
        self.assertEqual([f["function"] for f in answer["findings"] if f["status"] in ("new", "gone")], [])
        self.assertTrue([f for f in answer["findings"] if f["was"]])
        for finding in answer["findings"]:
            self.assertEqual(finding["was"], re.sub(r"stages_(\d+)x1(\d+)", r"stages_\1x\2", finding["function"]) if finding["was"] else "")

    def test_a_slower_kernel_does_not_hide_behind_its_new_name(self):
        base = self.make("base", 1, "--steps", "40", "--graph", "--seed", "1")
        plain = self.make("plain", 1, "--steps", "40", "--graph", "--seed", "2", "--fault", "gpu_clock_drop")
        answers = [diff(base, plain), diff(base, [self.renamed("slow", "--seed", "2", "--fault", "gpu_clock_drop")])]
        found = [sorted((f["status"], f["impact_ns_per_cycle"]) for f in answer["findings"]) for answer in answers]
        self.assertEqual(*found)


class Input(Runs):
    """Steps with stacks: the loader waits far inside of itself."""

    def steps(self, name, seed, wait_us):
        chance = random.Random(seed)
        events = []

        def add(category, what, begin, duration):
            events.append({"ph": "X", "cat": category, "name": what, "pid": 1, "tid": 1, "ts": round(begin, 3), "dur": round(duration, 3)})
        at = 1000.0
        for step in range(30):
            wait = wait_us * chance.uniform(0.98, 1.02)
            work = [900 * chance.uniform(0.98, 1.02) for _ in range(6)]
            add("user_annotation", f"ProfilerStep#{step}", at, wait + sum(work) + 400)
            add("python_function", "torch/utils/data/dataloader.py(708): __next__", at + 10, wait + 30)
            add("python_function", "queue.py(154): get", at + 20, wait + 10)
            add("python_function", f"<built-in method poll of select.poll object at 0x{chance.getrandbits(40):x}>", at + 25, wait)
            begin = at + wait + 60
            for i, duration in enumerate(work):
                add("cpu_op", ("aten::linear", "aten::gelu", "aten::layer_norm", "aten::add", "aten::softmax", "aten::mul")[i], begin, duration)
                begin += duration + 10
            at += wait + sum(work) + 420
        path = os.path.join(self.folder, name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)
        return path

    def test_what_waits_inside_of_the_loader_is_the_input(self):
        answer = diff([self.steps("base", 1, 1000)], [self.steps("slow", 2, 6000)])
        self.assertEqual(answer["outcome"], "regression")
        self.assertEqual([(v["cause"], v["detail"]) for v in answer["verdicts"]], [("host_bound", "data_input")])

    def test_objects_elsewhere_are_no_other_functions(self):
        answer = diff([self.steps("base", 1, 1000)], [self.steps("same", 2, 1000)])
        self.assertEqual([f["function"] for f in answer["findings"] if f["status"] in ("new", "gone")], [])
        self.assertIn("<built-in method poll of select.poll object>", [f["function"] for f in answer["findings"]])


class Calls(Runs):
    def test_a_layer_more_is_seen_by_what_a_step_calls(self):
        base, more = (self.make(name, 1, "--steps", "40", "--seed", seed, "--layers", layers) for name, seed, layers in (("base", "1", "2"), ("more", "2", "3")))
        answer = diff(base, more)
        decode = next(c for c in answer["calls_per_step"] if c["phase"] == "decode")
        self.assertEqual(decode["device"], 0)
        self.assertGreater(decode["more"], 3)
        self.assertEqual(decode["fewer"], 0)
        time = next(t for t in answer["cycle_time"] if t["phase"] == "decode")
        self.assertAlmostEqual(decode["change"], time["ratio"] - 1, delta=0.1 * (time["ratio"] - 1))
        self.assertEqual((answer["verdicts"][0]["cause"], answer["verdicts"][0]["detail"]), ("workload_changed", "calls"))
        self.assertIn("are called more often", run("culprit", "diff", *base, "--vs", *more))

    def test_of_the_same_nothing_is_called_more_often(self):
        base, again = (self.make(name, 1, "--steps", "40", "--seed", seed) for name, seed in (("base", "1"), ("again", "2")))
        answer = diff(base, again)
        self.assertEqual(answer["calls_per_step"], [])
        self.assertTrue(any(f["steady_calls"][0] for f in answer["findings"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", default=ARGS.bin)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
