"""A disturbance that a Python server lets `culprit inject gil` ask for: one thread that holds the interpreter's lock.

A server calls `gil_fault.start()` once, for instance when it was started with `--faults`. That opens an abstract Unix
socket named `culprit-gil-<pid>` (no file, nothing on the network) and a daemon thread that waits there. Only the same
user and root are answered. The fault lasts as long as the connection of the one who asked: when that program ends, for
whatever reason, the lock is given back. The protocol stands in docs/faults.md.
"""

import os
import socket
import struct
import threading
import time

_LONGEST_LINE = 256
_FIRST_COUNT = 20_000  # elements of the first hold; later ones follow the measured speed


def start():
    """Opens the socket and returns the thread that serves it. Raises OSError where the socket cannot be opened."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind("\0culprit-gil-%d" % os.getpid())
        listener.listen(1)
    except OSError:
        listener.close()
        raise
    thread = threading.Thread(target=_serve, args=(listener,), name="culprit-gil", daemon=True)
    thread.start()
    return thread


def _serve(listener):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            try:
                _answer(connection)
            except OSError:
                pass  # the asker has gone away, which is how a fault may end


def _answer(connection):
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if uid not in (0, os.geteuid()):
        connection.sendall(b"error only root and the user of this process may ask\n")
        return
    connection.settimeout(5)
    try:
        severity, period = _parse(_read_line(connection))
    except ValueError as error:
        connection.sendall(b"error %s\n" % str(error).encode("ascii", "replace"))
        return
    connection.sendall(b"ok\n")
    connection.setblocking(False)
    begin = time.monotonic_ns()
    holds, held = _hold(connection, severity, period)
    connection.settimeout(5)
    connection.sendall(b"done holds=%d held_ns=%d elapsed_ns=%d\n" % (holds, held, time.monotonic_ns() - begin))


def _read_line(connection):
    line = b""
    while not line.endswith(b"\n"):
        if len(line) > _LONGEST_LINE:
            raise ValueError("the request is too long")
        try:
            part = connection.recv(64)
        except TimeoutError:
            raise ValueError("no request came") from None
        if not part:
            raise ValueError("the request is cut off")
        line += part
    return line


def _parse(line):
    """The request `hold SEVERITY PERIOD_US` as (share of the time, nanoseconds)."""
    words = line.split()
    if len(words) != 3 or words[0] != b"hold":
        raise ValueError("expected: hold SEVERITY PERIOD_US")
    severity, period = float(words[1]), int(words[2])
    if not 0 < severity <= 1:
        raise ValueError("severity must be above 0 and at most 1")
    if not 1_000 <= period <= 1_000_000:
        raise ValueError("the period must be 1000 to 1000000 microseconds")
    return severity, period * 1000


def _stopped(connection):
    """Whether the asker said `stop` or closed the connection."""
    try:
        return connection.recv(64) is not None
    except BlockingIOError:
        return False


def _hold(connection, severity, period):
    """Holds the lock for `severity` of the time until told to stop; returns (holds, CPU time inside them in ns).

    One call of sum() over a range is native code that never offers the lock, unlike a loop of bytecode. Its length is
    measured as CPU time of this thread, so waiting for the lock before or after it does not count as holding; what
    that waiting costs is made up by longer holds, of four periods at most.
    """
    count, per_element = _FIRST_COUNT, None
    holds = held = 0
    begin = time.monotonic_ns()
    next_period = begin
    while not _stopped(connection):
        before = time.thread_time_ns()
        sum(range(count))
        spent = time.thread_time_ns() - before
        holds += 1
        held += spent
        speed = max(spent, 1) / count
        per_element = speed if per_element is None else 0.8 * per_element + 0.2 * speed
        next_period = max(next_period + period, time.monotonic_ns() - period)
        now = time.monotonic_ns()
        if severity < 1 and now < next_period:
            time.sleep((next_period - now) / 1e9)
        due = severity * (time.monotonic_ns() - begin + period) - held
        count = max(1000, int(min(max(due, 0), 4 * period) / per_element))
    return holds, held
