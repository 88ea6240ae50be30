"""Keyed count and sum: our operator against Spark's aggregation and its per-key Python APIs.

Every contender reads Parquet files of the same rows, one file per micro-batch, on the same cores,
and keeps count and sum per key. The per-key Python APIs get smaller files (20,000 rows instead of
500,000) and a minute, because they need more than that for a large file. Every contender runs once
untimed, so that none pays for a cold JVM. The fast ones then run twice, the second time in the
opposite order. The first micro-batch of each run (planning, first state) is left out.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.benching import Aim, Bench, Options, at_least
from tidegate.progress import Progress
from tidegate.spark.session import session

CORES = 2
COLUMNS = "k string, v long"
OUTPUT = "k string, n long, total long"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def write_feed(directory: Path, keys: int, rows: int, batches: int, seed: int = 0) -> None:
    """Write Parquet files of `rows` rows over `keys` keys; their file times give the order."""
    directory.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(seed)
    for number in range(batches):
        key = pa.array(chance.integers(0, keys, rows)).cast(pa.string())
        table = pa.table({"k": key, "v": chance.integers(0, 1000, rows)})
        pq.write_table(table, directory / f"{number:05d}.parquet", row_group_size=rows // CORES)


def stream(spark: SparkSession, directory: Path) -> DataFrame:
    """A stream of the files, one per micro-batch."""
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(directory))


def run_ours(spark: SparkSession, feed: Path, place: Path) -> Any:
    """Our keyed operator."""
    summary = tg.aggregate(n=tg.count(), total=tg.sum("v"))
    flow = tg.pipeline("bench", stream(spark, feed)).keyed("sums", summary, key="k").to("noop")
    return flow.start(str(place), tasks=CORES).queries["main"]


def run_spark(provider: str) -> Callable[[SparkSession, Path, Path], Any]:
    """Spark's own aggregation on one of its state stores."""

    def start(spark: SparkSession, feed: Path, place: Path) -> Any:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        summary = (
            stream(spark, feed).groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("total"))
        )
        writer = summary.writeStream.outputMode("update").format("noop")
        return writer.option("checkpointLocation", str(place)).start()

    return start


def run_apply_in_pandas(spark: SparkSession, feed: Path, place: Path) -> Any:
    """`applyInPandasWithState`: one Python call per key."""
    from pyspark.sql.streaming.state import GroupStateTimeout

    def update(
        key: tuple[str], parts: Iterator[pd.DataFrame], state: Any
    ) -> Iterator[pd.DataFrame]:
        n, total = state.get if state.exists else (0, 0)
        for part in parts:
            n, total = n + len(part), total + int(part["v"].sum())
        state.update((n, total))
        yield pd.DataFrame({"k": [key[0]], "n": [n], "total": [total]})

    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    summary = (
        stream(spark, feed)
        .groupBy("k")
        .applyInPandasWithState(
            update, OUTPUT, "n long, total long", "update", GroupStateTimeout.NoTimeout
        )
    )
    writer = summary.writeStream.outputMode("update").format("noop")
    return writer.option("checkpointLocation", str(place)).start()


