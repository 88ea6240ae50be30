"""Finished batches: what we and Spark say of one batch, met by its id."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.fake_query import FakeMeter, progress
from tidegate.control.learning.sojourn import Stamps
from tidegate.control.row_counts import SourceCount
from tidegate.pipelines.graph import Map, Segment, Source
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.arrivals import Arrivals
from tidegate.spark.measure.operator_meter import OperatorMeter
from tidegate.spark.measure.pipeline_meter import _SegmentView
from tidegate.spark.measure.progress import PartitionOffsets
from tidegate.spark.measure.segment_batches import SegmentBatches, stage_imbalance

ROWS = pa.schema([("k", pa.string())])
SOURCE = Source(name="in", inputs=(), schema=ROWS, frame=None)
READING = Segment(
    "main",
    (Map(name="n", inputs=("in",), schema=ROWS, function=lambda table: table),),
    (SOURCE,),
    (),
)


def report(operator: str, task: int, busy_s: float) -> TaskReport:
    return TaskReport(
        batch_id=0,
        operator=operator,
        task=task,
        rows_in=1,
        rows_out=1,
        busy_s=busy_s,
        function_s=busy_s,
        executor="here",
        started_s=0.0,
    )


def result(batch_id: int, tasks: int = 2, shed: int = 0) -> BatchResult:
    return BatchResult(
        segment="main",
        plan=BatchPlan(batch_id, 600_000_000, {"n": OperatorPlan(tasks)}),
        replayed=False,
        started_s=0.0,
        ended_s=1.0,
        steps_s={},
        reports=(),
        executors=1,
        sources=(SourceCount(name="in", offered=100, kept=100 - shed),),
    )


def test_a_batch_counts_when_both_sides_are_done_and_only_once() -> None:
    meter = FakeMeter()
    batches = SegmentBatches(meter)
    meter.coming = [progress(0, 10.0, 1.0, 100)]
    assert batches.finished([]) == []
    assert batches.newest == -1
    (first,) = batches.finished([result(0), result(1)])
    assert first.result.plan.batch_id == first.progress.batch_id == 0
    assert batches.finished([result(0), result(1)]) == []
    meter.coming = [progress(1, 11.0, 1.0, 100)]
    assert [b.progress.batch_id for b in batches.finished([result(0), result(1)])] == [1]
    assert batches.newest == 1


def test_outliers_are_named() -> None:
    meter = FakeMeter()
    batches = SegmentBatches(meter)
    tasks = [2, 2, 4, 4, 3]
    meter.coming = [progress(n, 10.0 + n, 1.0, 100) for n in range(5)]
    finished = batches.finished([result(n, count) for n, count in enumerate(tasks)])
    found = [one.outlier for one in batches.measured(finished, awaited=3)]
    assert found == ["first", None, "new tasks", "tasks that wait for cores", None]


def test_a_batch_whose_cores_came_while_it_ran_waited_for_them() -> None:
    meter = FakeMeter()
    batches = SegmentBatches(meter)
    meter.coming = [progress(n, 10.0 + n, 1.0, 100) for n in range(2)]
    batches.measured(batches.finished([result(n, 4) for n in range(2)]), awaited=2)
    found = []
    for number, awaited in ((2, (2, 3, None)), (3, (None,)), (4, (3, None, 3)), (5, (None,))):
        for tick, cores in enumerate(awaited, 1):
            if tick == len(awaited):
                meter.coming = [progress(number, 10.0 + number, 1.0, 100)]
            found += batches.measured(batches.finished([result(number, 4)]), awaited=cores)
    waited = "tasks that wait for cores"
    assert [one.outlier for one in found] == [waited, None, waited, waited]


def test_the_first_batch_on_more_executors_is_named() -> None:
    meter = FakeMeter()
    batches = SegmentBatches(meter)
    executors = [1, 1, 2, 2, 1]
    meter.coming = [progress(n, 10.0 + n, 1.0, 100) for n in range(5)]
    ran = [replace(result(n), executors=count) for n, count in enumerate(executors)]
    found = [one.outlier for one in batches.measured(batches.finished(ran), awaited=None)]
    assert found == ["first", None, "new executors", None, None]


def test_rows_that_were_shed_were_not_worked_on() -> None:
    meter = FakeMeter()
    batches = SegmentBatches(meter)
    meter.coming = [progress(0, 10.0, 1.0, 100)]
    (found,) = batches.measured(batches.finished([result(0, shed=30)]), awaited=None)
    assert (found.rows, found.shed_rows) == (70, 30)


def test_rows_arrived_until_a_batch_began_and_were_completed_while_it_ran() -> None:
    meter = FakeMeter()
    batches = SegmentBatches(meter, since_s=8.0)
    assert batches.usual_s == batches.longest_s == 0.0
    meter.coming = [progress(n, 10.0 + 2 * n, 1.0 + n, 100) for n in range(3)]
    finished = batches.finished([result(n) for n in range(3)])
    assert [(one.since_s, one.fresh) for one in finished] == [(8.0, 0.0), (10.0, 1.0), (12.0, 1.0)]
    batches.measured(finished, awaited=None)
    assert batches.arrived.untold == 200.0, "the first batch's rows were there before"
    assert batches.arrived.known == pytest.approx(50.0)
    assert batches.completed.untold == 300.0
    assert (batches.usual_s, batches.longest_s) == (2.0, 3.0)


def test_a_backlog_from_before_the_run_is_told_apart_by_its_stamps() -> None:
    meter = FakeMeter()
    batches = SegmentBatches(meter, since_s=100.0)
    ran = []
    for number, times_s in enumerate(([20.0] * 30, [40.0, 101.0, 102.0, 103.0], [50.0])):
        stamps = Stamps.of(np.array([round(at_s * 1e6) for at_s in times_s]))
        told = replace(report("n", 0, 0.1), stamps=stamps, rows_in=len(times_s))
        ran.append(replace(result(number), reports=(told,)))
        meter.coming.append(progress(number, 100.0 + 3 * number, 3.0, len(times_s)))
    first, second = batches.finished(ran[:2])
    assert (first.fresh, second.fresh) == (0.0, 0.75)
    batches.measured([first, second], awaited=None)
    assert batches.arrived.untold == pytest.approx(3.0)
    batches.nothing(106.0)
    assert batches.finished(ran)[0].fresh == 1.0, "it had caught up: a time that is not an arrival"


def test_a_batch_behind_a_limit_took_more_than_arrived() -> None:
    """A source lets 10,000 of a million waiting rows into a batch, while 100 arrive a second."""
    meter = FakeMeter()
    batches = SegmentBatches(meter, since_s=0.0)
    behind = 1_000_000
    for number in range(4):
        behind += 100 - 10_000
        told = progress(number, 1.0 + number, 1.0, 10_000)
        meter.coming.append(replace(told, behind_rows=behind))
    found = batches.finished([result(number) for number in range(4)])
    assert [one.fresh for one in found] == [0.0, 0.01, 0.01, 0.01]
    batches.measured(found, awaited=None)
    assert batches.arrived.known == pytest.approx(100.0)
    assert batches.behind_rows == behind


def test_behind_a_limit_offsets_tell_what_arrives_and_stamps_how_old_rows_are() -> None:
    """Rows have stamps, but those of a limited batch are old: 50 rows/s came, and 200 come now."""
    meter = FakeMeter()
    batches = SegmentBatches(meter, since_s=0.0)
    ran = []
    for number in range(5):
        at_s = 100.0 + number
        stamps = Stamps.of(np.arange(60) * 20_000 + round((at_s - 40.0) * 1e6))
        told = replace(report("n", 0, 0.1), stamps=stamps, rows_in=60)
        ran.append(replace(result(number), reports=(told,)))
        start, newest = 60 * number, 5000 + 200 * number
        part = PartitionOffsets(0, "t", 0, start, start + 60, newest)
        meter.coming.append(
            replace(progress(number, at_s, 1.0, 60), partitions=(part,), behind_rows=part.behind)
        )
    found = batches.finished(ran)
    batches.measured(found, awaited=None)
    assert batches.arrived.known == pytest.approx(200.0)
    assert batches.age_s == pytest.approx(40.0 - 59 * 0.02, abs=0.01)
    view = _SegmentView(
        part=None, batches=batches, operators=None, trigger_s=0.0, arrivals=Arrivals()
    )
    for one in found:
        view.arrivals.add(one.offered)
    view.outside_rate = batches.arrived.known
    assert view.limited and view.rate == pytest.approx(200.0)
    lag = batches.lag.tell(105.5, view.rate, batches.age_s)
    assert lag is not None
    assert (lag.rows, lag.seconds) == (5800 - 300, pytest.approx(27.5))
    waiting = view.backlog_rows(200.0, lag, 105.5)
    assert waiting == pytest.approx(5500 + 200.0 * 1.5), "counted once, whatever stamps say"


def test_rows_of_channels_are_not_from_outside_and_old_ones_did_not_arrive_now() -> None:
    meter = FakeMeter()
    old = {0: 300, 1: 0}
    batches = SegmentBatches(
        meter, main=False, since_s=0.0, old_rows=lambda told: old[told.batch_id]
    )
    meter.coming = [replace(progress(n, 1.0 + n, 1.0, 400), channel_rows=400) for n in range(2)]
    found = batches.finished([result(0), result(1)])
    assert [(one.fresh, one.outside) for one in found] == [(0.25, 0), (1.0, 0)]
    batches.measured(found, awaited=None)
    assert batches.arrived.untold == 0.0


@given(
    lengths_s=st.lists(st.floats(0.1, 4.0), min_size=4, max_size=20),
    tick_s=st.floats(0.2, 2.5),
    load=st.integers(10, 2000),
    limit=st.one_of(st.none(), st.integers(50, 3000)),
    stall_s=st.floats(0.0, 15.0),
)
def test_imitated_reports_give_the_rate_at_which_rows_arrived(
    lengths_s: list[float], tick_s: float, load: int, limit: int | None, stall_s: float
) -> None:
    """Batches of any length, ticks, a stall, and a source that may limit its batches.

    lambda_i over all ticks, and what is not told yet, is what arrived after the first batch began.
    """
    lengths_s = [*lengths_s, *[1.0] * 12]
    lengths_s[len(lengths_s) // 2] += stall_s
    meter, operators = FakeMeter(), OperatorMeter(READING)
    batches = SegmentBatches(meter, since_s=0.0)
    begun_s, number, waiting, last_s, told, ended = 1.0, 0, load, 1.0, 0.0, []
    for length_s in lengths_s:
        waiting += round(load * begun_s) - round(load * last_s) if number else 0
        took = waiting if limit is None else min(waiting, limit)
        waiting, last_s = waiting - took, begun_s
        ran = replace(
            result(number),
            reports=(replace(report("n", 0, 0.1), batch_id=number, rows_in=took),),
        )
        ended.append((begun_s + length_s, ran, begun_s, took, waiting))
        begun_s, number = begun_s + length_s, number + 1
    at_s = 0.0
    while ended:
        at_s += tick_s
        over = [one for one in ended if one[0] <= at_s]
        ended = ended[len(over) :]
        for end_s, ran, started_s, took, behind in over:
            told_of = progress(ran.plan.batch_id, started_s, end_s - started_s, took)
            meter.coming.append(replace(told_of, behind_rows=behind))
        found = batches.finished([ran for _, ran, *_ in over])
        (one,) = operators.measure(found, {}, tick_s)
        told += one.arrival_rate * tick_s
        batches.measured(found, awaited=None)
    arrived = round(load * last_s) - round(load * 1.0)
    untold = operators._arrived["n"].untold
    assert told + untold == pytest.approx(arrived, abs=1e-3 * arrived + 1e-6)
    assert abs(untold) <= load * (4.0 + 1.5 * (1.0 + tick_s) + 10.0)


def test_imbalance_is_weighted_by_the_stages_work() -> None:
    even = [report("m", 0, 1.0), report("m", 1, 1.0)]
    assert stage_imbalance(even) == 1.0
    skewed = [report("n", 0, 3.0), report("n", 1, 1.0)]
    assert stage_imbalance(skewed) == pytest.approx(1.5)
    assert stage_imbalance([*even, *skewed]) == pytest.approx(4.0 / 3.0)
    assert stage_imbalance([]) == 1.0
