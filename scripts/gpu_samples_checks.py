"""Reads what torch.profiler and ncu wrote, independently of Culprit, and compares; the checks of scripts/gpu-samples.

Kept apart from collecting, so that they are tested where there is no GPU.
"""

import collections
import csv
import gzip
import hashlib
import io
import json
import math
import os
import re
import subprocess

DURATION, SM, DRAM = ("gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                      "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")
TENSOR = ["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
          "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed"]
NANOSECONDS = {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
CHECK_SECONDS = 30

Launch = collections.namedtuple("Launch", "name ns tensor sm dram")
Row = collections.namedtuple("Row", "ns rounding_ns calls")


class Missing(Exception):
    """Something that this script cannot do without; the text says what and how to get it."""


def parse_time(text):
    """(nanoseconds, half of the last digit) of a time as torch prints it, such as 325.435ms."""
    match = re.fullmatch(r"(\d+(?:\.(\d+))?)(ns|us|ms|s)", text.strip())
    if not match:
        raise ValueError(f"not a time: {text!r}")
    unit = NANOSECONDS[match.group(3)]
    return float(match.group(1)) * unit, 0.5 * unit / 10 ** len(match.group(2) or "")


def parse_table(text):
    """{name: [Row]} of a key_averages() table; operators and kernels can share a name."""
    lines = text.splitlines()
    rules = [number for number, line in enumerate(lines) if re.fullmatch(r"(-{3,}\s*){2,}", line)]
    if len(rules) < 3:
        raise ValueError("no table of three rules")
    spans = [match.span() for match in re.finditer(r"-+", lines[rules[0]])]
    header = re.split(r"\s{2,}", lines[rules[0] + 1].strip())  # a word may be longer than its column
    try:
        time_at = next(header.index(name) for name in ("Self CUDA", "Self Device") if name in header)
        calls_at = header.index("# of Calls")
    except (StopIteration, ValueError):
        raise ValueError(f"no columns 'Self CUDA' and '# of Calls' in {header}") from None
    found = {}
    for line in lines[rules[1] + 1:rules[2]]:
        cells = [line[a:b].strip() for a, b in spans]
        found.setdefault(cells[0], []).append(Row(*parse_time(cells[time_at]), int(cells[calls_at])))
    return found


def parse_number(text):
    return float(text.replace(",", ""))


def parse_ncu(text):
    """[Launch] of `ncu --csv` in the order of its ids; lines around the table are skipped. n/a stays None."""
    lines = text.splitlines()
    begin = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        raise ValueError("no header line that begins with \"ID\"")
    rows = csv.DictReader(line for line in lines[begin:] if line.startswith('"'))
    found = {}
    for row in rows:
        launch = found.setdefault(int(row["ID"]), {"name": row["Kernel Name"]})
        metric, value = row["Metric Name"], row["Metric Value"]
        if not re.match(r"[\d.,]+$", value):
            continue
        if metric == DURATION:
            launch["ns"] = parse_number(value) * NANOSECONDS[row["Metric Unit"]]
        for key, names in (("tensor", TENSOR), ("sm", [SM]), ("dram", [DRAM])):
            if metric in names:
                launch[key] = parse_number(value) / 100
    return [Launch(row["name"], *(row.get(key) for key in Launch._fields[1:])) for _, row in sorted(found.items())]


def parse_trace(text):
    """([Launch] by begin, [end of every profiler step in microseconds], [begin of every launch])."""
    events = [event for event in json.loads(text)["traceEvents"] if event.get("ph") == "X"]
    kernels = sorted((event for event in events if event.get("cat") == "kernel"), key=lambda event: float(event["ts"]))
    ends = sorted(float(event["ts"]) + float(event["dur"]) for event in events
                  if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#"))
    launches = [Launch(event["name"], 1000 * float(event["dur"]), None, None, None) for event in kernels]
    return launches, ends, [float(event["ts"]) for event in kernels]


def parse_culprit_log(text):
    """[Launch] of `culprit kernels --log --format csv`."""
    def optional(row, key):
        return float(row[key]) if row.get(key) else None
    return [Launch(row["kernel"], float(row["latency_ns"]), *(optional(row, key) for key in ("tensor", "sm", "dram")))
            for row in csv.DictReader(io.StringIO(text))]


def base_name(name):
    """The bare name of a kernel's function: demanglers differ in types, spaces and (anonymous namespace)."""
    name = re.sub(r"\(anonymous namespace\)|<unnamed>|\{anonymous\}", "_", name)
    bare, depth = "", 0
    for place, char in enumerate(name):
        if char == "(" and depth == 0 and place:
            break
        depth += {"<": 1, ">": -1}.get(char, 0)
        if depth == 0 and char != ">":
            bare += char
    return bare.strip().split("::")[-1].split(" ")[-1]


def ncu_trouble(text):
    """Why ncu counted nothing: ("permission" | "metric" | "other", detail), or None when its log has a table."""
    if "ERR_NVGPUCTRPERM" in text:
        return "permission", ("no permission to read performance counters (ERR_NVGPUCTRPERM): run as root, with CAP_SYS_ADMIN, or "
                              "load the driver with NVreg_RestrictProfilingToAdminUsers=0")
    if re.search(r'^"ID"', text, re.MULTILINE):
        return None
    match = re.search(r"Failed to find metric\s+([\w.]+)", text)
    if match:
        return "metric", match.group(1)
    errors = re.findall(r"^==ERROR==\s*(.*)", text, re.MULTILINE)
    return "other", errors[0] if errors else "its log has no table"


# ---- checks: lists of what is wrong, empty when all is well


def check_top(top, table):
    """Time and calls of every kernel, copy and fill of `top` against the rows of key_averages() of that name."""
    wrong = [] if top else ["top shows nothing"]
    for row in top:
        name, ns, calls = row["name"], float(row["self_ns"]), int(row["calls"])
        candidates = table.get(name, [])
        if not any(abs(other.ns - ns) <= other.rounding_ns + 1 and other.calls == calls for other in candidates):
            wrong.append(f"{name}: top has {ns:.0f} ns in {calls} calls, key_averages() "
                         + (", ".join(f"{other.ns:.0f} ns in {other.calls}" for other in candidates) or "has no such row"))
    return wrong


def check_launches(ours, theirs):
    """Culprit's launch log against the tool's own launches, one by one."""
    wrong = [] if theirs else ["the tool has no launch"]
    if len(ours) != len(theirs):
        wrong.append(f"culprit has {len(ours)} launches, the tool {len(theirs)}")
    for number, (a, b) in enumerate(zip(ours, theirs), 1):
        if a.name != b.name:
            wrong.append(f"launch {number}: culprit names it {a.name}, the tool {b.name}")
        if b.ns is None or not math.isclose(a.ns, b.ns, rel_tol=0, abs_tol=1):
            wrong.append(f"launch {number} ({a.name}): culprit has {a.ns} ns, the tool {b.ns}")
        for key in ("tensor", "sm", "dram"):
            mine, other = getattr(a, key), getattr(b, key)
            if (mine is None) != (other is None) or (mine is not None and abs(mine - other) > 1e-6):
                wrong.append(f"launch {number} ({a.name}): culprit has {key} {mine}, the tool {other}")
    return wrong


def check_order(ncu, trace):
    """The launches of ncu against those of the same steps of the trace, by function."""
    wrong = [] if ncu else ["ncu has no launch"]
    if len(ncu) != len(trace):
        wrong.append(f"ncu has {len(ncu)} launches, the same steps of the trace {len(trace)}")
    for number, (a, b) in enumerate(zip(ncu, trace), 1):
        if base_name(a.name) != base_name(b.name):
            wrong.append(f"launch {number}: ncu has {base_name(a.name)}, the trace {base_name(b.name)}")
            break  # all that follow are shifted
    return wrong


# ---- checking what was collected


def read_text(path):
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as text:
        return text.read()


def culprit(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, errors="replace", timeout=CHECK_SECONDS,
                          check=False)
    if done.returncode != 0:
        raise ValueError(f"culprit {' '.join(words)} ended with exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def check_folder(program, output):
    """Runs all checks on the collected files; True when every one was made and none found anything."""
    if not os.access(program, os.X_OK):
        raise Missing(f"culprit ({program}) to check with: build it (make build), then scripts/gpu-samples --check")
    with open(os.path.join(output, "manifest.json"), encoding="utf-8") as text:
        manifest = json.load(text)
    good = True

    def report(what, make):
        nonlocal good
        try:
            wrong = make()
        except (ValueError, KeyError, TypeError, OSError, subprocess.TimeoutExpired) as error:
            wrong = [f"{type(error).__name__}: {error}"]
        print(f"{'FAILED' if wrong else 'ok':6}  {what}")
        for line in wrong[:5] + ([f"... and {len(wrong) - 5} more"] if len(wrong) > 5 else []):
            print(f"        {line}")
        good = good and not wrong

    def path(name):
        return os.path.join(output, os.path.basename(name))

    def digest(name, entry):
        with open(path(name), "rb") as data:
            same = hashlib.sha256(data.read()).hexdigest() == entry["sha256"]
        return [] if same else ["its contents are not those of the manifest"]

    def top(trace, table):
        rows = list(csv.DictReader(io.StringIO(culprit(program, "top", "--class", "gpu", "--format", "csv", path(trace)))))
        return check_top(rows, parse_table(read_text(path(table))))

    def log(name):
        return parse_culprit_log(culprit(program, "kernels", "--log", "--format", "csv", path(name)))

    def order(ncu, trace, steps):
        _, ends, begins = parse_trace(read_text(path(trace)))
        if len(ends) < steps:
            return [f"the trace has {len(ends)} profiler steps, ncu ran {steps}"]
        return check_order(log(ncu), log(trace)[:sum(begin < ends[steps - 1] for begin in begins)])

    files = manifest["files"]
    traces = sorted(name for name in files if name.endswith(".json.gz"))
    for name, entry in sorted(files.items()):
        report(f"{name}: as collected", lambda name=name, entry=entry: digest(name, entry))
    for name in traces:
        report(f"{name}: top equals key_averages()", lambda name=name: top(name, name.replace(".json.gz", ".txt.gz")))
        report(f"{name}: kernels equals the trace",
               lambda name=name: check_launches(log(name), parse_trace(read_text(path(name)))[0]))
    for name in sorted(name for name in files if name.endswith(".ncu.csv.gz")):
        phase = name.split(".")[0]
        report(f"{name}: kernels equals ncu",
               lambda name=name: check_launches(log(name), parse_ncu(read_text(path(name)))))
        for trace in traces:
            if trace.startswith(phase + "."):
                report(f"{name}: launched in the order of {trace}",
                       lambda name=name, trace=trace, phase=phase: order(name, trace, manifest["ncu_steps"][phase]))
    if not traces:
        report("traces", lambda: ["the manifest names none"])
    for part, why in sorted(manifest["left_out"].items()):
        print(f"absent  {part}: {why}")
    return good


# ---- self-test


TABLE = """\
-----------------------------------  ------------  ------------  ------------
                               Name      Self CPU     Self CUDA    # of Calls
-----------------------------------  ------------  ------------  ------------
                           aten::mm      12.000us       1.235ms             2
        void f<float, 4>(float*, T)       0.000us       1.235ms             2
                    Memset (Device)       0.000us       2.500us             1
-----------------------------------  ------------  ------------  ------------
Self CUDA time total: 1.237ms
"""
TRACE = json.dumps({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "void ns::g(int)", "pid": 0, "tid": 7, "ts": 30, "dur": 2.5},
    {"ph": "X", "cat": "kernel", "name": "void f<float, 4>(float*, T)", "pid": 0, "tid": 7, "ts": 10.5, "dur": 1.25},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 5, "dur": 20},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 1, "tid": 1, "ts": 25, "dur": 20},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#1", "pid": 0, "tid": 7, "ts": 10, "dur": 90},
    {"ph": "i", "cat": "x", "name": "mark", "pid": 1, "tid": 1, "ts": 5}]})
