"""A pytest plugin: a marked test is measured step by step and held against a stored baseline.

    @pytest.mark.culprit(steps=50)
    def test_step(culprit_steps):
        for _ in culprit_steps:
            train_step()

The baseline is made with ``--culprit-store``, when the test passes, and lies in the folder of ``--culprit-baselines`` (default: .culprit in pytest's root folder).
It keeps the last five: the newest is compared, the others tell how much the same test differs by itself. With less than four nothing is decided but large differences.
A test fails on ``regression`` and warns on ``inconclusive``. A baseline of another machine, of another number of CPUs that the process may use or of workers of pytest-xdist is not compared; that tells a warning, too. A file that
is none fails. Where PyTorch uses a GPU (torch.cuda), each step begins and ends when the current device has nothing left to do.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import os
import platform
import re
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NoReturn, Tuple

import pytest

from . import _baseline
from ._error import CulpritWarning, Error

if TYPE_CHECKING:
    from ._comparison import Comparison

_FEWEST = 5  # steps of which a comparison decides anything
_DEFAULTS = {"steps": 30, "warm_up": 3, "tolerance": None}
# What makes another machine of it, with as much beside the test; the rest is told beside the comparison. A GPU is named only where PyTorch has used it so far.
_MACHINE = ("cpu", "cpus", "gpu", "workers")


def _share(text: str) -> float:
    """Of the option."""
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1 (0.05 is 5 %)")
    return share


def pytest_addoption(parser: Any) -> None:
    """The options of the plugin."""
    group = parser.getgroup("culprit")
    group.addoption("--culprit-store", action="store_true", help="measured tests that pass store their steps as the baseline; the last 5 are kept, and decide")
    group.addoption("--culprit-baselines", metavar="DIR", help="where baselines lie (default: .culprit in the root folder)")
    group.addoption("--culprit-tolerance", metavar="SHARE", type=_share, default=0.05, help="change that does not matter (default: 0.05)")


def pytest_configure(config: Any) -> None:
    """The mark of the plugin."""
    config.addinivalue_line("markers", "culprit(steps=30, warm_up=3, tolerance=…): measures the steps of the test and compares them with the stored baseline")


def _synchronize() -> None:
    """Waits for what was launched on the current GPU, where PyTorch uses one."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        cuda.synchronize()


def _workers() -> int:
    """Processes of pytest-xdist that run tests beside each other."""
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    return int(count) if count.isdecimal() else 1


def facts() -> Dict[str, str]:
    """What a measurement depends on: host, CPU, versions, and the GPU that PyTorch uses."""
    found = {"host": platform.node(), "cpu": platform.processor() or platform.machine(), "cpus": str(len(os.sched_getaffinity(0))), "python": platform.python_version()}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            told = file.read()
    except OSError:
        told = ""
    # ARM tells who made it and which one by numbers.
    models = [re.search(rf"^{name}\s*:\s*(.+)$", told, re.M) for name in ("model name", "CPU implementer", "CPU part")]
    found["cpu"] = " ".join(model.group(1).strip() for model in models if model) or found["cpu"]
    if _workers() > 1:
        found["workers"] = str(_workers())
    torch = sys.modules.get("torch")
    if torch is not None:
        found["torch"] = str(getattr(torch, "__version__", ""))
        cuda = getattr(torch, "cuda", None)
        if cuda is not None and cuda.is_initialized():
            found["gpu"] = str(cuda.get_device_name())
    return found


class Steps:
    """Counts out the steps of a test, and when each began and ended."""

    def __init__(self, steps: int, warm_up: int) -> None:
        self.steps, self.warm_up = steps, warm_up
        self.begins: List[int] = []
        self.ends: List[int] = []

    def __iter__(self) -> Iterator[int]:
        for step in range(self.steps + self.warm_up):
            _synchronize()
            begin = time.perf_counter_ns()
            yield step
            _synchronize()
            if step >= self.warm_up:
                self.begins.append(begin)
                self.ends.append(time.perf_counter_ns())

    def recording(self) -> _baseline.Recording:
        """What was measured, and on what."""
        first = self.begins[0]
        return _baseline.Recording(facts(), [((begin - first) / 1e3, (end - begin) / 1e3) for begin, end in zip(self.begins, self.ends)])


