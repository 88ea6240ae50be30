"""Remembers micro-batches by kind, so that a steady hour does not wash out what a surge taught.

A learner that fades old batches forgets the cost per task while the number of tasks stays, and the
work per row while the load stays. Here batches of one kind (tasks, and size within a factor of 1.4)
share a cell; a new batch renews its own cell and leaves the others as they were, fading slowly by
age. The fit is least squares over the cells by relative error, because a batch's noise is in
proportion to its duration, around a weak guess where the cells cannot tell.
"""

import math
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np

from tidegate.models.microbatch.batch_cost import BatchCost

_RENEWAL = 0.25
"""Share of a cell that a new batch renews."""
_MOST_BATCHES = 8.0
"""A cell stands for so many batches at most: many of one kind do not outvote the other kinds."""
_MOST_CELLS = 48
_YOUNGEST_S = 10.0
"""The shortest memory, of a pipeline that has just begun."""
_NOISE = 0.08
"""A batch's spread around its model, as a share of its duration: the scale of the guesses."""
_PER_TASK_SHARE, _PER_TASK_SPREAD = 0.03, 0.1
"""Guess of a1 k as a share of the duration, and how wrong it may be."""
_LEAST_FIXED = 0.1
"""Of the shortest batch, the share that is no work on rows, at least."""
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
    """Batches in, the cost of a batch out; older kinds fade over `memory_s`.

    A young pipeline fades faster, over a third of its age: its first batches ran while the JVM was
    still compiling, and cost several times what later ones do.
    """

    def __init__(self, memory_s: float = 1800.0) -> None:
        self._memory_s = memory_s
        self._first_s: float | None = None
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
        if self._first_s is None:
            self._first_s = at_s - duration_s
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

    def fit(self, at_s: float, work_s: float | None) -> BatchCost | None:
        """The cost as of `at_s`; `work_s` is the work per row that busy time suggests, if known.

        Without it a batch is taken to be all work: then nothing is given away before it is known
        to be spare. `None` before the first batch.
        """
        last = self._last
        if last is None or last.weighted_rows <= 0.0 or last.duration_s <= 0.0:
            return None
        cells = np.array(
            [
                (cell.tasks, cell.weighted_rows, cell.duration_s, cell.batches, cell.at_s)
                for cell in self._cells.values()
            ]
        )
        most_s = last.duration_s * last.tasks / last.weighted_rows
        guess_s = most_s if work_s is None else min(work_s, most_s)
        guess_s = max(guess_s, 1e-3 * most_s)
        # The shortest batch is nearest to its fixed part, of which the cost per task is one; how
        # near, the work that busy time suggests tells where all that is known is a long batch.
        short = min(self._cells.values(), key=lambda cell: cell.duration_s)
        worked_s = 0.0 if work_s is None else guess_s * short.weighted_rows / short.tasks
        short_s = max(short.duration_s - worked_s, _LEAST_FIXED * short.duration_s, 1e-3)
        guess = np.array([0.0, _PER_TASK_SHARE * short_s / short.tasks, guess_s])
        strength = np.array(
            [
                0.0,
                (_NOISE * short.tasks / (_PER_TASK_SPREAD * short_s)) ** 2,
                (_NOISE / (_WORK_SPREAD * guess_s)) ** 2,
            ]
        )
        age_s = at_s - (at_s if self._first_s is None else self._first_s)
        memory_s = min(self._memory_s, max(_YOUNGEST_S, age_s / 3.0))
        fixed_s, per_task_s, row_s = _fit(cells, at_s, memory_s, guess, strength)
        return BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=row_s)


@nb.njit(cache=True)
def _fit(
    cells: Any, at_s: float, memory_s: float, guess: Any, strength: Any
) -> tuple[float, float, float]:
    """Ridge regression around the guess, the best among the costs with none below zero.

    Scaled by the moments' diagonal, because seconds per row and per task differ by orders.
    """
    moments = np.diag(strength)
    product = strength * guess
    for row in range(len(cells)):
        tasks, weighted_rows, duration_s, batches, seen_s = cells[row]
        weight = batches * math.exp(-max(at_s - seen_s, 0.0) / memory_s)
        weight /= max(duration_s, 1e-3) ** 2
        x = np.array([1.0, tasks, weighted_rows / tasks])
        moments += weight * np.outer(x, x)
        product += weight * duration_s * x
    scale = np.sqrt(np.diag(moments))
    best = np.zeros(3)
    least = np.inf
    for free in range(1, 8):
        chosen = np.array([index for index in range(3) if free >> index & 1])
        size = len(chosen)
        small = np.empty((size, size))
        right = np.empty(size)
        for i in range(size):
            right[i] = product[chosen[i]] / scale[chosen[i]]
            for j in range(size):
                one, other = chosen[i], chosen[j]
                small[i, j] = moments[one, other] / (scale[one] * scale[other])
            small[i, i] += 1e-12
        solved = np.linalg.solve(small, right)
        costs = np.zeros(3)
        for i in range(size):
            costs[chosen[i]] = solved[i] / scale[chosen[i]]
        # The error without its constant part, which is the same for all.
        error = costs @ moments @ costs - 2.0 * (costs @ product)
        if costs.min() >= 0.0 and error < least:
            least = error
            best = costs
    return best[0], best[1], best[2]
