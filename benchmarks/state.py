"""Keyed state: our operators against Spark's aggregations and its per-key Python APIs.

Every contender reads Parquet files of the same rows, one file per micro-batch, on the same cores.
A load is a number of keys (evenly drawn, or skewed as zipf 1.1 has them) with count and sum per
key, or the same per key and window of event time. Spark's aggregation runs on its HDFS-backed store
and on RocksDB, without and with changelog checkpointing, one shuffle partition per core.

Every contender runs once untimed, so that none pays for a cold JVM, then twice, the second time in
the opposite order. The first three micro-batches of each run (planning, first state, and ours once
it has found out whether to combine rows before the shuffle) are left out. The per-key Python APIs
get smaller files (20,000 rows instead of 500,000) and a minute, because they need more than that
for a large file. `--only 100k,windows` runs some of the loads: 10k, 100k, 1m, zipf, windows.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from tidegate.errors import AskedWrongly
from tidegate.progress import Progress
from tidegate.spark.session import session

CORES = 2
COLUMNS = "k string, v long"
TIMED = f"{COLUMNS}, at timestamp"
OUTPUT = "k string, n long, total long"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
UNTIMED = 3
"""So many micro-batches of each run are left out."""
Start = Callable[[SparkSession, Path, Path], Any]


@dataclass(frozen=True, slots=True)
class Load:
    """Rows, and what is computed of them."""

    name: str
    keys: int
    zipf: float = 0.0
    windowed: bool = False
    aim: float = 1.3
    """How many times as fast as the faster of Spark's stores we want to be."""
    per_key: bool = False
    """Whether the per-key Python APIs run it as well."""

    @property
    def label(self) -> str:
        """What it is called in the results."""
        kind = f", zipf {self.zipf:g}" if self.zipf else ""
        return f"{self.keys:,} keys{kind}{', windows' if self.windowed else ''}"


LOADS = (
    Load("10k", 10_000),
    Load("100k", 100_000, per_key=True),
    Load("1m", 1_000_000, aim=3.0, per_key=True),
    Load("zipf", 100_000, zipf=1.1),
    Load("windows", 100_000, windowed=True),
)
START_US = 1_700_000_000_000_000
BATCH_US = 5_000_000
"""Each file has the events of five seconds; a window has twice as many."""


def write_feed(directory: Path, load: Load, rows: int, batches: int, seed: int = 0) -> None:
    """Write Parquet files of `rows` rows; their file times give the order."""
    directory.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(seed)
    shares = np.arange(1.0, load.keys + 1.0) ** -load.zipf
    below = np.cumsum(shares / shares.sum())
    for number in range(batches):
        if load.zipf:
            drawn = np.searchsorted(below, chance.random(rows)).clip(max=load.keys - 1)
        else:
            drawn = chance.integers(0, load.keys, rows)
        at_us = START_US + number * BATCH_US + np.sort(chance.integers(0, BATCH_US, rows))
        table = pa.table(
            {
                "k": pa.array(drawn).cast(pa.string()),
                "v": chance.integers(0, 1000, rows),
                "at": pa.array(at_us, pa.timestamp("us", "UTC")),
            }
        )
        path = directory / f"{number:05d}.parquet"
        pq.write_table(table, path, row_group_size=rows // CORES)
        os.utime(path, (1e9 + number, 1e9 + number))


def stream(spark: SparkSession, directory: Path, columns: str = COLUMNS) -> DataFrame:
    """A stream of the files, one per micro-batch."""
    reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(directory))


def run_ours(spark: SparkSession, feed: Path, place: Path) -> Any:
    """Our keyed operator."""
    summary = tg.aggregate(n=tg.count(), total=tg.sum("v"))
    flow = tg.pipeline("bench", stream(spark, feed)).keyed("sums", summary, key="k").to("noop")
    return flow.start(str(place), tasks=CORES).queries["main"]


def run_our_windows(spark: SparkSession, feed: Path, place: Path) -> Any:
    """Our windows."""
    summary = tg.aggregate(n=tg.count(), total=tg.sum("v"))
    windows = tg.window(
        summary, every="10 seconds", event_time="at", delay="10 seconds", emit="update"
    )
    rows = stream(spark, feed, TIMED)
    flow = tg.pipeline("bench", rows).keyed("sums", windows, key="k").to("noop")
    return flow.start(str(place), tasks=CORES).queries["main"]


def run_spark(provider: str, changelog: bool = False, windowed: bool = False) -> Start:
    """Spark's own aggregation on one of its state stores."""

    def start(spark: SparkSession, feed: Path, place: Path) -> Any:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        spark.conf.set(CHANGELOG, str(changelog).lower())
        if windowed:
            rows = stream(spark, feed, TIMED).withWatermark("at", "10 seconds")
            groups = rows.groupBy(F.window("at", "10 seconds"), "k")
        else:
            groups = stream(spark, feed).groupBy("k")
        summary = groups.agg(F.count("*").alias("n"), F.sum("v").alias("total"))
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