def _options_of(item: Any) -> Dict[str, Any]:
    """Of the mark of a test. Fails for what is none."""
    marker = item.get_closest_marker("culprit")
    if marker is None:
        return dict(_DEFAULTS)
    unknown = sorted(set(marker.kwargs) - set(_DEFAULTS))
    if marker.args or unknown:
        pytest.fail(f"pytest.mark.culprit takes {', '.join(_DEFAULTS)} by name, and not {', '.join([*map(repr, marker.args), *unknown])}", pytrace=False)
    options = {**_DEFAULTS, **marker.kwargs}
    for name, least in (("steps", _FEWEST), ("warm_up", 0)):
        value = options[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            pytest.fail(f"pytest.mark.culprit: {name} is a whole number from {least} on, not {value!r}", pytrace=False)
    tolerance = options["tolerance"]
    if tolerance is not None and (not isinstance(tolerance, (int, float)) or isinstance(tolerance, bool) or not 0 < tolerance < 1):
        pytest.fail(f"pytest.mark.culprit: tolerance is a share between 0 and 1, not {tolerance!r}", pytrace=False)
    return options


def pytest_runtest_setup(item: Any) -> None:
    """A marked test that would not be measured does not run."""
    item.culprit_new, item.culprit_failed = None, False  # of an earlier run of the same test
    if item.get_closest_marker("culprit") is None:
        return
    _options_of(item)
    if "culprit_steps" not in getattr(item, "fixturenames", ()):
        pytest.fail("a test that is marked culprit takes the fixture culprit_steps, and iterates over it", pytrace=False)


@pytest.fixture
def culprit_steps(request: Any) -> Steps:
    """The steps of a measured test: iterate over it."""
    options = _options_of(request.node)
    steps = Steps(options["steps"], options["warm_up"])
    request.node.culprit_steps = steps
    return steps


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: Any) -> None:
    """Comes when the test has passed: what this raises is the test's."""
    steps = getattr(item, "culprit_steps", None)
    if steps is not None:
        del item.culprit_steps
        _judge(item, steps)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    """What passes though it is marked as failing is no baseline, nor is what others than the test itself call failed."""
    outcome: Any = yield
    report = outcome.get_result()
    if call.when == "call" and (hasattr(report, "wasxfail") or not report.passed):
        item.culprit_failed = True  # a subtest fails before the test has been measured


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: Any) -> None:
    """Comes when nothing has failed, the end of the test's fixtures included."""
    new, failed = getattr(item, "culprit_new", None), getattr(item, "culprit_failed", False)
    if new is not None and not failed:
        _store(item, _baseline_of(item), new)


