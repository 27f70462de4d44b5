"""One run: what its files hold, as tables."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, NamedTuple, Tuple, Union

from . import _check, _culprit
from ._table import Table

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Iterable[Path]]


def paths_of(name: str, paths: Paths) -> List[bytes]:
    """One path or several, as the system has them. TypeError, ValueError: the argument of this name is none."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        return [os.fsencode(_check.path(name, paths))]
    if not isinstance(paths, Iterable) or hasattr(paths, "read"):
        raise TypeError(f"{name} is a path or several, not {paths!r}")
    return [os.fsencode(_check.path(f"each of {name}", path)) for path in paths]


class Profile(NamedTuple):
    """What every function did in every cycle, how the resources behaved meanwhile, and where every nanosecond went (the ledger).

    Times of day are since the epoch of Unix, where the trace says when it began, else on the clock of the trace.
    """

    cycles: Table
    """cycle, rank, pid, phase, anchor, begin_ns (since the epoch), duration_ns. The notes say how they were found."""
    functions: Table
    """By cycle, rank, process, function and device: function, short_name, kind, device, count, duration_ns, exposed_ns, beta (share of the cycle)."""
    resources: Table
    """By cycle, rank, function and device: metric, unit, mu and sigma (mean and deviation while it ran), provenance, samples."""
    counters: Table
    """Every sample: metric, unit, host, rank, device, pid, time_ns (since the epoch), value."""
    ledger: Table
    """cycle, rank, phase, pid, device (None: the thread that runs the cycles), window_ns, state, function, count, time_ns. The rows of a cycle, rank, process and device sum
    to its window: on the host the period of the cycle, on a device from the first operation that the cycle launched to the first of the next one. A note says how many
    cycles have no rows, as the last one, whose end is not known."""


class Kernels(NamedTuple):
    """Launches in order, sums by name, and time by use of the device."""

    launches: Table
    """launch, kernel, latency_ns (its duration), begin_ns (since the first launch), grid, block, process, device, stream."""
    names: Table
    """name, launches, total_ns, share, mean_ns, median_ns, min_ns, max_ns."""
    classes: Table
    """class (which of compute and memory it uses little), launches, time_ns, share."""


class Run:
    """A run in memory, of one file per rank. It does not change; several threads may use it.

    *The clock of the trace* counts nanoseconds from where its file does: a trace of PyTorch from its ``baseTimeNanoseconds``, a recording from the start of the machine.
    *Rank* is the number that the files tell, as ``distributedInfo`` of PyTorch, in all tables; of files that tell none, or the same, their order.
    """

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
        """Every span of time: begin_ns (on the clock of the trace), duration_ns, name, class, category, thread, pid, tid, rank, device, stream, correlation, bytes."""
        return Table(self._native.slices())

    def counters(self) -> Table:
        """Every sample: at_ns (on the clock of the trace), name, unit, pid, value, rank."""
        return Table(self._native.counters())

    def markers(self) -> Table:
        """Points in time: at_ns (on the clock of the trace), name, pid, tid, rank."""
        return Table(self._native.markers())

    def cycles(self, anchor: str = "", phase: str = "", skip: int = 0) -> Table:
        """The steps: cycle, rank, phase, batch, tokens, begin_ns (on the clock of the trace), period_ns, no_work_ns, whole, partial, warm_up (these three 0 or 1). The first
        note says how they were found, the second how sure that is.

        ``anchor`` names the marker or function that begins one (default: found); ``phase`` is prefill, decode, mixed, train_step or other; ``skip``: so many of the first
        are left out.
        """
        return Table(self._native.cycles(*_cycle_choice(anchor, phase, skip)))

    def profile(self, anchor: str = "", phase: str = "", skip: int = 0) -> Profile:
        """Tables as ``culprit profile`` writes them, and the ledger, by the cycles of ``cycles()``. Error: the run has no cycles."""
        return Profile(*(Table(table) for table in self._native.profile(*_cycle_choice(anchor, phase, skip))))

    def top(self, by: str = "name", classes: Union[str, Iterable[str]] = (), filter: str = "", sort: str = "time", reverse: bool = False, limit: int = 0, anchor: str = "") -> Table:
        """Where the time went, as ``culprit top``: name (or what it is grouped by), self_ns (outside of calls inside), share (of all self time), total_ns, average_ns, min_ns,
        median_ns, max_ns, stddev_ns, calls.

        ``by``: name, raw-name, short-name, kind, device, stream, rank, category, cycle or phase. ``classes``: gpu, kernels, cpu_op, runtime, python, annotation,
        functions, sched, syscall, all; default: what suits the run. ``filter``: a part of the name, or, with ``*`` or ``?``, a pattern for the whole name. ``sort``: time,
        calls, avg, min, median, max, name. ``limit``: rows, 0 is all. ``anchor``: as of ``cycles()``, by cycle or phase alone.
        """
        chosen = _check.texts("classes", [classes] if isinstance(classes, str) else classes)
        if not isinstance(reverse, bool):
            raise TypeError(f"reverse is True or False, not {reverse!r}")
        words = [_check.text(name, value) for name, value in (("by", by), ("filter", filter), ("sort", sort), ("anchor", anchor))]
        limit = _check.whole("limit", limit, 0, 2**63 - 1)
        return Table(self._native.top(words[0], [_check.text("classes", word) for word in chosen], words[1], words[2], reverse, limit, words[3]))

    def kernels(self) -> Kernels:
        """What ran on devices. Error: the run has no kernels."""
        return Kernels(*(Table(table) for table in self._native.kernels()))

    def kernel_blocks(self) -> Table:
        """Stretches of launches that repeat: stream, block, first, copies, launches, time_ns, share and how alike the copies are. Error: the run has no kernels."""
        return Table(self._native.kernel_blocks())

    def fusion(self) -> Table:
        """Neighbours that could be one kernel: idiom, places, launches_per_place, time_ns, share, what it saves at most (bound_ns) and with care (careful_ns), and where.
        Error: the run has no kernels."""
        return Table(self._native.fusion())


def _cycle_choice(anchor: str, phase: str, skip: int) -> Tuple[str, str, int]:
    return _check.text("anchor", anchor), _check.text("phase", phase), _check.whole("skip", skip, 0, 2**32 - 1)


def load_options(threads: int, max_expansion: int) -> Tuple[int, int]:
    """As ``load`` takes them. TypeError, ValueError: one is none."""
    return _check.whole("threads", threads, 0, 1024), _check.whole("max_expansion", max_expansion, 0, 10**9)


def load(paths: Paths, threads: int = 0, max_expansion: int = 200) -> Run:
    """Loads one run from its file, or its files, one per rank; what each is, its content tells.

    ``threads``: 0 is all cores. ``max_expansion``: how many times its size a file may become, 0 is no limit. Raises ``culprit.Error``; damage inside of a good
    file is counted in ``Run.losses``.
    """
    return Run(_culprit.load_run(paths_of("paths", paths), *load_options(threads, max_expansion)))