OURS = "tidegate"
PER_KEY: dict[str, Start] = {
    "applyInPandasWithState": run_apply_in_pandas,
    "transformWithStateInPandas": run_transform,
}


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


def contenders(load: Load) -> dict[str, Start]:
    """Who computes a load with 500,000 rows a batch."""
    return {
        OURS: run_our_windows if load.windowed else run_ours,
        "spark aggregation, HDFS-backed": run_spark(HDFS, windowed=load.windowed),
        "spark aggregation, RocksDB": run_spark(ROCKSDB, windowed=load.windowed),
        "spark aggregation, RocksDB with changelog": run_spark(ROCKSDB, True, load.windowed),
    }


def _in_turn(
    spark: SparkSession, root: Path, load: Load, rows: int, batches: int, options: Options
) -> dict[str, dict[str, Any]]:
    """Measure each contender at one load, in both orders."""
    feed = root / f"feed-{load.name}"
    write_feed(feed, load, rows, batches)
    starts = contenders(load)
    spent: dict[str, list[float]] = {name: [] for name in starts}
    for turn, name in enumerate([*starts, *reversed(starts)]):
        options.progress.step(f"{load.label}: {name}")
        query = starts[name](spark, feed, root / f"{load.name}-{turn}")
        spent[name] += durations(query, batches, 600.0)[UNTIMED:]
    return {
        name: {
            "rows_per_s": rows * len(took) / sum(took),
            "median_batch_s": float(np.median(took)),
            "batches": len(took),
        }
        for name, took in spent.items()
    }


def _per_key(
    spark: SparkSession, root: Path, load: Load, limit_s: float, options: Options
) -> dict[str, dict[str, Any]]:
    """Measure the per-key Python APIs at one load."""
    feed = root / f"slow-{load.name}"
    write_feed(feed, load, 20_000, 50)
    found = {}
    for name, start in PER_KEY.items():
        options.progress.step(f"{load.label}: {name}")
        query = start(spark, feed, root / f"{load.name}-{name}")
        found[name] = measure(query, 20_000, 50, limit_s)
    return found


def _warm(spark: SparkSession, root: Path) -> None:
    """Run every contender once on little data, so that the JVM has compiled the common code."""
    for load in (Load("warm", 2_000), Load("warm-windows", 2_000, windowed=True)):
        write_feed(root / load.name, load, 20_000, 8)
        for name, start in contenders(load).items():
            durations(start(spark, root / load.name, root / f"{load.name}-{name}"), 8, 20.0)


def _chosen(options: Options) -> list[Load]:
    """The loads that were asked for: all of them without `--only`, one in the short form."""
    known = {load.name: load for load in LOADS}
    names = options.extra.get("only", "100k" if options.quick else ",".join(known)).split(",")
    for name in names:
        if name not in known:
            raise AskedWrongly(f"--only {name}: give some of {', '.join(known)}")
    return [known[name] for name in names]


def run(options: Options) -> Bench:
    """Run all contenders at each load, then ours with ten million keys."""
    loads = _chosen(options)
    spark = session(f"local[{CORES}]", "bench-state", **{"spark.driver.memory": "8g"})
    spark.conf.set("spark.sql.shuffle.partitions", str(CORES))
    # Or else one task reads a whole file, whoever the contender is, and the other core waits.
    spark.conf.set("spark.sql.files.openCostInBytes", "1")
    rows, batches = (100_000, 6) if options.quick else (500_000, 11)
    limit_s = 15.0 if options.quick else 60.0
    touches = "only" not in options.extra
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        root = Path(scratch)
        options.progress.doing("warming up")
        _warm(spark, root)
        turns = [2 * len(contenders(load)) + len(PER_KEY) * load.per_key for load in loads]
        options.progress.expect(sum(turns) + touches)
        for load in loads:
            found = _in_turn(spark, root, load, rows, batches, options)
            speed = {name: row["rows_per_s"] for name, row in found.items()}
            ours = speed.pop(OURS)
            best = max(speed.values())
            name = f"times the faster of Spark's stores, {load.label}"
            aims.append(at_least(name, ours / best, load.aim))
            if load.per_key:
                slow = _per_key(spark, root, load, limit_s, options)
                # A contender without a single batch in a minute counts as one row per second.
                fastest = max(1.0, *(row["rows_per_s"] for row in slow.values()))
                name = f"times the per-key Python APIs, {load.label}"
                aims.append(at_least(name, ours / fastest, 50))
                found |= slow
            results += [
                {"contender": who, "load": load.label, "keys": load.keys, **row}
                for who, row in found.items()
            ]
        if touches:
            many = 1_000_000 if options.quick else 10_000_000
            touched = touch_one_percent(spark, root, many, options.progress)
            results.append(touched)
            kept = touched["state_rows"] / many
            aims.append(Aim("state rows kept of all keys", kept, "= 1", kept == 1))
    return Bench("state", results, aims)
