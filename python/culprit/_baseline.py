"""Baselines of the pytest plugin: the steps of a test, stored several times.

A file is a trace of the newest steps, with what they were measured on and the steps stored before: how much these differ is how much the same differs by itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

KEPT = 5
"""Recordings of one test, the newest included."""

_LONGEST_US = 1e15  # longer than any test runs


class Unusable(Exception):
    """The file is no baseline; the text says why."""


class Recording(NamedTuple):
    """What was measured once."""

    facts: Dict[str, str]
    steps: List[Tuple[float, float]]
    """Begin and duration of each, in microseconds."""


@contextlib.contextmanager
def alone(path: str) -> Iterator[None]:
    """One at a time in the folder of the path, which is made; where its file system has no locks, all at once. Raises OSError."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, held)
            fcntl.flock(held, fcntl.LOCK_EX)
            stack.callback(fcntl.flock, held, fcntl.LOCK_UN)  # a process that was forked meanwhile has it, too
        yield


def write(path: str, recordings: List[Recording]) -> None:
    """The newest first; complete or not at all. Raises OSError."""
    newest = recordings[0]
    events = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": begin, "dur": duration}
        for i, (begin, duration) in enumerate(newest.steps)
    ]
    earlier = [{"culpritFacts": recording.facts, "steps": recording.steps} for recording in recordings[1:]]
    stored = {"schemaVersion": 1, "culpritFacts": newest.facts, "traceEvents": events, "culpritEarlier": earlier}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    made = f"{path}.{os.urandom(8).hex()}.new"  # numbers of processes are not one's own where containers share the folder
    try:
        with open(made, "x", encoding="utf-8") as file:
            json.dump(stored, file)
        os.replace(made, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(made)
        raise


def read(path: str) -> List[Recording]:
    """The newest first. Raises Unusable, OSError."""
    stored = _content(path)
    events, earlier = stored.get("traceEvents"), stored.get("culpritEarlier", [])
    if not isinstance(events, list) or not all(_is_step(event) for event in events):
        raise Unusable("it holds other things than the steps of a test")
    newest = {"culpritFacts": stored.get("culpritFacts"), "steps": [[event.get("ts"), event.get("dur")] for event in events]}
    return [_recording(entry) for entry in [newest, *(earlier if isinstance(earlier, list) else [earlier])]]


def _content(path: str) -> Dict[str, Any]:
    if not os.path.isfile(path):
        raise Unusable("it is no file")
    try:
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
    except (ValueError, RecursionError):
        raise Unusable("it is no JSON") from None
    if not isinstance(stored, dict):
        raise Unusable("it is no JSON object")
    return stored


def _is_step(event: Any) -> bool:
    return isinstance(event, dict) and event.get("ph") == "X" and str(event.get("name")).startswith("ProfilerStep#")


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _LONGEST_US


def _recording(entry: Any) -> Recording:
    facts = entry.get("culpritFacts") if isinstance(entry, dict) else None
    if not isinstance(facts, dict) or "cpu" not in facts or not all(isinstance(value, str) for value in facts.values()):
        raise Unusable("it does not say on which machine it was made")
    steps = entry.get("steps")
    if not isinstance(steps, list) or len(steps) < 2:
        raise Unusable("it has no steps")
    if not all(isinstance(step, list) and len(step) == 2 and all(_is_time(value) for value in step) for step in steps):
        raise Unusable("a step in it has no time")
    return Recording(facts, [(step[0], step[1]) for step in steps])
