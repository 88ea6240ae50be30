"""The work of a row in a query of others, from how long the tasks of its batches ran.

The tasks of a batch run for F + w N core seconds. F is what its tasks cost without any row: a query
with 200 shuffle partitions starts 200 tasks for every batch, and commits as many state stores.
Taken for work on rows, that cost would make a load that doubles look twice as expensive. Batches of
one size cannot tell F and w apart; until there are others, each task is assumed to cost a little.
"""

from collections import deque

import numpy as np

from tidegate.models.microbatch.least_squares import fit_line

TASK_S = 0.02
"""The assumed time of a task without rows: it is started, and commits what it has."""
_MEMORY = 24
_FADING = 0.85
"""The weight of each batch, as a share of that of the next."""
_LEAST_SHARE = 0.05
"""Rows are at least this share of the work of the newest batch, whatever the fit says."""


class RowWork:
    """Observes the batches of one query, and tells the core seconds of a row."""

    def __init__(self) -> None:
        self._batches: deque[tuple[float, float, int]] = deque(maxlen=_MEMORY)
        """Rows, core seconds and tasks of the last batches."""

    def observe(self, rows: int, busy_s: float, tasks: int) -> None:
        """Add a batch."""
        if rows > 0 and busy_s > 0.0:
            self._batches.append((float(rows), busy_s, tasks))

    @property
    def work_s(self) -> float | None:
        """w; None before the first batch."""
        if not self._batches:
            return None
        rows, busy_s, tasks = (np.array(column) for column in zip(*self._batches, strict=True))
        weight = _FADING ** np.arange(len(rows) - 1.0, -1.0, -1.0)
        started_s = min(TASK_S * float(tasks[-1]), 0.5 * float(busy_s[-1]))
        _, row_s = fit_line(rows, busy_s, weight, busy_s, 0, started_s)
        return max(float(row_s), _LEAST_SHARE * float(busy_s[-1] / rows[-1]))
