"""Built-in keyed functions that most pipelines need, such as `tg.count()` or `tg.window(...)`."""

from tidegate.pipelines.functions.closing import closing
from tidegate.pipelines.functions.measure import aggregate
from tidegate.pipelines.functions.picks import latest, max, min
from tidegate.pipelines.functions.sessions import sessions
from tidegate.pipelines.functions.top import top_n
from tidegate.pipelines.functions.totals import count, mean, sum
from tidegate.pipelines.functions.window import window

__all__ = [
    "aggregate",
    "closing",
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
