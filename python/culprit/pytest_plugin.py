"""A pytest plugin: a marked test is measured step by step and held against a stored baseline.

    @pytest.mark.culprit(steps=50)
    def test_step(culprit_steps):
        for _ in culprit_steps:
            train_step()

The baseline is made with ``--culprit-store`` and lies in the folder of ``--culprit-baselines`` (default: .culprit beside the tests). A test fails on ``regression``
and warns on ``inconclusive``.
"""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from typing import Any, Iterator, List

import pytest

from ._comparison import diff


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("culprit")
    group.addoption("--culprit-store", action="store_true", help="measured tests store their steps as the baseline")
    group.addoption("--culprit-baselines", metavar="DIR", help="where baselines lie (default: .culprit in the root folder)")
    group.addoption("--culprit-tolerance", metavar="SHARE", type=float, default=0.05, help="change that does not matter (default: 0.05)")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "culprit(steps=30, warm_up=3): measures the steps of the test and compares them with the stored baseline")


class Steps:
    """Counts out the steps of a test, and when each began and ended."""

    def __init__(self, steps: int, warm_up: int) -> None:
        self.steps, self.warm_up = steps, warm_up
        self.begins: List[int] = []
        self.ends: List[int] = []

    def __iter__(self) -> Iterator[int]:
        for step in range(self.steps + self.warm_up):
            begin = time.perf_counter_ns()
            yield step
            if step >= self.warm_up:
                self.begins.append(begin)
                self.ends.append(time.perf_counter_ns())

    def write(self, path: str) -> None:
        """As a trace of steps, complete or not at all."""
        first = self.begins[0]
        events = [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": (begin - first) / 1e3, "dur": (end - begin) / 1e3}
            for i, (begin, end) in enumerate(zip(self.begins, self.ends))
        ]
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "traceEvents": events}, file)
        os.replace(path + ".new", path)


@pytest.fixture
def culprit_steps(request: Any, tmp_path: Any) -> Iterator[Steps]:
    """The steps of a measured test: iterate over it."""
    marker = request.node.get_closest_marker("culprit")
    options = marker.kwargs if marker is not None else {}
    steps = Steps(int(options.get("steps", 30)), int(options.get("warm_up", 3)))
    yield steps
    if len(steps.ends) < 2:
        pytest.fail("the test made no steps: iterate over culprit_steps")
    config = request.config
    folder = config.getoption("--culprit-baselines") or os.path.join(str(config.rootpath), ".culprit")
    baseline = os.path.join(folder, re.sub(r"[^A-Za-z0-9_.-]+", "_", request.node.nodeid) + ".json")
    if config.getoption("--culprit-store"):
        steps.write(baseline)
        return
    if not os.path.exists(baseline):
        warnings.warn(f"no baseline of {request.node.nodeid}: make it with --culprit-store", stacklevel=1)
        return
    now = str(tmp_path / "steps.json")
    steps.write(now)
    compared = diff(baseline, now, tolerance=config.getoption("--culprit-tolerance"))
    if compared.outcome == "regression":
        pytest.fail(str(compared), pytrace=False)
    if compared.outcome in ("inconclusive", "not_comparable"):
        warnings.warn(f"{request.node.nodeid}: {compared.outcome}\n{compared}", stacklevel=1)
