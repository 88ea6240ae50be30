"""Finished batches: what we and Spark say of one batch, met by its id."""

import pytest

from tests.helpers.fake_query import FakeMeter, progress
from tidegate.control.row_counts import SourceCount
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.segment_batches import SegmentBatches, stage_imbalance


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
        plan=BatchPlan(batch_id, 0, {"n": OperatorPlan(tasks)}),
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


def test_rows_that_were_shed_were_not_worked_on() -> None:
    meter = FakeMeter()
    batches = SegmentBatches(meter)
    meter.coming = [progress(0, 10.0, 1.0, 100)]
    (found,) = batches.measured(batches.finished([result(0, shed=30)]), awaited=None)
    assert (found.rows, found.shed_rows) == (70, 30)


def test_rates_without_stamps_come_from_the_last_batches() -> None:
    meter = FakeMeter()
    batches = SegmentBatches(meter)
    assert batches.worked_rate(20.0) == batches.offered_rate(20.0) == 0.0
    assert batches.usual_s == batches.longest_s == 0.0
    meter.coming = [progress(n, 10.0 + 2 * n, 1.0 + n, 100) for n in range(3)]
    batches.measured(batches.finished([result(n) for n in range(3)]), awaited=None)
    assert batches.worked_rate(17.0) == pytest.approx(300 / 6)
    assert batches.offered_rate(17.0) == pytest.approx(200 / 6)
    assert (batches.usual_s, batches.longest_s) == (2.0, 3.0)
    assert batches.worked_rate(100.0) == 0.0


def test_imbalance_is_weighted_by_the_stages_work() -> None:
    even = [report("m", 0, 1.0), report("m", 1, 1.0)]
    assert stage_imbalance(even) == 1.0
    skewed = [report("n", 0, 3.0), report("n", 1, 1.0)]
    assert stage_imbalance(skewed) == pytest.approx(1.5)
    assert stage_imbalance([*even, *skewed]) == pytest.approx(4.0 / 3.0)
    assert stage_imbalance([]) == 1.0
