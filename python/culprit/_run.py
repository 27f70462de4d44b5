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
    """What every function did in every cycle, how the resources behaved meanwhile, and where every nanosecond went. ``Run.profile()`` tells the columns."""

    cycles: Table
    """One row per cycle and rank."""
    functions: Table
    """One row per cycle, rank, process, function and device."""
    resources: Table
    """One row per row of ``functions`` and resource."""
    counters: Table
    """One row per sample of a counter."""
    ledger: Table
    """One row per cycle, rank, process, device, state and function."""


class Kernels(NamedTuple):
    """Launches in order, sums by name, and time by use of the device. ``Run.kernels()`` tells the columns."""

    launches: Table
    """One row per launch."""
    names: Table
    """One row per name."""
    classes: Table
    """One row per class of use."""


class Run:
    """A run in memory, of one file per rank. It does not change; several threads may use it.

    *The clock of the trace* counts nanoseconds from where its file does: a trace of PyTorch from its ``baseTimeNanoseconds``, a recording from the start of the machine.
    *Rank* is the number that the files tell, as ``distributedInfo`` of PyTorch, in all tables; of files that tell none, or the same, their order.

    Ctrl-C ends long calls (KeyboardInterrupt). Error is ``culprit.Error``.
    """

    def __init__(self, native: _culprit.Run) -> None:
        self._native = native

    def __repr__(self) -> str:
        files, ranks, slices, on_devices, duration_ns = self._native.extent()
        named = repr(os.path.basename(files[0])) + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        parts = [f"{slices:,} slices in {duration_ns / 1e9:.3f} s"]
        if on_devices:
            parts.append(f"{on_devices:,} of them on devices")
        if ranks > 1:
            parts.append(f"{ranks} ranks")
        if self.losses:
            parts.append("see losses")
        return f"<culprit.Run of {named}: {', '.join(parts)}>"

    @property
    def losses(self) -> List[Dict[str, Any]]:
        """What could not be read as it stands, or was repaired; empty: nothing.

        A dictionary each: reason (a word), severity ("data loss", "warning", "info"), meaning (a sentence), remedy, first_seen (where, or empty), count (how often).
        """
        return self._native.losses()

    @property
    def devices(self) -> Table:
        """One row per device that the files describe: rank, device (its number), name, memory_bytes, multiprocessors (how many), compute_capability ("8.0"). None: not told.

        All columns are always there.
        """
        return Table(self._native.devices())

    def slices(self) -> Table:
        """Every span of time, one row each, in the order of the files.

        begin_ns (on the clock of the trace), duration_ns, name, class ("kernel", "cpu_op", "runtime", ...), category (as in the file), thread (its name), pid, tid, rank, device
        and stream (of work on a device), correlation (one number for work on a device and the call that launched it), bytes (that it copies or sets). Except rank, what is behind
        category is None where it is not known. All columns are always there.
        """
        return Table(self._native.slices())

    def counters(self) -> Table:
        """Every sample of a counter, one row each.

        at_ns (on the clock of the trace), name, unit (None: the file tells none), pid (None: of no process), value (in that unit), rank. All columns are always there.
        """
        return Table(self._native.counters())

    def markers(self) -> Table:
        """Points in time, one row each: at_ns (on the clock of the trace), name, pid and tid (None: not known), rank. All columns are always there."""
        return Table(self._native.markers())

    def cycles(self, anchor: str = "", phase: str = "", skip: int = 0) -> Table:
        """The steps, one row per step and rank; no rows where nothing repeats. The first note says how they were found, the second how sure that is.

        cycle (its number, from 1; the same is the same step on every rank), rank, phase (prefill, decode, mixed, train_step or other), batch (requests) and tokens (computed in
        it; both None: not told), begin_ns (on the clock of the trace), period_ns (to the begin of the next, of the last to the end of its work), no_work_ns (of that, while
        there was nothing to do), whole (its period is that of an ordinary step), partial (cut by the begin or end of the recording), warm_up (these three 0 or 1). All columns
        are always there.

        ``anchor`` names the marker or function that begins one (default: found); ``phase``: only steps of it (default: all); ``skip``: so many of the first of each rank are left
        out. Error: the anchor does not occur, there is no such phase, or no step is left. TypeError, ValueError: an argument is none.
        """
        return Table(self._native.cycles(*_cycle_choice(anchor, phase, skip)))

    def profile(self, anchor: str = "", phase: str = "", skip: int = 0) -> Profile:
        """What every function did in every cycle: the tables that ``culprit profile`` writes, and the ledger.

        ``cycles``, one row per cycle and rank: cycle (its number, from 1), rank, pid (None: not known), phase, anchor (what begins it), begin_ns (time of day), duration_ns
        (its period). The notes say how they were found.

        ``functions``, one row per cycle, rank, process, function and device: cycle, rank, phase, pid, host (the machine), function, short_name, kind ("gpu_compute", "cpu_op",
        ...), device ("Host", "GPU 0"), count (calls), duration_ns (of all of them), exposed_ns (of work on a device, while nothing more important ran there; None on the host),
        beta (duration over the window of the cycle, a fraction, above 1 where calls overlap; None: there is no window).

        ``resources``, one row per row of functions and resource: cycle, rank, pid, function, device, metric, unit (SI; empty: a plain number or a fraction), mu and sigma (mean
        and sample deviation while the function ran, in that unit; None: not known), provenance (measured, pooled, interpolated or none), samples (how many).

        ``counters``, one row per sample: metric, unit (SI; empty: a plain number or a fraction), host (the machine), rank, device, pid, time_ns (time of day), value (in that
        unit). None: a sample is of no rank or process.

        ``ledger``, one row per cycle, rank, process, device, state and function: cycle, rank, phase, pid, device (None: the thread that runs the cycles), window_ns, state
        ("function", "idle, not launched", "idle, dependency", ...), function (None: no function's), count, time_ns. The rows of a cycle, rank, process and device sum to
        window_ns: on the host the period of the cycle, on a device from the first operation that the cycle launched to the first of the next one. A note says how many cycles
        have no rows, as the last one, whose end is not known.

        Times of day are nanoseconds since the epoch of Unix, where the trace says when it began, else on the clock of the trace. All columns are always there. The cycles are
        those of ``cycles()``, which has the same arguments. Error: the run has no cycles, or as of ``cycles()``. TypeError, ValueError: an argument is none.
        """
        return Profile(*(Table(table) for table in self._native.profile(*_cycle_choice(anchor, phase, skip))))

    def top(self, by: str = "name", classes: Union[str, Iterable[str]] = (), filter: str = "", sort: str = "time", reverse: bool = False, limit: int = 0, anchor: str = "") -> Table:
        """Where the time went, as ``culprit top``: one row per function, or per group.

        name (of the function, or of the group), self_ns (outside of calls inside), share (a fraction of all self time; None: nothing took time), total_ns, average_ns, min_ns,
        median_ns, max_ns and stddev_ns (of a call; None: of one call alone there is no deviation), calls. All columns are always there.

        ``by``: name, raw-name, short-name, kind, device, stream, rank, category, cycle or phase. ``classes``: gpu, kernels, cpu_op, runtime, python, annotation,
        functions, sched, syscall, all; default: what suits the run. ``filter``: a part of the name, or, with ``*`` or ``?``, a pattern for the whole name. ``sort``: time,
        calls, avg, min, median, max, name; ``reverse``: the smallest first. ``limit``: rows, 0 is all. ``anchor``: as of ``cycles()``, by cycle or phase alone.
        Error: a word is none of these, or, by cycle or phase, as of ``cycles()``. TypeError, ValueError: an argument is none.
        """
        chosen = _check.texts("classes", [classes] if isinstance(classes, str) else classes)
        if not isinstance(reverse, bool):
            raise TypeError(f"reverse is True or False, not {reverse!r}")
        words = [_check.text(name, value) for name, value in (("by", by), ("filter", filter), ("sort", sort), ("anchor", anchor))]
        limit = _check.whole("limit", limit, 0, 2**63 - 1)
        return Table(self._native.top(words[0], [_check.text("classes", word) for word in chosen], words[1], words[2], reverse, limit, words[3]))

    def kernels(self) -> Kernels:
        """What ran on devices: launches in order, sums by name, and time by use of the device. Error: the run has no kernels.

        ``launches``, one row per launch: launch (its number, from 1), kernel (its name), latency_ns (its duration). Absent where no launch knows them, and None where one does
        not: tensor, dram and sm (use), begin_ns (since the first launch), grid (in blocks) and block (in threads, both as "128x1x1"), process, device, stream.

        ``names``, one row per name, longest first: name, launches (how many), total_ns, share, mean_ns, median_ns, min_ns and max_ns (of one launch). Absent where no name
        knows them, and None where one does not: sm, tensor and dram (mean use, by time), class (as in classes), flop_per_second and dram_bytes_per_second (while it ran),
        flop_per_byte, roofline (which of the two limits it: compute or memory).

        ``classes``, one row per class: class (what is used little: "low SM", or "low tensor" where only that is known, "low DRAM", "both low", "neither low"; "unknown": the
        file does not tell), launches (how many), time_ns, share.

        Use is a fraction of what the device can do, share one of the time of all launches (None: they took no time).
        """
        return Kernels(*(Table(table) for table in self._native.kernels()))

    def kernel_blocks(self) -> Table:
        """Stretches of launches that repeat (layers, steps), one row each; a block inside of another one follows it, indented.

        stream (process, device and stream, in words), block (what repeats), first (its first launch), copies (how often it comes), launches and time_ns (of all copies), share (a
        fraction of the time of all launches; None inside of another block). None where there is one copy: alike_by ("name and size", "name", "family"), changed_copies (that are
        not name for name like the first), unstable_positions (launches whose time varies by more than 10 %, or that are missing or replaced in a copy). All columns are always
        there. Error: the run has no kernels.
        """
        return Table(self._native.kernel_blocks())

    def fusion(self) -> Table:
        """Launches in a row that one kernel could do, one row per kind.

        idiom (what they do), places (how often they come), launches_per_place, time_ns (of all places), share (a fraction of the time of all launches), bound_ns and bound_share
        (what it saves at most, and as such a fraction), careful_ns (what it saves if the longest launch of each place stays), first (launch of the first place), where (in which
        block; None: in none), model (by which bound_ns is found; the notes tell), kernels (their names). All columns are always there. Error: the run has no kernels.
        """
        return Table(self._native.fusion())


def _cycle_choice(anchor: str, phase: str, skip: int) -> Tuple[str, str, int]:
    return _check.text("anchor", anchor), _check.text("phase", phase), _check.whole("skip", skip, 0, 2**32 - 1)


def load_options(threads: int, max_expansion: int) -> Tuple[int, int]:
    """As ``load`` takes them. TypeError, ValueError: one is none."""
    return _check.whole("threads", threads, 0, 1024), _check.whole("max_expansion", max_expansion, 0, 10**9)


def load(paths: Paths, threads: int = 0, max_expansion: int = 200) -> Run:
    """Loads one run from its file, or its files, one per rank; what each is, its content tells.

    ``threads``: 0 is all cores. ``max_expansion``: how many times its size a file may become, 0 is no limit. Raises ``culprit.Error``: a file cannot be read, is
    unrecognized, or becomes larger than that; damage inside of a good file is counted in ``Run.losses``. TypeError, ValueError: an argument is none.
    """
    return Run(_culprit.load_run(paths_of("paths", paths), *load_options(threads, max_expansion)))
