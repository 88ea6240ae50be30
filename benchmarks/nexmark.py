"""Nexmark's queries as elastic pipelines, beside Spark's own, in one run.

Every contender reads Parquet files of the same events, one file per micro-batch, on the same cores.
Spark's queries with state run on both of its stores, RocksDB with its change log; the aim is over
the faster one. Each query's contenders run once over few events first, so that none pays for a cold
JVM, and their answers are compared with one another, with the same query over all events as tables,
and with a sequential reference. Then they run twice, the second time in the opposite order. The
first micro-batch of each run (planning, first state) is left out.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import tidegate as tg
from tidegate.apps.nexmark.currency import QUERY as Q1
from tidegate.apps.nexmark.events import BIDS, SCHEMAS, NexmarkEvents
from tidegate.apps.nexmark.hot_items import QUERY as Q5
from tidegate.apps.nexmark.hot_items import first_of_equals
from tidegate.apps.nexmark.local_items import QUERY as Q3
from tidegate.apps.nexmark.new_users import QUERY as Q8
from tidegate.apps.nexmark.query import Answers, Query, answers_of, micros
from tidegate.apps.nexmark.reference import closed_by, picked
from tidegate.apps.nexmark.selection import QUERY as Q2
from tidegate.apps.nexmark.user_sessions import QUERY as Q11
from tidegate.benching import Aim, Bench, Options, at_least
from tidegate.errors import AskedWrongly, check_options, nearest
from tidegate.pipelines.graph import Map
from tidegate.spark.session import session
from tidegate.workload.parse import parse_profile

CORES = 2
QUERIES = {query.name: query for query in (Q1, Q2, Q3, Q5, Q8, Q11)}
STORE = "spark.sql.streaming.stateStore"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
EVENTS = NexmarkEvents(parse_profile("constant:50000"))
OURS, EXPRESSION = "tidegate", "tidegate, as an expression of the source"
SPARK, SPARK_HDFS, SPARK_ROCKSDB = "spark", "spark, HDFS-backed", "spark, RocksDB"
SMALL, SMALL_BATCHES = 20_000, 4
FAR = 1_000_000_000
"""The first event number of the batch that closes the windows of the small feed."""
LIMIT_S = 600.0

Sink = Callable[[DataFrame, int], object]
Start = Callable[[Sequence[DataFrame], Path, "Sink | None"], Any]


@dataclass(slots=True)
class Kept:
    """A sink that keeps the answers of a small run."""

    batches: dict[int, pa.Table] = field(default_factory=dict)

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Keep one batch; a replay writes it again."""
        self.batches[batch_id] = frame.toArrow()

    @property
    def answers(self) -> Answers:
        """All answers so far."""
        found = Answers()
        for table in self.batches.values():
            found += answers_of(table)
        return found


