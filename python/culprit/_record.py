"""Recordings by the program that the package holds."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, List, Optional, Sequence, Type, Union

from ._error import Error
from ._run import Path, Run, load

if TYPE_CHECKING:
    import subprocess
    import tempfile
    from types import TracebackType


def program() -> str:
    """Path of the program ``culprit`` of this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "program", "bin", "culprit")


class Recording:
    """``with culprit.record(pid) as recording: ...``; afterwards ``recording.run`` is what was recorded."""

    def __init__(self, arguments: List[str], path: str, kept: bool) -> None:
        self.path = path
        """Where the recording lies; a file of its own is removed with the object."""
        self._folder: Optional["tempfile.TemporaryDirectory[str]"] = None
        self._arguments, self._kept = arguments, kept
        self._process: Optional["subprocess.Popen[str]"] = None
        self._run: Optional[Run] = None

    def __enter__(self) -> "Recording":
        import subprocess  # a third of what importing the package would take
        import tempfile

        if not self._kept:
            self._folder = tempfile.TemporaryDirectory(prefix="culprit-")
            self.path = os.path.join(self._folder.name, "recording.pftrace")
        command = [program(), "record", "--quiet", "-o", self.path, *self._arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 30
        while self._process.poll() is None and not os.path.exists(self.path) and time.monotonic() < end:
            time.sleep(0.01)  # it records when there is a file
        if self._process.poll() not in (None, 0):
            self._fail()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        assert self._process is not None
        if self._process.poll() is None and "--" not in self._arguments:
            self._process.send_signal(signal.SIGINT)
        self._process.wait()
        if kind is None and not os.path.exists(self.path):
            self._fail()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def __del__(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _fail(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        with self._process.stderr:
            said = self._process.stderr.read().strip()
        kind = {2: "usage", 3: "input", 4: "environment"}.get(self._process.wait(), "environment")
        raise Error(said or "culprit record ended without a recording", kind, said)

    @property
    def run(self) -> Run:
        """What was recorded."""
        if self._run is None:
            self._run = load(self.path)
        return self._run


def record(target: Union[int, str, Sequence[str]], *, output: Optional[Path] = None, options: Sequence[str] = ()) -> Recording:
    """Records a process (its number or name), or a command (a list), while the ``with`` block runs.

    ``output``: where the recording stays; default: it goes with the object. ``options``: further options of ``culprit record``, such as ``["--preset", "deep"]``.
    Of a command the block waits for the end. Raises ``culprit.Error`` with the program's own message.
    """
    arguments = list(options)
    if isinstance(target, (int, str)):
        arguments += ["-p", str(target)]
    else:
        arguments += ["--", *target]
    return Recording(arguments, "" if output is None else os.fspath(output), output is not None)
