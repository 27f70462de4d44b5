"""How else two commands are compared, for scripts/trial-ab: runs one after the other, hyperfine, and runs in turns, each with Student's t-test (two-sided, 5 %)."""

import json
import math
import os
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time

LEAST_RUNS = 3  # of each side
ALPHA = 0.05


def student_p(t, dof):
    """Two-sided, of Student's t: with t = sqrt(dof) tan(x) the density is a power of cos(x)."""
    def area(begin, parts=2000):
        width = (math.pi / 2 - begin) / parts
        heights = [math.cos(begin + i * width) ** (dof - 1) for i in range(parts)] + [1.0 if dof == 1 else 0.0]
        return (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])) * width / 3
    return area(math.atan(abs(t) / math.sqrt(dof))) / area(0.0)


def answer(base, candidate, p, begin):
    return {"ratio": statistics.mean(candidate) / statistics.mean(base), "p": p, "different": p < ALPHA, "runs": [len(base), len(candidate)], "seconds": time.monotonic() - begin}


def welch(base, candidate):
    """p of two samples with variances of their own."""
    errors = [statistics.variance(side) / len(side) for side in (base, candidate)]
    if sum(errors) == 0:
        return 1.0 if statistics.mean(base) == statistics.mean(candidate) else 0.0
    dof = sum(errors) ** 2 / sum(error ** 2 / (len(side) - 1) for error, side in zip(errors, (base, candidate)))
    return student_p((statistics.mean(candidate) - statistics.mean(base)) / math.sqrt(sum(errors)), dof)


def paired(base, candidate):
    """p of the differences of neighbours."""
    differences = [b - a for a, b in zip(base, candidate)]
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    if error == 0:
        return 1.0 if differences[0] == 0 else 0.0
    return student_p(statistics.mean(differences) / error, len(differences) - 1)


def one_after_the_other(sides, measure, seconds):
    """All runs of one side, then all of the other."""
    begin = time.monotonic()
    values = []
    for number, command in enumerate(sides, 1):
        side = []
        while len(side) < LEAST_RUNS or time.monotonic() - begin < seconds * number / 2:
            side.append(measure(command))
        values.append(side)
    return answer(*values, welch(*values), begin)


def in_turns(sides, measure, seconds):
    """A run of one, a run of the other, and so on, always in this order."""
    begin = time.monotonic()
    values = [[], []]
    while len(values[0]) < LEAST_RUNS or time.monotonic() - begin < seconds:
        for side, command in zip(values, sides):
            side.append(measure(command))
    return answer(*values, paired(*values), begin)


def hyperfine(sides, _measure, seconds):
    """As one calls it, as many runs as there is time for; it tells no test of its own."""
    begin = time.monotonic()
    for command in sides:
        wall_time(command)
    runs = max(LEAST_RUNS, int(seconds / (time.monotonic() - begin)) - 2)  # without the runs that were timed, and those that warm up
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "times.json")
        subprocess.run(["hyperfine", "--shell=none", "--style", "none", "--warmup", "1", "--runs", str(runs), "--export-json", file, *(shlex.join(command) for command in sides)],
                       stdout=subprocess.DEVNULL, check=True)
        with open(file, encoding="utf-8") as times:
            values = [result["times"] for result in json.load(times)["results"]]
    return answer(*values, welch(*values), begin)


def wall_time(command):
    """Seconds of a run."""
    begin = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - begin


def own_step_time(command):
    """What tinyserve says of the run itself: milliseconds of its mean decode step."""
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["steps"]["DECODE"]["ms"]["mean"]


METHODS = {"one after the other, t-test": one_after_the_other, "interleaved runs, paired t-test": in_turns, "hyperfine, t-test": hyperfine}


def left_out():
    """The methods that cannot be tried here."""
    return [] if shutil.which("hyperfine") else ["hyperfine, t-test"]


def compare(sides, measure, seconds):
    """What each method says of these two commands, baseline first, when it has so many seconds."""
    return {name: method(sides, measure, seconds) for name, method in METHODS.items() if name not in left_out()}


def summary(name, answers):
    """One line for a method, of answers (whether the slower side was the baseline; what compare() gave)."""
    said = [(swapped, methods[name]) for swapped, methods in answers]
    found = [(swapped, one) for swapped, one in said if one["different"]]
    right = sum((one["ratio"] > 1) != swapped for swapped, one in found)
    middle = statistics.median((-1 if swapped else 1) * math.log(one["ratio"]) for swapped, one in said)
    return (f"    {name}: {len(said)} comparisons, {len(found)} different ({right} the right way round); median {100 * math.expm1(middle):+.1f} %, "
            f"{statistics.median(one['runs'][0] for _, one in said):.0f} runs of each; {statistics.median(one['seconds'] for _, one in said):.0f} s")