def write_feed(directory: Path, query: Query, ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Write a file per kind and batch, with the events of a range; returns the rows of each."""
    rows = []
    for number, (first, end) in enumerate(ranges):
        numbers = np.arange(first, end)
        rows.append(0)
        for pick in query.picks:
            place = directory / pick.kind
            place.mkdir(parents=True, exist_ok=True)
            table = EVENTS.of(pick.kind, numbers)
            size = max(1, -(-table.num_rows // CORES))
            pq.write_table(table, place / f"{number:05d}.parquet", row_group_size=size)
            rows[-1] += table.num_rows
    return rows


def streams(spark: SparkSession, directory: Path, query: Query) -> list[DataFrame]:
    """The inputs of a query as streams of the files, one per micro-batch."""
    return [
        pick.of(
            spark.readStream.schema(SCHEMAS[pick.kind])
            .option("maxFilesPerTrigger", 1)
            .parquet(str(directory / pick.kind))
        )
        for pick in query.picks
    ]


def ours(query: Query) -> Start:
    """The elastic pipeline."""

    def start(inputs: Sequence[DataFrame], place: Path, sink: Sink | None) -> Any:
        first = tg.pipeline(f"bench-{place.name}", inputs[0])
        others = [
            first.source(frame, name=pick.kind)
            for frame, pick in zip(inputs[1:], query.picks[1:], strict=True)
        ]
        answers = query.build([first, *others], dict.fromkeys(query.operators))
        nodes = answers.graph.nodes
        for name, node in nodes.items():
            if isinstance(node, Map):  # it runs where the rows are, as Spark's projection does
                nodes[name] = replace(node, tasks=None)
        return answers.to(sink or "noop").start(str(place), tasks=CORES).queries["main"]

    return start


def as_expression(query: Query) -> Start:
    """The same answers, made by Spark's own expressions in the source's DataFrame."""

    def start(inputs: Sequence[DataFrame], place: Path, sink: Sink | None) -> Any:
        made = tg.pipeline(f"bench-{place.name}", query.plain(inputs))
        return made.to(sink or "noop").start(str(place)).queries["main"]

    return start


def sparks(query: Query, provider: str | None) -> Start:
    """Spark's own query on one of its state stores."""

    def start(inputs: Sequence[DataFrame], place: Path, sink: Sink | None) -> Any:
        settings = inputs[0].sparkSession.conf
        if provider is not None:
            settings.set(f"{STORE}.providerClass", provider)
            settings.set(f"{STORE}.rocksdb.changelogCheckpointing.enabled", "true")
        writer = query.plain(inputs).writeStream.outputMode("append")
        writer = writer.foreachBatch(sink) if sink is not None else writer.format("noop")
        return writer.option("checkpointLocation", str(place)).start()

    return start


def contenders_of(query: Query) -> dict[str, Start]:
    """Who computes a query."""
    if query in (Q1, Q2):
        return {OURS: ours(query), EXPRESSION: as_expression(query), SPARK: sparks(query, None)}
    return {
        OURS: ours(query),
        SPARK_HDFS: sparks(query, HDFS),
        SPARK_ROCKSDB: sparks(query, ROCKSDB),
    }


def durations(query: Any, batches: int) -> list[float]:
    """Wait for enough batches with rows, stop the query, and return their trigger times."""
    waited = 0.0
    while waited < LIMIT_S and query.isActive and len(_durations(query)) < batches:
        query.awaitTermination(0.2)
        waited += 0.2
    error = query.exception()
    if error is not None:
        raise error
    spent = _durations(query)
    query.stop()
    return spent[:batches]


def _durations(query: Any) -> list[float]:
    return [
        progress["durationMs"]["triggerExecution"] / 1000
        for progress in query.recentProgress
        if progress["numInputRows"] > 0
    ]


def verify(spark: SparkSession, query: Query, root: Path) -> dict[str, bool]:
    """Whether each contender gives the reference's answers; so does the query over tables.

    A last batch, far ahead in event time, lets ours close what is open. Only windows that were over
    before it are compared, because Spark closes some more when there are no rows left.
    """
    ranges = [(number * SMALL, (number + 1) * SMALL) for number in range(SMALL_BATCHES)]
    feed = root / f"{query.name}-small"
    write_feed(feed, query, [*ranges, (FAR, FAR + 100)])
    arrived = SMALL * SMALL_BATCHES
    over_us = int(EVENTS.times_us(np.arange(arrived - 1, arrived))[0])
    inputs = picked(query, EVENTS, arrived)
    if query.closed is None:
        for rows, more in zip(inputs, _far(query), strict=True):
            rows += more
    expected = closed_by(query, query.expected(inputs), over_us)
    if not expected:
        raise AskedWrongly(f"{query.name} has no answers to {arrived} events; give more")
    tables = [
        pick.of(spark.read.schema(SCHEMAS[pick.kind]).parquet(str(feed / pick.kind)))
        for pick in query.picks
    ]
    plain = answers_of(query.plain(tables).toArrow())
    told = first_of_equals if query is Q5 else lambda answers: answers
    found = {"spark over tables": closed_by(query, plain, over_us) == told(expected)}
    for number, (name, start) in enumerate(contenders_of(query).items()):
        kept = Kept()
        place = root / f"{query.name}-small-{number}"
        running = start(streams(spark, feed, query), place, kept)
        running.processAllAvailable()
        running.stop()
        wanted = expected if name == OURS else told(expected)
        found[name] = closed_by(query, kept.answers, over_us) == wanted
    return found


def _far(query: Query) -> Sequence[list[dict[str, Any]]]:
    """The inputs of the last batch of the small feed."""
    numbers = np.arange(FAR, FAR + 100)
    return [micros(pick.rows(EVENTS.of(pick.kind, numbers)).rows) for pick in query.picks]


def measure(
    spark: SparkSession, query: Query, root: Path, events: int, batches: int, options: Options
) -> dict[str, dict[str, Any]]:
    """Input rows per second of each contender, over two runs in opposite orders."""
    feed = root / query.name
    rows = write_feed(feed, query, [(n * events, (n + 1) * events) for n in range(batches)])
    contenders = contenders_of(query)
    spent: dict[str, list[float]] = {name: [] for name in contenders}
    done = dict.fromkeys(contenders, 0)
    for turn, name in enumerate([*contenders, *reversed(contenders)]):
        options.progress.step(f"{query.name}: {name}")
        running = contenders[name](streams(spark, feed, query), root / f"{query.name}-{turn}", None)
        its = durations(running, batches)[1:]
        spent[name] += its
        done[name] += sum(rows[1 : 1 + len(its)])
    return {
        name: {
            "rows_per_s": done[name] / sum(its),
            "median_batch_s": float(np.median(its)),
            "rows_per_batch": rows[-1],
        }
        for name, its in spent.items()
    }


def run(options: Options) -> Bench:
    """Run the contenders of each query; `--queries q3,q8` runs only some."""
    check_options(options.extra, ["queries"], "bench nexmark")
    asked = options.extra.get("queries", ",".join(QUERIES)).split(",")
    for name in asked:
        if name not in QUERIES:
            raise AskedWrongly(f"there is no query '{name}'{nearest(name, QUERIES)}")
    spark = session(f"local[{CORES}]", "bench-nexmark", **{"spark.driver.memory": "8g"})
    spark.conf.set("spark.sql.shuffle.partitions", str(CORES))
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    options.progress.expect(sum(2 * len(contenders_of(QUERIES[name])) for name in asked))
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        root = Path(scratch)
        for name in asked:
            query = QUERIES[name]
            options.progress.doing(f"{name}: comparing answers")
            right = verify(spark, query, root)
            batches = 4 if options.quick else 9
            events = 100_000 if options.quick else 500_000
            if all(pick.kind != BIDS for pick in query.picks):
                events *= 10  # one event in fifty is a person, and three are auctions
            found = measure(spark, query, root, events, batches, options)
            for who, figures in found.items():
                results.append({"query": name, "contender": who, "verified": right[who], **figures})
            others = max(row["rows_per_s"] for who, row in found.items() if who.startswith(SPARK))
            mine = found[OURS]["rows_per_s"] / others
            options.say(f"{name}: {mine:.2f} times Spark's")
            aims.append(at_least(f"times Spark's own {name}, {query.title}", mine, 1.0))
            if EXPRESSION in found:
                again = found[EXPRESSION]["rows_per_s"] / others
                aims.append(
                    at_least(f"the same, as an expression of the source, {name}", again, 1.0)
                )
            same = sum(right.values()) / len(right)
            aims.append(Aim(f"{name}: share with the right answers", same, "= 1", same == 1.0))
    return Bench("nexmark", results, aims)
