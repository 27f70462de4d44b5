#!/usr/bin/env python3
"""Pages of HTML, as files and in headless Chromium.

    html_test.py --bin BUILD_DIR --source SOURCE_DIR [unittest options]
"""

import argparse
import base64
import gzip
import html.parser
import json
import math
import os
import re
import shutil
import stat
import statistics
import subprocess
import sys
import tempfile
import unittest

import chromium

ARGS = argparse.Namespace(bin="build", source=".")
FINE, USAGE, INPUT, ENVIRONMENT = 0, 2, 3, 4
LIMIT = 120
MOST = 3_000_000  # bytes of a page
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\u2028\u202e"
FOLDER = tempfile.TemporaryDirectory(prefix="culprit-html-")


def path(name):
    return os.path.join(FOLDER.name, name)


def run(program, *arguments):
    return subprocess.run([os.path.join(ARGS.bin, program), *arguments], capture_output=True, text=True, timeout=LIMIT, check=False)


def answer_of(page):
    """What the page holds, as the program packed it."""
    packed = re.search(r'id="report">([^<]*)<', page).group(1)
    return json.loads(gzip.decompress(base64.b64decode(packed, validate=True)))


def steps(name, slowdown=1.0, functions=20, cycles=30, hostile=False, all_slower=1.0):
    """A trace of steps with as many functions; the first of them takes longer, or all do."""
    events, at = [], 0.0
    for cycle in range(cycles):
        begin = at
        for f in range(functions):
            took = all_slower * (20.0 + (cycle * 7 + f * 3) % 5)
            if f == 0:
                took *= slowdown
            label = HOSTILE if hostile and f == 0 else f"function_{f}"
            events.append({"ph": "X", "cat": "cpu_op", "name": label, "pid": 1, "tid": 1, "ts": at, "dur": took})
            at += took + 1
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{cycle}", "pid": 1, "tid": 1, "ts": begin, "dur": at - begin})
        at += 5
    with open(path(name), "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "traceEvents": events}, file)
    return path(name)


class Elements(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = run("culprit", "cycles", steps("probe.json"), "-o", path("probe.html"), "--force")
        if done.returncode == ENVIRONMENT and "without the page" in done.stderr:
            raise unittest.SkipTest("the program was built without the page of its reports: no npm, or no registry")
        assert done.returncode == FINE, done.stderr

    def page(self, *arguments, name="page.html"):
        done = run("culprit", *arguments, "-o", path(name), "--force")
        self.assertEqual(done.returncode, FINE, done.stderr)
        with open(path(name), encoding="utf-8") as file:
            return file.read()


class Files(Case):
    def test_the_answer_inside_is_that_of_json(self):
        a, b = steps("a.json"), steps("b.json", 60)
        page = answer_of(self.page("diff", a, b))
        said = json.loads(run("culprit", "diff", a, b, "--json").stdout)
        self.assertEqual(page["comparison"], said)
        self.assertEqual(page["kind"], "comparison")
        self.assertEqual(page["comparison"]["outcome"], "regression")

    def test_pictures_are_those_of_the_runs(self):
        page = answer_of(self.page("diff", steps("a.json"), steps("b.json", 60)))
        base, candidate = page["pictures"]
        self.assertEqual(len(base["cycles"]), 1)
        whole = page["comparison"]["cycle_time"][0]["n"]
        self.assertEqual([p["cycles"][0]["all"] for p in page["pictures"]], whole)
        self.assertEqual(len(base["cycles"][0]["period_ns"]), whole[0])
        for side, picture in zip(("baseline_ns", "candidate_ns"), page["pictures"]):
            took = picture["steps"][0]["period_ns"]
            self.assertEqual(len(took), whole[0])
            mean = math.exp(sum(map(math.log, took)) / len(took))
            self.assertAlmostEqual(mean, page["comparison"]["cycle_time"][0][side], delta=2)
        slow = next(i for i, f in enumerate(page["comparison"]["findings"]) if f["short_name"] == "function_0")
        means = [next(s["ns"] for s in p["sparks"] if s["finding"] == slow) for p in page["pictures"]]
        for side, mean in enumerate(means):
            self.assertAlmostEqual(sum(mean) / len(mean), page["comparison"]["findings"][slow]["ns_per_cycle"][side], delta=1)
        stretch = candidate["stretch"]
        lane = stretch["lanes"][0]["slices"]
        self.assertEqual(len(lane), 3 * 21)  # the functions and the step
        self.assertEqual(stretch["names"][lane[2]].split("#")[0], "ProfilerStep")
        self.assertLessEqual(max(lane[0::3]), stretch["length_ns"])

    def test_steps_of_devices_took_what_the_outcome_counts(self):
        for name, seed in (("even", "1"), ("slow", "2")):
            fault = ["--fault", "gpu_clock_drop"] if name == "slow" else []
            done = run("culprit-tracegen", "-q", "--force", "--workload", "train", "--steps", "24", "--layers", "2", "--seed", seed, *fault, "-o", path(f"{name}.json"))
            self.assertEqual(done.returncode, FINE, done.stderr)
        page = answer_of(self.page("diff", path("even.json"), path("slow.json")))
        for side, picture in zip(("baseline_ns", "candidate_ns"), page["pictures"]):
            took, [begin_to_begin] = picture["steps"][0]["period_ns"], picture["cycles"]
            mean = math.exp(sum(map(math.log, took)) / len(took))
            self.assertAlmostEqual(mean, page["comparison"]["cycle_time"][0][side], delta=2)
            # The host runs ahead and waits now and then: its periods say nothing of a step.
            self.assertGreater(max(begin_to_begin["period_ns"]) / min(begin_to_begin["period_ns"]), 3)
            self.assertLess(max(took) / min(took), 2)

    def test_names_are_never_markup(self):
        page = self.page("diff", steps("a.json", hostile=True), steps("b.json", 3, hostile=True))
        self.assertNotIn("alert(1)", page)
        self.assertIn(HOSTILE.split("\u2028")[0], json.dumps(answer_of(page), ensure_ascii=False))
        scripts = [attributes for tag, attributes in Elements(page).found if tag == "script"]
        self.assertEqual(len(scripts), 2)

    def test_links_know_sentences_as_the_rules_word_them(self):
        words = ""
        folder = os.path.join(ARGS.source, "src", "diagnose")
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                words += file.read()
        words = re.sub(r'"\s*\n\s*"', "", words)  # texts of several lines
        with open(os.path.join(ARGS.source, "web", "src", "subjects.ts"), encoding="utf-8") as file:
            phrases = re.findall(r'phrase: "([^"]+)"', file.read())
        self.assertGreater(len(phrases), 30)
        self.assertEqual([phrase for phrase in phrases if phrase not in words], [])

    def test_a_page_of_one_run_holds_what_its_causes_are_seen_in(self):
        trace = path("collecting.json")
        done = run("culprit-tracegen", "-q", "--force", "--workload", "serve", "--steps", "60", "--layers", "2", "--seed", "1", "--python", "--fault", "gc_pause", "-o", trace)
        self.assertEqual(done.returncode, FINE, done.stderr)
        page = answer_of(self.page("diagnose", trace))
        self.assertEqual(page["verdicts"], json.loads(run("culprit", "diagnose", trace, "--json").stdout)["verdicts"])
        self.assertEqual([v["cause"] for v in page["verdicts"]], ["host_bound"])
        [picture] = page["pictures"]
        self.assertEqual(picture["stretch"]["rank"], -1)  # there is only one
        self.assertGreater(sum(len(lane["slices"]) for lane in picture["stretch"]["lanes"]), 3)

    def test_it_asks_nothing_of_the_network(self):
        page = self.page("diff", steps("a.json"), steps("b.json", 60))
        for tag, attributes in Elements(page).found:
            self.assertNotIn("src", attributes, tag)
            self.assertNotEqual(tag, "link")
        policy = next(a["content"] for tag, a in Elements(page).found if a.get("http-equiv") == "Content-Security-Policy")
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(set(re.findall(r"https?://[a-z0-9.]+", page)), {"https://ui.perfetto.dev", "http://www.w3.org"})

    def test_nothing_is_overwritten(self):
        a = steps("a.json")
        target = path("mode.html")
        self.assertEqual(run("culprit", "cycles", a, "-o", target).returncode, FINE)
        done = run("culprit", "cycles", a, "-o", target)
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("--force", done.stderr)
        self.assertTrue(stat.S_ISREG(os.stat(target).st_mode))

    def test_an_input_is_never_overwritten(self):
        a, b = steps("input.json"), steps("b.json", 60)
        with open(a, "rb") as file:
            before = file.read()
        for form in (["--html"], ["--format", "md"], []):
            done = run("culprit", "diff", a, b, *form, "-o", a, "--force")
            self.assertEqual(done.returncode, USAGE, form)
            self.assertIn("is an input file", done.stderr)
        with open(a, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_forms_contradict(self):
        a = steps("a.json")
        self.assertEqual(run("culprit", "cycles", a, "--html", "--json").returncode, USAGE)
        self.assertEqual(run("culprit", "diff", a, a, "--html", "--format", "csv").returncode, USAGE)

    def test_standard_output_takes_it(self):
        done = run("culprit", "cycles", steps("a.json"), "--html")
        self.assertEqual(done.returncode, FINE)
        self.assertTrue(done.stdout.startswith("<!doctype html>"))


    def test_it_begins_as_the_text_report_does(self):
        a, b = steps("a.json"), steps("b.json", 60)
        for arguments in (["diff", a, b], ["diff", a, a]):
            answer = answer_of(self.page(*arguments))["answer"]
            text = " ".join(run("culprit", *arguments).stdout.split())
            self.assertTrue(answer)
            self.assertTrue(text.startswith(" ".join(answer[0].split())), (answer, text[:300]))

    def test_sides_that_ran_in_turns_are_named_with_their_outcome(self):
        state = dict(os.environ, XDG_STATE_HOME=path("state"))
        command = [os.path.join(ARGS.bin, "culprit"), "ab"]
        done = subprocess.run([*command, "-q", "--no-record", "-n", "2", "--warmup", "0", "-o", path("ab.html"), "--force", "--", "true", "--vs", "--", "sleep", "0.2"],
                              capture_output=True, text=True, timeout=LIMIT, check=False, env=state)
        self.assertEqual(done.returncode, FINE, done.stderr)
        with open(path("ab.html"), encoding="utf-8") as file:
            page = answer_of(file.read())
        text = subprocess.run([*command, "--last"], capture_output=True, text=True, timeout=LIMIT, check=False, env=state).stdout
        self.assertEqual(page["files"], ["true", "sleep 0.2"])
        self.assertIn("run time", page["answer"][0])
        self.assertTrue(" ".join(text.split()).startswith(page["answer"][0]), (page["answer"], text))

    def test_periods_are_those_of_whole_cycles(self):
        page = answer_of(self.page("cycles", steps("a.json", cycles=10)))
        said = json.loads(run("culprit", "cycles", steps("a.json", cycles=10), "--json").stdout)
        self.assertEqual(len(page["tables"][0]["rows"]), 10)
        self.assertEqual([c["all"] for c in page["cycles"]], [p["cycles"] for p in said["periods"]])
        self.assertEqual(sum(c["all"] for c in page["cycles"]), 9)  # the end of the last is not known
        self.assertEqual(len(page["cycles"][0]["period_ns"]), 9)

    def test_a_command_without_a_page_says_so(self):
        for verb in ("info", "top"):
            done = run("culprit", verb, steps("a.json"), "-o", path("none.html"))
            self.assertEqual(done.returncode, USAGE, verb)
            self.assertIn("makes no page of HTML", done.stderr)
            self.assertFalse(os.path.exists(path("none.html")))


def profile_tables(name, slowdown=1.0, table="result"):
    """What the reference tool writes of 30 cycles of 20 functions, the first of which takes longer; each side where it puts it. Gives both tables."""
    columns = "cycle,pid,hostname,beta_pct,function_name,metric_name,device,func_type,mu_pct,sigma_pct,duration,interpolation_status,anchor_name,anchor_dur_us,cycle_start_ts,instances_count,simple_name"
    tables = []
    for side, slower in (("normal", 1.0), ("abnormal", slowdown)):
        lines, at = [columns], 1.75e15
        for cycle in range(30):
            times = [(20.0 + (cycle * 7 + f * 3) % 5) * (slower if f == 0 else 1) for f in range(20)]
            took = sum(times) + 20
            for f, us in enumerate(times):
                lines.append(f"{cycle},7,host,{100 * us / took:.4f},function_{f},cpu_usage,Host,python,50,1,{us:.4f},measured,run_batch,{took:.4f},{at:.1f},1,function_{f}")
            at += took + 5
        tables.append(path(os.path.join(name, f"{side}_perf_data", f"{table}_perf_data.csv")))
        os.makedirs(os.path.dirname(tables[-1]), exist_ok=True)
        with open(tables[-1], "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return tables


class Tables(Case):
    def test_a_page_of_two_tables(self):
        a, b = profile_tables("pair", 60)
        page = answer_of(self.page("diff", a, b))
        said = json.loads(run("culprit", "diff", a, b, "--json").stdout)
        self.assertEqual(page["comparison"]["outcome"], said["outcome"])
        self.assertEqual([v["cause"] for v in page["comparison"]["verdicts"]], [v["cause"] for v in said["verdicts"]])
        worst = page["comparison"]["findings"][0]
        self.assertEqual(worst["function"], "function_0")
        self.assertGreater(worst["impact_ns_per_cycle"], 1e6)
        for side, picture in enumerate(page["pictures"]):
            periods = picture["cycles"][0]["period_ns"]
            self.assertEqual(len(periods), page["comparison"][["baseline", "candidate"][side]]["cycles"])
            self.assertAlmostEqual(statistics.median(periods), page["comparison"][["baseline", "candidate"][side]]["median_period_ns"], delta=1)
            spark = next(s["ns"] for s in picture["sparks"] if s["finding"] == 0)
            self.assertAlmostEqual(sum(spark) / len(spark) / worst["ns_per_cycle"][side], 1, places=6)

    def test_both_sides_in_one_directory(self):
        profile_tables("case", 60)
        folder = path("pages")
        os.makedirs(folder, exist_ok=True)
        self.assertEqual(answer_of(self.page("diff", path("case")))["kind"], "comparison")
        done = run("culprit", "diff", path("case"), "--html", "-o", folder)
        self.assertEqual(done.returncode, FINE, done.stderr)
        pages = os.listdir(folder)
        self.assertEqual([os.path.splitext(name)[1] for name in pages], [".html"])
        self.assertIn(pages[0], done.stdout)
        self.assertEqual(run("culprit", "diff", path("case"), "--html", "-o", folder).returncode, USAGE)

    def test_several_comparisons_are_several_pages(self):
        for table in ("one", "two"):
            profile_tables("many", 60, table)
        done = run("culprit", "diff", path("many"), "-o", path("many.html"))
        self.assertEqual(done.returncode, USAGE)
        self.assertIn("2 comparisons do not fit into one page", done.stderr)
        for there in (False, True):
            folder = path(f"many-pages-{there}")
            if there:
                os.makedirs(folder)
            done = run("culprit", "diff", path("many"), "--html", "-o", folder)
            self.assertEqual(done.returncode, FINE, done.stderr)
            self.assertEqual([os.path.splitext(name)[1] for name in os.listdir(folder)], [".html", ".html"])

    def test_one_page_is_a_file_under_any_name(self):
        profile_tables("single", 60)
        self.assertEqual(run("culprit", "diff", path("single"), "--html", "-o", path("no-ending")).returncode, FINE)
        self.assertTrue(os.path.isfile(path("no-ending")))


class Browser(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if cls.chromium is None:
            raise unittest.SkipTest("no chromium")

    def opened(self, name, canvases=0):
        """The elements of the page when it has drawn itself; nothing may have been said on the console."""
        for attempt in range(5):  # the browser's clock runs ahead of what it unpacks beside where the machine is busy
            elements = self.looked_at(name, 15000 * (attempt + 1))
            drawn = any(tag == "main" and a.get("aria-busy") == "false" for tag, a in elements.found)
            if drawn and sum(tag == "canvas" for tag, _ in elements.found) >= canvases:
                break
        self.assertTrue(drawn, elements.text)
        self.assertFalse([a for tag, a in elements.found if a.get("role") == "alert"], elements.text)
        return elements

    def looked_at(self, name, budget_ms):
        with tempfile.TemporaryDirectory(prefix="culprit-chromium-") as profile:
            done = subprocess.run([self.chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
                                   "--window-size=1240,9000", f"--virtual-time-budget={budget_ms}", "--enable-logging=stderr", "--dump-dom", "file://" + path(name)],
                                  capture_output=True, text=True, timeout=LIMIT, check=False)
        if done.returncode != 0 and not done.stdout:
            self.skipTest("chromium does not run here: " + (done.stderr.strip().splitlines() or ["?"])[-1])
        self.assertEqual([line for line in done.stderr.splitlines() if "CONSOLE" in line], [])
        return Elements(done.stdout)

    def test_a_comparison(self):
        self.page("diff", steps("a.json", hostile=True), steps("b.json", 60, hostile=True), name="diff.html")
        elements = self.opened("diff.html", canvases=4)
        ids = {a.get("id") for _, a in elements.found}
        for part in ("outcome", "causes", "cycles", "waterfall", "findings", "resources", "timeline", "evidence", "basis"):
            self.assertIn(part, ids)
        text = " ".join(elements.text)
        self.assertRegex(text, r"Outcome \([a-z_]+\): regression; cycle time \+")
        self.assertRegex(text, r"candidate: p50 [0-9.]+ ms, p90 ")
        self.assertIn("<script>alert(1)</script>", text)  # as text
        self.assertIn("\\u2028\\u202e", text)  # nor do they turn what stands behind them
        self.assertNotIn("\u202e", text)
        self.assertFalse([tag for tag, a in elements.found if tag == "img" or "onerror" in a])
        self.assertGreaterEqual(sum(tag == "canvas" for tag, _ in elements.found), 4)
        self.assertGreaterEqual(sum(a.get("class") == "spark" for _, a in elements.found), 20)

    def used(self, name):
        try:
            page = chromium.Page(self.chromium, "file://" + path(name))
        except (EOFError, BrokenPipeError):
            self.skipTest("chromium does not run here")
        self.addCleanup(page.close)
        return page

    def assert_links_lead_somewhere(self, page):
        self.assertEqual(page.value("[...document.querySelectorAll('a[href^=\"#\"]')].map((a) => a.hash.slice(1)).filter((id) => !document.getElementById(id))"), [])

    def test_a_cause_leads_to_its_slices_by_keys(self):
        answer = answer_of(self.page("diff", steps("a.json"), steps("b.json", 10), name="seen.html"))
        [verdict] = answer["comparison"]["verdicts"]
        self.assertEqual(verdict["scope"]["function"], "function_0")
        stretch = answer["pictures"][1]["stretch"]
        name = stretch["names"].index("function_0")
        [slice_] = [lane["slices"][i:i + 2] for lane in stretch["lanes"] for i in range(0, len(lane["slices"]), 3) if lane["slices"][i + 2] == name]
        page = self.used("seen.html")
        self.assert_links_lead_somewhere(page)
        first = '#causes a[href="#slices-0"]'
        self.assertEqual(page.value(f"document.querySelector('{first}').textContent"), "in the cycle of the candidate")
        before = page.value("scrollY")
        page.tab_to(first)
        page.key("Enter")
        page.until("document.activeElement.tagName === 'CANVAS'")
        self.assertEqual(page.value("location.hash"), "#slices-0")
        self.assertIn("of the candidate", page.value("document.activeElement.getAttribute('aria-label')"))
        begin, end = (page.value(f"Number(document.activeElement.dataset.{key})") for key in ("from", "to"))
        self.assertLessEqual(begin, slice_[0])
        self.assertGreaterEqual(end, sum(slice_))
        self.assertGreater(slice_[1] / (end - begin), 0.3)
        self.assertLess(end - begin, stretch["length_ns"])
        page.until("(({ top }) => top >= 0 && top < innerHeight)(document.getElementById('slices-0').getBoundingClientRect())")
        self.assertGreater(page.value("scrollY"), before)
        said = "document.activeElement.closest('.drawing').previousElementSibling.textContent"
        self.assertRegex(page.value(said), r"^function_0: [0-9.]+ us, .*; 1 of 1 that are marked$")
        page.key("Escape")
        self.assertEqual(page.value(said), "No slices are marked.")
        # Once more: the address is the same then.
        page.value(f"document.querySelector('{first}').focus()")
        page.key("Enter")
        page.until("document.activeElement.tagName === 'CANVAS'")
        self.assertIn("that are marked", page.value(said))
        for kind, text in (("finding", "function_0"), ("waterfall", "function_0")):
            page.value(f"document.querySelector('#causes a[href^=\"#{kind}-\"]').focus()")
            page.key("Enter")
            page.until("document.activeElement.tagName === 'TR'")
            self.assertTrue(page.value("document.activeElement.id").startswith(kind))
            self.assertIn(text, page.value("document.activeElement.textContent"))
        self.assertEqual(page.value("[...document.querySelectorAll('#causes button')].map((b) => b.textContent)"), ["Save this cycle as a trace"])
        page.call("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(page.value("getComputedStyle(document.querySelector('#causes button')).display"), "none")
        self.assertNotEqual(page.value(f"getComputedStyle(document.querySelector('{first}')).display"), "none")
        self.assertEqual(page.said, [])

    def test_an_address_leads_to_a_place_when_the_page_opens(self):
        self.page("diff", steps("a.json"), steps("b.json", 10), name="address.html")
        page = self.used("address.html#slices-0")
        page.until("document.activeElement.tagName === 'CANVAS'")
        self.assertEqual(page.said, [])

    def test_a_row_that_is_not_drawn_is_led_to(self):
        self.page("diff", steps("a.json", functions=200), steps("b.json", 60, functions=200), name="rows.html")
        page = self.used("rows.html#finding-150")
        page.until("document.activeElement.id === 'finding-150'")
        self.assertEqual(page.said, [])

    def test_a_run_queue_and_a_counter_are_led_to(self):
        for name, seed, fault in (("idle", "1", []), ("queued", "2", ["--fault", "cpu_contention", "--severity", "0.7"])):
            done = run("culprit-tracegen", "-q", "--force", "--workload", "train", "--cpu", "--steps", "24", "--layers", "2", "--seed", seed, "--work-seed", "1", "--sched", *fault, "-o", path(f"{name}.json"))
            self.assertEqual(done.returncode, FINE, done.stderr)
        for name, fault in (("cool", []), ("throttled", ["--fault", "gpu_clock_drop"])):
            done = run("culprit-tracegen", "-q", "--force", "--workload", "train", "--steps", "24", "--layers", "2", "--seed", "1", "--counters", *fault, "-o", path(f"{name}.json"))
            self.assertEqual(done.returncode, FINE, done.stderr)
        self.page("diff", path("idle.json"), path("queued.json"), name="queue.html")
        page = self.used("queue.html")
        self.assert_links_lead_somewhere(page)
        page.value("document.querySelector('#causes li a[href^=\"#slices-\"]').focus()")
        page.key("Enter")
        page.until("document.activeElement.tagName === 'CANVAS'")
        self.assertRegex(page.value("document.activeElement.closest('.drawing').previousElementSibling.textContent"), "^runq: .* that are marked$")
        self.assertEqual(page.said, [])
        self.page("diff", path("cool.json"), path("throttled.json"), name="clock.html")
        page = self.used("clock.html")
        self.assert_links_lead_somewhere(page)
        self.assertIn("The clock of GPU", page.value("document.querySelector('#causes li a[href^=\"#series-\"]').closest('li').textContent"))
        page.value("document.querySelector('#causes li a[href^=\"#series-\"]').focus()")
        page.key("Enter")
        page.until("document.activeElement.id.startsWith('series-')")
        self.assertIn("GPU clock, GPU 0", page.value("document.activeElement.textContent"))
        self.assertEqual(page.said, [])

    def test_a_cause_without_anything_to_show_has_no_link(self):
        answer = answer_of(self.page("diff", steps("a.json"), steps("b.json", all_slower=1.5), name="alike.html"))
        self.assertEqual([(v["cause"], v["detail"]) for v in answer["comparison"]["verdicts"]], [("cpu_contention", "unknown")])
        page = self.used("alike.html")
        self.assertEqual(page.value("document.querySelectorAll('#causes a, #causes button').length"), 0)
        self.assertEqual(page.value("document.querySelectorAll('#causes article').length"), 1)
        self.assertEqual(page.said, [])
        # Tables have no cycle to look into, but rows.
        self.page("diff", *profile_tables("linked", 60), name="linked.html")
        page = self.used("linked.html")
        self.assert_links_lead_somewhere(page)
        self.assertEqual(page.value("[...document.querySelectorAll('#causes a')].map((a) => a.hash.replace(/[0-9]+/g, 'N')).filter((id) => id !== '#finding-N')"), [])
        self.assertGreater(page.value("document.querySelectorAll('#causes a').length"), 0)
        self.assertEqual(page.said, [])

    def test_causes_of_one_run_are_led_to(self):
        trace = path("collecting.json")
        done = run("culprit-tracegen", "-q", "--force", "--workload", "serve", "--steps", "60", "--layers", "2", "--seed", "1", "--python", "--fault", "gc_pause", "-o", trace)
        self.assertEqual(done.returncode, FINE, done.stderr)
        self.page("diagnose", trace, name="one.html")
        page = self.used("one.html")
        self.assert_links_lead_somewhere(page)
        self.assertEqual(page.value("document.querySelectorAll('#timeline canvas').length"), 1)
        self.assertEqual(page.said, [])

    def test_profile_tables(self):
        self.page("diff", *profile_tables("drawn", 60), name="tables.html")
        elements = self.opened("tables.html", canvases=2)
        ids = {a.get("id") for _, a in elements.found}
        for part in ("outcome", "causes", "cycles", "findings", "basis"):
            self.assertIn(part, ids)
        self.assertRegex(" ".join(elements.text), r"Outcome.*regression")
        self.assertIn("Profile tables hold sums of each cycle only, so there is no ledger of both sides.", " ".join(elements.text))
        self.assertGreaterEqual(sum(a.get("class") == "spark" for _, a in elements.found), 20)
        self.page("diff", *profile_tables("drawn", 60), "--score", "suspicion", name="tables.html")
        self.assertIn("ranking", {a.get("id") for _, a in self.opened("tables.html", canvases=2).found})

    def test_ten_thousand_findings(self):
        page = self.page("diff", steps("a.json", functions=10_000, cycles=12), steps("b.json", 3, functions=10_000, cycles=12), name="large.html")
        self.assertGreaterEqual(len(answer_of(page)["comparison"]["findings"]), 10_000)
        self.assertLess(len(page), MOST)
        text = " ".join(self.opened("large.html").text)
        self.assertRegex(text, r"50 of 10\d\d\d rows")

    def test_cycles_kernels_and_one_run(self):
        trace = path("generated.json")
        self.assertEqual(run("culprit-tracegen", "-q", "--steps", "12", "--layers", "2", "--seed", "1", "-o", trace).returncode, FINE)
        for verb in ("cycles", "kernels", "diagnose"):
            page = self.page(verb, trace, name=f"{verb}.html")
            self.assertEqual(answer_of(page)["verb"], verb)
            elements = self.opened(f"{verb}.html", canvases=1 if verb == "cycles" else 0)
            self.assertTrue(any(tag == "table" for tag, _ in elements.found), verb)
            if verb == "diagnose":  # a cause and its evidence stand together
                cards = sum(a.get("class", "").startswith("card") for _, a in elements.found)
                self.assertEqual(cards, len(json.loads(run("culprit", verb, trace, "--json").stdout)["verdicts"]))
            if verb == "cycles":
                self.assertTrue(any(tag == "canvas" for tag, _ in elements.found))

    def test_one_that_was_damaged_says_so(self):
        page = self.page("cycles", steps("a.json"), name="cut.html")
        with open(path("cut.html"), "w", encoding="utf-8") as file:
            file.write(re.sub(r'(id="report">[^<]{40})[^<]*', r"\1", page))
        with self.assertRaises(AssertionError):
            self.opened("cut.html")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source")
    known, rest = parser.parse_known_args()
    ARGS.bin, ARGS.source = known.bin, known.source
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
