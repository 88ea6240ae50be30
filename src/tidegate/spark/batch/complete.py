"""Completing a micro-batch: every task that its commit depends on has run and reported.

A sink decides what of a frame it reads. One that takes a few rows, or none, leaves tasks that have
not run; they are run here, since their state and their counts belong to the batch all the same.
"""

from collections.abc import Iterable

from pyspark.sql import DataFrame

from tidegate.errors import TidegateError
from tidegate.pipelines.graph import Keyed
from tidegate.spark.batch.compile import Frames
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.report import Reports, TaskReport


def complete(
    frames: Frames,
    plan: BatchPlan,
    reports: Reports,
    keyed: tuple[Keyed, ...],
    counting: Iterable[str],
) -> list[TaskReport]:
    """The reports of all tasks; keyed operators and `counting` maps that have not run are run."""
    told = reports.drain(plan.batch_id)
    for operator in reversed(keyed):  # the last first: running it runs those before it
        if len(_tasks(told, operator.name)) < plan.operators[operator.name].tasks:
            compute(frames.of[operator.name])
    told = _first_told(told, reports.drain(plan.batch_id))
    for name in counting:
        if len(_tasks(told, name)) < plan.operators[name].tasks:
            compute(frames.of[name])
            told = _first_told(told, reports.drain(plan.batch_id))
    for operator in keyed:
        expected = set(range(plan.operators[operator.name].tasks))
        missing = expected - _tasks(told, operator.name)
        if missing:
            raise TidegateError(
                f"operator '{operator.name}' has no report of tasks {sorted(missing)} in batch "
                f"{plan.batch_id}; the batch is not committed"
            )
    return told


def compute(frame: DataFrame) -> None:
    """Compute every row of a frame and keep none."""
    frame.write.format("noop").mode("append").save()


def _tasks(reports: list[TaskReport], operator: str) -> set[int]:
    return {report.task for report in reports if report.operator == operator}


def _first_told(first: list[TaskReport], later: list[TaskReport]) -> list[TaskReport]:
    """Reports of a second run count only where the first run gave none."""
    known = {(report.operator, report.task, report.part) for report in first}
    return first + [r for r in later if (r.operator, r.task, r.part) not in known]
