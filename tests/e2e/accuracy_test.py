#!/usr/bin/env python3
"""The tables of docs/accuracy.md: what the trials' answers, of older builds as well, become there, and what counts as a row that names a cause."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

import reference_score  # noqa: E402


def row(function, metric="", score=20):
    return {"function": function, "metric": metric, "device": "Host", "suspicion_score": score}


def answer(first=None, share=None, above=0):
    return {"row": first, "share": share, "above": above, "error": None}


def verdict(cause, detail=""):
    return {"cause": cause, "detail": detail, "side": "candidate"}


def tinyserve(fault, truth, verdicts, reference=None):
    run = {"fault": fault, "severity": 0.6, "truth": truth, "outcome": "regression", "verdicts": verdicts, "others": [], "change": None}
    return {**run, **({"reference": reference} if reference else {})}


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


class ReferenceScore(unittest.TestCase):
    def test_a_row_names_what_its_function_or_resource_is_of(self):
        self.assertTrue(reference_score.could_name(row("runq"), ["cpu_contention/throttled"]))
        self.assertTrue(reference_score.could_name(row("ampere_gemm", "gpu_sm_frequency"), ["gpu_clock_drop"]))
        self.assertTrue(reference_score.could_name(row("write", "disk_usage"), ["disk_io/", "cpu_contention/other_processes"]))
        self.assertFalse(reference_score.could_name(row("ampere_gemm", "gpu_usage"), ["gpu_clock_drop"]))
        # A detail with names of its own has only those.
        self.assertTrue(reference_score.could_name(row("Memcpy HtoD (Pinned -> Device)"), ["interconnect_contention/pcie"]))
        self.assertFalse(reference_score.could_name(row("ncclDevKernel_AllReduce"), ["interconnect_contention/pcie"]))

    def test_what_no_row_can_name_is_never_right(self):
        for cause in ("process_stopped", "host_memory_pressure/bandwidth", "environment_changed/", "workload_changed/"):
            self.assertFalse(reference_score.could_name(row("runq", "host_cpu_usage"), [cause]), cause)
        self.assertFalse(reference_score.could_name(None, ["cpu_contention"]))

    def test_pairs_that_were_not_asked_are_not_counted(self):
        right, wrong = answer(row("runq")), answer(row("oncpu"), row("runq"))
        causes = ["cpu_contention"]
        self.assertEqual(reference_score.cells([(right, causes), (wrong, causes), (answer(), causes)]), ["1", "1", "1", "1"])
        self.assertEqual(reference_score.cells([(right, causes), (None, causes)]), ["1 of 1", "0 of 1", "0 of 1", "0 of 1"])
        self.assertEqual(reference_score.cells([(None, causes)]), [""] * 4)
        self.assertEqual(reference_score.alarms([answer(), answer(row("oncpu"), above=3)]), "1")


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="culprit-accuracy-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def lines_file(self, name, answers):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in answers)
        return self.path(name)

    def script(self, *words, code=0):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", words[0]), *words[1:]], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def summary(self, script, file, *more):
        return self.script(script, *more, "--summary", "--json", file).stdout.splitlines()

    def test_the_reference_stands_beside_the_first_verdict(self):
        truth = ["cpu_contention", "throttled"]
        file = self.lines_file("tinyserve.json", [
            tinyserve("cgroup-throttle", truth, [verdict(*truth)], answer(row("runq"))),
            tinyserve("cgroup-throttle", truth, [verdict("disk_io"), verdict(*truth)], answer(None, row("runq"))),
            tinyserve("cgroup-throttle", truth, [], answer(row("oncpu"))),
            tinyserve("normal", ["", ""], [verdict("disk_io")], answer(row("runq"), above=1)),
            tinyserve("normal", ["", ""], [], answer())])
        _, _, normal, disturbed = self.summary("trial-verdicts", file)
        self.assertEqual(cells(normal)[2:], ["2", "", "0", "0", "1", "1", "", "1", "1", "", "disk_io 1", ""])
        self.assertEqual(cells(disturbed)[2:12], ["3", "3", "1", "2", "1", "1", "1", "1", "1", "1"])

    def test_a_fault_that_slowed_nothing_is_not_looked_for(self):
        truth = ["cpu_contention", "throttled"]
        slowed = {"steps_per_second": [100.0, 89.0]}
        hardly = {"steps_per_second": [100.0, 91.0]}
        runs = [{**tinyserve("cgroup-throttle", truth, verdicts, answer()), **own}
                for verdicts, own in (([verdict(*truth)], slowed), ([], slowed), ([], hardly), ([verdict("disk_io")], hardly))]
        line = cells(self.summary("trial-verdicts", self.lines_file("tinyserve.json", runs))[-1])
        self.assertEqual(line[2:8], ["4", "2", "1", "1", "0", "1"])
        self.assertEqual(line[-1], "1")

    def test_answers_of_older_trials_are_summarised(self):
        truth = ["cpu_contention", "throttled"]
        line = self.summary("trial-verdicts", self.lines_file("tinyserve.json", [tinyserve("cgroup-throttle", truth, [verdict(*truth)])]))[-1]
        self.assertEqual(cells(line)[2:12], ["1", "1", "1", "1", "0", "0", "", "", "", ""])
        pair = {"truth": -0.5, "change": -0.5, "outcome": "regression", "right": True, "cause": "right", "causes": ["cpu_contention/throttled"], "lines": []}
        with open(self.path("pairs.json"), "w", encoding="utf-8") as file:
            json.dump({"nginx": [{**pair, "kind": "quota"}, {**pair, "kind": "normal", "causes": [], "cause": "none"}]}, file)
        lines = self.summary("trial-pairs", self.path("pairs.json"))
        self.assertEqual(cells(lines[2]), ["nginx", "quota", "1", "1", "1", "1", "0", "0", "1", "", "", "", ""])
        self.assertEqual(cells(lines[-1]), ["nginx", "normal", "1", "1", "0", "0", "1", ""])
        trace = {"name": "run queue", "right": ["cpu_contention"], "severity": 0.4, "seed": 0, "above": True, "outcome": "regression", "both": [],
                 "verdicts": [["cpu_contention", "active", [], 0.9]]}
        lines = self.summary("trial-causes", self.lines_file("causes.json", [trace]))
        self.assertEqual(cells(lines[2]), ["run queue", "1", "1", "1", "1", "0", "0", "", "", "", "", "0", "0"])

    def test_runs_with_a_change_inside_are_summarised_apart(self):
        found = [{"inside": "gpu_shared", "seed": seed, "change": change, "verdicts": 0} for seed, change in enumerate((101, 95, 20, None))]
        lines = self.summary("trial-causes", self.lines_file("inside.json", found), "--inside")
        self.assertEqual(cells(lines[-1]), ["gpu_shared", "4", "2", "1", "1", "0"])

    def document(self, text):
        with open(self.path("accuracy.md"), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self):
        with open(self.path("accuracy.md"), encoding="utf-8") as file:
            return file.read()

    def test_only_what_is_marked_is_written_and_once_is_enough(self):
        before, after = "# Title\n\n| a table | of another |\n\n<!-- begin tinyserve: of a script -->\n\n", "\n<!-- end tinyserve -->\n\nText that stays.\n<!-- begin servers -->\n<!-- end servers -->\n"
        self.document(before + "| old |\n" + after)
        truth = ["process_stopped", ""]
        file = self.lines_file("tinyserve.json", [tinyserve("pause", truth, [verdict(*truth)], answer())])
        self.script("accuracy-tables", f"tinyserve={file}", "--docs", self.path("accuracy.md"))
        written = self.read()
        self.assertTrue(written.startswith(before) and written.endswith(after), written)
        self.assertNotIn("| old |", written)
        self.assertIn("| pause | 0.6 | 1 | 1 | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 0 | process_stopped 1 | 0 |", written)
        self.script("accuracy-tables", f"tinyserve={file}", "--docs", self.path("accuracy.md"))
        self.assertEqual(self.read(), written)

    def test_a_document_without_the_marks_is_refused_and_stays(self):
        self.document("# Title\n<!-- begin tinyserve -->\n")
        file = self.lines_file("tinyserve.json", [tinyserve("normal", ["", ""], [])])
        self.assertIn("<!-- end tinyserve --> once", self.script("accuracy-tables", f"tinyserve={file}", "--docs", self.path("accuracy.md"), code=1).stderr)
        self.assertEqual(self.read(), "# Title\n<!-- begin tinyserve -->\n")

    def test_what_is_no_table_or_no_file_is_an_error(self):
        self.assertIn("is not TABLE=FILE", self.script("accuracy-tables", "nothing=x.json", code=2).stderr)
        self.assertIn("there is no such file", self.script("accuracy-tables", f"causes={self.path('missing')}", code=1).stderr)

    def test_the_document_has_every_table_once(self):
        with open(os.path.join(ROOT, "docs", "accuracy.md"), encoding="utf-8") as file:
            text = file.read()
        for table in ("causes", "inside", "tinyserve", "servers", "programs"):
            self.assertEqual((text.count(f"<!-- begin {table}:"), text.count(f"<!-- end {table} -->")), (1, 1), table)

    def test_kept_answers_have_neither_folders_nor_what_no_table_needs(self):
        self.document("<!-- begin tinyserve -->\n<!-- end tinyserve -->\n")
        answers = tinyserve("cpu", ["cpu_contention", ""], [verdict("cpu_contention")], {**answer(), "error": "culprit: /a/b/base.pftrace: none (see /c/d)"})
        self.script("accuracy-tables", "tinyserve=" + self.lines_file("answers", [answers]), "--docs", self.path("accuracy.md"))
        with open(os.path.join(self.path("accuracy"), "tinyserve.json"), encoding="utf-8") as file:
            kept = json.load(file)
        self.assertEqual(kept["reference"]["error"], "culprit: base.pftrace: none (see d)")
        self.assertEqual(kept["verdicts"], [{"cause": "cpu_contention", "detail": ""}])
        self.assertNotIn("change", kept)

    def test_the_tables_are_of_the_answers_that_are_kept_beside_the_document(self):
        with open(os.path.join(ROOT, "docs", "accuracy.md"), encoding="utf-8") as file:
            self.document(file.read())
        before = self.read()
        kept = sorted(os.listdir(os.path.join(ROOT, "docs", "accuracy")))
        self.assertTrue(kept)
        for name in kept:
            answers = os.path.join(ROOT, "docs", "accuracy", name)
            self.script("accuracy-tables", f"{name.removesuffix('.json')}={answers}", "--docs", self.path("accuracy.md"))
            self.assertEqual(self.read(), before, name)
            with open(answers, encoding="utf-8") as file, open(os.path.join(self.path("accuracy"), name), encoding="utf-8") as again:
                text = file.read()
                self.assertEqual(again.read(), text, "what is kept of kept answers is all of them")
                self.assertNotRegex(text, r'"error": "([^"]* )?/', "no folder of the machine that gave them")


if __name__ == "__main__":
    unittest.main()
