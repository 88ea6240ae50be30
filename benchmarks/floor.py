"""The shortest micro-batch: 1,000 rows and a keyed count, against Structured Streaming.

Both read the same Parquet files, one file per micro-batch, with the same number of tasks, and write
to no sink. The figure is the median time of a whole trigger after a warm-up.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.benching import Bench, Options, at_most
from tidegate.spark.session import session

TASKS = 2
ROWS = 1_000
WARM = 6
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def durations_s(query: Any, batches: int) -> list[float]:
    """Wait for enough batches with rows; return their trigger times."""
    while True:
        spent = [
            progress["durationMs"]["triggerExecution"] / 1000
            for progress in query.recentProgress
            if progress["numInputRows"] > 0
        ]
        if len(spent) >= batches or not query.isActive:
            return spent
        query.awaitTermination(0.1)


def contenders(spark: SparkSession, feed: Path, root: Path, round_: int) -> dict[str, Any]:
    """The functions that start each contender."""

    def stream() -> Any:
        reader = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", 1)
        return reader.parquet(str(feed))

    def ours() -> Any:
        flow = tg.pipeline("floor", stream()).keyed("n", tg.count(), key="k").to("noop")
        return flow.start(str(root / f"ours-{round_}"), tasks=TASKS).queries["main"]

    def plain(provider: str | None) -> Any:
        if provider is None:
            spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
        else:
            spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        counts = stream().groupBy("k").agg(F.count("*").alias("n"))
        writer = counts.writeStream.outputMode("update").format("noop")
        name = "hdfs" if provider is None else "rocksdb"
        return writer.option("checkpointLocation", str(root / f"{name}-{round_}")).start()

    def per_key() -> Any:
        """The same with a Python stage, the least that Python state costs in Spark today."""
        counted = stream().mapInArrow(lambda blocks: blocks, "k string, v long")
        counts = counted.groupBy("k").agg(F.count("*").alias("n"))
        writer = counts.writeStream.outputMode("update").format("noop")
        return writer.option("checkpointLocation", str(root / f"python-{round_}")).start()

    return {
        "tidegate": ours,
        "spark aggregation, HDFS-backed": lambda: plain(None),
        "spark aggregation, RocksDB": lambda: plain(ROCKSDB),
        "spark aggregation behind a Python stage": per_key,
    }


def run(options: Options) -> Bench:
    """Alternate between the contenders, so that noise affects all of them alike."""
    spark = session("local[2]", "bench-floor")
    spark.conf.set("spark.sql.shuffle.partitions", str(TASKS))
    batches, rounds = (14, 1) if options.quick else (30, 3)
    chance = np.random.default_rng(0)
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        root = Path(scratch)
        feed = root / "feed"
        feed.mkdir()
        for number in range(batches):
            keys = pa.array(chance.integers(0, 500, ROWS)).cast(pa.string())
            table = pa.table({"k": keys, "v": chance.integers(0, 9, ROWS)})
            pq.write_table(table, feed / f"{number:05d}.parquet")
        options.progress.expect(rounds * len(contenders(spark, feed, root, 0)))
        for round_ in range(rounds):
            for name, start in contenders(spark, feed, root, round_).items():
                options.progress.step(f"round {round_ + 1} of {rounds}: {name}")
                query = start()
                times.setdefault(name, []).extend(durations_s(query, batches)[WARM:])
                query.stop()
    results = [
        {
            "contender": name,
            "median_ms": round(float(np.median(spent)) * 1000, 1),
            "p95_ms": round(float(np.percentile(spent, 95)) * 1000, 1),
            "batches": len(spent),
        }
        for name, spent in times.items()
    ]
    median = {row["contender"]: float(row["median_ms"]) for row in results}
    ours = median["tidegate"]
    return Bench(
        "floor",
        results,
        [
            at_most(f"times the batch of '{name}'", ours / other, 1.3)
            for name, other in median.items()
            if name != "tidegate"
        ],
    )
