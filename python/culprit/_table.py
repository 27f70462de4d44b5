"""Tables: columns that other libraries read without copying."""

from __future__ import annotations

import importlib
import operator
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from . import _check, _culprit

_KINDS = {str: "text", int: "whole", float: "number"}


_TYPES = {kind: made for made, kind in _KINDS.items()}
_LEAST, _MOST = -(2**63), 2**63 - 1


def _kind_of(values: List[Any]) -> str:
    examples = {type(value): value for value in values if value is not None}.values()
    if any(isinstance(value, str) for value in examples):
        return "text"
    return "whole" if all(map(_is_whole, examples)) else "number"


def _is_whole(value: Any) -> bool:
    """As those of NumPy are, too."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _column(name: Any, values: Any, kinds: Mapping[str, str]) -> Tuple[str, List[Any], str]:
    """As the module takes it: name, values, kind. TypeError, ValueError: a value is not of the kind."""
    _check.text("the name of a column", name)
    called = f"column {name!r}"
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{called} is a list, not {values!r}")
    listed = list(values)
    kind = kinds.get(name, "") or _kind_of(listed)
    if not _is_plain([value for value in listed if value is not None], kind):
        listed = [None if value is None else _value(called, value, kind) for value in listed]
    return name, listed, kind


def _is_plain(values: List[Any], kind: str) -> bool:
    """Whether the module takes all as they are."""
    if {*map(type, values)} - {_TYPES[kind]}:
        return False
    if kind == "whole":
        return not values or (_LEAST <= min(values) and max(values) <= _MOST)
    try:
        "".join(values if kind == "text" else []).encode()
    except UnicodeEncodeError:
        return False
    return True


def _value(called: str, value: Any, kind: str) -> Any:
    if kind == "text":
        return _check.text(f"a value of {called}", str(value))
    if kind == "whole":
        return _check.whole(f"a value of {called}", int(value) if isinstance(value, bool) else value, _LEAST, _MOST)
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"a value of {called} is a number, not {value!r}") from None
    except OverflowError:
        raise ValueError(f"a value of {called} is larger than numbers are: {str(value)[:20]}...") from None


class Table:
    """Rows with named columns; it does not change.

    Columns are whole numbers, numbers or texts (dictionary-encoded); ``None`` is what was not measured. ``notes`` are sentences: what was left out or assumed.
    """

    def __init__(self, native: _culprit.Table) -> None:
        self._native = native

    @classmethod
    def from_columns(cls, key: str, columns: Iterable[Tuple[str, Iterable[Any]]], title: str = "", types: Optional[Mapping[str, type]] = None) -> "Table":
        """A table of lists of equal length. ``types``: ``str``, ``int`` or ``float`` by name; of columns that it lacks the values tell.

        TypeError, ValueError: a value is not of its column's type, or a whole number has more than 64 bits; the column is named.
        """
        for name, kind in (types or {}).items():
            if kind not in _KINDS:
                raise TypeError(f"types: column {name!r} is str, int or float, not {kind!r}")
        kinds = {name: _KINDS[kind] for name, kind in (types or {}).items()}
        made = [_column(name, values, kinds) for name, values in columns]
        return cls(_culprit.table_of_lists(_check.text("key", key), _check.text("title", title), made))

    @property
    def key(self) -> str:
        """A word for the table."""
        return self._native.key

    @property
    def title(self) -> str:
        """Its heading for people; may be empty."""
        return self._native.title

    @property
    def notes(self) -> List[str]:
        """What was left out or assumed."""
        return self._native.notes

    @property
    def columns(self) -> List[str]:
        """Names of the columns, with their units."""
        return self._native.columns

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The table by the Arrow C stream interface: a capsule of one batch. ``requested_schema`` is not looked at: another one cannot be asked for."""
        return self._native.stream()

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, column: str) -> List[Any]:
        """The values of one column. KeyError: there is none of that name."""
        try:
            return self._native.values(self.columns.index(column))
        except ValueError:
            raise KeyError(column) from None

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.rows())

    def rows(self, most: Optional[int] = None) -> List[Dict[str, Any]]:
        """The first ``most`` rows, or all, as dictionaries of column and value. TypeError, ValueError: ``most`` is no whole number from 0 on."""
        names = self.columns
        count = len(self) if most is None else min(_check.whole("most", most, 0, _MOST), len(self))
        return [{name: self._native.cell(c, r) for c, name in enumerate(names)} for r in range(count)]

    def to_dict(self) -> Dict[str, List[Any]]:
        """Lists of values by column, one value per row each."""
        return {name: self._native.values(c) for c, name in enumerate(self.columns)}

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` of the same rows and columns; texts are categories. ImportError: pandas or pyarrow is not there.

        Whole numbers (pid, device, correlation) become doubles where one of the column is missing, which hold whole numbers exactly up to 2**53.
        """
        return importlib.import_module("pyarrow").table(self).to_pandas()

    def __repr__(self) -> str:
        return f"<culprit.Table {self.key!r}: {len(self)} rows of {', '.join(self.columns)}>"

    def __str__(self) -> str:
        """Its first rows, in columns."""
        from ._html import table_text

        return table_text(self)

    def _repr_html_(self) -> str:
        from ._html import table_html

        return table_html(self)
