"""Learns the cost of a micro-batch, and remembers batches by kind so that a surge is not forgotten.

A learner that only discounts old batches forgets the cost per task while the number of tasks stays
the same, and the work per row while the load does. Here batches of one kind (the same tasks, a size
within a factor of 1.4) share a cell. A new batch updates its own cell only; the others lose weight
slowly with age. The fit is a least-squares fit of the relative errors of the cells, because a
batch's noise is proportional to its duration. A weak prior decides what the cells cannot.

Where batches tell what their duration is made of (`ToldParts`), the work of the tasks and the rest
are fitted apart. A batch that follows a slow one has more rows because of that, so in a fit of the
duration alone a slow minute of the machine would look like costly rows. And one number of tasks is
enough then to predict others: the time that starting one more task takes is told, not guessed.

What the driver has left over from the batch before (clean-up, listeners, reports) runs beside the
tasks of a batch. Tasks that take less time than this do not make the batch shorter: the rest of the
work is then in the way of planning the next batch. So D = a0 + a1 k + max((1 - g) S, L), with S the
time of the tasks and L that of the work beside them, about 0.15 s on two cores, and a small g.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.imbalance import chance_spread
from tidegate.models.microbatch.least_squares import NOISE, fit_line, fit_parts, fit_whole

_RENEWAL = 0.25
"""Weight of a new batch in its cell's average."""
_MOST_BATCHES = 8.0
"""A cell weighs as much as this many batches at most, so that no kind outvotes the others."""
_MOST_CELLS = 48
_YOUNGEST_S = 10.0
"""The shortest memory, which a pipeline has when it starts."""
_PER_TASK_SHARE, _PER_TASK_SPREAD = 0.03, 0.1
"""Prior mean and standard deviation of a1 k, as shares of the batch's duration."""
_LEAST_FIXED = 0.1
"""At least this share of the shortest batch is fixed cost, not work on rows."""
_WORK_SPREAD = 0.4
"""Prior relative error of the work per row that the tasks' busy time suggests."""

_USUAL_CHANCE = 0.6
"""Prior of the imbalance by chance, in multiples of that of rows that fall on tasks at random; it
is below 1 where some operators of a segment deal their rows out evenly."""


@dataclass(frozen=True, slots=True)
class ToldParts:
    """What a batch tells of its duration."""

    slowest_s: float
    """The slowest task of each stage: delta (b0 + w N / k)."""
    beside_s: float
    """The part of `slowest_s` outside the user's functions, whatever the number of rows."""
    starting_s: float
    """Starting the tasks one after the other: about a1 k."""


@dataclass(slots=True)
class _Cell:
    tasks: int
    weighted_rows: float
    """The average of delta N: the batch's rows times its imbalance."""
    duration_s: float
    batches: float
    at_s: float
    rows: float = 0.0
    slowest_s: float = 0.0
    beside_s: float = 0.0
    starting_s: float = 0.0
    """These three are zero in a cell whose batches did not tell them."""


