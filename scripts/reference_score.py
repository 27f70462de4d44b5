"""What the reference's score (`culprit diff --score suspicion`, docs/diff.md) says of a pair, for the trials that know the truth."""

import json
import os
import re
import subprocess

THRESHOLD = 10.0  # above it the reference itself calls a row a finding

# Of a cause: which functions, or which resources measured beside any function, would name it. A cause that is not here no row can name.
NAMES = {
    "cpu_contention": (r"^runq$", r"^host_cpu_usage$"),
    "cpu_frequency_drop": (None, r"^cpu_frequency$"),
    "disk_io": (r"^(p?readv?|p?writev?|fsync|fdatasync)$", r"^disk_usage$"),
    "gpu_clock_drop": (None, r"^gpu_(sm_)?frequency$"),
    "gpu_contention/memory_pressure": (r"Memcpy DtoD", r"^gpu_mem_"),
    "gpu_contention": (None, r"^gpu_usage$"),
    "host_bound/data_input": (r"DataLoader", None),
    "host_bound/function": (r"get_next_batch_to_run|[Ll]og", None),  # what tracegen makes slower; the functions of a server that logs more
    "host_bound/gc": (r"\bgc\b|collect", None),
    "host_bound/gil": (r"gil|futex|_hold", None),
    "host_bound/lock": (r"gil|futex|_hold", None),
    "host_memory_pressure/swap": (None, r"^(host|process)_mem_"),
    "interconnect_contention/pcie": (r"Memcpy (HtoD|DtoH)", r"^gpu_pcie_"),
    "interconnect_contention": (r"nccl|cross_device_reduce", r"^(gpu_link|net)_"),
    "kernel_changed": (r"attention|flash_fwd|BatchDecode", None),  # those that tracegen replaces
    "kernel_regression": (r"attention|flash_fwd|BatchDecode", None),
    "straggler": (r"nccl|cross_device_reduce", None),
}

HEAD = ["the reference's first row right", "another", "no row", "its largest change of a share right"]


def ask(build, base, candidate):
    """Of the recordings of both sides: "row", the first one by the score (None: there is none, because no resource was measured beside any function); "share", the
    function without such a row whose share of a cycle changed most; "above", how many rows are above the reference's threshold; "error", why nothing is said."""
    sides = [*base, *candidate] if len(base) == len(candidate) == 1 else [*base, "--vs", *candidate]
    done = subprocess.run([os.path.join(build, "culprit"), "diff", "--json", "--score", "suspicion", *sides], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"row": None, "share": None, "above": 0, "error": done.stderr.strip()[-300:]}
    comparisons = json.loads(done.stdout)["comparisons"]
    rows = sorted((row for one in comparisons for row in one["rows"]), key=lambda row: -(row["suspicion_score"] or 0))
    shares = [{"function": one["function"], "metric": "", "device": one["device"], "change_pct": one["beta_candidate_pct"] - one["beta_baseline_pct"]}
              for comparison in comparisons for one in comparison["functions_without_metric"]]
    row = {key: rows[0][key] for key in ("function", "metric", "device", "suspicion_score")} if rows and rows[0]["suspicion_score"] else None
    return {"row": row, "share": max(shares, key=lambda share: abs(share["change_pct"]), default=None),
            "above": sum((row["suspicion_score"] or 0) > THRESHOLD for row in rows), "error": None}


def could_name(row, causes):
    """Whether the row names one of these causes, "cause/detail" or "cause" each."""
    for cause in causes if row else []:
        whole = cause.strip("/")
        functions, metrics = NAMES.get(whole) or NAMES.get(whole.split("/")[0]) or (None, None)
        if (functions and re.search(functions, row["function"])) or (metrics and re.search(metrics, row["metric"])):
            return True
    return False


def of_known(count, known, all_of):
    """A cell: older files do not tell of all pairs, or of none."""
    return "" if all_of and not known else str(count) if known == all_of else f"{count} of {known}"


def cells(pairs):
    """Of pairs (what ask() gave, None: it was not asked; the causes that are right), what HEAD says."""
    known = [pair for pair in pairs if pair[0]]
    right = sum(could_name(answer["row"], causes) for answer, causes in known)
    none = sum(not answer["row"] for answer, _ in known)
    shares = sum(could_name(answer["share"], causes) for answer, causes in known)
    return [of_known(count, len(known), len(pairs)) for count in (right, len(known) - right - none, none, shares)]


def alarms(answers):
    """Of undisturbed pairs, in how many a row is above the reference's threshold."""
    known = [answer for answer in answers if answer]
    return of_known(sum(answer["above"] > 0 for answer in known), len(known), len(answers))
