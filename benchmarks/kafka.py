"""Keyed count of a Kafka topic: our operator against Spark's aggregation, on the same topic.

A broker of our own holds one topic per number of keys, filled beforehand. Every contender reads it
from its beginning, as many records per micro-batch as the others (`maxOffsetsPerTrigger`), on the
same cores, and counts per key. Spark's aggregation has as many shuffle partitions as there are
cores, its best here, on the HDFS-backed store and on RocksDB, with and without changelog
checkpointing; the better RocksDB counts. Every contender runs once untimed on a small topic, and
then twice, the second time in the opposite order. The first micro-batch of each run (planning,
first state) and the last one (what is left over) are not counted.

`--parts yes` adds queries that do only a part of the work: where the time goes.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.state import HDFS, ROCKSDB
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tidegate.benching import Aim, Bench, Options, at_least
from tidegate.errors import TidegateError
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.topics import create_topic, end_offsets
from tidegate.spark.session import session

CORES = 2
PARTITIONS = 4
PATIENCE_S = 900.0
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
OURS, STAMPED = "tidegate", "tidegate, with arrival stamps"
ON_HDFS, ON_ROCKSDB = "spark aggregation, HDFS-backed", "spark aggregation, RocksDB"
ON_CHANGELOG = "spark aggregation, RocksDB with changelog"


@dataclass(frozen=True, slots=True)
class Feed:
    """A filled topic, and how a micro-batch takes from it."""

    servers: str
    topic: str
    batch_rows: int
    rows: int

    def stream(self, spark: SparkSession, *columns: str) -> DataFrame:
        """The key of every record, and further columns."""
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", self.topic).option("startingOffsets", "earliest")
        reader = reader.option("maxOffsetsPerTrigger", self.batch_rows)
        return reader.load().selectExpr("CAST(key AS STRING) AS k", *columns)


@dataclass(frozen=True, slots=True)
class Started:
    """A contender that runs."""

    query: Any
    stop: Callable[[], None]


Start = Callable[[SparkSession, Feed, Path], Started]


def fill(spark: SparkSession, servers: str, topic: str, keys: int, rows: int) -> None:
    """Write the topic by Spark's own batch writer, which is the quickest that there is here."""
    create_topic(servers, topic, PARTITIONS)
    key = f"CAST(pmod(xxhash64(id), {keys}) AS STRING) AS key"
    records = spark.range(0, rows, 1, 2 * CORES).selectExpr(key, "CAST(id AS STRING) AS value")
    writer = records.write.format("kafka").option("kafka.bootstrap.servers", servers)
    writer.option("topic", topic).option("kafka.linger.ms", 20).save()
    written = sum(end_offsets(servers, topic).values())
    if written != rows:
        raise TidegateError(f"topic '{topic}' has {written:,} records instead of {rows:,}")


def ours(*columns: str) -> Start:
    """Our keyed operator; with the column `timestamp` it notes when rows arrived."""

    def start(spark: SparkSession, feed: Feed, place: Path) -> Started:
        arrival = "timestamp" if "timestamp" in columns else None
        flow = tg.pipeline("bench", feed.stream(spark, *columns), arrival=arrival)
        run = flow.keyed("counts", tg.count(), key="k").to("noop").start(str(place), tasks=CORES)
        return Started(run.queries["main"], run.stop)

    return start


def aggregation(provider: str, changelog: bool = False) -> Start:
    """Spark's own aggregation on one of its state stores."""

    def start(spark: SparkSession, feed: Feed, place: Path) -> Started:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        spark.conf.set(CHANGELOG, str(changelog).lower())
        return _to_noop(feed.stream(spark).groupBy("k").count(), place)

    return start


