"""How tables and comparisons look in a notebook, and printed."""

from __future__ import annotations

import html
import typing
from typing import Any, List

if typing.TYPE_CHECKING:
    from ._comparison import Comparison
    from ._table import Table

_MOST_ROWS = 20
_MOST_WIDE = 48
_NUMBERS = frozenset("pid tid rank device stream correlation process cycle launch baseline_pid candidate_pid".split())  # that name something
_LONGEST_NS = 1e17  # three years: what is more is a time of day


def duration(ns: float) -> str:
    """1234567 is "1.235 ms"."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(ns) >= size:
            return f"{ns / size:.3f} {unit}"
    return f"{ns:.0f} ns"


def _shown(column: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if column in _NUMBERS:
        return str(value)
    if column.endswith(("_ns", "_ns_per_cycle")) and column not in ("begin_ns", "at_ns") and abs(value) < _LONGEST_NS:
        return duration(value)
    if isinstance(value, float):
        return f"{100 * value:.2f} %" if column in ("share", "self_share") else f"{value:.6g}"
    return f"{value:,}"


def table_html(table: "Table") -> str:
    """The first rows; every text is escaped."""
    names = table.columns
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_shown(name, row[name]))}</td>" for name in names) + "</tr>" for row in table.rows(_MOST_ROWS))
    more = f"<p>{len(table) - _MOST_ROWS:,} more rows</p>" if len(table) > _MOST_ROWS else ""
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in table.notes)
    title = f"<caption>{html.escape(table.title)}</caption>" if table.title else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}{notes}"


def table_text(table: "Table") -> str:
    """The first rows in columns; long texts are cut, and what would steer a terminal is escaped."""
    names = table.columns
    rows = table.rows(_MOST_ROWS)
    lines = [names] + [[_shown(name, row[name]) for name in names] for row in rows]
    cells = [[_cut("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cell)) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells)]
    is_text = [any(isinstance(row[name], str) for row in rows) for name in names]
    text = "\n".join("  ".join(cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(line, widths, is_text)).rstrip() for line in cells)
    more = [f"{len(table) - _MOST_ROWS:,} more rows"] if len(table) > _MOST_ROWS else []
    return "\n".join([*([table.title] if table.title else []), text, *more])


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_WIDE else text[: _MOST_WIDE - 3] + "..."


def comparison_html(comparison: "Comparison") -> str:
    """The outcome, causes and the largest findings."""
    parts: List[str] = [f"<p><b>{html.escape(comparison.outcome.replace('_', ' '))}</b> {html.escape(comparison.why)}</p>"]
    for verdict in comparison.verdicts:
        name = verdict["cause"] + (f" ({verdict['detail']})" if verdict["detail"] else "")
        evidence = "".join(f"<li>{html.escape(line)}</li>" for line in verdict["evidence"])
        parts.append(f"<p><b>{html.escape(name)}</b>, {html.escape(verdict['state'])}</p><ul>{evidence}</ul>")
    for table in (comparison.effects(), comparison.findings()):
        if len(table):
            parts.append(table_html(table))
    return "".join(parts)
