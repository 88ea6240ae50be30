"""Attached to queries that know nothing of it: measured on threads, where nothing is to scale."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tidegate as tg
from tidegate.control.batch_parts import ADD_UP
from tidegate.recording import read_records
from tidegate.spark.loop.boundary import BatchBoundary, queries_of_all_sessions
from tidegate.view.explain import explain


@pytest.fixture
def query_of(spark: SparkSession, tmp_path: Path):
    """Starts a query of a constant rate; all are stopped at the end."""
    started: list[StreamingQuery] = []

    def begin(
        name: str, rate: int = 400, frame: DataFrame | None = None, **trigger: str
    ) -> StreamingQuery:
        writer = (
            (frame or tg.arrivals(spark, f"constant:{rate}", partitions=2))
            .writeStream.queryName(name)
            .format("noop")
            .option("checkpointLocation", str(tmp_path / name))
        )
        started.append((writer.trigger(**trigger) if trigger else writer).start())
        return started[-1]

    yield begin
    for query in started:
        query.stop()


def test_a_query_on_threads_is_measured_and_nothing_is_done(
    spark: SparkSession, query_of: Callable, wait_for: Callable, tmp_path: Path
) -> None:
    query = query_of("attached")
    wait_for(lambda: len(query.recentProgress) >= 3, query)
    with tg.attach(
        query, target="2 seconds", executors=(1, 4), tick="200 ms", records=tmp_path / "records"
    ) as attachment:
        wait_for(
            lambda: sum(len(r.measurement.segments[0].batches) for r in attachment.records) >= 8,
            query,
        )
    assert attachment.failure is None
    last = attachment.records[-1]
    assert not any(record.acted for record in attachment.records)
    assert any("no executors to scale" in note for note in last.decision.notes)
    assert [segment.name for segment in last.measurement.segments] == ["attached"]
    assert last.measurement.arrival_rate == pytest.approx(400, rel=0.25)
    assert (last.measurement.cores_granted, last.measurement.segments[0].tasks) == (4, 4)
    batches = [b for r in attachment.records for b in r.measurement.segments[0].batches]
    told = {entry["batchId"]: entry for entry in query.recentProgress}
    assert [batch.batch_id for batch in batches] == sorted({b.batch_id for b in batches})
    for batch in batches:
        assert batch.rows == told[batch.batch_id]["numInputRows"]
        assert batch.duration_s == told[batch.batch_id]["durationMs"]["triggerExecution"] / 1000
        parts_s = sum(batch.parts_s.get(name, 0.0) for name in ADD_UP)
        assert parts_s == pytest.approx(batch.duration_s, abs=0.01)
    # A row waits for the batch before its own at most, and its own takes its time.
    longest_s = max(entry["durationMs"]["triggerExecution"] for entry in told.values()) / 1000
    latency = last.measurement.latency
    assert latency is not None
    shortest_s = min(batch.duration_s for batch in batches)
    assert shortest_s < latency.mean_s <= latency.p99_s <= 2.2 * longest_s + 0.1
    assert read_records(tmp_path / "records") == list(attachment.records)
    explained = explain(attachment.records)
    assert explained.headline.startswith("Rows of `attached` took ")
    (query_time,) = explained.batches
    assert query_time.foreign and "tasks and the sink" in query_time.went_to
    assert query_time.busy is not None and query_time.busy <= 4.0
    assert explained.hindsight.dry_run and explained.hindsight.known_seconds > 0.0
    assert explained.hindsight.most_enough <= 4


def test_a_session_means_queries_that_come_later_too(
    spark: SparkSession, query_of: Callable, wait_for: Callable
) -> None:
    first = query_of("first")
    with tg.attach(spark, target="5 seconds", executors=(1, 4), tick="200 ms") as attachment:
        second = query_of("second", 100, processingTime="1 second")

        def seen() -> dict[str, float]:
            found = attachment.records[-1].measurement if attachment.records else None
            return {s.name: s.trigger_s for s in found.segments} if found else {}

        wait_for(lambda: seen() == {"first": 0.0, "second": 1.0}, second)
        tasks = {s.name: s.tasks for s in attachment.records[-1].measurement.segments}
        assert sum(tasks.values()) == 4
        with pytest.raises(tg.AskedWrongly, match="already attached to this Spark application"):
            tg.attach(first, target="5 seconds", executors=(1, 4))
        attachment.update(target="9 seconds", executors=(1, 2), dry_run=False)
        wait_for(lambda: attachment.records[-1].target_s == 9.0, second)
        first.stop()
        wait_for(lambda: seen() == {"second": 1.0}, second)
    assert attachment.failure is None
    said = [note for record in attachment.records for note in record.decision.notes]
    assert said.count("settings changed: target 5 s to 9 s, cores 1-4 to 1-2") == 1
    assert not any(record.acted for record in attachment.records), "there is nothing to scale"


def test_an_attachment_ends_with_its_query(
    query_of: Callable, wait_for: Callable, spark: SparkSession
) -> None:
    query, other = query_of("short"), query_of("other")
    attachment = tg.attach(query, target="2 seconds", executors=2, tick="100 ms")
    wait_for(lambda: len(attachment.records) >= 2, query)
    query.stop()
    wait_for(lambda: not attachment._thread.is_alive(), other)
    assert not attachment.attached
    assert attachment.failure is None
    with pytest.raises(tg.AskedWrongly, match="the query has ended"):
        tg.attach(query, target="2 seconds", executors=2)
    attachment.stop()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"executors": (3, 2)}, "minimum from 1 up to the maximum"),
        ({"executors": (0, 2)}, "minimum from 1 up to the maximum"),
        ({"executors": (1, 5)}, "has 4; lower the maximum"),
        ({"target": "soon"}, "not a duration"),
        ({"percentile": 42}, "give 50, 95 or 99"),
    ],
)
def test_what_cannot_be_is_refused(spark: SparkSession, given: dict, said: str) -> None:
    with pytest.raises(tg.AskedWrongly, match=said):
        tg.attach(spark, **{"target": "1 second", "executors": (1, 2), **given})
    with pytest.raises(tg.AskedWrongly, match="takes a SparkSession or a StreamingQuery"):
        tg.attach("my query", target="1 second", executors=(1, 2))


def test_a_query_is_held_between_two_batches(
    spark: SparkSession, query_of: Callable, wait_for: Callable
) -> None:
    """Of whichever session: all sessions of an application share its executors."""
    rate = spark.newSession().readStream.format("rate").option("rowsPerSecond", 10).load()
    held, free = query_of("held", frame=rate), query_of("free")
    assert [query.name for query in spark.streams.active] == ["free"]

    def batch(query: StreamingQuery) -> int:
        return -1 if query.lastProgress is None else int(query.lastProgress["batchId"])

    wait_for(lambda: batch(held) >= 2 and batch(free) >= 2, held)
    boundary = BatchBoundary(lambda: queries_of_all_sessions(spark, {str(free.runId)}))
    reached = False
    while not reached:
        assert held.isActive
        with boundary(2.0, lambda: True) as reached:
            if reached:
                last, others = batch(held), batch(free)
                wait_for(lambda others=others: batch(free) >= others + 3, free)
                assert batch(held) == last, "it waits while another one goes on"
    wait_for(lambda: batch(held) >= last + 2, held)
    reached = False
    while not reached:
        assert held.isActive and free.isActive
        with BatchBoundary(lambda: queries_of_all_sessions(spark))(2.0, lambda: True) as reached:
            running = spark.sparkContext._jsc.sc().dagScheduler().activeJobs().size()
    assert running == 0