def _same(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from blocks


def _shuffled(frame: DataFrame) -> DataFrame:
    return frame.repartitionById(CORES, F.expr(f"cast(pmod(xxhash64(k), {CORES}) as int)"))


def part(step: Callable[[DataFrame], DataFrame]) -> Start:
    """A query that only reads, and does one part of the work."""

    def start(spark: SparkSession, feed: Feed, place: Path) -> Started:
        return _to_noop(step(feed.stream(spark)), place)

    return start


def _to_noop(frame: DataFrame, place: Path) -> Started:
    writer = frame.writeStream.outputMode("update").format("noop")
    query = writer.option("checkpointLocation", str(place)).start()
    return Started(query, query.stop)


CONTENDERS: dict[str, Start] = {
    OURS: ours(),
    ON_HDFS: aggregation(HDFS),
    ON_ROCKSDB: aggregation(ROCKSDB),
    ON_CHANGELOG: aggregation(ROCKSDB, changelog=True),
    STAMPED: ours("timestamp"),
}
PARTS: dict[str, Start] = {
    "part: read and cast": part(lambda frame: frame),
    "part: read, cast, shuffle": part(_shuffled),
    "part: read, cast, shuffle, Python": part(
        lambda frame: _shuffled(frame).mapInArrow(_same, "k string")
    ),
}


@dataclass(slots=True)
class Measured:
    """The micro-batches of a contender that count."""

    rows: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def rows_per_s(self) -> float:
        """Rows over the time of their triggers."""
        return self.rows / sum(self.seconds)


def measure(started: Started, feed: Feed, into: Measured) -> int:
    """Wait until the topic is read, stop the query, and return the rows that it took."""
    query = started.query
    until = time.monotonic() + PATIENCE_S
    while sum(batch["numInputRows"] for batch in query.recentProgress) < feed.rows:
        if query.awaitTermination(0.2) or time.monotonic() > until:
            raise TidegateError(f"a contender did not read topic '{feed.topic}' to its end")
    batches = [batch for batch in query.recentProgress if batch["numInputRows"]]
    started.stop()
    for batch in batches[1:-1]:
        into.rows += batch["numInputRows"]
        into.seconds.append(batch["durationMs"]["triggerExecution"] / 1000)
    return sum(batch["numInputRows"] for batch in batches)


def run(options: Options) -> Bench:
    """Run all contenders at both numbers of keys."""
    batch_rows, batches = (50_000, 6) if options.quick else (500_000, 10)
    sizes = [100_000] if options.quick else [100_000, 1_000_000]
    contenders = CONTENDERS | (PARTS if options.extra.get("parts") else {})
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    options.progress.doing("starting a Kafka broker and Spark")
    memory = {"spark.driver.memory": "8g"}
    spark = session(f"local[{CORES}]", "bench-kafka", kafka=True, **memory)
    spark.conf.set("spark.sql.shuffle.partitions", str(CORES))
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch, Broker() as broker:
        root = Path(scratch)
        options.progress.doing("warming up")
        warm = Feed(broker.servers, "warm", 20_000, 160_000)
        fill(spark, warm.servers, warm.topic, 2_000, warm.rows)
        for number, start in enumerate(contenders.values()):
            measure(start(spark, warm, root / f"warm-{number}"), warm, Measured())
        options.progress.expect(len(sizes) * (1 + 2 * len(contenders)))
        for keys in sizes:
            feed = Feed(broker.servers, f"keys-{keys}", batch_rows, batch_rows * batches)
            options.progress.step(f"{keys:,} keys: filling the topic with {feed.rows:,} records")
            fill(spark, feed.servers, feed.topic, keys, feed.rows)
            found = _in_turn(spark, root / str(keys), feed, contenders, options)
            results += [
                {
                    "contender": name,
                    "keys": keys,
                    "rows_per_s": one.rows_per_s,
                    "median_batch_s": float(np.median(one.seconds)),
                    "batches": len(one.seconds),
                    "times_of_ours": one.rows_per_s / found[OURS].rows_per_s,
                }
                for name, one in found.items()
            ]
            aims += _aims(found, keys, wanted=keys >= 1_000_000)
            counted = sum(tg.read_state(str(root / str(keys) / "0"), "counts")["count"].to_pylist())
            aims.append(
                Aim(
                    f"records counted, {keys:,} keys",
                    counted,
                    f"= {feed.rows:,}",
                    counted == feed.rows,
                )
            )
    spark.stop()
    return Bench("kafka", results, aims)


def _in_turn(
    spark: SparkSession, root: Path, feed: Feed, contenders: dict[str, Start], options: Options
) -> dict[str, Measured]:
    """Measure each contender twice, the second time in the opposite order."""
    found = {name: Measured() for name in contenders}
    for turn, name in enumerate([*contenders, *reversed(contenders)]):
        options.progress.step(f"{feed.topic}: {name}")
        started = contenders[name](spark, feed, root / str(turn))
        took = measure(started, feed, found[name])
        options.say(f"{feed.topic}: {name}: {took:,} records, {found[name].rows_per_s:,.0f} rows/s")
    return found


def _aims(found: dict[str, Measured], keys: int, wanted: bool) -> list[Aim]:
    """Ours over Spark's; at a million keys RocksDB is to be clearly slower."""
    speed = {name: one.rows_per_s for name, one in found.items()}
    rocks = max(speed[ON_ROCKSDB], speed[ON_CHANGELOG])
    label = f"{keys:,} keys"
    return [
        at_least(f"times Spark on RocksDB, {label}", speed[OURS] / rocks, 1.3 if wanted else 1.0),
        at_least(
            f"times Spark on its HDFS-backed store, {label}", speed[OURS] / speed[ON_HDFS], 1.0
        ),
    ]
