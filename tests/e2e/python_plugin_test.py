#!/usr/bin/env python3
"""The pytest plugin of the Python package, in the environment that scripts/python-env makes.

    python_plugin_test.py --env BUILD_DIR/python --bin BUILD_DIR --source SOURCE_DIR [unittest options]
"""

import json
import os
import re
import sys
import threading
import unittest.mock

from python_package_test import Case, main, run


class Plugin(Case):
    TEST = """
import culprit.pytest_plugin, pytest, sys, types
# In place of the real clock, which tells of what else the machine does: it goes on only where a step sleeps.
now = [0]
def sleep(seconds): now[0] += round(1e9 * seconds)
time = culprit.pytest_plugin.time = types.SimpleNamespace(perf_counter_ns=lambda: now[0], sleep=sleep)
@pytest.mark.culprit(steps={}, warm_up=0)
def test_it(culprit_steps):
    for _ in culprit_steps:
        time.sleep({})
"""

    def pytest(self, name, text, *options):
        """Runs `text` as the tests of the folder `name`."""
        folder = self.at(name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "test_measured.py"), "w", encoding="utf-8") as file:
            file.write(text)
        return run(sys.executable, "-m", "pytest", "-q", "-p", "culprit.pytest_plugin", "-p", "no:cacheprovider", "--rootdir", folder, *options, cwd=folder)

    def measured(self, name, seconds, *options, steps=40):
        """Steps of about so many seconds; they differ by up to 1 %."""
        return self.pytest(name, self.TEST.format(steps, f"{seconds} * (1 + 0.001 * (_ * 7 % 11))"), *options)

    def steady(self, name, scale, seed, *options):
        """Steps of 2 ms times `scale`, with 1 % of noise."""
        return self.pytest(name, self.TEST.format(30, f"__import__('random').Random(1000 * {seed} + _).gauss({0.002 * scale}, 0.00002)"), *options)

    def baselines(self, name):
        folder = os.path.join(self.at(name), ".culprit")
        return [os.path.join(folder, file) for file in sorted(os.listdir(folder))] if os.path.exists(folder) else []

    def test_a_slower_step_fails_and_the_same_passes(self):
        self.assertIn("no baseline", self.measured("measured", 0.002).stdout)
        self.assertEqual(self.measured("measured", 0.002, "--culprit-store").returncode, 0)
        self.assertEqual(self.measured("measured", 0.002).returncode, 0)
        slower = self.measured("measured", 0.02)
        self.assertEqual(slower.returncode, 1, slower.stdout)
        self.assertIn("regression", slower.stdout)
        self.assertRegex(slower.stdout, r"(?m)^1 failed in")

    def test_five_stored_decide(self):
        for seed in range(7):
            self.assertEqual(self.steady("five", 1, seed, "--culprit-store").returncode, 0)
        baseline, = self.baselines("five")
        with open(baseline, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["culpritEarlier"]), 4)
        same = self.steady("five", 1, 10)
        self.assertRegex(same.stdout, r"(?m)^1 passed in", "no_change is no warning")
        slower = self.steady("five", 1.1, 11)
        self.assertRegex(slower.stdout, r"(?m)^1 failed in")
        self.assertIn("regression", slower.stdout)

    def test_what_more_has_to_be_stored_is_told(self):
        self.steady("one", 1, 0, "--culprit-store")
        done = self.steady("one", 1.1, 1)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("stored 1 of 5 times: store it 4 more times", done.stdout)
        self.assertIn("inconclusive", done.stdout)

    def test_a_baseline_that_holds_one_recording_is_used_and_kept(self):
        """As it was stored before there were several."""
        self.steady("single", 1, 0, "--culprit-store")
        baseline, = self.baselines("single")
        with open(baseline, encoding="utf-8") as file:
            stored = json.load(file)
        del stored["culpritEarlier"]
        with open(baseline, "w", encoding="utf-8") as file:
            json.dump(stored, file)
        self.assertIn("regression", self.steady("single", 9, 1).stdout)
        for seed in range(2, 6):
            self.steady("single", 1, seed, "--culprit-store")
        self.assertRegex(self.steady("single", 1, 7).stdout, r"(?m)^1 passed in")

    def test_what_is_no_baseline_fails_and_is_made_anew(self):
        self.steady("damaged", 1, 0, "--culprit-store")
        baseline, = self.baselines("damaged")
        with open(baseline, encoding="utf-8") as file:
            good = json.load(file)
        events, facts = good["traceEvents"], good["culpritFacts"]
        other = {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "ts": 0, "dur": 1}
        contents = {
            "nothing": b"",
            "text": b"this is no baseline",
            "bytes": b"\xff\xfe\x00",
            "deep": b"[" * 100_000,
            "list": b"[1, 2]",
            "empty": b"{}",
            "without facts": {"traceEvents": events},
            "facts are a text": {**good, "culpritFacts": "a"},
            "without events": {"culpritFacts": facts},
            "no events": {**good, "traceEvents": []},
            "events are a number": {**good, "traceEvents": 5},
            "events are numbers": {**good, "traceEvents": [1, 2]},
            "events of others": {**good, "traceEvents": [other, other]},
            "times are texts": {**good, "traceEvents": [{**event, "ts": "soon"} for event in events]},
            "times are endless": {**good, "traceEvents": [{**event, "dur": float("inf")} for event in events]},
            "earlier is a number": {**good, "culpritEarlier": 5},
            "earlier has no steps": {**good, "culpritEarlier": [{"culpritFacts": facts, "steps": []}]},
            "earlier has no times": {**good, "culpritEarlier": [{"culpritFacts": facts, "steps": [[1, "a"], [2]]}]},
        }
        for name, content in contents.items():
            with self.subTest(name):
                with open(baseline, "wb") as file:
                    file.write(content if isinstance(content, bytes) else json.dumps(content).encode())
                done = self.steady("damaged", 1, 1)
                self.assertRegex(done.stdout, r"(?m)^1 failed in")
                self.assertIn(f"the baseline {baseline} cannot be used", done.stdout)
                self.assertIn("--culprit-store", done.stdout)
                self.assertNotIn("Traceback", done.stdout)
                self.assertNotIn("Error", done.stdout)
        self.assertEqual(self.steady("damaged", 1, 2, "--culprit-store").returncode, 0)
        self.assertEqual(self.steady("damaged", 1, 3).returncode, 0)

    def test_where_no_baseline_can_lie_is_told(self):
        self.steady("nowhere", 1, 0, "--culprit-store")
        baseline, = self.baselines("nowhere")
        os.remove(baseline)
        os.makedirs(os.path.join(baseline, "below"))
        for options in ((), ("--culprit-store",)):
            done = self.steady("nowhere", 1, 1, *options)
            self.assertRegex(done.stdout, r"(?m)^1 failed in")
            self.assertRegex(done.stdout, f"the baseline {re.escape(baseline)} cannot be .*")
            self.assertNotIn("Error", done.stdout)
        done = self.steady("nowhere", 1, 2, "--culprit-store", "--culprit-baselines", __file__)
        self.assertRegex(done.stdout, r"(?m)^1 failed in")
        self.assertRegex(done.stdout, f"--culprit-store: the baseline {re.escape(__file__)}/.* cannot be written")

    def test_the_tolerance_is_a_share(self):
        for tolerance in ("10", "0", "-1", "1", "nan", "much"):
            done = self.steady("share", 1, 0, f"--culprit-tolerance={tolerance}")
            self.assertEqual(done.returncode, 4, done.stdout)
            self.assertIn(f"argument --culprit-tolerance: '{tolerance}' is no share between 0 and 1", done.stderr)

    def test_what_cannot_be_decided_warns(self):
        """A baseline whose steps take 1 to 40 ms, and few of them."""
        self.measured("undecided", "0.001 * [1, 3, 40, 2, 20][_]", "--culprit-store", steps=5)
        done = self.measured("undecided", "0.001 * [20, 2, 1, 40, 5][_]", steps=5)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"CulpritWarning: \S+test_it: inconclusive")
        self.assertIn("1 passed, 1 warning", done.stdout)

    def test_a_test_without_steps_fails(self):
        done = self.pytest("unmeasured", "import pytest\n@pytest.mark.culprit\ndef test_it(culprit_steps):\n    pass\n")
        self.assertIn("the test made no steps", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^1 failed in")

    def test_too_few_steps_fail(self):
        done = self.pytest("few", self.TEST.format(5, 0.001) + "        if _ == 3:\n            break\n", "--culprit-store")
        self.assertIn("the test made 3 steps, 5 are the least", done.stdout)
        self.assertEqual(self.baselines("few"), [])

    def test_only_what_passed_is_judged_and_stored(self):
        text = self.TEST.format(5, 0.001)
        for end, outcome in (("pytest.skip('no')", "1 skipped"), ("assert False", "1 failed"), ("pytest.xfail('known')", "1 xfailed")):
            done = self.pytest("ended", f"{text}        if _ == 3:\n            {end}\n", "--culprit-store")
            self.assertRegex(done.stdout, rf"(?m)^{outcome} in")
        self.assertEqual(self.baselines("ended"), [])
        kept = f"{text}        pass\n"
        torn = kept.replace("def test_it(", "@pytest.fixture\ndef torn():\n    yield\n    assert False\ndef test_it(torn, ").replace("@pytest.mark.culprit(", "culprit_mark = pytest.mark.culprit(")
        torn = torn.replace("def test_it(", "@culprit_mark\ndef test_it(")
        for changed, outcome in ((torn, "1 passed, 1 error"), (kept.replace("@pytest.mark.culprit", "@pytest.mark.xfail\n@pytest.mark.culprit"), "1 xpassed")):
            self.assertRegex(self.pytest("ended", changed, "--culprit-store").stdout, rf"(?m)^{outcome} in")
        subtests = "import pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_pyfunc_call(pyfuncitem):\n    call = pytest.CallInfo.from_call(lambda: 1 / 0, 'call')\n" \
                   "    pyfuncitem.ihook.pytest_runtest_makereport(item=pyfuncitem, call=call)  # as a subtest that fails has it made\n"
        conftest = os.path.join(self.at("ended"), "conftest.py")
        with open(conftest, "w", encoding="utf-8") as file:
            file.write(subtests)
        self.pytest("ended", kept, "--culprit-store")
        os.remove(conftest)
        self.assertEqual(self.baselines("ended"), [])
        strict = kept.replace("@pytest.mark.culprit", "@pytest.mark.xfail(strict=True)\n@pytest.mark.culprit")
        self.assertRegex(self.pytest("ended", strict, "--culprit-store").stdout, r"(?m)^1 failed in")
        self.assertEqual(self.baselines("ended"), [])
        self.assertRegex(self.pytest("ended", kept, "--culprit-store").stdout, r"(?m)^1 passed in")
        self.assertEqual(len(self.baselines("ended")), 1)

    def test_a_test_that_changes_its_folder_has_its_baseline(self):
        moved = self.TEST.format(30, 0.002).replace("def test_it(culprit_steps):", "def test_it(culprit_steps, monkeypatch, tmp_path):\n    monkeypatch.chdir(tmp_path)")
        for _ in range(5):
            self.assertRegex(self.pytest("moved", moved, "--culprit-store", "--culprit-baselines", "theirs").stdout, r"(?m)^1 passed in")
        self.assertEqual(len(os.listdir(os.path.join(self.at("moved"), "theirs"))), 1)
        slower = self.pytest("moved", moved.replace("0.002", "0.006"), "--culprit-baselines", "theirs")
        self.assertIn("regression", slower.stdout)
        self.assertRegex(slower.stdout, r"(?m)^1 failed in")

    def test_no_place_is_named_of_steps_alone(self):
        for seed in range(5):
            self.steady("nowhere", 1, seed, "--culprit-store")
        said = self.steady("nowhere", 1.5, 9).stdout
        self.assertRegex(said, r"regression\na step takes 3\.\d+ ms, in the baseline 2\.\d+ ms, \+\d+\.\d %")
        self.assertRegex(said, r"4 earlier measurements of the same differ by \S+ %")
        for word in ("Cause", "ProfilerStep", "host_bound", "/tmp"):
            self.assertNotIn(word, said.split("short test summary")[0].replace(self.at("nowhere"), ""))

    def test_its_warnings_can_be_told_from_those_of_others(self):
        failed = self.measured("warned", 0.002, "-W", "error")
        self.assertEqual(failed.returncode, 1)
        self.assertEqual(self.measured("warned", 0.002, "-W", "error", "-W", "ignore::culprit.CulpritWarning").returncode, 0)

    def test_a_marked_test_that_is_not_measured_is_an_error(self):
        done = self.pytest("forgotten", "import pytest\n@pytest.mark.culprit\ndef test_it():\n    pass\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("takes the fixture culprit_steps", done.stdout)

    def test_what_the_mark_does_not_know_is_an_error(self):
        for options in ("50", "step=50", "steps=1", "steps=4", "steps='many'", "warm_up=-1", "tolerance=0", "tolerance='x'"):
            done = self.pytest("mistaken", f"import pytest\n@pytest.mark.culprit({options})\ndef test_it(culprit_steps):\n    list(culprit_steps)\n")
            self.assertIn("pytest.mark.culprit", done.stdout, options)
            self.assertRegex(done.stdout, r"(?m)^1 error in", options)

    def test_the_mark_says_what_does_not_matter(self):
        self.measured("tolerant", 0.010, "--culprit-store")
        text = self.TEST.format(40, 0.019)
        self.assertEqual(self.pytest("tolerant", text).returncode, 1)
        done = self.pytest("tolerant", text.replace("warm_up=0", "warm_up=0, tolerance=0.98"))
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_every_test_has_a_baseline_of_its_own(self):
        several = "@pytest.mark.parametrize('x', ['a+b', 'a b', 'c' * 300])\n@pytest.mark.culprit"
        text = self.TEST.format(5, 0.001).replace("@pytest.mark.culprit", several).replace("(culprit_steps)", "(culprit_steps, x)")
        done = self.pytest("names", text, "--culprit-store")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(len(self.baselines("names")), 3)

    def test_a_baseline_of_another_machine_is_not_compared(self):
        self.measured("elsewhere", 0.002, "--culprit-store")
        baseline, = self.baselines("elsewhere")
        with open(baseline, encoding="utf-8") as file:
            stored = json.load(file)
        self.assertEqual(stored["culpritFacts"]["python"], "%d.%d.%d" % sys.version_info[:3])
        self.assertTrue(stored["culpritFacts"]["cpu"])
        for name, value, outcome in (("cpu", "another", "1 passed, 1 warning"), ("python", "3.0.1", "1 failed")):
            changed = {**stored, "culpritFacts": {**stored["culpritFacts"], name: value}}
            with open(baseline, "w", encoding="utf-8") as file:
                json.dump(changed, file)
            done = self.measured("elsewhere", 0.02)
            self.assertIn(outcome, done.stdout)
            self.assertIn(f"{name}: {value}, now ", done.stdout)

    def test_what_stands_beside_the_test_is_a_part_of_its_machine(self):
        """CPUs that the process may use, and workers of pytest-xdist; whose group of a test, behind its name, makes no other test of it."""
        self.measured("beside", 0.002, "--culprit-store")
        baseline, = self.baselines("beside")
        with open(baseline, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["culpritFacts"]["cpus"], str(len(os.sched_getaffinity(0))))
        with unittest.mock.patch.dict(os.environ, {"PYTEST_XDIST_WORKER_COUNT": "4"}):
            done = self.measured("beside", 0.02)
            self.assertIn("1 passed, 1 warning", done.stdout)
            self.assertIn("workers: none, now 4", done.stdout)
            stored = self.measured("beside", 0.002, "--culprit-store")
            self.assertIn("1 recordings of another machine make way", stored.stdout)
        with open(os.path.join(self.at("beside"), "conftest.py"), "w", encoding="utf-8") as file:
            file.write("def pytest_collection_modifyitems(items):\n    for item in items:\n        item._nodeid += '@gpu'\n")
        self.measured("beside", 0.002, "--culprit-store")
        self.assertEqual(self.baselines("beside"), [baseline])

    def test_recordings_of_another_machine_make_way_also_where_warnings_are_errors(self):
        self.measured("strict", 0.002, "--culprit-store")
        baseline, = self.baselines("strict")
        with open(baseline, encoding="utf-8") as file:
            stored = json.load(file)
        with open(baseline, "w", encoding="utf-8") as file:
            json.dump({**stored, "culpritFacts": {**stored["culpritFacts"], "cpu": "another"}}, file)
        done = self.measured("strict", 0.002, "--culprit-store", "-W", "error")
        self.assertIn("1 recordings of another machine make way", done.stdout)
        with open(baseline, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["culpritFacts"], stored["culpritFacts"])

    def test_all_that_is_stored_at_the_same_time_is_kept(self):
        import culprit._baseline
        import culprit.pytest_plugin

        path = self.at("at_once/baseline.json")
        threads = []
        for number in range(culprit._baseline.KEPT):
            new = culprit._baseline.Recording({"cpu": "one"}, [(float(number), 1.0), (10.0, 1.0)])
            threads.append(threading.Thread(target=culprit.pytest_plugin._store, args=(None, path, new)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(recording.steps[0][0] for recording in culprit._baseline.read(path)), list(range(culprit._baseline.KEPT)))
        self.assertEqual(os.listdir(os.path.dirname(path)), ["baseline.json"])

    def test_a_store_that_is_interrupted_leaves_no_file(self):
        import culprit._baseline

        path = self.at("interrupted/baseline.json")
        with unittest.mock.patch.object(culprit._baseline.json, "dump", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            culprit._baseline.write(path, [culprit._baseline.Recording({"cpu": "one"}, [(0.0, 1.0), (1.0, 1.0)])])
        self.assertEqual(os.listdir(os.path.dirname(path)), [])

    def test_a_gpu_that_only_one_side_used_is_told(self):
        """A module in PyTorch's place, that uses a device, another one, or none."""
        torch = "import sys, types\nsys.modules['torch'] = types.SimpleNamespace(__version__='1.2.3', cuda=types.SimpleNamespace(is_initialized=lambda: {!r} != 'none', get_device_name=lambda: {!r}, synchronize=lambda: None))"
        for then, now, outcome in (
            ("none", "one", "1 failed"),
            ("one", "none", "1 failed"),
            ("one", "one", "1 failed"),
            ("one", "another", "1 passed, 1 warning"),
        ):
            with self.subTest(then=then, now=now):
                self.pytest("one_side", torch.format(then, then) + self.TEST.format(5, 0.002), "--culprit-store")
                done = self.pytest("one_side", torch.format(now, now) + self.TEST.format(5, 0.02))
                self.assertIn(outcome, done.stdout)
                self.assertEqual(f"gpu: {then}, now {now}" in done.stdout, then != now)

    def test_work_of_a_gpu_is_part_of_its_step(self):
        """A module in PyTorch's place, whose launches take no time and whose device 20 ms each."""
        torch = """
import sys, time, types
class Cuda:
    busy = 0
    def is_initialized(self): return True
    def get_device_name(self): return 'a device'
    def synchronize(self):
        time.sleep(self.busy)
        self.busy = 0
sys.modules['torch'] = types.SimpleNamespace(cuda=Cuda(), __version__='1.2.3')
"""
        text = torch + self.TEST.format(5, 0).replace("time.sleep(0)", "sys.modules['torch'].cuda.busy += 0.02")
        done = self.pytest("device", text, "--culprit-store")
        self.assertEqual(done.returncode, 0, done.stdout)
        baseline, = self.baselines("device")
        with open(baseline, encoding="utf-8") as file:
            stored = json.load(file)
        self.assertEqual((stored["culpritFacts"]["gpu"], stored["culpritFacts"]["torch"]), ("a device", "1.2.3"))
        self.assertEqual([event["dur"] >= 20_000 for event in stored["traceEvents"]], 5 * [True])


if __name__ == "__main__":
    main()
