#!/usr/bin/env python3
"""`culprit ab`: commands, running programs and servers in turns.

    ab_test.py --bin BUILD_DIR --source ROOT [unittest options]
"""

import argparse
import base64
import glob
import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import jsonschema

import pftrace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts"))

import ab_kills  # noqa: E402

ARGS = argparse.Namespace(bin="build", source=".")

# Waits, so that a busy machine changes little; $1 milliseconds.
SLEEPS = "import sys, time; time.sleep(float(sys.argv[1]) / 1000)"


# What marks the steps of tinyserve when it runs already.
STEPS = ("scheduler:Scheduler.run_batch(mode=batch.mode, n=len(batch.requests), tokens=batch.tokens)"
         " as step[{mode:1=EXTEND,2=DECODE} bs={n} toks={tokens}]")


def culprit(*arguments):
    return [os.path.join(ARGS.bin, "culprit"), *arguments]


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def goes_on(pid):
    """Whether it uses a CPU again within a few seconds."""
    before = cpu_ticks(pid)
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        time.sleep(0.05)
        if cpu_ticks(pid) > before:
            return True
    return False


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


def groups_of(pid):
    """The control groups that this `culprit ab` made: other tests may run beside."""
    return [path for path in glob.glob(f"/sys/fs/cgroup/**/culprit-ab-{pid}-*", recursive=True) if os.path.isdir(path)]


def wait_for_turns(started, sides, number):
    """Until so many times another side was seen frozen than before."""
    limit = time.monotonic() + 60
    last, seen = None, 0
    while seen < number and started.poll() is None and time.monotonic() < limit:
        now = next((pid for pid in sides if ab_kills.frozen_group(pid)), last)
        seen += now != last
        last = now
        time.sleep(0.01)


