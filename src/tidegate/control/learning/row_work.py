"""The work of a row in a query of others, from how long the tasks of its batches ran.

The tasks of a batch run for F + w N core seconds. F is what its tasks cost without any row: a query
with 200 shuffle partitions starts 200 tasks for every batch, and commits as many state stores.
Taken for work on rows, that cost would make a load that doubles look twice as expensive. Batches of
one size cannot tell F and w apart. But the stages of one batch can: where a stage has few rows for
its tasks, what these ran for is not for rows.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.models.microbatch.least_squares import fit_line

TASK_S = 0.02
"""The assumed time of a task without rows: it is started, and commits what it has."""
_ASSUMED = 0.5
"""That is assumed of at most this share of what the tasks ran for."""
_UNSEEN = 0.2
"""The share of the rest that may still be without rows: the bounds above are cautious."""
_DEARER = 3.0
"""A row behind a shuffle is assumed to cost at most so many times as much as reading one."""
_MEMORY = 24
_FADING = 0.8
"""The weight of each batch, as a share of that of the next."""
_LEAST_SHARE = 0.02
"""Rows are at least this share of the work of the newest batch, whatever the fit says."""


@dataclass(frozen=True, slots=True)
class StageRun:
    """What one stage of a batch did."""

    tasks: int
    busy_s: float
    """The sum of its tasks' run times."""
    read_rows: int = 0
    """Rows that it read from a source."""
    shuffled_rows: int = 0
    """Rows that it got from another stage."""


def rowless_s(stages: Sequence[StageRun]) -> float:
    """Core seconds that the tasks of these stages would have taken without any row, at least.

    The stage that reads tells an upper bound of what a row costs. Other stages may be dearer by
    some factor; what their tasks ran beyond that is not for rows.
    """
    busy_s, tasks = (sum(one.busy_s for one in stages), sum(one.tasks for one in stages))
    reading = [one for one in stages if one.read_rows > 0]
    rows = sum(one.read_rows for one in reading)
    beyond_s = 0.0
    if rows:
        most_s = _DEARER * sum(one.busy_s for one in reading) / rows
        others = (one for one in stages if one.read_rows == 0)
        beyond_s = sum(max(one.busy_s - most_s * one.shuffled_rows, 0.0) for one in others)
    return max(min(TASK_S * tasks, _ASSUMED * busy_s), beyond_s)


class RowWork:
    """Observes the batches of one query, and tells the core seconds of a row."""

    def __init__(self) -> None:
        self._batches: deque[tuple[float, float, float]] = deque(maxlen=_MEMORY)
        """Rows, core seconds, and those without rows, of the last batches."""

    def observe(self, rows: int, busy_s: float, without_rows_s: float) -> None:
        """Add a batch."""
        if rows > 0 and busy_s > 0.0:
            self._batches.append((float(rows), busy_s, without_rows_s))

    @property
    def work_s(self) -> float | None:
        """w; None before the first batch."""
        return self._fitted()[0] if self._batches else None

    @property
    def rowless_s(self) -> float:
        """F; 0 before the first batch."""
        return self._fitted()[1] if self._batches else 0.0

    def _fitted(self) -> tuple[float, float]:
        rows, busy_s, rowless = (np.array(column) for column in zip(*self._batches, strict=True))
        weight = _FADING ** np.arange(len(rows) - 1.0, -1.0, -1.0)
        worked_s = np.maximum(busy_s - rowless, 0.0)
        unseen_s = _UNSEEN * float(np.average(worked_s, weights=weight))
        _, row_s = fit_line(rows, worked_s, weight, busy_s, 0, unseen_s)
        row_s = max(float(row_s), _LEAST_SHARE * float(busy_s[-1] / rows[-1]))
        return row_s, float(np.average(np.maximum(busy_s - row_s * rows, 0.0), weights=weight))