def run_transform(spark: SparkSession, feed: Path, place: Path) -> Any:
    """`transformWithStateInPandas`: one Python call per key."""
    from pyspark.sql.streaming import StatefulProcessor

    class Sums(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.sums = handle.getValueState("sums", "n long, total long")

        def handleInputRows(  # noqa: N802
            self, key: Any, rows: Iterator[pd.DataFrame], timers: Any
        ) -> Iterator[pd.DataFrame]:
            n, total = self.sums.get() if self.sums.exists() else (0, 0)
            for part in rows:
                n, total = n + len(part), total + int(part["v"].sum())
            self.sums.update((n, total))
            yield pd.DataFrame({"k": [key[0]], "n": [n], "total": [total]})

        def close(self) -> None:
            return

    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    summary = (
        stream(spark, feed)
        .groupBy("k")
        .transformWithStateInPandas(Sums(), OUTPUT, "update", "none")
    )
    writer = summary.writeStream.outputMode("update").format("noop")
    return writer.option("checkpointLocation", str(place)).start()


SLOW = (run_apply_in_pandas, run_transform)


def durations(query: Any, batches: int, limit_s: float) -> list[float]:
    """Wait for enough batches with rows, stop the query, and return their trigger times."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until and query.isActive and len(_durations(query)) < batches:
        query.awaitTermination(0.2)
    spent = _durations(query)
    query.stop()
    return spent


def measure(query: Any, rows: int, batches: int, limit_s: float) -> dict[str, Any]:
    """Rows per second after the first micro-batch; slow contenders get `limit_s`."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until and query.isActive:
        if len(_durations(query)) >= batches:
            break
        try:
            query.awaitTermination(0.2)
        except StreamingQueryException:
            break
    error = query.exception()
    spent = _durations(query)
    query.stop()
    if error is not None:
        return {"rows_per_s": 0.0, "error": str(error)[:200]}
    later = spent[1:]
    if not later:  # fewer than two micro-batches: use the first one's time, if there is one
        done = rows * len(spent)
        return {"rows_per_s": done / (sum(spent) or limit_s), "batches": len(spent)}
    return {
        "rows_per_s": rows * len(later) / sum(later),
        "median_batch_s": float(np.median(later)),
        "batches": len(spent),
    }


def _durations(query: Any) -> list[float]:
    return [
        progress["durationMs"]["triggerExecution"] / 1000
        for progress in query.recentProgress
        if progress["numInputRows"] > 0
    ]


def touch_one_percent(
    spark: SparkSession, root: Path, keys: int, progress: Progress
) -> dict[str, Any]:
    """Fill the state with `keys` keys, then time batches that touch one in a hundred."""
    feed = root / "touch"
    feed.mkdir()
    order = np.random.default_rng(1).permutation(keys)
    fill = 10
    for number in range(fill):
        part = order[number::fill]
        table = pa.table(
            {"k": pa.array(part).cast(pa.string()), "v": np.ones(len(part), dtype=np.int64)}
        )
        pq.write_table(table, feed / f"{number:05d}.parquet", row_group_size=len(part) // CORES)
    chance = np.random.default_rng(2)
    for number in range(fill, fill + 20):
        part = chance.choice(keys, keys // 100, replace=False)
        table = pa.table(
            {"k": pa.array(part).cast(pa.string()), "v": np.ones(len(part), dtype=np.int64)}
        )
        pq.write_table(table, feed / f"{number:05d}.parquet", row_group_size=len(part) // CORES)
    progress.step(f"filling the state with {keys:,} keys")
    query = run_ours(spark, feed, root / "touch-ck")
    while query.isActive and len(_durations(query)) < fill + 20:
        query.awaitTermination(0.5)
    spent = _durations(query)
    query.stop()
    state = tg.read_state(str(root / "touch-ck"), "sums")
    stored = sum(file.stat().st_size for file in (root / "touch-ck" / "state" / "sums").iterdir())
    return {
        "contender": "tidegate",
        "keys": keys,
        "state_rows": state.num_rows,
        "state_file_bytes": stored,
        "batch_rows": keys // 100,
        "median_batch_s": float(np.median(spent[fill:])),
        "longest_batch_s": float(np.max(spent[fill:])),
    }


Start = Callable[[SparkSession, Path, Path], Any]


def _in_turn(
    spark: SparkSession,
    root: Path,
    keys: int,
    rows: int,
    batches: int,
    contenders: dict[str, tuple[Start, float]],
    options: Options,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure each contender at one number of keys."""
    fast = [name for name, (start, _) in contenders.items() if start not in SLOW]
    order = [*fast, *reversed(fast)]
    spent: dict[str, list[float]] = {name: [] for name in fast}
    for turn, name in enumerate(order):
        options.progress.step(f"{keys:,} keys: {name}")
        start, allowed_s = contenders[name]
        query = start(spark, root / f"feed-{keys}", root / f"{keys}-{turn}")
        spent[name] += durations(query, batches, allowed_s)[1:]
    for name in fast:
        yield (
            name,
            {
                "rows_per_s": rows * len(spent[name]) / sum(spent[name]),
                "median_batch_s": float(np.median(spent[name])),
                "batches": len(spent[name]),
            },
        )
    for name in contenders:
        if name not in fast:
            options.progress.step(f"{keys:,} keys: {name}")
            start, allowed_s = contenders[name]
            query = start(spark, root / f"slow-{keys}", root / f"{keys}-{name}")
            yield name, measure(query, 20_000, 50, allowed_s)


def _warm(spark: SparkSession, root: Path, contenders: dict[str, tuple[Start, float]]) -> None:
    """Run every contender once on little data, so that the JVM has compiled the common code."""
    write_feed(root / "warm", 2_000, 20_000, 8)
    for name, (start, _) in contenders.items():
        durations(start(spark, root / "warm", root / f"warm-{name}"), 8, 20.0)


def run(options: Options) -> Bench:
    """Run all contenders at both sizes, then ours with ten million keys."""
    spark = session(f"local[{CORES}]", "bench-state", **{"spark.driver.memory": "8g"})
    spark.conf.set("spark.sql.shuffle.partitions", str(CORES))
    rows, batches = (100_000, 4) if options.quick else (500_000, 9)
    limit_s = 15.0 if options.quick else 60.0
    contenders: dict[str, tuple[Start, float]] = {
        "tidegate": (run_ours, 600.0),
        "spark aggregation, HDFS-backed": (run_spark(HDFS), 600.0),
        "spark aggregation, RocksDB": (run_spark(ROCKSDB), 600.0),
        "applyInPandasWithState": (run_apply_in_pandas, limit_s),
        "transformWithStateInPandas": (run_transform, limit_s),
    }
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    sizes = [100_000] if options.quick else [100_000, 1_000_000]
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        root = Path(scratch)
        options.progress.doing("warming up")
        _warm(spark, root, contenders)
        fast = sum(start not in SLOW for start, _ in contenders.values())
        options.progress.expect(len(sizes) * (fast + len(contenders)) + 1)
        for keys in sizes:
            write_feed(root / f"feed-{keys}", keys, rows, batches)
            write_feed(root / f"slow-{keys}", keys, 20_000, 50)
            speed: dict[str, float] = {}
            for name, row in _in_turn(spark, root, keys, rows, batches, contenders, options):
                speed[name] = row["rows_per_s"]
                results.append({"contender": name, "keys": keys, **row})
            ours = speed["tidegate"]
            rocks = speed["spark aggregation, RocksDB"]
            per_key = max(speed["applyInPandasWithState"], speed["transformWithStateInPandas"])
            label = f"{keys:,} keys"
            aims.append(at_least(f"times Spark's RocksDB aggregation, {label}", ours / rocks, 1.5))
            # A contender without a single batch in a minute counts as one row per second.
            faster = ours / max(per_key, 1.0)
            aims.append(at_least(f"times the per-key Python APIs, {label}", faster, 50))
        many = 1_000_000 if options.quick else 10_000_000
        touched = touch_one_percent(spark, root, many, options.progress)
        results.append(touched)
        aims.append(
            Aim(
                "state rows kept of all keys",
                touched["state_rows"] / many,
                "= 1",
                touched["state_rows"] == many,
            )
        )
    return Bench("state", results, aims)