class Ab(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "XDG_STATE_HOME": self.folder}
        with open(os.path.join(ARGS.source, "docs", "diff.schema.json"), encoding="utf-8") as file:
            self.schema = json.load(file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_ab(self, *arguments, code=0):
        started = subprocess.Popen(culprit("ab", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        out, err = started.communicate(timeout=280)
        self.assertEqual(started.returncode, code, err + out)
        self.assertEqual(groups_of(started.pid), [])
        return subprocess.CompletedProcess(started.args, started.returncode, out, err)

    def answer(self, *arguments, code=0):
        answer = json.loads(self.run_ab("--json", *arguments, code=code).stdout)
        jsonschema.validate(answer, self.schema, cls=jsonschema.Draft202012Validator)
        return answer

    def program(self, *words):
        """A program that runs until the test ends."""
        started = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started.pid

    def tinyserve(self, *more):
        script = os.path.join(ARGS.bin, "examples", "tinyserve", "tinyserve.py")
        return self.program(sys.executable, script, "--duration", "100000", "--rate", "300", "--threads", "1", "--layers", "2",
                            "--width", "128", *more)


class Commands(Ab):
    def test_a_longer_run_is_found_and_named(self):
        answer = self.answer("--budget", "60s", "--no-record", "--", sys.executable, "-c", SLEEPS, "50", "--vs", "--",
                             sys.executable, "-c", SLEEPS, "150")
        self.assertEqual(answer["outcome"], "regression")
        found = answer["alternation"]
        self.assertEqual(found["end"], "found")
        self.assertEqual(found["quantity"], "run time")
        change = found["changes"][0]
        self.assertGreater(change["ratio"], 1.5)
        self.assertGreater(change["ci_low"], 1)
        self.assertLess(change["ci_low"], change["ratio"])
        self.assertGreater(change["ci_high"], change["ratio"])
        self.assertIn("150", found["sides"][1])

    def test_equal_runs_are_not_called_different(self):
        answer = self.answer("-n", "10", "--no-record", "--detect", "50%", "--", sys.executable, "-c", SLEEPS, "100", "--vs", "--",
                             sys.executable, "-c", SLEEPS, "100")
        self.assertEqual(answer["outcome"], "no_change")
        self.assertEqual(answer["alternation"]["end"], "pairs")
        self.assertEqual(answer["alternation"]["looks"], 1)
        self.assertEqual(answer["alternation"]["changes"][0]["pairs"], 10)

    def test_what_runs_recorded_says_where(self):
        busy = "sum(range(int(__import__('sys').argv[1])))"
        answer = self.answer("-n", "6", "--keep", self.path("kept"), "--", sys.executable, "-c", busy, "1000000", "--vs", "--",
                             sys.executable, "-c", busy, "9000000")
        self.assertEqual(answer["alternation"]["changes"][0]["pairs"], 6)
        kept = sorted(os.listdir(self.path("kept")))
        self.assertIn("baseline-6.pftrace", kept)
        self.assertIn("candidate-6.txt", kept)
        self.assertEqual(os.stat(self.path("kept")).st_mode & 0o777, 0o700)
        if "work" in answer:  # scheduling was recorded
            self.assertEqual(answer["work"]["units"], [6, 6])
            on_cpu = next(part for part in answer["work"]["parts"] if part["what"] == "on CPU")
            self.assertGreater(on_cpu["candidate"], 1.5 * on_cpu["baseline"])

    def test_a_gate(self):
        sides = ["--no-record", "-n", "8", "--", "sleep", "0.02", "--vs", "--", "sleep", "0.12"]
        self.run_ab("--fail-on", "regression", *sides, code=1)
        self.run_ab("--fail-on", "regression", *sides[:4], "sleep", "0.12", "--vs", "--", "sleep", "0.02")
        undecided = ["--no-record", "-n", "2", "--", "sleep", "0.02", "--vs", "--", "sleep", "0.02"]
        self.run_ab("--fail-on", "inconclusive", *undecided, code=5)
        self.assertIn("nothing could be decided", self.run_ab("--fail-on", "regression", *undecided).stderr)

    def test_the_name_of_the_output_says_its_format(self):
        sides = ["--no-record", "-n", "8", "--", "sleep", "0.12", "--vs", "--", "sleep", "0.02"]
        self.run_ab("-q", "-o", self.path("r.json"), "--fail-on", "difference", *sides, code=1)
        with open(self.path("r.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["outcome"], "improvement")
        self.assertIn("r.json", self.run_ab("-q", "-o", self.path("r.json"), *sides, code=2).stderr)

    def test_cpu_time(self):
        answer = self.answer("--no-record", "-n", "8", "--on", "cpu", "--", sys.executable, "-c", SLEEPS, "1", "--vs", "--",
                             sys.executable, "-c", SLEEPS, "80")
        self.assertEqual(answer["alternation"]["quantity"], "CPU time")
        self.assertLess(answer["alternation"]["changes"][0]["ratio"], 1.6)

    FAULTS = ("import mmap, sys, time\n"
              "end = time.monotonic() + 0.7\n"
              "while time.monotonic() < end:\n"
              "    if sys.argv[1] == 'faults': mmap.mmap(-1, 1 << 20)[::4096] = b'x' * 256\n"
              "    else: time.sleep(0.01)\n")

    def test_a_counter(self):
        side = ["--", sys.executable, "-c", self.FAULTS]
        words = ["-q", "-n", "8", "--warmup", "0", "--on"]
        found = self.answer(*words, "host.faults.minor", *side, "sleeps", "--vs", *side, "faults")
        self.assertEqual((found["outcome"], found["alternation"]["quantity"]), ("regression", "host.faults.minor"))
        self.assertGreater(found["alternation"]["changes"][0]["ratio"], 3)
        meant = self.answer("-q", "-n", "1", "--warmup", "0", "--on", "host.cpu", *side, "sleeps", "--vs", *side, "sleeps")
        self.assertEqual(meant["alternation"]["quantity"], "host.cpu.used")
        done = self.run_ab(*words, "host.cp", *side, "sleeps", "--vs", *side, "sleeps", code=4)
        self.assertIn("no counter 'host.cp' is recorded (there are host.cpu.", done.stderr)
        done = self.run_ab("--no-record", *words, "counter:x", *side, "sleeps", "--vs", *side, "sleeps", code=2)
        self.assertIn("--on counter:x needs recordings", done.stderr)

    def page(self, name):
        """What a page of HTML holds."""
        with open(self.path(name), encoding="utf-8") as file:
            packed = re.search(r'id="report">([^<]*)<', file.read()).group(1)
        return json.loads(gzip.decompress(base64.b64decode(packed, validate=True)))

    def test_a_page_draws_the_recordings(self):
        side = ["--", sys.executable, "-c", self.FAULTS]
        words = ["-q", "-n", "2", "--warmup", "0"]
        self.run_ab(*words, "-o", self.path("gone.html"), *side, "sleeps", "--vs", *side, "faults")
        pictures = self.page("gone.html")["pictures"]
        self.assertEqual(len(pictures), 2)
        for picture in pictures:
            self.assertEqual((picture["file"], picture["others"]), ("a recording that is gone (--keep keeps it)", 1))
            self.assertTrue(picture["series"])
        self.run_ab(*words, "-o", self.path("kept.html"), "--keep", self.path("kept"), *side, "sleeps", "--vs", *side, "faults")
        self.assertEqual([picture["file"] for picture in self.page("kept.html")["pictures"]],
                         [self.path("kept/baseline-1.pftrace"), self.path("kept/candidate-1.pftrace")])
        self.run_ab(*words, "--no-record", "-o", self.path("timed.html"), *side, "sleeps", "--vs", *side, "faults")
        self.assertEqual(self.page("timed.html")["pictures"], [])

    def test_a_budget_that_is_too_short_says_how_long_a_pair_takes(self):
        done = self.run_ab("-q", "--no-record", "--budget", "100ms", "--", "sleep", "0.1", "--vs", "--", "sleep", "0.1")
        self.assertIn("no pair was complete; ended because the budget is spent", done.stdout)
        pair = re.search(r"A pair takes ([\d.]+)(ms|s):", done.stdout)
        self.assertGreaterEqual(float(pair[1]) * {"ms": 1, "s": 1000}[pair[2]], 200)

    def test_a_failing_side_ends_it_with_what_it_printed(self):
        done = self.run_ab("-q", "--no-record", "--", "true", "--vs", "--", "sh", "-c", "echo broken; exit 3", code=4)
        self.assertIn("the candidate failed with exit code 3", done.stderr)
        self.assertIn("  broken\n", done.stderr)

    def test_one_that_cannot_be_started(self):
        done = self.run_ab("-q", "--", "true", "--vs", "--", "/no/such/program", code=2)
        self.assertIn("cannot execute '/no/such/program'", done.stderr)

    def test_each_run_has_a_directory_of_its_own(self):
        script = 'test -z "$(ls -A . "$TMPDIR" | grep -v :)" && touch mark "$TMPDIR/mark" && echo "$TMPDIR"'
        for name, record in (("timed", ["--no-record"]), ("recorded", [])):
            self.run_ab("-q", "-n", "3", *record, "--keep", self.path(name), "--fresh-directory", "--", "sh", "-c", script, "--vs", "--", "sh", "-c", script)
            for side in ("baseline", "candidate"):
                for number in (1, 2, 3):
                    own = self.path(f"{name}/{side}-{number}")
                    with open(own + ".txt", encoding="utf-8") as file:
                        self.assertEqual(os.path.realpath(file.read().strip()), os.path.realpath(own + ".tmp"))
                    self.assertEqual(os.listdir(own + ".tmp"), ["mark"])
                    self.assertEqual(os.listdir(own + ".dir"), ["mark"])
        # Without it all have the one that is there.
        self.environment["TMPDIR"] = self.folder
        self.run_ab("-q", "-n", "1", "--warmup", "0", "--no-record", "--keep", self.path("shared"), "--", "sh", "-c", 'echo "$TMPDIR"', "--vs", "--", "true")
        with open(self.path("shared/baseline-1.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read().strip(), self.folder)

    def test_a_run_without_steps_makes_it_compare_runs(self):
        with open(self.path("steps.py"), "w", encoding="utf-8") as file:
            file.write("def step(n):\n    return sum(range(n))\n")
        program = self.path("program.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write("import os, sys, time\nfrom steps import step\n"
                       "with open(sys.argv[1], 'a') as file: file.write('x')\n"
                       "for i in range(1200 if os.path.getsize(sys.argv[1]) <= 2 else 0): step(20000); time.sleep(0.002)\n")
        side = ["--", sys.executable, program, self.path("runs")]
        words = ["-q", "--warmup", "0", "--python", "steps:step(n) as step"]
        first = self.answer(*words, "-n", "1", *side, "--vs", *side)["alternation"]
        if first["quantity"] != "step time":
            self.skipTest("steps of Python are not seen here")
        os.remove(self.path("runs"))
        found = self.answer(*words, "-n", "3", *side, "--vs", *side)["alternation"]
        self.assertEqual((found["quantity"], found["changes"][0]["pairs"], found["changes"][0]["values"]), ("run time", 3, [3, 3]))
        self.assertIn("Times of runs are compared, because run 2 of the", "\n".join(found["notes"]))
        os.remove(self.path("runs"))
        self.assertIn("has no steps", self.run_ab(*words, "--on", "step", "-n", "3", *side, "--vs", *side, code=4).stderr)
        other = ["-q", "--warmup", "0", "--python", "steps:other(n) as step", "--on", "step", "-n", "1"]
        os.remove(self.path("runs"))
        self.assertIn("Python functions are missing: ", self.run_ab(*other, *side, "--vs", *side, code=4).stderr)

    def test_the_last_result_is_shown_again(self):
        self.run_ab("--last", code=3)
        self.assertIn("--last makes none", self.run_ab("--last", "--fail-on", "regression", code=2).stderr)
        first = self.run_ab("-q", "-n", "2", "--no-record", "--", "true", "--vs", "--", "true").stdout
        self.assertEqual(self.run_ab("--last").stdout, first)
        self.assertEqual(json.loads(self.run_ab("--last", "--json").stdout)["alternation"]["changes"][0]["pairs"], 2)
        self.assertIn("# true against true", self.run_ab("--last", "--format", "markdown").stdout)
        for name in os.listdir(self.path("culprit")):
            self.assertEqual(os.stat(self.path("culprit/" + name)).st_mode & 0o777, 0o600)

    def test_folders_of_runs_that_were_killed_are_removed_and_those_in_use_are_not(self):
        self.environment["TMPDIR"] = self.path("tmp")
        os.mkdir(self.path("tmp"))
        started = subprocess.Popen(culprit("ab", "-q", "--no-record", "--", "sleep", "100", "--vs", "--", "sleep", "100"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        limit = time.monotonic() + 20
        while not glob.glob(self.path("tmp/culprit-ab-*/*")) and time.monotonic() < limit:
            time.sleep(0.02)
        folder = glob.glob(self.path("tmp/culprit-ab-*"))[0]
        sides = ["-q", "--no-record", "-n", "1", "--", "true", "--vs", "--", "true"]

        def is_old():
            os.utime(folder, (time.time() - 3600, time.time() - 3600))

        is_old()
        self.run_ab(*sides)
        self.assertTrue(os.path.isdir(folder))
        started.kill()
        started.wait()
        self.run_ab(*sides)
        limit = time.monotonic() + 20
        while os.path.isdir(folder) and time.monotonic() < limit:  # the run that it was in ends behind it
            is_old()
            self.run_ab(*sides)
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_folders_that_it_did_not_make_stay_whatever_their_name(self):
        self.environment["TMPDIR"] = self.path("tmp")
        sides = ["-q", "--no-record", "--warmup", "0", "-n", "1", "--", "true", "--vs", "--", "true"]
        os.makedirs(self.path("tmp/culprit-ab-checkout"))
        self.run_ab("--keep", self.path("tmp/culprit-ab-kept"), *sides)
        for name in os.listdir(self.path("tmp")):
            os.utime(self.path("tmp/" + name), (time.time() - 3600, time.time() - 3600))
        self.run_ab(*sides)
        self.assertEqual(sorted(os.listdir(self.path("tmp"))), ["culprit-ab-checkout", "culprit-ab-kept"])

    def test_interrupted_it_says_what_is_known(self):
        started = subprocess.Popen(culprit("ab", "--json", "--no-record", "--warmup", "0", "--", "sleep", "0.05", "--vs", "--", "sleep", "0.05"),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        time.sleep(2.5)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=20)
        self.assertEqual(started.returncode, 0, err)
        found = json.loads(out)["alternation"]
        self.assertEqual(found["end"], "interrupted")
        self.assertGreater(found["changes"][0]["pairs"], 2)

    def test_its_recorders_are_ordinary_when_asked(self):
        def told(name, *options):
            self.run_ab("-q", "-n", "2", *options, "--keep", self.path(name), "--", "sleep", "0.1", "--vs", "--", "sleep", "0.1")
            return {pftrace.Recording(path).facts["record.scheduling"] for path in glob.glob(os.path.join(self.path(name), "*.pftrace"))}

        self.assertEqual(told("asked", "--no-realtime"), {"ordinary"})
        if told("usual") == {"ordinary"}:
            self.skipTest("recorders may not come first here")

    def test_bad_usage(self):
        for words in (["--", "true"], ["--", "--vs", "--", "true"], [], ["-p", "1"], ["-p", "1", "--", "true", "--vs", "--", "true"],
                      ["--detect", "5", "--", "true", "--vs", "--", "true"], ["--budget", "x", "--", "true", "--vs", "--", "true"],
                      ["--turns", "1ms", "-p", str(os.getpid()), "--vs", "-p", "1"],
                      ["--on", "step", "--no-record", "--", "true", "--vs", "--", "true"],
                      ["--fresh-directory", "--turns", "auto", "--", "true", "--vs", "--", "true"]):
            self.run_ab(*words, code=2)

    def test_what_would_be_waited_for_in_vain_or_do_nothing_is_refused(self):
        for words, text in ((["--ready", "nonsense{port}", "--", "true", "{port}", "--vs", "--", "true", "{port}"], "is no URL of http or https"),
                            (["--load", "true {port}", "--", "true", "{port}", "--vs", "--", "true"], "the command of the candidate has no {port}"),
                            (["-p", "4194001", "-p", "4194002"], "write --vs between them"),
                            (["--warmup", "2", "-p", "4194001", "--vs", "-p", "4194002"], "--warmup is of commands"),
                            (["--warmup", "1", "--load", "true {port}", "--", "true", "{port}", "--vs", "--", "true", "{port}"], "--warmup is of commands"),
                            (["--warmup", "0", "--turns", "auto", "--", "true", "--vs", "--", "true"], "--warmup is of commands"),
                            (["--load", "true", "-p", "4194001", "--vs", "-p", "4194002"], "--ready and --load are of servers")):
            self.assertIn(text, self.run_ab("-q", *words, code=2).stderr)


@unittest.skipUnless(os.geteuid() == 0, "steps of running programs are seen by root")
class Turns(Ab):
    def test_a_slower_program_is_found(self):
        a = self.tinyserve()
        b = self.tinyserve("--extra-work", "100")
        answer = self.answer("--budget", "60s", "--python", STEPS, "-p", str(a), "--vs", "-p", str(b))
        found = answer["alternation"]
        self.assertEqual(found["quantity"], "step time")
        self.assertEqual(answer["outcome"], "regression", found)
        self.assertGreater(found["changes"][0]["ci_low"], 1)
        self.assertGreater(found["turns"]["turns"], 10)
        self.assertEqual(found["turns"]["length_from"], "noise")
        self.assertGreaterEqual(found["turns"]["length_ns"], 200000000)
        self.assertLessEqual(found["turns"]["length_ns"], 1875000000)  # sixteen pairs in a minute
        self.assertRegex(self.run_ab("--last", "--format", "markdown").stdout, r"pairs of turns of [\d.]+ s, chosen from the noise.s memory")
        self.assertTrue(goes_on(a) and goes_on(b))

    def test_whoever_kills_it_leaves_nobody_frozen(self):
        a = self.tinyserve()
        b = self.tinyserve("--seed", "2")
        for i in range(5):
            started = subprocess.Popen(culprit("ab", "-q", "--turns", "100ms", "--python", STEPS, "-p", str(a), "--vs", "-p", str(b)),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)
            limit = time.monotonic() + 40
            while i > 0 and not groups_of(started.pid) and time.monotonic() < limit:
                time.sleep(0.02)
            time.sleep(random.Random(i).uniform(0, 0.5))
            started.kill()
            started.wait()
            self.assertTrue(goes_on(a) and goes_on(b), i)
            limit = time.monotonic() + 10
            while groups_of(started.pid) and time.monotonic() < limit:
                time.sleep(0.05)
            self.assertEqual(groups_of(started.pid), [])

    def test_one_side_that_ends_is_told(self):
        a = self.tinyserve()
        b = self.tinyserve()
        started = subprocess.Popen(culprit("ab", "--json", "--turns", "100ms", "--python", STEPS, "-p", str(a), "--vs", "-p", str(b)),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        wait_for_turns(started, (a, b), 8)
        os.kill(b, signal.SIGKILL)
        out, err = started.communicate(timeout=100)
        self.assertEqual(started.returncode, 0, err)
        found = json.loads(out)["alternation"]
        self.assertEqual(found["end"], "side_ended")
        self.assertIn("It was the candidate that ended", found["notes"])

    def test_what_is_known_stays_when_a_recorder_is_killed(self):
        a = self.tinyserve()
        b = self.tinyserve()
        started = subprocess.Popen(culprit("ab", "--json", "--turns", "100ms", "--budget", "200s", "--python", STEPS, "-p", str(a), "--vs", "-p", str(b)),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        wait_for_turns(started, (a, b), 24)
        with open(f"/proc/{started.pid}/task/{started.pid}/children", encoding="utf-8") as file:
            recorders = [pid for pid in file.read().split() if name_of(pid) != "culprit-guard"]
        self.assertGreaterEqual(len(recorders), 2)  # in front of whoever looks at what is known
        begin = time.monotonic()
        os.kill(int(recorders[0]), signal.SIGKILL)
        out, err = started.communicate(timeout=200)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(started.returncode, 4, err)
        found = json.loads(out)["alternation"]
        self.assertEqual(found["end"], "interrupted")
        self.assertRegex(" ".join(found["notes"]), "The recording of the (baseline|candidate) ended before the turns did")
        self.assertTrue(goes_on(a) and goes_on(b))

    def test_who_must_not_be_frozen_is_refused(self):
        a = self.tinyserve()
        same = self.run_ab("-q", "-p", str(a), "--vs", "-p", str(a), code=2)
        self.assertIn("would be on both sides", same.stderr)
        own = self.run_ab("-q", "--turns", "100ms", "-p", str(a), "--vs", "-p", str(os.getpid()), code=2)
        self.assertIn("would be on both sides", own.stderr)

        threads = self.program(sys.executable, "-c", "import threading, time; threading.Thread(target=time.sleep, args=(1000,)).start(); time.sleep(1000)")
        thread = self.run_ab("-q", "-p", str(a), "--vs", "-p", str(self.thread_of(threads)), code=2)
        self.assertIn(f"is a thread of process {threads}", thread.stderr)
        b = self.tinyserve()
        os.kill(b, signal.SIGSTOP)
        begin = time.monotonic()
        stopped = self.run_ab("-q", "-p", str(a), "--vs", "-p", str(b), code=4)
        self.assertIn("is stopped already", stopped.stderr)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(state_of(b), "T")

    def thread_of(self, pid):
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            for thread in os.listdir(f"/proc/{pid}/task"):
                if int(thread) != pid:
                    return int(thread)
            time.sleep(0.05)
        self.fail("no second thread")

    def test_programs_without_steps_are_refused_with_the_reason(self):
        a = self.program("sleep", "100")
        b = self.program("sleep", "100")
        done = self.run_ab("-q", "--budget", "3s", "--turns", "200ms", "-p", str(a), "--vs", "-p", str(b), code=4)
        self.assertIn("no steps and no units of work are found in the baseline", done.stderr)
        self.assertEqual((state_of(a), state_of(b)), ("S", "S"))

    SEVERAL = ("import select, socket, sys\n"
               "listener = socket.create_server(('127.0.0.1', 0)); poll = select.epoll(); peers = {}\n"
               "poll.register(listener, select.EPOLLIN); print(listener.getsockname()[1], flush=True)\n"
               "while True:\n"
               "    for fd, _ in poll.poll():\n"
               "        if fd == listener.fileno():\n"
               "            peer, _ = listener.accept(); peers[peer.fileno()] = peer; poll.register(peer, select.EPOLLIN)\n"
               "        else:\n"
               "            asked = peers[fd].recv(100); sum(range(int(sys.argv[1]))); peers[fd].send(asked)\n")
    ASKS = ("import socket, sys\n"
            "peers = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(8)]\n"
            "while True:\n"
            "    for peer in peers: peer.send(b'ask')\n"
            "    for peer in peers: peer.recv(100)\n")

    def test_servers_that_answer_several_requests_in_each_wake_up_are_compared_by_them(self):
        sides = []
        for work in ("1000", "6000"):
            server = subprocess.Popen([sys.executable, "-c", self.SEVERAL, work], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.addCleanup(server.stdout.close)
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)
            self.program(sys.executable, "-c", self.ASKS, server.stdout.readline().strip())
            sides.append(str(server.pid))
        answer = self.answer("--budget", "60s", "-p", sides[0], "--vs", "-p", sides[1])
        found = answer["alternation"]
        self.assertEqual(found["quantity"], "time per unit of work")
        self.assertRegex("\n".join(found["notes"]), r"counted in requests \(\w+ to \w+\)")
        self.assertGreater(found["turns"]["length_ns"], 400000000)
        self.assertEqual(answer["outcome"], "regression", found)
        self.assertGreater(found["changes"][0]["ratio"], 1.3, found)
        done = self.run_ab("-q", "--turns", "100ms", "--budget", "300s", "-p", sides[0], "--vs", "-p", sides[1], code=4)
        self.assertRegex(done.stderr, r"units of work are counted every [\d.]+ms, and turns are of 100.000ms")

    LOOP = ("import sys, time\n"
            "def step(n):\n    return sum(range(n))\n"
            "for i in range(int(sys.argv[2])):\n    step(int(sys.argv[1])); time.sleep(0.001)\n"
            "sys.exit('no data are left')\n")

    def test_loops_are_started_and_run_in_turns(self):
        loop = self.path("loop.py")
        with open(loop, "w", encoding="utf-8") as file:
            file.write(self.LOOP)
        words = ["--turns", "200ms", "--python", "__main__:step(n) as step", "--budget", "40s", "--", sys.executable, loop, "20000"]
        answer = self.answer(*words, "1000000", "--vs", "--", sys.executable, loop, "60000", "1000000")
        self.assertEqual(answer["outcome"], "regression", answer["alternation"])
        self.assertEqual(answer["alternation"]["turns"]["length_ns"], 200000000)
        self.assertEqual(answer["alternation"]["turns"]["length_from"], "given")
        said = self.run_ab("--last", "--format", "markdown").stdout
        self.assertIn("pairs of turns of 0.2 s", said)
        self.assertNotIn("chosen from the noise", said)
        self.assertIn("device queues are not waited for: what is compared is each step", said)
        # One that fails says so.
        done = self.run_ab("-q", *words, "1000000", "--vs", "--", sys.executable, loop, "20000", "3000", code=4)
        self.assertRegex(done.stderr, "the candidate ended with exit code 1 (while it was compared|before anything was measured)")
        self.assertIn("  no data are left\n", done.stderr)

    def test_a_later_start_that_fails_is_an_error_behind_what_is_known(self):
        server = self.path("server.py")
        with open(server, "w", encoding="utf-8") as file:
            file.write("import os, socket, sys, time\n"
                       "def step(n):\n    return sum(range(n))\n"
                       "if len(sys.argv) > 2:\n"
                       "    if os.path.exists(sys.argv[2]): sys.exit('not a second time')\n"
                       "    open(sys.argv[2], 'w').close()\n"
                       "listening = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
                       "while True:\n    step(20000); time.sleep(0.001)\n")
        done = self.run_ab("-q", "--json", "--fail-on", "regression", "--starts", "2", "-n", "12", "--turns", "200ms", "--python",
                           "__main__:step(n) as step", "--", sys.executable, server, "{port}", "--vs", "--", sys.executable, server, "{port}",
                           self.path("mark"), code=4)
        who = "the candidate ended with exit code 1 before it was ready"
        self.assertIn(who, done.stderr)
        self.assertIn("  not a second time\n", done.stderr)
        found = json.loads(done.stdout)["alternation"]
        self.assertEqual((found["starts"], found["turns"]["turns"], found["end"]), (1, 12, "side_ended"))
        self.assertIn(f"Start 2 failed: {sys.executable}: {who}", "".join(found["notes"]))

    def test_servers_are_started_loaded_and_ended(self):
        script = self.path("server.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(
                "import http.server, sys, work\n"
                "class Handler(http.server.BaseHTTPRequestHandler):\n"
                "    protocol_version = 'HTTP/1.1'\n"
                "    wbufsize = 8192\n"  # an answer in two packets may wait 40 ms for the client's acknowledgement
                "    def do_GET(self):\n"
                "        work.answer(int(sys.argv[2]))\n"
                "        self.send_response(200); self.send_header('Content-Length', '2'); self.end_headers(); self.wfile.write(b'ok')\n"
                "    def log_message(self, *ignored): pass\n"
                "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n")
        with open(self.path("work.py"), "w", encoding="utf-8") as file:
            file.write("def answer(n):\n    return sum(range(n))\n")
        client = self.path("client.py")
        with open(client, "w", encoding="utf-8") as file:
            file.write("import http.client, sys, time\n"
                       "c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
                       "while True:\n"
                       "    c.request('GET', '/'); c.getresponse().read(); time.sleep(0.002)\n")
        answer = self.answer("--budget", "40s", "--ready", "http://127.0.0.1:{port}/", "--load", f"{sys.executable} {client} {{port}}", "--",
                             sys.executable, script, "{port}", "20000", "--vs", "--", sys.executable, script, "{port}", "200000")
        self.assertEqual(answer["outcome"], "regression", answer["alternation"])
        found = answer["alternation"]
        self.assertGreater(found["between_starts"], 0)
        # Of units of work nobody measured it.
        self.assertEqual((found["between_starts_from"], found["between_starts_assumed"]), ("step_time", 0.025))
        self.assertFalse(found["turns"]["queues_waited_for"])
        # Nothing marks its steps.
        self.assertEqual((found["quantity"], found["turns"]["length_from"]), ("time per unit of work", "usual"))
        self.assertRegex("\n".join(found["notes"]), r"No steps are found in the baseline \(.+\) nor in the candidate \(.+\): whole turns are compared by the work done in them, counted in [\w-]+s \(\w.*\)")
        self.assertIn("device queues are not waited for: whole turns are compared", self.run_ab("--last", "--format", "markdown").stdout)
        # A fixed number of pairs, from two starts; what each printed is kept.
        kept = self.path("kept")
        answer = self.answer("--starts", "2", "-n", "12", "--turns", "300ms", "--python", "work:answer(n) as answer", "--keep", kept, "--ready", "http://127.0.0.1:{port}/", "--load",
                             f"{sys.executable} {client} {{port}}", "--", sys.executable, script, "{port}", "20000", "--vs", "--",
                             sys.executable, script, "{port}", "20000")
        found = answer["alternation"]
        self.assertEqual((found["starts"], found["turns"]["turns"], found["end"]), (2, 24, "pairs"))
        self.assertEqual(found["between_starts_from"], "starts")
        self.assertIn(answer["outcome"], ("inconclusive", "no_change"))
        self.assertEqual(sorted(os.listdir(kept)), ["start-1", "start-2"])
        left = subprocess.run(["pgrep", "-f", script], capture_output=True, text=True, check=False).stdout
        self.assertEqual(left, "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--source", default=".")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
