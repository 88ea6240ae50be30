"""Applications whose rows are made from row numbers alone, so that any source can drive them.

A source only has to number its rows in a column `seq`. Behind `arrivals` an application follows a
rate profile, which is what `tidegate app` runs. Behind `full_source` it always has enough to do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.apps.application import BuiltApplication, Settings, Verdict
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.sources.arrivals import arrivals

READ_TASKS = 2
"""Tasks that read the source. Rows are numbers there, so more of them would only cost time."""


@dataclass(frozen=True, slots=True)
class NumberedFlow:
    """The operators of an application behind a source of numbered rows."""

    stream: Stream
    verify: Callable[[str, int], Verdict]
    """Compares the answers with a sequential reference over the first rows of the source; it is
    given the checkpoint of a stopped run, and how many rows were processed."""


FlowMaker = Callable[[Stream, Settings, Path], NumberedFlow]
"""Puts the operators behind a source; the directory is for the rows that its sinks collect."""


def on_arrivals(
    name: str, flow: FlowMaker
) -> Callable[[SparkSession, Settings, Path], BuiltApplication]:
    """The application behind rows that arrive by the settings' rate."""

    def build(spark: SparkSession, settings: Settings, directory: Path) -> BuiltApplication:
        rows = arrivals(
            spark,
            settings.rate,
            seed=settings.seed,
            seconds=settings.seconds,
            partitions=READ_TASKS,
        )
        made = flow(pipeline(name, rows, arrival="timestamp"), settings, directory)
        return BuiltApplication(
            stream=made.stream,
            verify=lambda checkpoint: made.verify(checkpoint, settings.arrived),
        )

    return build


def behind(flow: FlowMaker) -> Callable[[Stream, Settings], Stream]:
    """The operators alone. Whoever runs them replaces the sinks, which collect rows nowhere."""

    def put(source: Stream, settings: Settings) -> Stream:
        return flow(source, settings, Path("nowhere")).stream

    return put
