"""A rescale from 2 to 8 tasks under load with a million keys: how long is the gap in results?

Tidegate rescales between two micro-batches. Spark's own way is to stop the query, repartition its
checkpoint (4.2+, RocksDB state) and start it again. The operator's cost is CPU on this machine's
few cores, so the aim is the length of the gap, not a speed-up.
"""

import tempfile
import time
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

FEW, MANY = 2, 8
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def write_feed(directory: Path, keys: int, batches: int, rows: int) -> None:
    """Write the input: the first file has every key, the others have `rows` random ones each."""
    directory.mkdir(parents=True)
    chance = np.random.default_rng(0)
    for number in range(batches):
        part = np.arange(keys) if number == 0 else chance.integers(0, keys, rows)
        table = pa.table({"k": pa.array(part).cast(pa.string()), "v": np.ones(len(part), np.int64)})
        pq.write_table(
            table, directory / f"{number:05d}.parquet", row_group_size=max(1, len(part) // FEW)
        )


def ours(spark: SparkSession, feed: Path, place: Path, batches: int) -> dict[str, Any]:
    """Rescale our pipeline while it runs, half way through the input."""
    summary = tg.aggregate(n=tg.count(), total=tg.sum("v"))
    reader = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", 1)
    flow = (
        tg.pipeline("bench", reader.parquet(str(feed))).keyed("sums", summary, key="k").to("noop")
    )
    run = flow.start(str(place), tasks=FEW)
    half = batches // 2
    while run.isActive and len(run.results()) < batches:
        if len(run.results()) >= half:
            run.rescale("sums", MANY)
        run.awaitTermination(0.02)
    ends = [result.ended_s for result in run.results()]
    tasks = [result.plan.operators["sums"].tasks for result in run.results()]
    run.stop()
    gaps = np.diff(ends)[3:]  # the first files fill the state and warm the code up
    changed = tasks.index(MANY)
    return {
        "contender": "tidegate",
        "longest_gap_s": float(gaps.max()),
        "median_gap_s": float(np.median(gaps)),
        "gap_at_rescale_s": float(ends[changed] - ends[changed - 1]),
        "rows_lost": 0 if _counted(place) == _offered(feed) else _offered(feed) - _counted(place),
    }


def _counted(place: Path) -> int:
    return int(pa.compute.sum(tg.read_state(str(place), "sums")["n"]).as_py())


def _offered(feed: Path) -> int:
    return sum(pq.read_metadata(file).num_rows for file in feed.glob("*.parquet"))


def sparks(spark: SparkSession, feed: Path, place: Path, batches: int) -> dict[str, Any]:
    """Stop Spark's query, repartition its checkpoint, and start it again.

    Spark can only repartition a checkpoint whose last batch is finished, and a stop may interrupt
    one. So the query gets only the first half of the files, and is stopped when they are done.
    """
    half = batches // 2
    files = sorted(feed.glob("*.parquet"))
    feed = feed.with_name("feed-of-spark")
    feed.mkdir()
    for file in files[:half]:
        (feed / file.name).hardlink_to(file)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", str(FEW))
    ends: list[float] = []

    def start() -> Any:
        reader = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", 1)
        rows = (
            reader.parquet(str(feed))
            .groupBy("k")
            .agg(F.count("*").alias("n"), F.sum("v").alias("total"))
        )

        def note(frame: Any, batch_id: int) -> None:
            frame.write.format("noop").mode("append").save()
            ends.append(time.time())

        writer = rows.writeStream.outputMode("update").foreachBatch(note)
        return writer.option("checkpointLocation", str(place)).start()

    query = start()
    while query.isActive and len(ends) < half:
        query.awaitTermination(0.02)
    query.processAllAvailable()
    query.stop()
    for file in files[half:]:
        (feed / file.name).hardlink_to(file)
    before = len(ends)
    spark._streamingCheckpointManager.repartition(str(place), MANY)
    query = start()
    while query.isActive and len(ends) < batches - 1:
        query.awaitTermination(0.02)
    query.stop()
    spark.conf.set("spark.sql.shuffle.partitions", str(FEW))
    gaps = np.diff(ends)
    return {
        "contender": "stop, repartition, start",
        "longest_gap_s": float(gaps[3:].max()),
        "median_gap_s": float(np.median(gaps[3:])),
        "gap_at_rescale_s": float(ends[before] - ends[before - 1]),
    }


def run(options: Options) -> Bench:
    """Run both ways on the same files."""
    spark = session(f"local[{MANY}]", "bench-rescale", **{"spark.driver.memory": "6g"})
    keys, rows = (100_000, 20_000) if options.quick else (1_000_000, 50_000)
    batches = 16 if options.quick else 40
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        root = Path(scratch)
        write_feed(root / "feed", keys, batches, rows)
        options.progress.expect(2)
        options.progress.step(f"tidegate: {keys:,} keys, {FEW} to {MANY} tasks")
        live = ours(spark, root / "feed", root / "ours", batches)
        options.progress.step("Spark: stop, repartition, start")
        stopped = sparks(spark, root / "feed", root / "spark", batches)
    ratio = live["longest_gap_s"] / live["median_gap_s"]
    return Bench(
        "rescale",
        [live, stopped],
        [
            at_most("longest gap over the median gap", ratio, 2.0),
            at_most(
                "gap at the rescale over Spark's",
                live["gap_at_rescale_s"] / stopped["gap_at_rescale_s"],
                0.5,
            ),
            at_most("rows lost", live["rows_lost"], 0),
        ],
    )
