"""What a batch's duration is made of, from imitated reports."""

from dataclasses import replace

import pytest

from tests.helpers.fake_query import progress
from tidegate.control.batch_parts import (
    ADD_UP,
    BESIDE,
    COMMIT,
    OWN_PLAN,
    SLOWEST,
    STAGES,
    STARTING,
    STATE,
)
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.step import Step
from tidegate.spark.measure.batch_parts import attached_parts, batch_parts


def report(
    operator: str, task: int, started_s: float, busy_s: float, function_s: float
) -> TaskReport:
    return TaskReport(
        batch_id=0,
        operator=operator,
        task=task,
        rows_in=1,
        rows_out=1,
        busy_s=busy_s,
        function_s=function_s,
        executor="here",
        started_s=started_s,
    )


def result(*reports: TaskReport, work: Step = Step.SINKS_WRITTEN) -> BatchResult:
    return BatchResult(
        segment="main",
        plan=BatchPlan(0, 0, {"n": OperatorPlan(2)}),
        replayed=False,
        started_s=10.0,
        ended_s=11.0,
        steps_s={Step.PLANNED: 0.01, Step.COMPILED: 0.09, work: 0.7, Step.COMMITTED: 0.05},
        reports=reports,
        executors=1,
    )


def test_stages_one_after_the_other_add_their_slowest_tasks() -> None:
    parts = batch_parts(
        result(
            report("ask", 0, 10.2, 0.10, 0.10),
            report("ask", 1, 10.22, 0.12, 0.12),
            report("count", 0, 10.5, 0.2, 0.16),
            report("count", 1, 10.53, 0.15, 0.11),
        ),
        progress(0, 10.0, 1.0, 100),
    )
    assert parts[SLOWEST] == pytest.approx(0.12 + 0.2)
    assert parts[STARTING] == pytest.approx(0.02 + 0.0)
    assert parts[STAGES] == pytest.approx(0.7 - 0.32 - 0.02)
    assert parts[BESIDE] == pytest.approx(0.04)
    assert parts[OWN_PLAN] >= 0.1
    assert parts[COMMIT] == pytest.approx(0.05)


def test_a_channels_writer_runs_in_the_tasks_before_it_and_counts_once() -> None:
    parts = batch_parts(
        result(
            report("ask", 0, 10.21, 0.40, 0.40),
            report("between", 0, 10.2, 0.44, 0.0),
            report("ask", 1, 10.23, 0.38, 0.38),
            report("between", 1, 10.22, 0.41, 0.0),
            work=Step.CHANNELS_WRITTEN,
        ),
        progress(0, 10.0, 1.0, 100),
    )
    assert parts[SLOWEST] == pytest.approx(0.44)
    assert parts[BESIDE] == pytest.approx(0.04)


def test_the_parts_add_up_to_the_duration() -> None:
    batch = progress(0, 10.0, 1.0, 100)
    parts = batch_parts(result(report("n", 0, 10.2, 0.3, 0.2)), batch)
    assert sum(parts.get(name, 0.0) for name in ADD_UP) == pytest.approx(batch.duration_s)


def test_clocks_that_disagree_do_not_make_a_part_negative() -> None:
    parts = batch_parts(
        result(report("n", 0, 10.2, 0.3, 0.3), report("n", 1, 990.0, 5.0, 5.0)),
        progress(0, 10.0, 1.0, 100),
    )
    assert min(parts.values()) >= 0.0
    assert parts[SLOWEST] <= 0.7


def test_the_parts_of_a_foreign_query_add_up_and_tell_its_state() -> None:
    batch = replace(
        progress(0, 10.0, 1.0, 100),
        offsets_s=0.1,
        reading_s=0.05,
        planning_s=0.2,
        log_s=0.1,
        work_s=0.5,
        other_s=0.05,
    )
    parts = attached_parts(batch)
    assert sum(parts.get(name, 0.0) for name in ADD_UP) == pytest.approx(batch.duration_s)
    assert parts[STAGES] == 0.5 and STATE not in parts and SLOWEST not in parts
    assert attached_parts(replace(batch, state_s=0.3))[STATE] == 0.3
    assert STATE not in ADD_UP, "it is core seconds, of several tasks at once"
