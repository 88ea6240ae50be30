"""A finished micro-batch as the effect of cores is judged by: its rows, tasks and times."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate.control.learning.outliers import COLD, FIRST, NEW_TASKS
from tidegate.control.measurement import Measurement, SegmentMeasurement

_UNFIT = (FIRST, COLD, NEW_TASKS)
"""Batches that start processes or load code last long whatever their cores are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBatch:
    """One batch, with the core time of its tasks where that is known."""

    rows: int
    tasks: int
    duration_s: float
    imbalance: float
    parts_s: Mapping[str, float]
    busy_s: float | None
    """Core seconds of its tasks; None: not told."""
    fit: bool = True
    """Whether it tells how fast the segment is; if not, it only tells that its tasks ran."""

    @property
    def busy_cores(self) -> float | None:
        """Cores that its tasks kept busy, on average over its duration."""
        return None if self.busy_s is None else self.busy_s / max(self.duration_s, 1e-9)

    def part(self, *names: str) -> float:
        """The share of its duration that these parts took."""
        told = sum(self.parts_s.get(name, 0.0) for name in names)
        return told / max(self.duration_s, 1e-9)


def judged_batches(
    measurement: Measurement,
    segment: SegmentMeasurement,
    tasks_before: int | None,
    had_cores: Callable[[float], bool] = lambda began_s: True,
) -> list[JudgedBatch]:
    """The batches of a tick that had rows, and cores for all their tasks, oldest first.

    `had_cores` tells whether there were enough cores at a time. A batch with more tasks than the
    one before it, which had `tasks_before`, is not fit to tell a speed: its new Python workers had
    to start first. Where operators report their time, it is divided among the tick's batches by
    rows.
    """
    rows = sum(batch.rows for batch in segment.batches)
    inside = [one.busy_s for one in measurement.operators if one.segment == segment.name]
    found = []
    for batch in segment.batches:
        grown = tasks_before is not None and batch.tasks > tasks_before
        tasks_before = batch.tasks
        began_s = batch.ended_s - batch.duration_s
        if batch.rows <= 0 or batch.duration_s <= 0.0 or not had_cores(began_s):
            continue
        busy_s = batch.busy_s
        if busy_s is None and inside:
            busy_s = sum(inside) * batch.rows / rows
        found.append(
            JudgedBatch(
                rows=batch.rows,
                tasks=batch.tasks,
                duration_s=batch.duration_s,
                imbalance=max(batch.imbalance, 1.0),
                parts_s=batch.parts_s,
                busy_s=busy_s,
                fit=not grown and batch.outlier not in _UNFIT,
            )
        )
    return found
