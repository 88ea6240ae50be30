"""Tidegate keeps a Spark streaming pipeline inside its latency target with as few cores as it can.

`import tidegate as tg`; then `tg.session()`, `tg.pipeline(...)` and operators such as `tg.count()`.
Names are imported on first use, so that commands that do not need Spark start fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.control.notice import Notice
    from tidegate.errors import AskedWrongly, TidegateError
    from tidegate.models.shedding.estimate import (
        Estimate,
        estimated_count,
        estimated_mean,
        estimated_sum,
    )
    from tidegate.pipelines.derived import Derived
    from tidegate.pipelines.functions import (
        aggregate,
        closing,
        count,
        latest,
        max,
        mean,
        min,
        sessions,
        sum,
        top_n,
        window,
    )
    from tidegate.pipelines.keyed import KeyedBatch, Update
    from tidegate.pipelines.shedding import ShedClass
    from tidegate.pipelines.stream import Stream, pipeline
    from tidegate.spark.loop.attach import Attachment, attach
    from tidegate.spark.run import Run
    from tidegate.spark.session import session
    from tidegate.spark.shedding.foreign_source import shedding
    from tidegate.spark.sinks.without_replays import without_replays
    from tidegate.spark.sources.arrivals import arrivals
    from tidegate.spark.state.read import read_state

__version__ = "0.1.0.dev0"

_HOMES = {
    "AskedWrongly": "errors",
    "Notice": "control.notice",
    "TidegateError": "errors",
    "Derived": "pipelines.derived",
    "KeyedBatch": "pipelines.keyed",
    "Update": "pipelines.keyed",
    "ShedClass": "pipelines.shedding",
    "Stream": "pipelines.stream",
    "pipeline": "pipelines.stream",
    "Attachment": "spark.loop.attach",
    "attach": "spark.loop.attach",
    "Run": "spark.run",
    "session": "spark.session",
    "shedding": "spark.shedding.foreign_source",
    "without_replays": "spark.sinks.without_replays",
    "arrivals": "spark.sources.arrivals",
    "read_state": "spark.state.read",
    **dict.fromkeys(
        ["Estimate", "estimated_count", "estimated_mean", "estimated_sum"],
        "models.shedding.estimate",
    ),
    **dict.fromkeys(
        [
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
        ],
        "pipelines.functions",
    ),
}

__all__ = [
    "AskedWrongly",
    "Attachment",
    "Derived",
    "Estimate",
    "KeyedBatch",
    "Notice",
    "Run",
    "ShedClass",
    "Stream",
    "TidegateError",
    "Update",
    "aggregate",
    "arrivals",
    "attach",
    "closing",
    "count",
    "estimated_count",
    "estimated_mean",
    "estimated_sum",
    "latest",
    "max",
    "mean",
    "min",
    "pipeline",
    "read_state",
    "session",
    "sessions",
    "shedding",
    "sum",
    "top_n",
    "window",
    "without_replays",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tidegate' has no attribute '{name}'")
    if home.startswith("spark.") or home == "pipelines.stream":
        import_module("tidegate.spark.releases").check_release(import_module("pyspark").__version__)
    if name == "pipeline":
        import_module("tidegate.spark.start")  # so that `start` works
    value = getattr(import_module(f"tidegate.{home}"), name)
    globals()[name] = value
    return value
