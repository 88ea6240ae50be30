"""Keyed functions that most pipelines need, ready to use: `tg.count()`, `tg.window(...)`."""

from tidegate.pipeline.functions.measure import aggregate
from tidegate.pipeline.functions.picks import latest, max, min
from tidegate.pipeline.functions.totals import count, mean, sum

__all__ = ["aggregate", "count", "latest", "max", "mean", "min", "sum"]
