"""Arguments of calls: an error names the one that is wrong."""

from __future__ import annotations

import operator
import os
from typing import Any, Iterable, List


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number in this range. TypeError, ValueError: it is none."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is a whole number from {least} to {most}, not {number}")
    return number


def number(name: str, value: Any) -> float:
    """TypeError: it is none, as a text is not."""
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is a number, not {value!r}")
    try:
        return float(value)
    except TypeError:  # of an array
        raise TypeError(f"{name} is a number, not {value!r}") from None


def text(name: str, value: Any) -> str:
    """One that UTF-8 can write. TypeError, ValueError: it is none."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is a text that UTF-8 can write, not {value!r}") from None
    return value


def path(name: str, value: Any) -> str:
    """TypeError, ValueError: it is none."""
    if isinstance(value, bytes):
        raise TypeError(f"{name} is a path as text, or an os.PathLike of one, not bytes (os.fsdecode makes one of them)")
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} is a path, not {value!r}")
    made = os.fspath(value)
    if not isinstance(made, str):
        raise TypeError(f"{name} is a path as text, or an os.PathLike of one, not {value!r}")
    if "\0" in made:
        raise ValueError(f"{name}: no path holds a null character: {made!r}")
    return made


def texts(name: str, values: Any) -> List[str]:
    """Of a list. TypeError: it is none, as a single text is."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is a list of texts, not {values!r}")
    listed = list(values)
    for value in listed:
        if not isinstance(value, str):
            raise TypeError(f"{name} is a list of texts, and holds {value!r}")
        word(name, value)
    return listed


def word(name: str, value: str) -> str:
    """One that a program can be given. ValueError: it is none."""
    try:
        if b"\0" not in os.fsencode(value):
            return value
    except UnicodeEncodeError:
        pass
    raise ValueError(f"{name} is what a program can be given, without null characters, not {value!r}")
