"""Traces of GPU workloads as data frames, comparisons of runs with their causes, and recordings.

>>> run = culprit.load("trace.json.gz")
>>> run.top(limit=10).to_pandas()
>>> culprit.diff("good.json.gz", "bad.json.gz").outcome

Times are whole nanoseconds (``_ns``), sizes bytes (``_bytes``), shares fractions. Every table speaks the Arrow PyCapsule interface: ``pyarrow.table(t)``,
``polars.DataFrame(t)``, ``pandas.DataFrame.from_arrow(t)`` and duckdb (which reads it by pyarrow) take it in one call.
"""

from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from . import torch as torch
    from ._comparison import Comparison, diff, diff_tables
    from ._error import CulpritWarning, Error
    from ._record import Recording, record
    from ._run import Run, load
    from ._table import Table

__version__ = "0.1.0"
__all__ = ["Comparison", "CulpritWarning", "Error", "Recording", "Run", "Table", "diff", "diff_tables", "load", "record"]

# The program of this package is started by way of this file: nothing is loaded before it is asked for.
_PLACES = {
    "Comparison": "_comparison",
    "diff": "_comparison",
    "diff_tables": "_comparison",
    "CulpritWarning": "_error",
    "Error": "_error",
    "Recording": "_record",
    "record": "_record",
    "Run": "_run",
    "load": "_run",
    "Table": "_table",
}


if not TYPE_CHECKING:  # who checks types would take it for every name

    def __getattr__(name: str) -> Any:
        import importlib

        if name == "torch":
            return importlib.import_module(".torch", __name__)
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module("." + _PLACES[name], __name__), name)
        globals()[name] = value
        return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__, "torch"})
