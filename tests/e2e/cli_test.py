#!/usr/bin/env python3
"""The program as a user meets it: exit codes, errors, formats, pipes and hostile input.

    cli_test.py --bin BUILD_DIR --source ROOT [unittest options]

Inputs are generated here, small enough to know every number in them.
"""

import argparse
import csv
import fcntl
import gzip
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

ARGS = argparse.Namespace(bin="build", source=".")
FINE, USAGE, INPUT, ENVIRONMENT = 0, 2, 3, 4
SANITIZER = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:|Assertion .* failed")


def kernel(name, begin_us, duration_us, correlation, stream=7):
    """A launch on the host and the kernel it starts."""
    return [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": begin_us - 5, "dur": 3,
         "args": {"correlation": correlation}},
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": begin_us, "dur": duration_us,
         "args": {"device": 0, "stream": stream, "correlation": correlation, "grid": [8, 1, 1], "block": [128, 1, 1]}},
    ]


def trace(events, **more):
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU", "totalGlobalMem": 1 << 30}],
            "traceEvents": events, **more}


def small_trace():
    """Four kernels: gemm 3 x 10 us, softmax 1 x 2.5 us; one memcpy."""
    events = []
    for call in range(3):
        events += kernel("gemm", 1000 + 100 * call, 10, call + 1)
    events += kernel("softmax", 1500, 2.5, 4)
    events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 1600,
                   "dur": 4, "args": {"device": 0, "stream": 7, "correlation": 5, "bytes": 4096}})
    return trace(events)


PROFILE_HEADER = ("cycle,pid,hostname,beta_pct,function_name,metric_name,device,func_type,mu_pct,sigma_pct,duration,"
                  "interpolation_status,anchor_name,anchor_dur_us,cycle_start_ts,instances_count,simple_name")


def profile_csv(gemm_us, cycles=6):
    rows = [PROFILE_HEADER]
    for cycle in range(1, cycles + 1):
        length = 1000.0 + 3 * cycle
        for name, duration in (("gemm", gemm_us + cycle), ("softmax", 50.0 + cycle)):
            rows.append(f"{cycle},77,,{100 * duration / length:.4f},{name},gpu_sm_frequency,GPU 0,gpu_compute,90.0,0.1,"
                        f"{duration:.4f}, ,Scheduler.run_batch,{length:.4f},{1e12 + 2000 * cycle:.4f},4,{name}")
    return "\n".join(rows) + "\n"


