"""Keyed functions that most pipelines need, ready to use: `tg.count()`, `tg.window(...)`."""

from tidegate.pipeline.functions.measure import aggregate
from tidegate.pipeline.functions.picks import latest, max, min
from tidegate.pipeline.functions.sessions import sessions
from tidegate.pipeline.functions.top import top_n
from tidegate.pipeline.functions.totals import count, mean, sum
from tidegate.pipeline.functions.window import window

__all__ = [
    "aggregate",
    "count",
    "latest",
    "max",
    "mean",
    "min",
    "sessions",
    "sum",
    "top_n",
    "window",
]
