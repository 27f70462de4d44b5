"""Tables: columns that other libraries read without copying."""

from __future__ import annotations

import importlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from . import _culprit

_KINDS = {str: "text", int: "whole", float: "number"}


class Table:
    """Rows with named columns; it does not change.

    Columns are whole numbers, numbers or texts (dictionary-encoded); ``None`` is what was not measured. ``notes`` are sentences: what was left out or assumed.
    """

    def __init__(self, native: _culprit.Table) -> None:
        self._native = native

    @classmethod
    def from_columns(cls, key: str, columns: Sequence[Tuple[str, List[Any]]], title: str = "", types: Optional[Mapping[str, type]] = None) -> "Table":
        """A table of lists of equal length. ``types``: ``str``, ``int`` or ``float`` by name; of columns that it lacks the values tell."""
        known = {name: _KINDS[kind] for name, kind in (types or {}).items()}
        return cls(_culprit.table_of_lists(key, title, [(name, values, known.get(name, "")) for name, values in columns]))

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
        """The table by the Arrow C stream interface; one batch. Another schema cannot be asked for."""
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
        """The first ``most`` rows, or all, as dictionaries."""
        names = self.columns
        count = len(self) if most is None else min(most, len(self))
        return [{name: self._native.cell(c, r) for c, name in enumerate(names)} for r in range(count)]

    def to_dict(self) -> Dict[str, List[Any]]:
        """Columns as lists."""
        return {name: self._native.values(c) for c, name in enumerate(self.columns)}

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``; texts are categories. Needs pandas and pyarrow."""
        return importlib.import_module("pyarrow").table(self).to_pandas()

    def __repr__(self) -> str:
        return f"<culprit.Table {self.key!r}: {len(self)} rows of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        from ._html import table_html

        return table_html(self)
