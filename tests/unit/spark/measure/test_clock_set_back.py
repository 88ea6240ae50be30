"""Meters on a wall clock that is set back by an hour."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from tests.helpers.fake_query import FakeQuery, progress
from tidegate.control.learning.sojourn import BatchStamps, Stamps
from tidegate.control.shedding.keep import KEEP_ALL
from tidegate.pipelines.graph import Segment, Source
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.loop.negotiate import LocalBudget
from tidegate.spark.measure import attached_meter, pipeline_meter
from tidegate.spark.measure.attached_meter import AttachedMeter
from tidegate.spark.measure.pipeline_meter import PipelineMeter
from tidegate.spark.measure.progress import batch_progress

START_S, BACK_S = 100_000.0, 3600.0


def test_an_attached_query_is_measured_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached_meter, "QueryMeter", lambda query: query.meter)
    monkeypatch.setattr(attached_meter.time, "time", lambda: START_S)
    query = FakeQuery("one")
    meter = AttachedMeter(lambda: [query], LocalBudget(2), lambda: 0.0)
    seen = []
    for second in range(1, 60):
        wall_s = START_S + second - (BACK_S if second >= 20 else 0.0)
        begun_s = wall_s - 0.5
        if second == 20:
            begun_s += BACK_S  # a batch from before, of which Spark tells only now
        query.meter.coming.append(progress(second, begun_s, 0.4, rows=100))
        seen.append(meter.measure(wall_s))
    times_s = [one.at_s for one in seen]
    assert times_s == sorted(times_s) and len(set(times_s)) == len(times_s)
    assert {round(one.interval_s, 6) for one in seen} == {1.0}
    assert all(one.stale is None for one in seen)
    rates = [one.arrival_rate for one in seen[30:]]
    assert rates == [pytest.approx(100.0, rel=0.05)] * len(rates)
    for one in seen[22:]:
        assert all(0.0 <= one.at_s - batch.ended_s < 2.0 for batch in one.segments[0].batches)


def test_a_pipeline_forgets_times_that_are_in_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_meter.time, "time", lambda: START_S)
    source = Source(name="in", inputs=(), schema=pa.schema([]), frame=None, arrival="at")
    part = SimpleNamespace(
        segment=Segment("main", (), (source,), ()),
        compiler=SimpleNamespace(traced=frozenset()),
        waits=False,
        running=None,
        results=(),
    )
    query = FakeQuery("main")
    query.status = {"isTriggerActive": True, "isDataAvailable": True, "message": "Processing"}
    run = SimpleNamespace(
        queries={"main": query},
        segments={"main": part},
        allocation=dict,
        previews=frozenset,
        parts=dict,
        keep=lambda: KEEP_ALL,
        results=lambda name: [],
    )
    monkeypatch.setattr(pipeline_meter, "QueryMeter", lambda query: query.meter)
    meter = PipelineMeter(run, LocalBudget(2), tick_s=1.0)
    stamps = Stamps.of(np.array([round((START_S + 0.5) * 1e6)] * 50))
    meter._sojourns.whole.add(BatchStamps(stamps, round(START_S * 1e6)))
    meter._views["main"].arrivals.add(stamps)
    before = meter.measure(START_S + 1.0)
    assert before.latency is not None and before.arrival_rate > 0.0
    after = meter.measure(START_S + 2.0 - BACK_S)
    assert (after.latency, after.arrival_rate, after.stale) == (None, 0.0, None)
    assert (after.at_s, after.interval_s) == (before.at_s + 1.0, 1.0)
    now_s = START_S + 3.0 - BACK_S
    assert not meter._trusts(round(START_S * 1e6), now_s), "a row from before the step"
    assert meter._trusts(round(now_s * 1e6), now_s)
    assert meter._trusts(round(START_S * 1e6), now_s + 120.0), "a producer whose clock is ahead"


def test_a_batch_of_unknown_duration_is_left_out() -> None:
    told = {
        "batchId": 7,
        "numInputRows": 10,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "durationMs": {"addBatch": 200, "triggerExecution": 300},
    }
    assert batch_progress(told) is not None
    assert batch_progress({**told, "durationMs": {"addBatch": 1, "triggerExecution": -9}}) is None


def test_a_result_took_as_long_as_its_steps() -> None:
    result = BatchResult(
        segment="main",
        plan=None,
        replayed=False,
        started_s=START_S,
        ended_s=START_S - BACK_S,
        steps_s={"ran": 1.5, "committed": 0.5},
        reports=(),
        executors=1,
    )
    assert result.duration_s == 2.0
