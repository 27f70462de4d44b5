"""For ``torch.profiler``: a trace handler that writes the trace, says where the time went, and keeps the run.

>>> handler = culprit.torch.trace_handler("traces")
>>> with torch.profiler.profile(schedule=..., on_trace_ready=handler) as profiler:
...     for batch in batches:
...         step(batch)
...         profiler.step()
>>> handler.runs[-1].cycles()
"""

from __future__ import annotations

import os
import socket
import sys
import warnings
from typing import IO, Any, List, Optional

from ._run import Path, Run, load
from ._table import Table


class TraceHandler:
    """What ``trace_handler`` gives: callable with a profiler."""

    def __init__(self, folder: Path, summary: bool = True, limit: int = 10, name: str = "", file: Optional[IO[str]] = None) -> None:
        self._folder, self._summary, self._limit, self._file = os.fspath(folder), summary, limit, file
        self._name = name or f"{socket.gethostname()}_{os.getpid()}"
        self.paths: List[str] = []
        """The traces that were written, in order."""
        self.runs: List[Run] = []
        """What they hold; of a trace that could not be read there is none, but a warning."""

    def __call__(self, profiler: Any) -> None:
        """Warns of what cannot be written, read or printed: a training run does not end for it."""
        try:
            path = self._free_path()
            profiler.export_chrome_trace(path)
            self.paths.append(path)
            run = load(path)
            self.runs.append(run)
            if self._summary:
                print(summary_of(run.top(limit=self._limit)), file=self._file or sys.stdout)
        except Exception as error:
            warnings.warn(f"culprit.torch: {error}", stacklevel=2)

    def _free_path(self) -> str:
        """In the folder, which is made, for the next trace."""
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, f"{self._name}.{len(self.paths)}.pt.trace.json.gz")
        while os.path.exists(path):  # of an earlier program
            self._name += "_"
            path = os.path.join(self._folder, f"{self._name}.{len(self.paths)}.pt.trace.json.gz")
        return path


def summary_of(table: Table) -> str:
    """The largest rows as text."""
    from ._html import duration

    lines = [f"{'Self':>12}  {'Share':>7}  {'Calls':>8}  Name"]
    for row in table.rows():
        share = "" if row["share"] is None else f"{100 * row['share']:.2f}%"
        lines.append(f"{duration(row['self_ns']):>12}  {share:>7}  {row['calls']:8}  {row['name']}")
    return "\n".join([*lines, *table.notes])


def trace_handler(folder: Path, *, summary: bool = True, limit: int = 10, name: str = "", file: Optional[IO[str]] = None) -> TraceHandler:
    """For ``torch.profiler.profile(on_trace_ready=...)``: each trace goes into ``folder`` as NAME.N.pt.trace.json.gz, which nothing overwrites.
    What cannot be written, read or printed is a warning.

    ``summary``: prints the ``limit`` functions that took most. The handler keeps the runs in ``runs`` and their files in ``paths``.
    """
    return TraceHandler(folder, summary, limit, name, file)
