"""Finished batches: what we and Spark say of one batch, met by its id."""

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.fake_query import FakeMeter, progress
from tidegate.control.learning.sojourn import Stamps
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


def test_imbalance_is_weighted_by_the_stages_work() -> None:
    even = [report("m", 0, 1.0), report("m", 1, 1.0)]
    assert stage_imbalance(even) == 1.0
    skewed = [report("n", 0, 3.0), report("n", 1, 1.0)]
    assert stage_imbalance(skewed) == pytest.approx(1.5)
    assert stage_imbalance([*even, *skewed]) == pytest.approx(4.0 / 3.0)
    assert stage_imbalance([]) == 1.0
