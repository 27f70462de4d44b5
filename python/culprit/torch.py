"""For ``torch.profiler``: a trace handler that writes the trace, says where the time went, and keeps the run.

>>> handler = culprit.torch.trace_handler("traces")
>>> with torch.profiler.profile(schedule=..., on_trace_ready=handler) as profiler:
...     for batch in batches:
...         step(batch)
...         profiler.step()
>>> handler.runs[-1].cycles()
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import warnings
from typing import IO, Any, List, Optional

from . import _check
from ._error import CulpritWarning
from ._run import Path, Run, load
from ._table import Table


_LONGEST_NAME = 200  # what follows has place in 255


class TraceHandler:
    """What ``trace_handler`` gives: callable with a profiler."""

    def __init__(self, folder: Path, summary: bool = True, limit: int = 10, name: str = "", file: Optional[IO[str]] = None, keep: Optional[int] = 2) -> None:
        if not _check.path("folder", folder):
            raise ValueError("folder is a path, not ''")
        self._folder = os.path.abspath(folder)  # of now: a program may change into another one
        if not isinstance(summary, bool):
            raise TypeError(f"summary is True or False, not {summary!r}")
        if file is not None and not callable(getattr(file, "write", None)):
            raise TypeError(f"file is one that texts are written to, not {file!r}")
        if file is not None:
            with contextlib.suppress(OSError, ValueError):  # told when something is written
                try:
                    file.write("")
                except TypeError:
                    raise TypeError(f"file is one that texts are written to, not {file!r}") from None
        self._summary, self._limit, self._file = summary, _check.whole("limit", limit, 0, 2**63 - 1), file
        self._name = _check.text("name", name) or f"{socket.gethostname()}_{os.getpid()}"
        if "/" in self._name or "\0" in self._name or len(os.fsencode(self._name)) > _LONGEST_NAME:
            raise ValueError(f"name is a part of the names of files, of at most {_LONGEST_NAME} bytes and without '/', not {name!r}")
        self._other = 0  # handlers of this name before
        self._keep = None if keep is None else _check.whole("keep", keep, 0, 2**31)
        self.paths: List[str] = []
        """The traces that were written, in order."""
        self.runs: List[Run] = []
        """What the last ``keep`` of them hold; of a trace that could not be read there is none, but a warning."""

    def __call__(self, profiler: Any) -> None:
        """Warns of what cannot be written, read or printed: a training run does not end for it."""
        try:
            path = self._free_path()
            try:
                profiler.export_chrome_trace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.remove(path)
                raise
            self.paths.append(path)
            run = load(path)
            self.runs.append(run)
            if self._keep is not None:
                del self.runs[: max(0, len(self.runs) - self._keep)]
            if self._summary:
                print(summary_of(run.top(limit=self._limit)), file=self._file or sys.stdout)
        except Exception as error:
            _warn(f"culprit.torch: {error}")

    def _free_path(self) -> str:
        """In the folder, which is made, for the next trace: an empty file, so that it is nobody else's."""
        os.makedirs(self._folder, exist_ok=True)
        while True:
            name = self._name if self._other == 0 else f"{self._name}-{self._other + 1}"
            path = os.path.join(self._folder, f"{name}.{len(self.paths)}.pt.trace.json.gz")
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                return path
            except FileExistsError:  # of an earlier program, or another handler
                self._other += 1


def _warn(text: str) -> None:
    """For the line that called the handler. Where warnings are errors it is printed."""
    try:
        warnings.warn(text, CulpritWarning, stacklevel=3)
    except Warning:
        with contextlib.suppress(Exception):
            print(text, file=sys.stderr)


def summary_of(table: Table) -> str:
    """The rows of a table of ``Run.top()`` as text, one line each: self time, share, calls and name, then the notes."""
    from ._html import duration

    lines = [f"{'Self':>12}  {'Share':>7}  {'Calls':>8}  Name"]
    for row in table.rows():
        share = "" if row["share"] is None else f"{100 * row['share']:.2f}%"
        lines.append(f"{duration(row['self_ns']):>12}  {share:>7}  {row['calls']:8}  {row['name']}")
    return "\n".join([*lines, *table.notes])


def trace_handler(folder: Path, *, summary: bool = True, limit: int = 10, name: str = "", file: Optional[IO[str]] = None, keep: Optional[int] = 2) -> TraceHandler:
    """For ``torch.profiler.profile(on_trace_ready=...)``: each trace goes into ``folder`` as NAME.N.pt.trace.json.gz, which nothing overwrites.
    What cannot be written, read or printed is a warning, and is printed where warnings are errors.

    ``summary``: prints the ``limit`` functions that took most (0: all), to ``file`` (default: standard output). ``name`` is NAME (default: host and process). The handler has all
    files in ``paths``, and the last ``keep`` runs in ``runs`` (None: all; each takes memory). TypeError, ValueError: an argument is none.
    """
    return TraceHandler(folder, summary, limit, name, file, keep)