def _baseline_of(item: Any) -> str:
    """The readable part of the name may be cut, or that of another test."""
    asked = item.config.getoption("--culprit-baselines")
    # A test may be in another folder by now than the one in which pytest was called.
    folder = os.path.join(str(item.config.invocation_params.dir), asked) if asked else os.path.join(str(item.config.rootpath), ".culprit")
    test = f"{item.parent.nodeid}::{item.name}"  # to item.nodeid pytest-xdist may add a group
    known = hashlib.sha256(test.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return os.path.join(folder, f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', test)[-150:]}-{known}.json")


def _differences(then: Dict[str, str], now: Dict[str, str]) -> Tuple[List[str], bool]:
    """Facts that differ, each with both values; whether these make another machine."""
    names = [name for name in sorted({*then, *now}) if then.get(name) != now.get(name)]
    elsewhere = any(name in _MACHINE and (name != "gpu" or (name in then and name in now)) for name in names)
    return [f"{name}: {then.get(name, 'none')}, now {now.get(name, 'none')}" for name in names], elsewhere


def _of_this_machine(recordings: List[_baseline.Recording], now: Dict[str, str]) -> List[_baseline.Recording]:
    return [recording for recording in recordings if not _differences(recording.facts, now)[1]]


def _store(item: Any, path: str, new: _baseline.Recording) -> None:
    """Before those that are there; what is no baseline, and what is of another machine, makes way."""
    try:
        with _baseline.alone(path):
            stored = _stored(path)
            before = _of_this_machine(stored, new.facts)
            _baseline.write(path, [new, *before][: _baseline.KEPT])
    except OSError as error:
        _unwritable(path, error.strerror or str(error))
    if len(before) < len(stored):  # told when it is stored: where warnings are errors this raises
        item.warn(CulpritWarning(f"{item.nodeid}: {len(stored) - len(before)} recordings of another machine make way for that of this one"))


def _stored(path: str) -> List[_baseline.Recording]:
    """The newest first; of what is no baseline none."""
    try:
        return _baseline.read(path) if os.path.lexists(path) else []
    except _baseline.Unusable:
        return []
    except OSError as error:
        pytest.fail(f"--culprit-store: the baseline {path} cannot be read, and is left as it is: {error.strerror or error}", pytrace=False)


def _check_place(path: str) -> None:
    """Fails where no baseline can be written, while that is the test's failure and not that of its teardown."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        _unwritable(path, error.strerror or str(error))
    if os.path.isdir(path):
        _unwritable(path, os.strerror(errno.EISDIR))
    if not os.access(folder, os.W_OK):
        _unwritable(path, os.strerror(errno.EACCES))


def _unwritable(path: str, why: str) -> NoReturn:
    pytest.fail(f"--culprit-store: the baseline {path} cannot be written: {why}", pytrace=False)


def _unusable(path: str, why: object) -> NoReturn:
    pytest.fail(f"the baseline {path} cannot be used: {why} (remove it, and make it anew with --culprit-store)", pytrace=False)


def _judge(item: Any, steps: Steps) -> None:
    """Stores the steps, or holds them against those stored."""
    if len(steps.ends) < _FEWEST:
        made = f"{len(steps.ends)} steps, {_FEWEST} are the least" if steps.ends else "no steps"
        pytest.fail(f"the test made {made}: iterate over culprit_steps", pytrace=False)
    path, new = _baseline_of(item), steps.recording()
    if item.config.getoption("--culprit-store"):
        _check_place(path)
        item.culprit_new = new
    elif os.path.lexists(path):
        _compare(item, path, new)
    else:
        item.warn(CulpritWarning(f"no baseline of {item.nodeid}: make it with --culprit-store, {_baseline.KEPT} times"))


def _compare(item: Any, path: str, new: _baseline.Recording) -> None:
    """With the newest of those stored; the others are earlier ones of the same."""
    try:
        stored = _baseline.read(path)
    except (_baseline.Unusable, OSError) as error:
        _unusable(path, getattr(error, "strerror", None) or error)
    differences, elsewhere = _differences(stored[0].facts, new.facts)
    if elsewhere:
        item.warn(CulpritWarning(f"{item.nodeid}: not_comparable: the baseline is of another machine, or of another number of workers ({'; '.join(differences)}): make it anew with --culprit-store"))
        return
    from ._comparison import diff  # no other test run has to wait for it

    tolerance = _options_of(item)["tolerance"] or item.config.getoption("--culprit-tolerance")
    earlier = _of_this_machine(stored[1:], new.facts)
    with tempfile.TemporaryDirectory(prefix="culprit-") as folder:
        now, *history = (os.path.join(folder, f"{name}.json") for name in ("steps", *(f"earlier{i}" for i in range(len(earlier)))))
        for file, recording in zip([now, *history], [new, *earlier]):
            _baseline.write(file, [recording])
        try:
            compared = diff(path, now, tolerance=tolerance, history=history)
        except Error as error:
            _unusable(path, error)
    told = _told(compared)
    if differences:
        told += f"\nwhat differs from the baseline: {'; '.join(differences)}"
    if compared.outcome == "regression":
        pytest.fail(told, pytrace=False)
    if compared.outcome in ("inconclusive", "not_comparable"):
        item.warn(CulpritWarning(f"{item.nodeid}: {told}{_missing(1 + len(earlier))}"))
    elif differences:
        item.warn(CulpritWarning(f"{item.nodeid}: {told}"))


def _told(compared: Comparison) -> str:
    """What is known of steps that say nothing of what lies in them."""
    from ._html import duration

    lines = [compared.outcome + (f": {compared.why}" if compared.why else "")]
    for row in compared.effects():
        change = "" if row["ratio"] is None else f", {100 * (row['ratio'] - 1):+.1f} %"
        if row["ci_low"] is not None and row["ci_high"] is not None:
            change += f" (95 % interval {100 * (row['ci_low'] - 1):+.1f} to {100 * (row['ci_high'] - 1):+.1f} %)"
        steps = f"from {row['baseline_n']} and {row['candidate_n']} steps; changes within {100 * row['tolerance']:g} % do not count"
        if row["baseline_ns"] is not None and row["candidate_ns"] is not None:
            lines.append(f"a step takes {duration(row['candidate_ns'])}, in the baseline {duration(row['baseline_ns'])}{change}, {steps}")
        if row["earlier"] > 0:
            lines.append(f"{row['earlier']} earlier measurements of the same differ by {100 * row['between']:.2g} % (standard deviation)")
    lines += compared.data["comparability"]["reasons"] + compared.data["assumptions"]
    if compared.outcome == "regression":
        lines.append("where it went is not in a baseline: compare traces of before and now (torch.profiler, culprit record) by culprit diff")
    return "\n".join(lines)


def _missing(stored: int) -> str:
    """What more recordings would tell."""
    more = _baseline.KEPT - stored
    if more <= 0:
        return ""
    times = "once more" if more == 1 else f"{more} more times"
    return f"\nstored {stored} of {_baseline.KEPT} times: store it {times} (--culprit-store), so that how much it differs by itself is known"
