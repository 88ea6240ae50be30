"""Remembers micro-batches by kind, so that a steady hour does not wash out what a surge taught.

A learner that fades old batches forgets the cost per task while the number of tasks stays, and the
work per row while the load stays. Here batches of one kind (tasks, and size within a factor of 1.4)
share a cell; a new batch renews its own cell and leaves the others as they were, fading slowly by
age. The fit is least squares over the cells by relative error, because a batch's noise is in
proportion to its duration, around a weak guess where the cells cannot tell.
"""

import math
from dataclasses import dataclass

from tidegate.models.batch_learner import BatchFit, BatchLearner

_RENEWAL = 0.25
"""Share of a cell that a new batch renews."""
_MOST_BATCHES = 8.0
"""A cell stands for so many batches at most: many of one kind do not outvote the other kinds."""
_MOST_CELLS = 48
_NOISE = 0.08
"""A batch's spread around its model, as a share of its duration: the scale of the guesses."""
_PER_TASK_SHARE, _PER_TASK_SPREAD = 0.03, 0.1
"""Guess of a1 k as a share of the duration, and how wrong it may be."""
_WORK_SPREAD = 0.4
"""How wrong the work per row from busy time may be, as a share of it."""


@dataclass(slots=True)
class _Cell:
    tasks: int
    weighted_rows: float
    """delta N, averaged."""
    duration_s: float
    batches: float
    at_s: float


class BatchMemory:
    """Batches in, the cost of a batch out; older kinds fade over `memory_s`."""

    def __init__(self, memory_s: float = 1800.0) -> None:
        self._memory_s = memory_s
        self._cells: dict[tuple[int, int], _Cell] = {}
        self._last: _Cell | None = None

    @property
    def kinds(self) -> int:
        """How many kinds of batches are remembered."""
        return len(self._cells)

    def observe(
        self, *, rows: float, tasks: int, duration_s: float, imbalance: float, at_s: float
    ) -> None:
        """One batch that ended at `at_s`."""
        weighted = rows * imbalance
        size = round(2.0 * math.log2(weighted)) if weighted >= 1.0 else -1
        cell = self._cells.get((tasks, size))
        if cell is None:
            cell = _Cell(tasks, weighted, duration_s, 0.0, at_s)
            self._cells[tasks, size] = cell
            if len(self._cells) > _MOST_CELLS:
                oldest = min(self._cells, key=lambda key: self._cells[key].at_s)
                del self._cells[oldest]
        share = max(_RENEWAL, 1.0 / (cell.batches + 1.0))
        cell.weighted_rows += share * (weighted - cell.weighted_rows)
        cell.duration_s += share * (duration_s - cell.duration_s)
        cell.batches = min(cell.batches + 1.0, _MOST_BATCHES)
        cell.at_s = at_s
        self._last = cell

    def fit(self, at_s: float, work_s: float | None) -> BatchFit | None:
        """The cost as of `at_s`; `work_s` is the work per row that busy time suggests, if known.

        Without it a batch is taken to be all work: then nothing is given away before it is known
        to be spare. `None` before the first batch.
        """
        last = self._last
        if last is None or last.weighted_rows <= 0.0 or last.duration_s <= 0.0:
            return None
        learner = BatchLearner()
        for cell in self._cells.values():
            age = math.exp(-max(at_s - cell.at_s, 0.0) / self._memory_s)
            learner.observe(
                rows=cell.weighted_rows,
                tasks=cell.tasks,
                duration_s=cell.duration_s,
                weight=cell.batches * age / max(cell.duration_s, 1e-3) ** 2,
            )
        spread_rows = last.weighted_rows / last.tasks
        most_s = last.duration_s / spread_rows
        guess_s = most_s if work_s is None else min(work_s, most_s)
        guess_s = max(guess_s, 1e-3 * most_s)
        # The shortest batch is nearest to its fixed part, of which the cost per task is one.
        short = min(self._cells.values(), key=lambda cell: cell.duration_s)
        per_task_s = _PER_TASK_SHARE * short.duration_s / short.tasks
        learner.believe(
            (0.0, per_task_s, guess_s),
            (
                0.0,
                (_NOISE * short.tasks / (_PER_TASK_SPREAD * short.duration_s)) ** 2,
                (_NOISE / (_WORK_SPREAD * guess_s)) ** 2,
            ),
        )
        return learner.fit()
