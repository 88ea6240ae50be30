"""The demo: rows that arrive as a profile says, one Python Arrow stage, and what the meter sees."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.measurement import Latency
from tidegate.control.sojourn import sojourn
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.meter import Meter, MeteredBatch
from tidegate.spark.progress import BatchProgress
from tidegate.spark.source import arrivals
from tidegate.spark.stamps import StampCounter
from tidegate.workload.parse import parse_profile
from tidegate.workload.profile import Profile, constant

KEYS = "zipf:1000,1.1"
_WINDOW_S = 5.0
_WARM_UP_S = 180.0
"""How long Spark may take for its first batch before we call it stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """One second of the run, for the live line."""

    at_s: int
    rows: int
    """Rows processed so far."""
    batch: BatchProgress | None
    """The last batch that ended."""
    latency: Latency | None
    """Sojourn of the rows completed during the last five seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The whole run."""

    seconds: float
    arrived: int
    rows: int
    """Rows processed; all that arrived, unless the machine could not keep up."""
    latency: Latency | None
    batches: tuple[BatchProgress, ...]


def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The stage: a score per row, in columns."""
    for batch in batches:
        points = pc.round(pc.multiply(pc.sqrt(batch.column("value")), 100.0), 1)
        yield pa.RecordBatch.from_arrays([batch.column("key"), points], names=["key", "score"])


def run_demo(
    spark: SparkSession, rate: str, seconds: float, on_second: Callable[[Second], None]
) -> Summary:
    """Runs the pipeline for `seconds` of arrivals, and until what arrived is processed.

    A first short run is not counted: it starts the Python workers and lets the JVM compile.
    """
    profile = check_demo(rate, seconds)
    with tempfile.TemporaryDirectory(prefix="tidegate-demo-") as directory:
        with _running(spark, constant(1000), 0.5, Path(directory) / "warm-up") as (query, meter):
            _await_rows(query, meter, 500)
        with _running(spark, profile, seconds, Path(directory) / "demo") as (query, meter):
            return _watch(query, meter, profile, seconds, on_second)


def check_demo(rate: str, seconds: float) -> Profile:
    """The profile, if the demo can be run at all: asked before Spark is started."""
    if not 0.1 <= seconds <= 86_400:
        raise AskedWrongly(
            f"a demo of {seconds:g} seconds is not possible; give 0.1 to 86400 (a day)."
        )
    return parse_profile(rate)


@contextmanager
def _running(
    spark: SparkSession, profile: Profile, seconds: float, checkpoint: Path
) -> Iterator[tuple[StreamingQuery, Meter]]:
    """The pipeline as a query, with a meter on it, stopped at the end."""
    stamps = StampCounter(spark.sparkContext)
    rows = arrivals(spark, profile, keys=KEYS, seconds=seconds)
    scored = rows.mapInArrow(stamps.counting(score), "key long, score double")
    writer = scored.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.start()
    try:
        yield query, Meter(query, stamps, window_s=_WINDOW_S)
    finally:
        query.stop()


def _await_rows(query: StreamingQuery, meter: Meter, wanted: int) -> None:
    rows, deadline_s = 0, time.monotonic() + _WARM_UP_S
    while rows < wanted:
        if time.monotonic() > deadline_s:
            raise TidegateError(
                f"Spark did not finish a first batch within {_WARM_UP_S:g} seconds; see what else "
                "uses this machine and try again."
            )
        time.sleep(0.05)
        _raise_failure(query)
        rows += sum(batch.progress.rows for batch in meter.read())


def _watch(
    query: StreamingQuery,
    meter: Meter,
    profile: Profile,
    seconds: float,
    on_second: Callable[[Second], None],
) -> Summary:
    """Reads the meter once a second until the arrivals are over and processed.

    A machine that cannot keep up gets as long again to catch up; then the rest stays unprocessed.
    """
    batches: list[MeteredBatch] = []
    arrived, rows = profile.count(round(seconds * 1000)), 0
    begin_s, tick = time.monotonic(), 0
    while time.monotonic() < begin_s + (seconds if rows == arrived else 2 * seconds + 10):
        tick += 1
        time.sleep(max(begin_s + tick - time.monotonic(), 0.0))
        _raise_failure(query)
        batches += meter.read()
        rows = sum(batch.progress.rows for batch in batches)
        last = batches[-1].progress if batches else None
        on_second(
            Second(at_s=tick, rows=rows, batch=last, latency=meter.latency(time.time_ns() // 1000))
        )
    return Summary(
        seconds=seconds,
        arrived=arrived,
        rows=rows,
        latency=sojourn([batch.stamps for batch in batches if batch.stamps is not None]),
        batches=tuple(batch.progress for batch in batches),
    )


def _raise_failure(query: StreamingQuery) -> None:
    failure: PySparkException | None = query.exception()
    if failure is not None:
        raise TidegateError(f"the query failed: {str(failure).strip().splitlines()[0]}")
