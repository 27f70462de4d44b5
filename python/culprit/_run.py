"""One run: what its files hold, as tables."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Sequence, Union

from . import _culprit
from ._table import Table

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]


def paths_of(paths: Paths) -> List[bytes]:
    """One path or several, as the system has them."""
    if isinstance(paths, (str, os.PathLike)):
        return [_bytes_of(paths)]
    return [_bytes_of(path) for path in paths]


def _bytes_of(path: Path) -> bytes:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path is a text, not {type(text).__name__}")
    if "\0" in text:
        raise ValueError(f"no path holds a null character: {text!r}")
    return os.fsencode(text)


class Profile(NamedTuple):
    """What every function did in every cycle, how the resources behaved meanwhile, and where every nanosecond went (the ledger)."""

    cycles: Table
    functions: Table
    resources: Table
    counters: Table
    ledger: Table


class Kernels(NamedTuple):
    """Launches in order, sums by name, and time by use of the device."""

    launches: Table
    names: Table
    classes: Table


class Run:
    """A run in memory, of one file per rank. It does not change; several threads may use it."""

    def __init__(self, native: _culprit.Run) -> None:
        self._native = native

    @property
    def losses(self) -> List[Dict[str, Any]]:
        """What could not be read as it stands, or was repaired: reason, severity, meaning, remedy, first_seen, count."""
        return self._native.losses()

    @property
    def devices(self) -> Table:
        """rank, device, name, memory_bytes, multiprocessors, compute_capability."""
        return Table(self._native.devices())

    def slices(self) -> Table:
        """Every span of time: begin_ns (on the clock of the trace, as cycles), duration_ns, name, class, category, thread, pid, tid, rank, device, stream, correlation, bytes."""
        return Table(self._native.slices())

    def counters(self) -> Table:
        """Every sample: at_ns, name, unit, pid, value."""
        return Table(self._native.counters())

    def markers(self) -> Table:
        """Points in time: at_ns, name, pid, tid."""
        return Table(self._native.markers())

    def cycles(self, anchor: str = "", phase: str = "", skip: int = 0) -> Table:
        """The steps: cycle, rank, phase, batch, tokens, begin_ns, period_ns, no_work_ns, whole, partial, warm_up. The first note says how they were found, the second how
        sure that is.

        ``anchor`` names the marker or function that begins one (default: found); ``phase`` is prefill, decode, mixed, train_step or other.
        """
        return Table(self._native.cycles(anchor, phase, skip))

    def profile(self, anchor: str = "", phase: str = "", skip: int = 0) -> Profile:
        """Tables as ``culprit profile`` writes them, and ``ledger``: cycle, rank, phase, pid, device (None: the thread that runs the cycles), state, function, count, time_ns.

        The rows of a cycle, rank, process and device sum to its window. Error: the run has no cycles.
        """
        return Profile(*(Table(table) for table in self._native.profile(anchor, phase, skip)))

    def top(self, by: str = "name", classes: Union[str, Sequence[str]] = (), filter: str = "", sort: str = "time", reverse: bool = False, limit: int = 0, anchor: str = "") -> Table:
        """Where the time went, as ``culprit top``.

        ``by``: name, raw-name, short-name, kind, device, stream, rank, category, cycle or phase. ``classes``: gpu, kernels, cpu_op, runtime, python, annotation,
        functions, sched, syscall, all; default: what suits the run. ``sort``: time, calls, avg, min, median, max, name. ``limit``: rows, 0 is all.
        """
        return Table(self._native.top(by, [classes] if isinstance(classes, str) else list(classes), filter, sort, reverse, limit, anchor))

    def kernels(self) -> Kernels:
        """Error: the run has no kernels."""
        return Kernels(*(Table(table) for table in self._native.kernels()))

    def kernel_blocks(self) -> Table:
        """Stretches of launches that repeat."""
        return Table(self._native.kernel_blocks())

    def fusion(self) -> Table:
        """Neighbours that could be one kernel."""
        return Table(self._native.fusion())


def load(paths: Paths, threads: int = 0, max_expansion: int = 200) -> Run:
    """Loads one run from its file, or its files, one per rank; what each is, its content tells.

    ``threads``: 0 is all cores. ``max_expansion``: how many times its size a file may become, 0 is no limit. Raises ``culprit.Error``; damage inside of a good
    file is counted in ``Run.losses``.
    """
    return Run(_culprit.load_run(paths_of(paths), threads, max_expansion))
