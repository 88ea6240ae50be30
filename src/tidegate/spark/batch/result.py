"""What a micro-batch did, for the control loop and for whoever asks the run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidegate.control.row_counts import SourceCount
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.report import TaskReport, combining
from tidegate.spark.batch.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """One micro-batch that has run to its end."""

    segment: str
    plan: BatchPlan
    replayed: bool
    """Whether an earlier try had written its plan."""
    started_s: float
    ended_s: float
    steps_s: Mapping[Step, float]
    """How long each step took."""
    reports: tuple[TaskReport, ...]
    executors: int
    sources: tuple[SourceCount, ...] = ()
    """Rows offered and kept, per source."""
    written: Mapping[str, int] = field(default_factory=dict)
    """Rows that it wrote into each channel; a channel that got none is left out."""
    traces: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """The traces that these rows carry."""

    previews_s: Mapping[str, float] = field(default_factory=dict)
    """How long it took to count the rows of each operator that was previewed."""

    @property
    def duration_s(self) -> float:
        """From the start of the callback to its end, whatever the wall clock did meanwhile."""
        return sum(self.steps_s.values()) or max(0.0, self.ended_s - self.started_s)

    def of(self, operator: str) -> list[TaskReport]:
        """The reports of one operator."""
        return [report for report in self.reports if report.operator == operator]

    def in_front_of(self, operator: str) -> list[TaskReport]:
        """The reports of the tasks that combined its rows; none where nothing was combined."""
        name = combining(operator)
        return [report for report in self.reports if report.operator == name]

    def combines(self, operator: str) -> bool:
        """Whether its rows were combined before they were sent to its tasks."""
        entry = self.plan.operators.get(operator)
        return entry is not None and entry.combine