class BatchMemory:
    """Observes batches and fits the cost of a batch; old cells lose weight over `memory_s`.

    In a young pipeline the memory is shorter, a third of its age: the first batches ran while the
    JVM was still compiling, and took several times as long as later ones.
    """

    def __init__(self, memory_s: float = 1800.0) -> None:
        self._memory_s = memory_s
        self._first_s: float | None = None
        self._cells: dict[tuple[int, int], _Cell] = {}
        self._last: _Cell | None = None
        self._fitted_s = -math.inf
        self._recalled = False
        """Whether the times of all cells are relative to the start of this run."""

    @property
    def kinds(self) -> int:
        """How many kinds of batches have a cell."""
        return len(self._cells)

    def learned(self) -> dict[str, Any]:
        """The cells as plain values, their times relative to the last fit."""
        if self._last is None or self._first_s is None:
            return {}
        cells = list(self._cells.values())
        now_s = max(self._fitted_s, *(cell.at_s for cell in cells))
        return {
            "cells": [{**asdict(cell), "at_s": cell.at_s - now_s} for cell in cells],
            "last": next((i for i, cell in enumerate(cells) if cell is self._last), 0),
            "since_s": now_s - self._first_s,
        }

    def recall(self, learned: Mapping[str, Any], weight: float) -> None:
        """Begin with the cells of an earlier run, with a share of their weight.

        Their times are taken to end where this run begins, which its first batch tells.
        """
        known = {one.name for one in fields(_Cell)}
        cells = [
            _Cell(**{name: _number(value) for name, value in entry.items() if name in known})
            for entry in learned.get("cells", ())[:_MOST_CELLS]
        ]
        if not cells:
            return
        if min(cell.tasks for cell in cells) < 1:
            raise ValueError("a batch cannot have had fewer tasks than one")
        for cell in cells:
            cell.batches *= weight
        self._cells = {_kind(cell.tasks, cell.weighted_rows): cell for cell in cells}
        self._last = cells[min(int(learned.get("last", 0)), len(cells) - 1)]
        self._first_s = -_number(learned.get("since_s", 0.0))
        self._recalled = True

    def forget(self, weight: float) -> None:
        """Reduce the weight of all that was learned so far to a share of it."""
        for cell in self._cells.values():
            cell.batches *= weight

    def _continue(self, at_s: float) -> None:
        """Let recalled times end where this run begins."""
        if self._recalled and self._first_s is not None:
            for cell in self._cells.values():
                cell.at_s += at_s
            self._first_s += at_s
            self._fitted_s += at_s
        self._recalled = False

    def observe(
        self,
        *,
        rows: float,
        tasks: int,
        duration_s: float,
        imbalance: float,
        at_s: float,
        told: ToldParts | None = None,
    ) -> None:
        """Learn from a batch that ended at `at_s`."""
        self._continue(at_s - duration_s)
        if self._first_s is None:
            self._first_s = at_s - duration_s
        weighted = rows * imbalance
        kind = _kind(tasks, weighted)
        cell = self._cells.get(kind)
        if cell is None or (told is not None and cell.slowest_s == 0.0):
            cell = _Cell(tasks, weighted, duration_s, 0.0, at_s)
            self._cells[kind] = cell
            if len(self._cells) > _MOST_CELLS:
                oldest = min(self._cells, key=lambda key: self._cells[key].at_s)
                del self._cells[oldest]
        share = max(_RENEWAL, 1.0 / (cell.batches + 1.0))
        cell.weighted_rows += share * (weighted - cell.weighted_rows)
        cell.duration_s += share * (duration_s - cell.duration_s)
        cell.rows += share * (rows - cell.rows)
        if told is not None:
            cell.slowest_s += share * (told.slowest_s - cell.slowest_s)
            cell.beside_s += share * (told.beside_s - cell.beside_s)
            cell.starting_s += share * (told.starting_s - cell.starting_s)
        cell.batches = min(cell.batches + 1.0, _MOST_BATCHES)
        cell.at_s = at_s
        self._last = cell

    def fit(self, at_s: float, work_s: float | None, rowless_s: float = 0.0) -> BatchCost | None:
        """The cost as of `at_s`. `work_s` is the work per row by the tasks' busy time, if known.

        Without `work_s` all of a batch counts as work on rows, so that no core is released before
        it is known to be spare. `rowless_s` are core seconds of tasks for no row (F of the cost).
        The result is `None` before the first batch.
        """
        last = self._last
        at_s = self._fitted_s = 0.0 if self._recalled else at_s
        if last is None or last.weighted_rows <= 0.0 or last.duration_s <= 0.0:
            return None
        memory_s = self._span_s(at_s)
        if last.slowest_s > 0.0:
            told = [cell for cell in self._cells.values() if cell.slowest_s > 0.0]
            return _fit_parts(told, last, at_s, memory_s)
        cells = np.array(
            [
                (
                    cell.tasks,
                    cell.weighted_rows,
                    _apart_s(cell, rowless_s),
                    cell.batches,
                    cell.at_s,
                )
                for cell in self._cells.values()
            ]
        )
        most_s = _apart_s(last, rowless_s) * last.tasks / last.weighted_rows
        guess_s = most_s if work_s is None else min(work_s, most_s)
        guess_s = max(guess_s, 1e-3 * most_s)
        # The cost per task is part of the fixed cost, and the shortest batch is closest to that.
        # Subtract the work that busy time suggests, for the case that all batches were long.
        short = min(self._cells.values(), key=lambda cell: cell.duration_s)
        shortest_s = _apart_s(short, rowless_s)
        worked_s = 0.0 if work_s is None else guess_s * short.weighted_rows / short.tasks
        short_s = max(shortest_s - worked_s, _LEAST_FIXED * shortest_s, 1e-3)
        guess = np.array([0.0, _PER_TASK_SHARE * short_s / short.tasks, guess_s])
        strength = np.array(
            [
                0.0,
                (NOISE * short.tasks / (_PER_TASK_SPREAD * short_s)) ** 2,
                (NOISE / (_WORK_SPREAD * guess_s)) ** 2,
            ]
        )
        fixed_s, per_task_s, row_s = fit_whole(cells, at_s, memory_s, guess, strength)
        return BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=row_s, rowless_s=rowless_s)

    def chance(self, at_s: float) -> float:
        """c: the imbalance by chance, in multiples of that of rows that fall on tasks at random.

        delta - 1 is fitted by a constant and by c times what chance alone would give a batch of as
        many rows on as many tasks. A weak prior decides while all batches are alike.
        """
        cells = [cell for cell in self._cells.values() if cell.rows > 0.0]
        if not cells:
            return 0.0
        rows = np.array([cell.rows for cell in cells])
        alone = chance_spread([cell.tasks for cell in cells]) / np.sqrt(rows)
        beyond = np.array([cell.weighted_rows for cell in cells]) / rows - 1.0
        memory_s = self._span_s(at_s)
        weight = np.array([_weight(cell, at_s, memory_s) for cell in cells])
        return float(fit_line(alone, beyond, weight, np.ones(len(cells)), 1, _USUAL_CHANCE)[1])

    def _span_s(self, at_s: float) -> float:
        """The time in which a cell loses its weight: a third of the pipeline's age, up to a bound.

        In a young pipeline the first batches ran while the JVM was still compiling.
        """
        age_s = at_s - (at_s if self._first_s is None else self._first_s)
        return min(self._memory_s, max(_YOUNGEST_S, age_s / 3.0))


