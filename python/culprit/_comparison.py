"""Two runs side by side."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple, Union

from . import _check, _culprit
from ._error import Error
from ._run import Path, Run, load_options, paths_of
from ._table import Table

Side = Union[Path, Run, Iterable[Union[Path, Run]]]  # of a list all are paths, or all runs


# Of each table the columns, by what they hold. A value of both sides is two columns.
_COLUMNS: Dict[str, Tuple[Tuple[type, str], ...]] = {
    "effects": (
        (str, "phase"),
        (int, "rank"),
        (str, "outcome"),
        (float, "baseline_ns candidate_ns ratio ci_low ci_high tolerance detectable"),
        (int, "baseline_n candidate_n"),
        (float, "baseline_n_eff candidate_n_eff between"),
        (int, "earlier recordings_to_decide"),
    ),
    "findings": (
        (str, "phase"),
        (int, "rank baseline_pid candidate_pid"),
        (str, "function was short_name kind device status rests_on"),
        (float, "impact_ns_per_cycle ci_low_ns ci_high_ns share baseline_ns_per_cycle candidate_ns_per_cycle baseline_calls candidate_calls"),
        (float, "baseline_per_call_ns candidate_per_call_ns work_ratio q"),
        (str, "parent moved_inside"),
    ),
    "waterfall": (
        (str, "phase"),
        (int, "device"),
        (str, "state function"),
        (float, "baseline_ns_per_cycle candidate_ns_per_cycle baseline_calls candidate_calls change_ns by_calls_ns"),
    ),
    "causes": ((str, "cause detail scope where side state"), (float, "impact_ns share work_ratio confidence"), (str, "next_step")),
    "resources": ((str, "metric device"), (int, "rank"), (str, "unit"), (float, "baseline candidate")),
    "environment": ((str, "key baseline candidate"),),
    "off_cpu": ((str, "what name call per changed"), (float, "baseline_ns_per_unit candidate_ns_per_unit baseline_per_unit candidate_per_unit")),
}


def _rows(key: str, rows: List[Dict[str, Any]], pairs: Sequence[str] = ()) -> Table:
    """Of the rows the columns of the list above, which are always there and of these types."""
    flat: List[Dict[str, Any]] = []
    for row in rows:
        out = dict(row)
        for name in pairs:
            out[f"baseline_{name}"], out[f"candidate_{name}"] = row[name]
        flat.append(out)
    types = {name: kind for kind, names in _COLUMNS[key] for name in names.split()}
    return Table.from_columns(key, [(name, [_plain(row.get(name)) for row in flat]) for name in types], types=types)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


class Comparison:
    """What ``culprit diff`` says, as values and as tables.

    Times are nanoseconds, of a cycle where their names end with ``_per_cycle``; ratios are candidate over baseline; None is what is not known. Tables have all their
    columns always, also without rows; what is there once for each side is a column ``baseline_...`` and one ``candidate_...``.
    """

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
        """Causes, the slower side's first, the largest impact first: dictionaries with the columns of ``causes()``, and evidence and counter_evidence (sentences)."""
        return list(self.data["verdicts"])

    def effects(self) -> Table:
        """Cycle times, one row per phase, then one per phase and rank where both sides have several ranks.

        phase, rank (None: of each step the slowest one, which decides; else of that one, which decides nothing), outcome (as of the whole), baseline_ns and candidate_ns
        (geometric means), ratio, ci_low and ci_high (of the ratio, 95 %), tolerance (relative change that does not matter), detectable (the ratio that would have been seen four
        times out of five), baseline_n and candidate_n (cycles), baseline_n_eff and candidate_n_eff (of these independent, or recordings where these are judged), between (by which
        share recordings of the same differ), earlier (recordings of ``history`` that this was measured among), recordings_to_decide (of each side, that would decide; 0: decided,
        or not known; 21: more than 20).
        """
        return _rows("effects", self.data["cycle_time"], ("n", "n_eff"))

    def findings(self) -> Table:
        """One row per phase, rank, process, function and device, the largest impact first.

        phase, rank (None: not known), baseline_pid and candidate_pid (the process on each side), function, was (what the baseline calls it; empty: the same), short_name, kind
        ("gpu_compute", "cpu_op", ...), device ("GPU", "GPU 3", "Host"), status (changed, same, unknown, new, gone), rests_on (what that was decided by: time, against_others,
        calls, recordings, per_call), impact_ns_per_cycle (what the candidate takes longer) with its 95 % interval ci_low_ns and ci_high_ns, share (of what the cycle changed by, a fraction;
        None: it is not decided that it did), baseline_ns_per_cycle and candidate_ns_per_cycle (exposed time on a device, on the host the time outside of functions inside),
        baseline_calls and candidate_calls (per cycle), baseline_per_call_ns and candidate_per_call_ns, work_ratio (of these two), q (rate of false discoveries at which it counts
        as changed, a fraction), parent (in which most of its time lay, or was launched; empty: none), moved_inside (in which others lost what it gained, or the other way round;
        empty: none).
        """
        rows = [{**row, "ci_low_ns": row["ci"][0], "ci_high_ns": row["ci"][1]} for row in self.data["findings"]]
        return _rows("findings", rows, ("ns_per_cycle", "calls", "per_call_ns", "pid"))

    def waterfall(self) -> Table:
        """Where the difference comes from, line by line: change_ns of one phase and device sums to that of its cycles.

        phase, device (None: the thread that runs the cycles), state and function (as of the ledger of ``Run.profile()``; empty: no function's), baseline_ns_per_cycle and
        candidate_ns_per_cycle, baseline_calls and candidate_calls (per cycle), change_ns (of a cycle), by_calls_ns (of that, by more or fewer calls; None: calls are not known).
        """
        lines = [
            {"phase": w["phase"], "device": w["device"] if w["device"] >= 0 else None, **line} for w in self.data["waterfall"] for line in w["lines"]
        ]
        return _rows("waterfall", lines, ("ns_per_cycle", "calls"))

    def causes(self) -> Table:
        """The verdicts as a table, in their order; their sentences stand in ``verdicts``.

        cause and detail (words; detail is empty where there is none), scope (host, device, process, function or rank), where (which of these, as text; None: all of the scope),
        side (baseline or candidate: who has it), state (active, or latent: something hides it), impact_ns (that a step, or unit of work, takes longer by it), share (of all that
        it takes longer, a fraction), work_ratio (time of the same work, with the cause over without it), confidence (0 to 1), next_step (a sentence).
        """
        return _rows("causes", [{**v, "scope": v["scope"]["kind"], "where": v["scope"].get(v["scope"]["kind"])} for v in self.data["verdicts"]])

    def resources(self) -> Table:
        """Means of resources that moved while whole cycles ran, one row each: metric, device, rank (None: not known), unit (SI; empty: a plain number or a fraction), baseline and
        candidate (in that unit)."""
        return _rows("resources", self.data["resources"])

    def environment(self) -> Table:
        """Facts of machine, libraries and settings that differ, one row each: key, baseline, candidate (texts; empty: that side does not tell)."""
        return _rows("environment", self.data["environment_diff"])

    def off_cpu(self) -> Table:
        """What the recorded threads waited for inside of their work, where it differs by more than it varies inside the recordings; waits for work are left out. At most ten rows of
        each kind, the largest change of time first.

        what (function: where threads were blocked; waker: who ended that; rival: who had the CPUs while they were runnable), name (the innermost function that has a name, or of
        the thread, or of the process), call (the system call of the wait; empty of rivals), per (what one unit is: step, second, or the unit of work), changed (what differs most:
        longer, shorter, more often, less often, new, gone), baseline_ns_per_unit and candidate_ns_per_unit (the waits, or for how long the rival ran), baseline_per_unit and
        candidate_per_unit (how many).
        """
        waits = self.data["off_cpu"]
        kinds = (("function", "functions"), ("waker", "wakers"), ("rival", "rivals"))
        return _rows("off_cpu", [{"what": what, "per": waits["per"], **row} for what, key in kinds for row in waits[key]], ("ns_per_unit", "per_unit"))

    def to_json(self) -> str:
        """As ``culprit diff --json`` writes it."""
        return self._json

    def to_markdown(self) -> str:
        """As ``culprit diff --format markdown`` writes it."""
        return self._markdown

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<culprit.Comparison: {self.outcome}>"

    def _repr_html_(self) -> str:
        from ._html import comparison_html

        return comparison_html(self)


