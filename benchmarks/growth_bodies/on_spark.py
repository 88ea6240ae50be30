"""What Tidegate adds on Spark itself: a chain of keyed counts beside the same chain of plain Spark.

Plain Spark does the same in `foreachBatch`: for each operator a shuffle by the key into as many
partitions, and a Python stage that returns its rows. It keeps no state. What ours takes longer is
the state, the plan, the reports and the commit. The two alternate. A figure is the processor time
of the whole application for a batch: the driver, Spark's JVM and the Python workers. So other work
on the machine does not count.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import tidegate as tg
from tidegate.apps.own_cpu import own_cpu_s

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


def batch_cpu_s(query: Any, batches: int) -> float:
    """Wait for the batches, stop the query, and return the processor time of one.

    The first `WARM` batches are left out.
    """
    begun = (0, 0.0)
    while True:
        done = sum(progress["numInputRows"] > 0 for progress in query.recentProgress)
        spent_s = own_cpu_s()
        assert spent_s is not None, "the kernel does not tell processor times"
        if not begun[0] and done >= WARM:
            begun = (done, spent_s)
        if done >= batches or not query.isActive:
            break
        query.awaitTermination(0.05)
    query.stop()
    return (spent_s - begun[1]) / max(done - begun[0], 1)


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
    """Processor seconds of a batch, of ours and of plain Spark, and what ours adds."""
    feed = root / "feed"
    if not feed.exists():
        write_feed(feed, batches)
    mark = f"{tasks}-{operators}-{shards}"
    shape = {"tasks": tasks, "operators": operators}
    found: dict[str, list[float]] = {"ours": [], "plain": []}
    for turn in range(2):
        place = root / f"ours-{mark}-{turn}"
        query = ours(spark, feed, place, shards=shards, **shape)
        found["ours"].append(batch_cpu_s(query, batches))
        place = root / f"plain-{mark}-{turn}"
        found["plain"].append(batch_cpu_s(plain(spark, feed, place, **shape), batches))
    least = {name: min(taken) for name, taken in found.items()}
    say(f"{tasks} tasks, {operators} operators, {shards} shards: {least}")
    return {**least, "added": max(least["ours"] - least["plain"], 1e-4)}