def _apart_s(cell: _Cell, rowless_s: float) -> float:
    """The duration of a cell's batches apart from the tasks' time for no row, on its cores."""
    return max(cell.duration_s - rowless_s / cell.tasks, _LEAST_FIXED * cell.duration_s)


def _weight(cell: _Cell, at_s: float, memory_s: float) -> float:
    return max(cell.batches * math.exp(-max(at_s - cell.at_s, 0.0) / memory_s), 1e-12)


def _number(value: Any) -> Any:
    """A number of a document; a ValueError if it is not a finite one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return value


def _kind(tasks: int, weighted_rows: float) -> tuple[int, int]:
    """Batches of one kind have the same tasks, and sizes within a factor of 1.4."""
    return tasks, round(2.0 * math.log2(weighted_rows)) if weighted_rows >= 1.0 else -1


def _fit_parts(cells: list[_Cell], last: _Cell, at_s: float, memory_s: float) -> BatchCost:
    """Fit the users' functions, S = delta (b0 + w N / k), and D = a0 + a1 k + max((1 - g) S, L).

    The prior of a1 is the time in which tasks were seen to start one after the other; b0 is small.
    """
    table = np.array(
        [
            (
                cell.tasks,
                cell.rows,
                max(cell.weighted_rows / max(cell.rows, 1e-9), 1.0),
                cell.duration_s,
                cell.slowest_s,
                cell.beside_s,
                cell.starting_s,
                _weight(cell, at_s, memory_s),
            )
            for cell in cells
        ]
    )
    task_s, row_s, fixed_s, per_task_s, least_s, saved = fit_parts(table)
    now = max(last.weighted_rows / max(last.rows, 1e-9), 1.0)
    counts = 1.0 - saved
    return BatchCost(
        fixed_s=fixed_s + counts * task_s * now,
        per_task_s=per_task_s,
        work_s=counts * row_s,
        least_s=least_s,
    )
