"""Traces of GPU workloads as data frames, comparisons of runs with their causes, and recordings.

>>> run = culprit.load("trace.json.gz")
>>> run.top(limit=10).to_pandas()
>>> culprit.diff("good.json.gz", "bad.json.gz").outcome

Times are whole nanoseconds (``_ns``), sizes bytes (``_bytes``), shares fractions. Every table speaks the Arrow PyCapsule interface: ``pyarrow.table(t)``,
``polars.DataFrame(t)``, ``pandas.DataFrame.from_arrow(t)`` and duckdb read it in one call.
"""

from ._comparison import Comparison, diff
from ._error import Error
from ._record import Recording, record
from ._run import Run, load
from ._table import Table

__version__ = "0.1.0"
__all__ = ["Comparison", "Error", "Recording", "Run", "Table", "diff", "load", "record"]