class _Side(NamedTuple):
    """Runs or paths, not both."""

    runs: List[_culprit.Run]
    paths: List[bytes]


def _side(name: str, side: Side) -> _Side:
    if isinstance(side, (str, bytes, os.PathLike)):
        return _Side([], paths_of(name, side))
    if not isinstance(side, (Run, Iterable)) or hasattr(side, "read"):
        raise TypeError(f"{name} is a path, a run, or several, not {side!r}")
    items = [side] if isinstance(side, Run) else list(side)
    runs = [item._native for item in items if isinstance(item, Run)]
    paths = [item for item in items if not isinstance(item, Run)]
    if runs and paths:
        raise TypeError(f"{name} is paths or runs, not both")
    return _Side(runs, paths_of(name, paths))


def _recordings(side: _Side, options: Tuple[int, int]) -> List[_culprit.Run]:
    return side.runs or _culprit.load_recordings(side.paths, *options)


def diff(
    baseline: Side,
    candidate: Side,
    *,
    anchor: str = "",
    tolerance: float = 0.03,
    history: Iterable[Union[Path, Run]] = (),
    threads: int = 0,
    max_expansion: int = 200,
) -> Comparison:
    """Compares two runs: did the steps become slower, which functions changed, and what caused it.

    A side is a path, several (ranks of one run, or recordings of the same again), a ``Run`` or several. ``tolerance``: relative change of the cycle time that does
    not matter, between 0 and 1. ``history``: three or more earlier recordings of the same workload, in a list; of fewer the notes say that they tell nothing.
    ``anchor`` names the marker or function that begins a cycle (default: found). ``threads``, ``max_expansion``: as of ``load``, for sides that are paths.

    Both sides may be a profile table instead, a path that ends in .csv: it is compared as far as its sums of each cycle tell it, which the notes say; there is no waterfall.
    ``anchor``, ``history``, ``threads`` and ``max_expansion`` are for traces. Where the tables hold several processes, take ``diff_tables``.

    Raises ``culprit.Error``: a side cannot be loaded or has no recording, a recording comes twice, recordings of one side are not of the same run, the anchor does not occur,
    the tolerance is no share, only one side is a table, a side has several tables, an argument is for traces alone, or the tables hold no process to compare, or several. Runs
    that must not be compared are no error: the outcome is not_comparable. TypeError, ValueError: an argument is none.
    """
    if isinstance(history, (str, bytes, os.PathLike, Run)) or not isinstance(history, Iterable):
        raise TypeError(f"history is a list of paths or runs, not {history!r}")
    _check.text("anchor", anchor)
    share = _check.number("tolerance", tolerance)
    options = load_options(threads, max_expansion)
    earlier = [_side("history", item) for item in history]
    before, after = _side("baseline", baseline), _side("candidate", candidate)
    if _culprit.are_profile_tables(before.paths, after.paths):
        return _only(_culprit.compare_tables(before.paths[0], after.paths[0], anchor, share, *options, bool(earlier)))
    loaded = [native for side in earlier for native in _recordings(side, options)]
    return Comparison(*_culprit.compare(_recordings(before, options), _recordings(after, options), anchor, share, loaded))


def _only(compared: List[Tuple[str, Tuple[str, str, str]]]) -> Comparison:
    if len(compared) > 1:
        what, remedy = f"the tables hold {len(compared)} pairs of processes, and each is a comparison", "diff_tables() gives them by name"
        raise Error(f"{what} ({remedy})", "usage", what, "", remedy)
    return Comparison(*compared[0][1])


def diff_tables(baseline: Path, candidate: Path, *, tolerance: float = 0.03) -> Dict[str, Comparison]:
    """Compares two profile tables, process by process: a ``Comparison`` of each pair by its name, as ``culprit diff`` names its files.

    A process is compared with that of its number on the other side; where each side has some that the other lacks, each of these with each. A table is a path; ``tolerance``: as of
    ``diff``. Raises ``culprit.Error``: a table cannot be read, the two hold no process to compare, or the tolerance is no share. TypeError, ValueError: an argument is none.
    """
    share = _check.number("tolerance", tolerance)
    before, after = os.fsencode(_check.path("baseline", baseline)), os.fsencode(_check.path("candidate", candidate))
    compared = _culprit.compare_tables(before, after, "", share, *load_options(0, 200), False)
    return {name: Comparison(*forms) for name, forms in compared}
