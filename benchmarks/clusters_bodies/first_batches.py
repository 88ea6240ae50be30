"""How much longer the first micro-batch on a new executor takes than those after it.

A light pipeline has one executor. Once its batches are even, a second one is asked for. New
executors are warmed up before they count (`spark/loop/warm_executors.py`), so what is left of their
cold start is what the first batch with the new tasks takes longer.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from tidegate.apps.surge import SHARDS, surge_flow
from tidegate.control.measurement import BatchMeasurement
from tidegate.control.record import Record
from tidegate.errors import TidegateError
from tidegate.spark.run import Run
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.start import start

_LOAD = "constant:60"
_EVEN_BATCHES = 8
"""So many batches before the second executor is asked for, and after it has come."""
_PATIENCE_S = 90.0


def first_batches(spark: SparkSession, place: str, cores: int, *, shared: bool) -> dict[str, Any]:
    """Scale from one executor to two; `cores` is how many cores each has."""
    stream = arrivals(spark, _LOAD, keys=f"uniform:{SHARDS}", partitions=2)
    run = start(
        surge_flow(stream).graph,
        checkpoint=place,
        target="30 seconds",
        cores=(cores, cores),
        shared_checkpoint=shared,
    )
    loop: Any = run.loop
    seen: list[Record] = []
    loop.watchers.append(seen.append)
    try:
        _wait(run, lambda: bool(seen) and _granted(seen) == cores, "one executor")
        before = len(_batches(seen))
        _wait(run, lambda: len(_batches(seen)) >= before + _EVEN_BATCHES, "even batches")
        asked_s = time.time()
        run.update(cores=(2 * cores, 2 * cores))
        _wait(run, lambda: _granted(seen) == 2 * cores, "the second executor")
        counted_s = time.time()
        _wait(run, lambda: len(_wider(seen, asked_s)) > _EVEN_BATCHES, "batches on both")
    finally:
        run.stop()
    first, *later = _wider(seen, asked_s)
    usual_s = statistics.median(batch.duration_s for batch in later)
    return {
        "new_executor_counts_after_s": round(counted_s - asked_s, 1),
        "new_executor_extra_s": round(first.duration_s - usual_s, 2),
    }


def _granted(records: list[Record]) -> int:
    return records[-1].measurement.cores_granted


def _batches(records: list[Record]) -> list[BatchMeasurement]:
    return [
        batch
        for record in records
        for segment in record.measurement.segments
        for batch in segment.batches
    ]


def _wider(records: list[Record], since_s: float) -> list[BatchMeasurement]:
    """The batches with the tasks of both executors, which began after this time."""
    batches = _batches(records)
    most = max(batch.tasks for batch in batches)
    begun = [batch for batch in batches if batch.ended_s - batch.duration_s >= since_s]
    return [batch for batch in begun if batch.tasks == most]


def _wait(run: Run, condition: Callable[[], bool], what: str) -> None:
    until_s = time.monotonic() + _PATIENCE_S
    while not condition():
        if run.awaitTermination(0.1) or time.monotonic() > until_s:
            raise TidegateError(f"waited {_PATIENCE_S:g} s in vain for {what}")
