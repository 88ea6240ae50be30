"""What is made of queries' progress, without Spark."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.helpers.fake_query import FakeQuery, progress
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.whole_executors import WholeExecutors
from tidegate.spark.loop.negotiate import LocalBudget
from tidegate.spark.measure import attached_meter
from tidegate.spark.measure.attached_meter import (
    AttachedMeter,
    cores_during,
    spread_of,
)
from tidegate.spark.measure.busy_cores import ExecutorTime
from tidegate.spark.measure.progress import PartitionOffsets


@pytest.fixture
def meter_of(monkeypatch):
    monkeypatch.setattr(
        "tidegate.spark.measure.attached_meter.QueryMeter", lambda query: query.meter
    )
    monkeypatch.setattr(attached_meter.time, "time", lambda: 100.0)

    def make(queries: list[FakeQuery], cores: int = 4, busy=lambda: 0.0) -> AttachedMeter:
        return AttachedMeter(lambda: queries, LocalBudget(cores), busy)

    return make


def test_a_steady_query_is_seen_as_it_is(meter_of) -> None:
    query = FakeQuery("clicks")
    done = iter([0.0, 0.0, 30.0])
    meter = meter_of([query], busy=lambda: next(done))
    meter.measure(101.0)
    # Batches of 2 s one after the other, 100 rows/s.
    query.meter.coming = [progress(n, 101.0 + 2 * n, 2.0, 200, 2.0) for n in range(5)]
    found = meter.measure(111.5)
    assert found.latency is not None
    assert found.latency.mean_s == pytest.approx(3.0)
    assert found.arrival_rate == pytest.approx(100.0)
    assert found.processed_rate == pytest.approx(100.0)
    assert found.cores_busy == pytest.approx(100.0 * 30.0 / 1000)
    segment = found.segments[0]
    assert (segment.name, segment.tasks, segment.trigger_s) == ("clicks", 4, 0.0)
    assert segment.backlog_rows == pytest.approx(100.0 * 2.5)
    assert [batch.batch_id for batch in segment.batches] == [0, 1, 2, 3, 4]
    assert not found.saturated
    assert found.stale is None


def test_what_was_done_before_it_attached_is_not_of_the_tick(meter_of) -> None:
    query = FakeQuery("clicks", "ProcessingTimeTrigger(5000)")
    meter = meter_of([query])
    query.meter.coming = [progress(n, 90.0 + 2 * n, 1.0, 200, 2.0) for n in range(4)]
    found = meter.measure(101.0)
    assert found.segments[0].batches == ()
    assert found.segments[0].trigger_s == 5.0
    assert found.arrival_rate == pytest.approx(100.0)


def test_queries_share_the_cores_by_their_work(meter_of) -> None:
    heavy, light = FakeQuery("heavy"), FakeQuery("light")
    queries = [heavy, light]
    meter = meter_of(queries, cores=8)
    heavy.meter.coming = [progress(0, 95.0, 4.0, 100)]
    light.meter.coming = [progress(0, 98.0, 1.0, 10)]
    found = meter.measure(100.0)
    assert {one.name: one.tasks for one in found.segments} == {"heavy": 6, "light": 2}
    queries.remove(heavy)
    found = meter.measure(101.0)
    assert {one.name: one.tasks for one in found.segments} == {"light": 8}


def test_a_query_without_rows_is_idle_and_not_stale(meter_of) -> None:
    query = FakeQuery("clicks")
    meter = meter_of([query])
    query.meter.coming = [progress(n, 95.0 + n, 1.0, 50) for n in range(5)]
    assert meter.measure(100.5).arrival_rate == pytest.approx(50.0)
    query.available = False
    found = meter.measure(130.0)
    assert (found.arrival_rate, found.backlog_rows, found.stale) == (0.0, 0.0, None)
    assert found.latency is None
    query.active = True
    assert meter.measure(131.0).backlog_rows == 0.0, "it asks its sources: nothing known yet"
    query.available = True
    assert meter.measure(132.0).backlog_rows == pytest.approx(50.0), "not the silent half minute"


def test_a_query_is_idle_once_it_has_looked_at_its_sources(meter_of) -> None:
    query = FakeQuery("clicks")
    query.available, query.message = False, "Initializing sources"
    meter = meter_of([query])

    def idle(now_s: float) -> bool:
        return meter.measure(now_s).segments[0].idle

    assert not idle(101.0), "a restart may find a backlog"
    query.active, query.message = True, "Getting offsets from KafkaV2[Subscribe[clicks]]"
    assert not idle(102.0)
    query.active, query.message = False, "Waiting for data to arrive"
    assert idle(103.0)
    query.active = True
    assert idle(104.0), "it looks again, which takes a moment"
    assert not idle(109.0), "no answer for six seconds"
    query.active = False
    assert idle(110.0)
    query.available = query.active = True
    assert not idle(111.0), "a batch runs"


def test_a_query_that_hangs_is_stale_and_so_is_none(meter_of) -> None:
    queries = [FakeQuery("clicks")]
    meter = meter_of(queries)
    queries[0].meter.coming = [progress(n, 95.0 + n, 1.0, 50) for n in range(5)]
    assert meter.measure(100.5).stale is None
    assert meter.measure(130.0).stale == "no batch ended for 30 s"
    queries.clear()
    assert meter.measure(131.0).stale == "no query is running"


def test_a_batch_during_which_executors_came_teaches_nothing(meter_of) -> None:
    query = FakeQuery("clicks")
    meter = meter_of([query], cores=1)
    query.meter.coming = [progress(n, 93.0 + n, 1.0, 50) for n in range(7)]
    meter.measure(101.0)
    meter.negotiator.ask(3)
    meter.measure(102.0)
    query.meter.coming = [progress(7, 100.5, 2.0, 50), progress(8, 102.5, 0.6, 50)]
    batches = meter.measure(103.2).segments[0].batches
    assert [(batch.tasks, batch.outlier) for batch in batches] == [
        (1, "executors changed"),
        (3, None),
    ]


def test_the_span_of_a_batch_is_what_sparks_rate_says() -> None:
    spread = spread_of(progress(3, 0.0, 2.0, 100, span_s=0.5))
    assert spread is not None
    assert (spread.rows, spread.span_s, spread.duration_s) == (100, 0.5, 2.0)
    assert spread_of(progress(3, 0.0, 2.0, 0)) is None


def test_cores_during_a_batch() -> None:
    seen = [(1.0, 2), (2.0, 2), (3.0, 5)]
    assert cores_during(seen, 1.5, 2.5) == {2}
    assert cores_during(seen, 2.5, 3.5) == {2, 5}
    assert cores_during(seen, 3.5, 9.0) == {5}
    assert cores_during(seen, 0.0, 0.5) == {2}


def test_time_of_executors_counts_on_when_they_go() -> None:
    entries = {"1": 4000, "2": 1000}

    class Listed(list):
        size, apply = list.__len__, list.__getitem__

    def listed(active_only: bool) -> Listed:
        return Listed(
            SimpleNamespace(id=lambda n=n: n, totalDuration=lambda v=v: v)
            for n, v in entries.items()
        )

    store = SimpleNamespace(executorList=listed)
    context = SimpleNamespace(statusStore=lambda: store)
    session = SimpleNamespace(
        sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context))
    )
    spent_s = ExecutorTime(session)
    before_s = spent_s()
    entries["1"] = 6000
    assert spent_s() - before_s == 2.0
    del entries["2"]
    assert spent_s() - before_s == 2.0


class Says:
    name = "says"

    def __init__(self, cores: int | None) -> None:
        self.cores = cores

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        return hold("as it is") if self.cores is None else Decision(reason="so", cores=self.cores)


@pytest.mark.parametrize(("said", "comes"), [(None, None), (3, None), (4, None), (5, 6), (2, 2)])
def test_cores_come_in_whole_executors(said: int | None, comes: int | None) -> None:
    now = Measurement(
        at_s=0.0,
        interval_s=1.0,
        arrival_rate=1.0,
        processed_rate=1.0,
        backlog_rows=0.0,
        cores_asked=4,
        cores_granted=4,
        saturated=False,
    )
    assert WholeExecutors(Says(said), 2).decide(now, Constraints(Bounds(1, 8))).cores == comes


def test_rows_that_a_query_found_at_its_start_are_no_rate(meter_of) -> None:
    """A million rows wait, and 100 rows/s arrive; Spark tells 90,000 rows/s of the first batch."""
    query = FakeQuery("clicks")
    meter = meter_of([query])
    meter.measure(101.0)
    query.meter.coming = [progress(0, 101.0, 10.0, 1_000_000, 11.0)]
    assert meter.measure(111.5).arrival_rate == 0.0
    query.meter.coming = [progress(1, 111.0, 2.0, 1000, 10.0)]
    assert meter.measure(113.5).arrival_rate == pytest.approx(100.0)


def test_rows_from_an_earlier_rest_did_not_arrive_now(meter_of) -> None:
    """10,000 rows wait in Kafka, batches take 1,000 of them each, and 50 rows/s arrive."""
    query = FakeQuery("clicks")
    meter = meter_of([query])
    meter.measure(101.0)
    query.meter.coming = [
        replace(progress(n, 101.0 + 2 * n, 2.0, 1000, 2.0), behind_rows=9000 - n * 900)
        for n in range(5)
    ]
    found = meter.measure(111.0)
    assert found.arrival_rate == pytest.approx(50.0)
    assert found.backlog_rows == pytest.approx(5400 + 50.0 * 2)


def test_behind_a_read_limit_rows_are_older_than_their_batch(meter_of) -> None:
    """50 rows/s arrive and are taken; 500 older ones stay behind, so a row waits 10 s for them."""
    query = FakeQuery("clicks")
    meter = meter_of([query])
    meter.measure(101.0)
    query.meter.coming = [
        replace(progress(n, 101.0 + 2 * n, 2.0, 100, 2.0), behind_rows=500) for n in range(6)
    ]
    found = meter.measure(113.0)
    assert found.arrival_rate == pytest.approx(50.0)
    assert found.latency is not None
    assert found.latency.mean_s == pytest.approx(2.0 + 10.0 + 1.0)


def test_a_stuck_partition_is_no_backlog(meter_of) -> None:
    query = FakeQuery("clicks")
    meter = meter_of([query])
    for n in range(30):
        parts = (
            PartitionOffsets(0, "t", 0, 100 * n, 100 * n + 100, 100 * n + 100),
            PartitionOffsets(0, "t", 1, 50, 50, 60 + 10 * n),
        )
        one = replace(progress(n, 100.0 + n, 1.0, 100), partitions=parts, behind_rows=10 + 10 * n)
        query.meter.coming = [one]
        found = meter.measure(101.0 + n)
    (segment,) = found.segments
    assert segment.lag is not None
    assert [part.stuck for part in segment.lag.partitions] == [False, True]
    assert (segment.lag.rows, found.lag_rows) == (300, 300)
    assert segment.backlog_rows == pytest.approx(found.arrival_rate * 1.0, rel=0.01)
    assert not found.saturated
