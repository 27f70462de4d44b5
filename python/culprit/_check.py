"""Arguments of calls: an error names the one that is wrong."""

from __future__ import annotations

import operator
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
    """TypeError: it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number, not {value!r}")
    return float(value)


def text(name: str, value: Any) -> str:
    """One that UTF-8 can write. TypeError, ValueError: it is none."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is a text that UTF-8 can write, not {value!r}") from None
    return value


def texts(name: str, values: Any) -> List[str]:
    """Of a list. TypeError: it is none, as a single text is."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is a list of texts, not {values!r}")
    listed = list(values)
    for value in listed:
        if not isinstance(value, str):
            raise TypeError(f"{name} is a list of texts, and holds {value!r}")
    return listed