class Program(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def path(self, name, content=None):
        full = os.path.join(self.folder, name)
        if content is not None:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            if not isinstance(content, (bytes, str)):
                content = json.dumps(content)
            with open(full, "wb") as out:
                out.write(content if isinstance(content, bytes) else content.encode("utf-8"))
        return full

    def environment(self, **more):
        env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CLICOLOR_FORCE")}
        return {**env, "LC_ALL": "C.UTF-8", **more}

    def run_program(self, *arguments, program="culprit", **options):
        options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
        if options["stdin"] is None:
            del options["stdin"]
        done = subprocess.run([os.path.join(ARGS.bin, program), *arguments], stdout=options.pop("stdout", subprocess.PIPE),
                              stderr=subprocess.PIPE, timeout=100, check=False, env=self.environment(), **options)
        done.stdout = (done.stdout or b"").decode("utf-8", "surrogateescape")
        done.stderr = done.stderr.decode("utf-8", "surrogateescape")
        self.assertNotRegex(done.stderr, SANITIZER)
        self.assertGreaterEqual(done.returncode, 0, f"ended by a signal: {done.stderr}")
        return done

    def assert_error(self, done, code, *parts):
        """An error goes to standard error only, says what and where, and has its exit code."""
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        for part in parts:
            self.assertIn(part, done.stderr)

    def assert_fine(self, done):
        self.assertEqual(done.returncode, FINE, done.stderr)
        return done.stdout

    def json_of(self, *arguments, **options):
        return json.loads(self.assert_fine(self.run_program(*arguments, "--json", **options)))


def objects(value):
    """Every object inside a JSON value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from objects(item)


class Usage(Program):
    def test_help_names_the_verbs(self):
        text = self.assert_fine(self.run_program("--help"))
        for verb in ("info", "top", "export", "diff"):
            self.assertIn(verb, text)

    def test_every_verb_has_help(self):
        for verb in ("info", "top", "export", "diff"):
            self.assertIn("--json" if verb != "export" else "-o", self.assert_fine(self.run_program(verb, "--help")))

    def test_version(self):
        self.assertRegex(self.assert_fine(self.run_program("--version")), r"\d+\.\d+\.\d+")

    def test_no_verb_is_bad_usage(self):
        self.assert_error(self.run_program(), USAGE)

    def test_unknown_verb_is_bad_usage(self):
        self.assert_error(self.run_program("frobnicate"), USAGE, "frobnicate")

    def test_unknown_option_is_bad_usage(self):
        self.assert_error(self.run_program("info", "--frobnicate", "x"), USAGE, "frobnicate")

    def test_a_number_out_of_range_is_told_the_limits(self):
        done = self.run_program("inject", "cpu", "--severity", "2")
        self.assert_error(done, USAGE, "--severity")
        self.assertIn("2 is no number from 0 to 1", done.stderr)

    def test_missing_argument_is_bad_usage(self):
        for verb in ("info", "top", "export", "diff"):
            self.assert_error(self.run_program(verb), USAGE)

    def test_unknown_grouping_is_bad_usage(self):
        file = self.path("t.json", small_trace())
        self.assert_error(self.run_program("top", file, "--by", "colour"), USAGE, "colour")


class BadInput(Program):
    VERBS = ("info", "top")

    def check(self, file, *parts):
        for verb in self.VERBS:
            with self.subTest(verb=verb):
                self.assert_error(self.run_program(verb, file), INPUT, os.path.basename(file), *parts)

    def test_missing_file(self):
        self.check(self.path("nowhere.json"))

    def test_folder(self):
        os.mkdir(self.path("folder"))
        self.check(self.path("folder"))

    def test_empty_file(self):
        self.check(self.path("empty.json", b""))

    def test_not_json(self):
        self.check(self.path("words.json", "these are words, not a trace\n" * 100))

    def test_binary(self):
        self.check(self.path("noise.json", bytes(range(256)) * 64))

    def test_json_without_events(self):
        self.check(self.path("other.json", {"hello": [1, 2, 3]}))

    def test_gzip_of_nothing(self):
        self.check(self.path("empty.json.gz", gzip.compress(b"")))

    def test_gzip_header_only(self):
        self.check(self.path("head.json.gz", gzip.compress(json.dumps(small_trace()).encode())[:12]))

    def test_damaged_zstd(self):
        self.check(self.path("bad.json.zst", b"\x28\xb5\x2f\xfd" + bytes(100)))

    def test_one_bad_file_of_several(self):
        good = self.path("good.json", small_trace())
        self.assert_error(self.run_program("info", good, self.path("nowhere.json")), INPUT, "nowhere.json")

    def test_empty_standard_input(self):
        for verb in self.VERBS:
            self.assert_error(self.run_program(verb, "-", input=b""), INPUT)


class DamagedInput(Program):
    """What is damaged is counted; the rest is there."""

    def events(self):
        events = []
        for call in range(4000):
            events += kernel(f"kernel_{call * 7919 % 97}", 1000 + 50 * call, 1 + call % 13, call + 1)
        return trace(events)

    def kernels(self, *arguments):
        table = self.json_of("top", *arguments)
        return sum(row["calls"] for row in objects(table) if str(row.get("name", "")).startswith("kernel_") and "calls" in row)

    def check_truncated(self, name, content):
        file = self.path(name, content)
        info = self.run_program("info", file)
        self.assert_fine(info)
        self.assertRegex(info.stdout, r"(?i)trunc|damage|incomplete|cut|ends")
        self.assertGreater(self.kernels("--limit", "0", file), 500)

    def test_truncated_json(self):
        text = json.dumps(self.events()).encode()
        self.check_truncated("cut.json", text[: len(text) * 2 // 3])

    def test_truncated_gzip(self):
        packed = gzip.compress(json.dumps(self.events()).encode())
        self.check_truncated("cut.json.gz", packed[: len(packed) * 2 // 3])

    def test_losses_are_in_json(self):
        events = small_trace()
        events["traceEvents"].append({"ph": "X", "cat": "kernel", "name": "bad", "pid": 0, "tid": 7, "ts": 1, "dur": -5})
        info = self.json_of("info", self.path("negative.json", events))
        self.assertTrue(info.get("losses"), info)

    def test_byte_order_mark_and_white_space(self):
        self.assert_fine(self.run_program("info", self.path("bom.json", b"\xef\xbb\xbf \n" + json.dumps(small_trace()).encode())))


class Formats(Program):
    def setUp(self):
        super().setUp()
        self.file = self.path("small.json", small_trace())

    def row(self, table, name):
        return next(item for item in objects(table) if item.get("name") == name)

    def test_top_measures_every_kernel(self):
        gemm = self.row(self.json_of("top", self.file), "gemm")
        self.assertEqual(gemm["calls"], 3)
        self.assertEqual(gemm["total_ns"], 30000)
        softmax = self.row(self.json_of("top", self.file), "softmax")
        self.assertEqual(softmax["calls"], 1)
        self.assertEqual(softmax["total_ns"], 2500)

    def test_gzip_zstandard_and_pipe_give_the_same(self):
        text = json.dumps(small_trace()).encode()
        expected = self.row(self.json_of("top", self.file), "gemm")
        self.assertEqual(self.row(self.json_of("top", self.path("s.json.gz", gzip.compress(text))), "gemm"), expected)
        self.assertEqual(self.row(self.json_of("top", "-", input=text), "gemm"), expected)
        self.assertEqual(self.row(self.json_of("top", "-", input=gzip.compress(text)), "gemm"), expected)

    def test_bare_array_of_events(self):
        file = self.path("array.json", small_trace()["traceEvents"])
        self.assertEqual(self.row(self.json_of("top", file), "gemm")["calls"], 3)

    def test_info_json(self):
        info = self.json_of("info", self.file)
        self.assertIn("Test GPU", json.dumps(info))

    def test_csv_is_one_table(self):
        text = self.assert_fine(self.run_program("top", self.file, "--format", "csv"))
        rows = list(csv.DictReader(io.StringIO(text)))
        gemm = next(row for row in rows if row["name"] == "gemm")
        self.assertEqual(gemm["calls"], "3")
        self.assertTrue(all(None not in row for row in rows), "a row longer than the heading")

    def test_markdown(self):
        text = self.assert_fine(self.run_program("top", self.file, "--format", "markdown"))
        self.assertRegex(text, r"(?m)^\|.*gemm.*\|$")

    def test_output_file(self):
        out = self.path("out.json")
        done = self.run_program("top", self.file, "--json", "-o", out)
        self.assertEqual(self.assert_fine(done), "")
        with open(out, encoding="utf-8") as text:
            self.assertEqual(self.row(json.load(text), "gemm")["calls"], 3)

    def test_two_runs_print_the_same(self):
        for verb in ("info", "top"):
            self.assertEqual(self.run_program(verb, self.file).stdout, self.run_program(verb, self.file).stdout)


class Export(Program):
    def test_exported_trace_reads_back(self):
        file = self.path("small.json", small_trace())
        for name in ("out.json", "out.json.gz"):
            out = self.path(name)
            self.assert_fine(self.run_program("export", file, "-o", out))
            with (gzip.open if name.endswith(".gz") else open)(out, "rt", encoding="utf-8") as text:
                kernels = [event for event in json.load(text)["traceEvents"] if event.get("cat") == "kernel"]
            self.assertEqual(sorted(event["name"] for event in kernels), ["gemm", "gemm", "gemm", "softmax"])
            rows = [item for item in objects(self.json_of("top", out)) if item.get("name") == "softmax"]
            self.assertEqual(rows[0]["total_ns"], 2500)

    def test_folder_that_is_not_there(self):
        file = self.path("small.json", small_trace())
        done = self.run_program("export", file, "-o", self.path("no/such/folder/out.json"))
        self.assertIn(done.returncode, (INPUT, ENVIRONMENT))
        self.assertIn("no/such/folder", done.stderr)


class Pipes(Program):
    def setUp(self):
        super().setUp()
        events = []
        for call in range(3000):
            events += kernel(f"kernel_number_{call}", 1000 + 50 * call, 1, call + 1)
        self.file = self.path("many.json", trace(events))

    def test_reader_that_closes_early(self):
        for verb in ("info", "top"):
            command = f"{os.path.join(ARGS.bin, 'culprit')} {verb} --json {self.file} | true; exit ${{PIPESTATUS[0]}}"
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=100, check=False)
            self.assertNotRegex(done.stderr, SANITIZER)
            self.assertIn(done.returncode, (FINE, INPUT, ENVIRONMENT, 128 + 13), done.stderr)

    def test_closed_standard_output_is_an_error(self):
        command = f"{os.path.join(ARGS.bin, 'culprit')} top --json {self.file} >&-"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=100, check=False)
        self.assertNotRegex(done.stderr, SANITIZER)
        self.assertIn(done.returncode, (INPUT, ENVIRONMENT), done.stderr)

    def test_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "wb") as full:
            done = self.run_program("top", "--json", self.file, stdout=full)
        self.assertIn(done.returncode, (INPUT, ENVIRONMENT), done.stderr)
        self.assertNotEqual(done.stderr, "")

    def on_terminal(self, *arguments, **env):
        """What the program writes when its standard output is a terminal, of 25 lines and 80 columns."""
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo terminal can be opened here: {error}")
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 80, 0, 0))
        with subprocess.Popen([os.path.join(ARGS.bin, "culprit"), *arguments], stdin=subprocess.DEVNULL, stdout=theirs,
                              stderr=subprocess.DEVNULL, env=self.environment(TERM="xterm-256color", **env)) as child:
            os.close(theirs)
            written = b""
            try:
                while chunk := os.read(ours, 65536):
                    written += chunk
            except OSError:  # how the end of a terminal reads on Linux
                pass
            child.wait(100)
        os.close(ours)
        self.assertEqual(child.returncode, FINE)
        return written

    def test_info_of_any_trace_fits_on_a_terminal(self):
        for number, options in enumerate(([], ["--workload", "train"], ["--ranks", "4", "--counters", "--python", "--sched"], ["--cpu"], ["--no-markers", "--graph"],
                                          ["--workload", "train", "--ranks", "2", "--lost", "0.1", "--fault", "straggler"])):
            with self.subTest(options):
                self.assert_fine(self.run_program("-q", "--steps", "12", *options, "-o", self.path(f"{number}.json"), program="culprit-tracegen"))
                files = sorted(self.path(name) for name in os.listdir(self.folder) if name.startswith(f"{number}.") and not name.endswith("truth.json"))
                lines = self.on_terminal("info", *files, NO_COLOR="1").decode().replace("\r\n", "\n").splitlines()
                self.assertGreater(len(lines), 5)
                self.assertLessEqual(len(lines), 25, lines)
                self.assertLessEqual(max(map(len, lines)), 80, lines)

    def test_no_color_leaves_no_escape_sequence(self):
        self.assertNotIn(b"\x1b", self.on_terminal("top", self.file, NO_COLOR="1"))

    def test_no_escape_sequence_into_a_pipe(self):
        self.assertNotIn("\x1b", self.assert_fine(self.run_program("top", self.file)))

    def test_nothing_but_the_result_on_standard_error_when_piped(self):
        self.assertEqual(self.run_program("top", self.file).stderr, "")


class HostileNames(Program):
    NAMES = ["\x1b]0;owned\x07\x1b[31mred", "</script><script>alert(1)</script>", "=1+1", "@SUM(A1)", "a|b", "line\nbreak", "\u202egpj.exe"]

    def setUp(self):
        super().setUp()
        events = []
        for call, name in enumerate(self.NAMES):
            events += kernel(name, 1000 + 100 * call, 10, call + 1)
        self.file = self.path("hostile.json", trace(events))

    def test_terminal(self):
        text = self.assert_fine(self.run_program("top", self.file))
        for character in ("\x1b", "\x07", "\u202e"):
            self.assertNotIn(character, text)

    def test_markdown(self):
        text = self.assert_fine(self.run_program("top", self.file, "--format", "markdown"))
        self.assertNotIn("<script>", text)
        self.assertNotIn("\x1b", text)
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")}
        self.assertEqual(len(widths), 1, text)

    def test_csv(self):
        rows = list(csv.reader(io.StringIO(self.assert_fine(self.run_program("top", self.file, "--format", "csv")))))
        for row in rows:
            for cell in row:
                self.assertFalse(cell.startswith(("=", "@")), cell)

    def test_json_keeps_the_name(self):
        text = self.assert_fine(self.run_program("top", self.file, "--json"))
        self.assertNotIn("</script>", text)
        names = {row.get("name") for row in objects(json.loads(text))}
        self.assertIn(self.NAMES[0], names)
        self.assertIn(self.NAMES[1], names)

    def test_error_message_does_not_pass_on_escapes(self):
        done = self.run_program("info", self.path("\x1b[31mred.json"))
        self.assertEqual(done.returncode, INPUT)
        self.assertNotIn("\x1b", done.stderr)


class Diff(Program):
    def pair(self, normal, abnormal):
        for side, content in (("normal", normal), ("abnormal", abnormal)):
            if content is not None:
                self.path(f"pair/{side}_perf_data/result_perf_data.csv", content)
        return self.path("pair")

    def test_writes_markdown_and_csv(self):
        folder = self.pair(profile_csv(200.0), profile_csv(500.0))
        out = self.path("report")
        self.assert_fine(self.run_program("diff", folder, "--score", "suspicion", "-o", out))
        written = sorted(os.path.splitext(name)[1] for name in os.listdir(out))
        self.assertIn(".md", written)
        self.assertIn(".csv", written)
        with open(os.path.join(out, next(n for n in os.listdir(out) if n.endswith(".md"))), encoding="utf-8") as text:
            self.assertIn("gemm", text.read())

    def test_missing_side(self):
        self.assert_error(self.run_program("diff", self.pair(profile_csv(200.0), None), "--score", "suspicion"), INPUT, "abnormal")

    def test_missing_folder(self):
        self.assert_error(self.run_program("diff", self.path("nowhere"), "--score", "suspicion"), INPUT, "nowhere")

    def test_column_missing(self):
        damaged = profile_csv(200.0).replace("beta_pct", "beta")
        self.assert_error(self.run_program("diff", self.pair(damaged, damaged), "--score", "suspicion"), INPUT, "beta_pct")

    def test_empty_profile(self):
        self.assert_error(self.run_program("diff", self.pair("", ""), "--score", "suspicion"), INPUT)


class TraceGenerator(Program):
    def generate(self, *arguments):
        return self.run_program(*arguments, program="culprit-tracegen")

    def test_help(self):
        self.assert_fine(self.generate("--help"))

    def test_same_seed_gives_the_same_bytes(self):
        first = self.assert_fine(self.generate("--steps", "3", "--seed", "7", "-o", "-"))
        self.assertEqual(self.assert_fine(self.generate("--steps", "3", "--seed", "7", "-o", "-")), first)
        self.assertNotEqual(self.assert_fine(self.generate("--steps", "3", "--seed", "8", "-o", "-")), first)

    def test_lost_gpu_clock_is_seen_in_the_kernels(self):
        sums = []
        for fault in ("none", "gpu_clock_drop"):
            file = self.path(fault + ".json")
            self.assert_fine(self.generate("--steps", "10", "--seed", "1", "--fault", fault, "--severity", "0.5", "-o", file))
            sums.append(self.json_of("info", file)["kernel_sum_ns"])
        self.assertGreater(sums[1], 1.3 * sums[0])

    def test_unknown_option_is_bad_usage(self):
        self.assert_error(self.generate("--frobnicate", "-o", self.path("t.json")), USAGE, "frobnicate")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", default=".")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
