"""Two runs side by side."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence, Union

from . import _culprit
from ._run import Path, Paths, Run, paths_of
from ._table import Table

Side = Union[Paths, Run, Sequence[Run]]


_COLUMNS = {
    "effects": "phase outcome baseline_ns candidate_ns ratio ci_low ci_high tolerance detectable baseline_n candidate_n",
    "findings": "phase rank baseline_pid candidate_pid function short_name kind device status impact_ns_per_cycle baseline_ns_per_cycle "
    "candidate_ns_per_cycle baseline_calls candidate_calls baseline_per_call_ns candidate_per_call_ns work_ratio q parent moved_inside",
    "waterfall": "phase device state function baseline_ns_per_cycle candidate_ns_per_cycle baseline_calls candidate_calls change_ns by_calls_ns",
    "causes": "cause detail scope where side state impact_ns share work_ratio confidence next_step",
    "resources": "metric device rank unit baseline candidate",
    "environment": "key baseline candidate",
}


def _rows(key: str, rows: List[Dict[str, Any]], pairs: Sequence[str] = ()) -> Table:
    """Values of both sides become two columns. The columns of the list above come first, and are always there."""
    flat: List[Dict[str, Any]] = []
    for row in rows:
        out: Dict[str, Any] = {}
        for name, value in row.items():
            if name in pairs and isinstance(value, list):
                out[f"baseline_{name}"], out[f"candidate_{name}"] = value
            elif not isinstance(value, (list, dict)):
                out[name] = value
        flat.append(out)
    names = list(dict.fromkeys([*_COLUMNS[key].split(), *(name for row in flat for name in row)]))
    return Table.from_columns(key, [(name, [_plain(row.get(name)) for row in flat]) for name in names])


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


class Comparison:
    """What ``culprit diff`` says, as values and as tables."""

    def __init__(self, json_text: str, text: str, markdown: str) -> None:
        import json

        self.data: Dict[str, Any] = json.loads(json_text)
        """The whole answer, as ``culprit diff --json`` gives it."""
        self._json, self._text, self._markdown = json_text, text, markdown

    @property
    def outcome(self) -> str:
        """inconclusive, regression, improvement, no_change or not_comparable."""
        return str(self.data["outcome"])

    @property
    def why(self) -> str:
        """What limits the outcome; empty: its cycle times say all."""
        return str(self.data["why"])

    @property
    def verdicts(self) -> List[Dict[str, Any]]:
        """Causes, the slower side's first, the largest impact first."""
        return list(self.data["verdicts"])

    def effects(self) -> Table:
        """Cycle times by phase: baseline_ns, candidate_ns, ratio, ci_low, ci_high (of the ratio), and cycles of both."""
        return _rows("effects", self.data["cycle_time"], ("n", "n_eff"))

    def findings(self) -> Table:
        """One row per function: impact_ns_per_cycle, time and calls of both sides, status, q."""
        return _rows("findings", self.data["findings"], ("ns_per_cycle", "calls", "per_call_ns", "pid"))

    def waterfall(self) -> Table:
        """Where the difference comes from, line by line: the changes of one phase and device sum to that of its cycles."""
        lines = [{"phase": w["phase"], "device": w["device"], **line} for w in self.data["waterfall"] for line in w["lines"]]
        return _rows("waterfall", lines, ("ns_per_cycle", "calls"))

    def causes(self) -> Table:
        """The verdicts as a table; their sentences stand in ``verdicts``."""
        return _rows("causes", [{**v, "scope": v["scope"]["kind"], "where": v["scope"].get(v["scope"]["kind"])} for v in self.data["verdicts"]])

    def resources(self) -> Table:
        """Resources that moved."""
        return _rows("resources", self.data["resources"])

    def environment(self) -> Table:
        """Facts of machine, libraries and settings that differ."""
        return _rows("environment", self.data["environment_diff"])

    def to_json(self) -> str:
        return self._json

    def to_markdown(self) -> str:
        return self._markdown

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<culprit.Comparison: {self.outcome}>"

    def _repr_html_(self) -> str:
        from ._html import comparison_html

        return comparison_html(self)


def _recordings(side: Side) -> List[_culprit.Run]:
    if isinstance(side, (str, os.PathLike)):
        return _culprit.load_recordings(paths_of(side), 0, 200)
    items = [side] if isinstance(side, Run) else list(side)
    runs = [item._native for item in items if isinstance(item, Run)]
    paths = [item for item in items if not isinstance(item, Run)]
    if runs and paths:
        raise TypeError("a side is paths or runs, not both")
    return runs or _culprit.load_recordings(paths_of(paths), 0, 200)


def diff(baseline: Side, candidate: Side, *, anchor: str = "", tolerance: float = 0.03, history: Sequence[Union[Path, Run]] = ()) -> Comparison:
    """Compares two runs: did the steps become slower, which functions changed, and what caused it.

    A side is a path, several (ranks of one run, or recordings of the same again), a ``Run`` or several. ``tolerance``: relative change of the cycle time that does
    not matter. ``history``: three or more earlier recordings of the same workload. Raises ``culprit.Error``.
    """
    earlier = [native for item in history for native in _recordings(item)]
    return Comparison(*_culprit.compare(_recordings(baseline), _recordings(candidate), anchor, tolerance, earlier))
