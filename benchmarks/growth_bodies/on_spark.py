"""What Tidegate adds on Spark itself: a chain of keyed counts beside the same chain of plain Spark.

Plain Spark does the same in `foreachBatch`: for each operator a shuffle by the key into as many
partitions, and a Python stage that returns its rows. It keeps no state. What ours takes longer is
the state, the plan, the reports and the commit. The two alternate, and a figure is the median time
of a trigger.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import tidegate as tg

ROWS = 1_000
WARM = 4


def write_feed(directory: Path, batches: int) -> None:
    """Parquet files of a thousand rows, one for each batch."""
    directory.mkdir(parents=True)
    chance = np.random.default_rng(0)
    for number in range(batches):
        table = pa.table({"k": chance.integers(0, 500, ROWS)})
        pq.write_table(table, directory / f"{number:05d}.parquet")


def _stream(spark: SparkSession, feed: Path) -> DataFrame:
    reader = spark.readStream.schema("k long").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(feed))


def ours(
    spark: SparkSession, feed: Path, place: Path, *, tasks: int, operators: int, shards: int
) -> Any:
    """Our keyed counts, one behind the other."""
    flow = tg.pipeline("growth", _stream(spark, feed))
    for number in range(operators):
        flow = flow.keyed(f"count{number}", tg.count(), key="k", shards=shards)
    return flow.to("noop").start(str(place), tasks=tasks).queries["main"]


def plain(spark: SparkSession, feed: Path, place: Path, *, tasks: int, operators: int) -> Any:
    """The same shape without Tidegate."""

    def batch(rows: DataFrame, batch_id: int) -> None:
        for _ in range(operators):
            rows = rows.repartition(tasks, "k").mapInArrow(lambda blocks: blocks, "k long")
        rows.write.format("noop").mode("append").save()

    writer = _stream(spark, feed).writeStream.foreachBatch(batch)
    return writer.option("checkpointLocation", str(place)).start()


def trigger_s(query: Any, batches: int) -> list[float]:
    """Wait for the batches, stop the query, and return the times of their triggers."""
    while True:
        spent = [
            progress["durationMs"]["triggerExecution"] / 1000.0
            for progress in query.recentProgress
            if progress["numInputRows"] > 0
        ]
        if len(spent) >= batches or not query.isActive:
            break
        query.awaitTermination(0.1)
    query.stop()
    return spent[WARM:batches]


def compared(
    spark: SparkSession,
    root: Path,
    *,
    tasks: int = 2,
    operators: int = 1,
    shards: int = 1024,
    batches: int = 12,
    say: Callable[[str], None] = print,
) -> dict[str, float]:
    """The median seconds of a trigger, of ours and of plain Spark, and what ours adds."""
    feed = root / "feed"
    if not feed.exists():
        write_feed(feed, batches)
    mark = f"{tasks}-{operators}-{shards}"
    shape = {"tasks": tasks, "operators": operators}
    found: dict[str, list[float]] = {"ours": [], "plain": []}
    for turn in range(2):
        place = root / f"ours-{mark}-{turn}"
        found["ours"] += trigger_s(ours(spark, feed, place, shards=shards, **shape), batches)
        place = root / f"plain-{mark}-{turn}"
        found["plain"] += trigger_s(plain(spark, feed, place, **shape), batches)
    median = {name: float(np.median(taken)) for name, taken in found.items()}
    say(f"{tasks} tasks, {operators} operators, {shards} shards: {median}")
    return {**median, "added": max(median["ours"] - median["plain"], 1e-4)}
