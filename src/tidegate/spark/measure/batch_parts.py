"""What a batch's duration is made of: Spark's own parts, our steps, and the tasks' reports."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.control.batch_parts import (
    BESIDE,
    COMMIT,
    LOG,
    OFFSETS,
    OTHER,
    OWN_PLAN,
    PLANNING,
    SLOWEST,
    STAGES,
    STARTING,
    STATE,
)
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.step import Step
from tidegate.spark.measure.progress import BatchProgress

_BEFORE = (Step.PREVIEWED, Step.PLANNED, Step.COMPILED)
_WORK = (Step.SINKS_WRITTEN, Step.CHANNELS_WRITTEN, Step.RAN)


@dataclass(slots=True)
class _Wave:
    """Tasks that were at work at the same time: a stage, or stages that run in the same tasks."""

    begin_s: float
    end_s: float
    slowest_s: float
    """The slowest task's time in its operator."""
    function_s: float
    """The longest time in a user's function."""

    @property
    def spread_s(self) -> float:
        """The time that the wave took beyond its slowest task."""
        return max(self.end_s - self.begin_s - self.slowest_s, 0.0)

    def add(self, other: "_Wave") -> None:
        """Add tasks that were at work at the same time."""
        self.begin_s, self.end_s = min(self.begin_s, other.begin_s), max(self.end_s, other.end_s)
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.function_s = max(self.function_s, other.function_s)


def batch_parts(result: BatchResult, progress: BatchProgress) -> dict[str, float]:
    """The parts of a finished batch; they add up to its duration."""
    steps = result.steps_s
    own_plan_s = sum(steps.get(step, 0.0) for step in _BEFORE)
    work_s = sum(steps.get(step, 0.0) for step in _WORK)
    commit_s = sum(took_s for step, took_s in steps.items() if step not in (*_BEFORE, *_WORK))
    # Whatever lies between Spark's call and our first step is the wait for a decision.
    waited_s = max(progress.work_s - own_plan_s - work_s - commit_s, 0.0)
    waves = _waves(result.reports)
    slowest_s = min(sum(wave.slowest_s for wave in waves), work_s)
    starting_s = min(sum(wave.spread_s for wave in waves), work_s - slowest_s)
    beside_s = sum(max(wave.slowest_s - wave.function_s, 0.0) for wave in waves)
    return {
        OFFSETS: progress.offsets_s + progress.reading_s,
        PLANNING: progress.planning_s,
        LOG: progress.log_s,
        OWN_PLAN: own_plan_s + waited_s,
        STAGES: work_s - slowest_s - starting_s,
        STARTING: starting_s,
        SLOWEST: slowest_s,
        COMMIT: commit_s,
        OTHER: progress.other_s,
        BESIDE: min(beside_s, slowest_s),
    }


def attached_parts(progress: BatchProgress) -> dict[str, float]:
    """The parts of a batch of a query of others: its stages with their tasks are one part."""
    found = {
        OFFSETS: progress.offsets_s + progress.reading_s,
        PLANNING: progress.planning_s,
        LOG: progress.log_s,
        STAGES: progress.work_s,
        OTHER: progress.other_s,
    }
    return found if progress.state_s is None else {**found, STATE: progress.state_s}


def _waves(reports: Sequence[TaskReport]) -> list[_Wave]:
    """Group reports by stage, and stages whose tasks overlap in time: they count once.

    A channel's writer runs in the tasks of the operator before it, and its time includes theirs.
    """
    stages: dict[str, _Wave] = {}
    for report in reports:
        end_s = report.started_s + report.busy_s
        one = _Wave(report.started_s, end_s, report.busy_s, report.function_s)
        if report.operator in stages:
            stages[report.operator].add(one)
        else:
            stages[report.operator] = one
    found: list[_Wave] = []
    for wave in sorted(stages.values(), key=lambda one: one.begin_s):
        last = found[-1] if found else None
        if last is None or wave.begin_s >= 0.5 * (last.begin_s + last.end_s):
            found.append(wave)
        else:
            last.add(wave)
    return found