NCU_COLUMNS = ('"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","Device","Metric Name","Metric Unit",'
               '"Metric Value"')
NCU = "==PROF== Connected to process 12\n" + NCU_COLUMNS + "\n" + "".join(
    f'"{number}","12","{name}","7","(1, 1, 1)","(1, 1, 1)","0","{metric}","{unit}","{value}"\n'
    for number, name, metric, unit, value in (
        (0, "void f<float, (int)4>(float *, T2)", DRAM, "%", "12.50"),
        (0, "void f<float, (int)4>(float *, T2)", DURATION, "ns", "1,250"),
        (0, "void f<float, (int)4>(float *, T2)", TENSOR[1], "%", "50"),
        (1, "ns::g(int)", DURATION, "us", "2.50"), (1, "ns::g(int)", TENSOR[0], "%", "n/a"))) + "==PROF== Disconnected\n"


def raises(call, *arguments):
    try:
        call(*arguments)
    except ValueError:
        return True
    return False


def self_test():
    """Tries all of the above on made-up inputs, false ones among them; 0 when all is as it must be, else 1."""
    table, (launches, ends, begins), counted = parse_table(TABLE), parse_trace(TRACE), parse_ncu(NCU)
    top = [{"name": "void f<float, 4>(float*, T)", "self_ns": "1235400", "calls": "2"},
           {"name": "Memset (Device)", "self_ns": "2500", "calls": "1"}]
    log = "launch,kernel,latency_ns,dram,grid\n1,\"f<1, 2>(int)\",1250,0.125,1x1x1\n2,g,2500,,1x1x1\n"
    other = [counted[0]._replace(ns=1252.0), counted[1]]
    cases = {
        "a time with its rounding": parse_time("325.435ms") == (325435000.0, 500.0) and parse_time("3us")[1] == 500,
        "no time": raises(parse_time, "12") and raises(parse_time, "n/a"),
        "rows of a table": table["Memset (Device)"] == [Row(2500.0, 0.5, 1)] and len(table) == 3,
        "no table": raises(parse_table, "Name  Self CUDA\n") and raises(parse_table, TABLE.replace("Self CUDA", "Some CUDA")),
        "kernels of a trace by begin": [launch.ns for launch in launches] == [1250.0, 2500.0] and begins == [10.5, 30.0],
        "steps of a trace": ends == [25.0, 45.0],
        "launches of ncu by id": [launch.ns for launch in counted] == [1250.0, 2500.0],
        "use of ncu": (counted[0].dram, counted[0].tensor, counted[0].sm, counted[1].tensor) == (0.125, 0.5, None, None),
        "no permission to read counters": ncu_trouble("==ERROR== ERR_NVGPUCTRPERM - no permission\n")[0] == "permission",
        "an unknown metric": ncu_trouble(f"==ERROR== Failed to find metric {SM}\n") == ("metric", SM),
        "another error of ncu": ncu_trouble("==PROF== a\n==ERROR== LibraryNotLoaded\n") == ("other", "LibraryNotLoaded"),
        "a log of ncu": ncu_trouble(NCU) is None and ncu_trouble("")[0] == "other",
        "no header of ncu": raises(parse_ncu, "==ERROR== ERR_NVGPUCTRPERM\n"),
        "culprit's log": parse_culprit_log(log) == [Launch("f<1, 2>(int)", 1250.0, None, None, 0.125),
                                                    Launch("g", 2500.0, None, None, None)],
        "names of two demanglers": all(base_name(name) == "f" for name in (
            "f", "void f<float, 4>(float*)", "void a::(anonymous namespace)::f<(int)4, b<c>>(T1)", "a::<unnamed>::f(int)",
            "std::enable_if<true, void>::type a::f<std::tuple<int>>(int)")),
        "top within rounding": check_top(top, table) == [],
        "top with another time": len(check_top([dict(top[0], self_ns="1236000")], table)) == 1,
        "top with another count": len(check_top([dict(top[0], calls="3")], table)) == 1,
        "top with another name": "no such row" in check_top([dict(top[0], name="z")], table)[0],
        "an empty top": check_top([], table) != [],
        "equal launches": check_launches(counted, counted) == [],
        "another time": len(check_launches(counted, other)) == 1,
        "another use": len(check_launches(counted, [counted[0]._replace(dram=None), counted[1]])) == 1,
        "a launch too few": len(check_launches(counted[:1], counted)) == 1,
        "no launch": check_launches([], []) != [] and check_order([], []) != [],
        "equal order": check_order(counted, launches) == [],
        "another order": len(check_order(counted[::-1], launches)) == 1,
        "a shorter order": len(check_order(counted, launches[:1])) == 1,
    }
    for name, good in cases.items():
        if not good:
            print(f"FAILED  {name}")
    failed = sum(not good for good in cases.values())
    print(f"{len(cases) - failed} checks passed, {failed} failed")
    return 1 if failed else 0
