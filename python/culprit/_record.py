"""Recordings by the program that the package holds."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import time
import warnings
import weakref
from typing import IO, TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Tuple, Type, Union

from . import _check
from ._error import CulpritWarning, Error
from ._program import program
from ._run import Path, Run, load

if TYPE_CHECKING:
    import subprocess
    from types import TracebackType

_START_S = 30.0  # until there is a file
_END_S = 15.0  # until the recorder has ended that was asked to
_KINDS = {2: "usage", 3: "input", 4: "environment"}  # by the program's exit code


def _beyond_standard(file: int) -> int:
    """The same open file by a number that none of the standard ones has, whichever of these are closed."""
    try:
        return fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(file)


def _error_output() -> int:
    """A duplicate of standard error, or of nothing where this process has none."""
    try:
        return fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError:
        return _beyond_standard(os.open(os.devnull, os.O_WRONLY))


def _remove(folder: str, owner: int) -> None:
    """Of this process, and not of one that it was forked from."""
    if os.getpid() == owner:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


class Recording:
    """``with culprit.record(pid) as recording: ...``; afterwards ``recording.run`` is what was recorded.

    Standard input of a command is ``/dev/null``.
    """

    def __init__(self, options: Sequence[str], process: str, command: Sequence[str], path: str) -> None:
        self.path = path
        """Where the recording lies; a file of its own is removed with the object."""
        self.messages: List[str] = []
        """What the recorder said, a line each; known behind the block."""
        self.returncode: Optional[int] = None
        """The exit code of the command, as a shell tells it; None: nobody saw it end, or a process was recorded. Known behind the block."""
        self._options, self._target, self._command = list(options), process, list(command)
        self._progress = "not begun"
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._said: Optional[IO[bytes]] = None
        self._summary: Optional[IO[bytes]] = None
        self._before: Optional[Tuple[int, int, int]] = None
        self._owner = os.getpid()
        self._alive: Optional[int] = None  # closed when this process ends, whatever ends it: then the recorder does
        self._run: Optional[Run] = None

    def __enter__(self) -> "Recording":
        if self._progress != "not begun":
            raise Error("a recording is used once (call culprit.record again)", "usage", "a recording is used once", "", "call culprit.record again")
        if not self.path:
            import tempfile

            folder = tempfile.mkdtemp(prefix="culprit-")
            weakref.finalize(self, _remove, folder, self._owner)
            self.path = os.path.join(folder, "recording.pftrace")
        self._check()
        try:
            self._start()
            self._wait_for_the_file()
        except BaseException:
            self._end()
            raise
        self._progress = "recording"
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        assert self._process is not None
        if os.getpid() != self._owner:  # forked inside of the block: the recording is not its own
            self._let_go()
            return
        try:
            if kind is not None and self._command:
                return
            if not self._command and self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
            self._wait()
            if kind is None:
                summary = self._take_summary()
                self._raise_what_failed(summary)
                self._warn_of_missing_functions(summary)
        finally:
            self._progress = "ended"
            self._end()

    def __del__(self) -> None:
        if os.getpid() == self._owner:
            self._end(look=False)  # which may be where Python ends, and imports nothing any more

    def _check(self) -> None:
        """Before anything is started."""
        if any(option.startswith("--switch-output") for option in self._options):
            raise Error("a recording that goes on in other files is no single run (leave --switch-output out)", "usage", "--switch-output")
        for option in self._options:
            if option == "--" or option == "--pid" or option.startswith("--pid=") or (option.startswith("-p") and not option.startswith("--")):
                raise Error(f"what is recorded is the target, and no option (leave {option} out)", "usage", option)
        with contextlib.suppress(OSError):  # which the program tells
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise Error(f"'{self.path}' is no file (name a file)", "usage", f"'{self.path}' is no file", "", "name a file")
        if os.path.lexists(self.path) and "--force" not in self._options:
            what, remedy = f"'{self.path}' already exists", "give --force to overwrite it, or choose another name"
            raise Error(f"{what} ({remedy})", "usage", what, "", remedy)

    def _state(self) -> Optional[Tuple[int, int, int]]:
        """Of the recording; None: there is none."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_mtime_ns

    def _is_there(self) -> bool:
        """Whether the file is that of this recording."""
        state = self._state()
        return state is not None and state != self._before

    def _start(self) -> None:
        """The recorder's messages go into a file of their own; the command has this process's standard error."""
        import subprocess  # a third of what importing the package would take
        import tempfile

        passed = _error_output()  # before another file takes the number of one that is closed
        try:
            self._said, self._summary = tempfile.TemporaryFile(), tempfile.TemporaryFile()
            self._before = self._state()
            summary = fcntl.fcntl(self._summary.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
            end, self._alive = map(_beyond_standard, os.pipe())
            try:
                arguments = [program(), "record", f"--json-fd={summary}", "-o", self.path, *self._options]
                arguments += ["--command-stderr", str(passed)] if self._command else ["-p", self._target]
                arguments += [f"--end-fd={end}", *(["--", *self._command] if self._command else [])]
                # Ctrl-C of the terminal is for this process, which passes the end on.
                self._process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stderr=self._said, pass_fds=[summary, end, *([passed] if self._command else [])],
                                                 start_new_session=True)
            finally:
                os.close(summary)
                os.close(end)
        finally:
            os.close(passed)

    def _wait_for_the_file(self) -> None:
        """It records when there is a new one."""
        assert self._process is not None
        end = time.monotonic() + _START_S
        while not self._is_there() and not self._has_ended():
            if time.monotonic() > end:
                raise Error(f"culprit record did not begin within {_START_S:g} s", "environment", f"culprit record did not begin within {_START_S:g} s")
            time.sleep(0.01)
        if self._has_ended():
            self._wait()
            self._raise_what_failed(self._take_summary())

    def _has_ended(self) -> bool:
        """It is not waited for by this, so that its number stays that of its group."""
        assert self._process is not None
        with contextlib.suppress(ChildProcessError):  # where this program has no zombies
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return self._process.poll() is not None

    def _wait(self) -> None:
        """Until the recorder has ended. One that was killed leaves its command alone, which ends then, too."""
        assert self._process is not None
        with contextlib.suppress(ChildProcessError):  # it is waited for already
            ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            if ended is not None and ended.si_code != os.CLD_EXITED:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _take_summary(self) -> Dict[str, Any]:
        """What the recorder wrote of the recording when it ended; empty: it did not come so far."""
        import json

        assert self._summary is not None
        self._summary.seek(0)
        try:
            summary = json.loads(self._summary.read() or b"{}")
        except ValueError:
            summary = {}  # cut off
        self.returncode = summary.get("command_exit_code")
        return dict(summary)

    def _take_messages(self) -> str:
        assert self._said is not None
        self._said.seek(0)
        said = self._said.read().decode("utf-8", "surrogateescape").strip()
        self.messages = said.splitlines()
        return said

    def _raise_what_failed(self, summary: Dict[str, Any]) -> None:
        """Of a recorder that has ended. Its exit code may be the command's own: it failed if its summary says so, or, where there is none, if it said something, or left
        no file."""
        assert self._process is not None
        said, code = self._take_messages(), self._process.wait()
        if summary and not summary.get("error") and self._is_there():
            return
        if code < 0 and not summary:
            what = f"culprit record was ended by signal {-code}"
            raise Error(f"{what} ({self.path} holds what it had recorded by then)" if self._is_there() else what, "environment", what, self.path)
        if not summary and self._is_there() and not (said and code in _KINDS):
            return
        if summary.get("error"):
            raise Error(f"culprit: {summary['error']}", **{"kind": _KINDS.get(code, "environment"), "what": summary["error"], **summary.get("error_parts", {})})
        what = ("" if summary else said) or "culprit record ended without a recording"
        raise Error(what, _KINDS.get(code, "environment"), what)

    def _warn_of_missing_functions(self, summary: Dict[str, Any]) -> None:
        """Those that were asked for."""
        if not any(option.startswith("--python") for option in self._options):
            return
        for collector in summary.get("collectors", []):
            for missing in collector["missing"] if collector["name"] == "python" else []:
                warnings.warn(f"culprit.record: not seen: {missing['what']}: {missing['why']}", CulpritWarning, stacklevel=3)

    def _end(self, look: bool = True) -> None:
        """Whatever still runs, ends: the recorder, and the command that it started."""
        process = self._process
        try:
            if process is not None and process.returncode is None:
                try:
                    # It is not waited for yet, as Popen.send_signal() would do, so that its number stays that of its group.
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGTERM)  # which it passes on to the command
                    end = time.monotonic() + _END_S
                    with contextlib.suppress(ChildProcessError):  # where this program has no zombies
                        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < end:
                            time.sleep(0.01)
                finally:  # also when Ctrl-C ends the waiting
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        finally:
            self._let_go()
            if self._said is not None and self._summary is not None and not self._said.closed:
                if look:
                    self._take_messages()
                    self._take_summary()
                self._said.close()
                self._summary.close()

    def _let_go(self) -> None:
        """The recorder ends when nobody holds this any more."""
        if self._alive is not None:
            os.close(self._alive)
            self._alive = None

    @property
    def run(self) -> Run:
        """What was recorded. Error: the block has not ended."""
        if self._progress != "ended":
            what = "still recording" if self._progress == "recording" else "nothing is recorded yet"
            remedy = "read run behind the block: with culprit.record(...) as recording"
            raise Error(f"{what} ({remedy})", "usage", what, self.path, remedy)
        if self._run is None:
            self._run = load(self.path)
        return self._run


def record(target: Union[int, str, Iterable[str]], *, output: Optional[Path] = None, options: Iterable[str] = ()) -> Recording:
    """Records a process (its number or name), or a command (a list), while the ``with`` block runs.

    ``output``: where the recording stays; default: it goes with the object. ``options``: further options of ``culprit record``, in a list, such as
    ``["--preset", "deep"]``; ``"--force"`` overwrites ``output``. Of a command the block waits for the end; when the block ends with an exception the command is ended, too.
    Its standard input is ``/dev/null``. Behind the block ``returncode`` is its exit code and ``messages`` are what the recorder said; functions asked for by ``--python``
    that were not there are warnings. Raises ``culprit.Error`` with the program's own message.
    """
    path = "" if output is None else _check.path("output", output)
    path = path and os.path.abspath(path)  # of now: the program may change into another folder
    listed = _check.texts("options", options)
    if isinstance(target, (int, str)):
        name = _check.word("target", target) if isinstance(target, str) else str(_check.whole("target", target, 1, 2**31 - 1))
        return Recording(listed, name, [], path)
    command = _check.texts("target", target)
    if not command:
        raise ValueError("target is a command of at least one word, not an empty list")
    return Recording(listed, "", command, path)
