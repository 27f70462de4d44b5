#!/usr/bin/env python3
"""The example server as a whole: serves every request, gives the same answers whatever the load, says what it did.

    server_test.py --folder BUILD_DIR/examples/tinyserve [unittest options]
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

ARGS = argparse.Namespace(folder=".")
SMALL = ["--layers", "2", "--width", "128"]


def serve(*arguments):
    done = subprocess.run([sys.executable, os.path.join(ARGS.folder, "tinyserve.py"), *SMALL, *arguments],
                          stdout=subprocess.PIPE, check=True, timeout=120)
    return json.loads(done.stdout)


class Server(unittest.TestCase):
    def test_serves_every_request(self):
        result = serve("--requests", "12", "--rate", "0")
        self.assertEqual(result["requests"], 12)
        for name in ("ttft_ms", "tpot_ms", "queue_ms"):
            self.assertGreaterEqual(result[name]["p99"], result[name]["p50"])
            self.assertGreaterEqual(result[name]["p50"], 0)
        self.assertGreater(result["steps"]["DECODE"]["count"], 10)

    def test_tokens_depend_on_the_seed_alone(self):
        first = serve("--requests", "8", "--rate", "0", "--threads", "1")["token_digest"]
        self.assertEqual(first, serve("--requests", "8", "--rate", "50", "--threads", "3", "--slots", "2")["token_digest"])
        self.assertNotEqual(first, serve("--requests", "8", "--rate", "0", "--seed", "2")["token_digest"])

    def test_step_times_and_log(self):
        with tempfile.TemporaryDirectory() as folder:
            times, log = os.path.join(folder, "steps.csv"), os.path.join(folder, "log")
            result = serve("--requests", "5", "--rate", "0", "--step-times", times, "--log-requests", log)
            with open(times, encoding="utf-8") as text:
                rows = list(csv.DictReader(text))
            self.assertEqual(len(rows), sum(phase["count"] for phase in result["steps"].values()))
            self.assertEqual(sum(int(row["batch"]) for row in rows), result["output_tokens"])
            for row, following in zip(rows, rows[1:]):
                self.assertLessEqual(int(row["begin_ns"]) + int(row["duration_ns"]), int(following["begin_ns"]))
            with open(log, encoding="utf-8") as text:
                self.assertEqual(len(text.readlines()), len(rows))
            self.assertEqual(os.stat(log).st_mode & 0o777, 0o600)

    def test_duration_ends_the_stream(self):
        result = serve("--duration", "0.5", "--rate", "20")
        self.assertGreater(result["requests"], 0)
        self.assertLess(result["requests"], 40)

    def test_sigterm_lets_it_finish_what_it_has_begun(self):
        command = [sys.executable, os.path.join(ARGS.folder, "tinyserve.py"), *SMALL, "--requests", "100000", "--rate", "0"]
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            with subprocess.Popen([*command, "--log-requests", log], stdout=subprocess.PIPE, text=True) as server:
                begun = time.monotonic()
                while not (os.path.exists(log) and os.path.getsize(log)) and time.monotonic() - begun < 60:
                    time.sleep(0.01)
                server.terminate()
                result = json.loads(server.communicate(timeout=60)[0])
        self.assertEqual(server.returncode, 0)
        self.assertGreater(result["requests"], 0)
        self.assertLess(result["requests"], 100000)

    def test_wrong_options_are_refused(self):
        for wrong in (["--requests", "0"], ["--rate", "-1"], ["--duration", "1", "--rate", "0"], ["--width", "100"]):
            done = subprocess.run([sys.executable, os.path.join(ARGS.folder, "tinyserve.py"), *wrong],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            self.assertNotEqual(done.returncode, 0, wrong)
            self.assertNotIn(b"Traceback", done.stderr, wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--folder", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
