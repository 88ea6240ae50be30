"""Decides how the rows of a map are dealt to its tasks, where executors differ in speed.

Spark runs the tasks of a map on any free core, so by itself no task has a speed, and rows are dealt
in turn. That is the maximum flow through tasks that are equally fast. If some executors are clearly
slower, the batch waits for them. Then the tasks are kept on their executors, at first with equal
shares. As soon as it is known which task is how fast, the backlog follows the augmenting paths of
`models/flow/deal.py`.
"""

import numpy as np

from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.models.flow.deal import redealt

_UNEVEN = 1.25
"""From this ratio of the fastest to the slowest executor on, the tasks are kept in their places.
Keeping them costs about a fifth of a small batch."""
_EVEN = 1.1
"""Below this ratio they need not be kept."""
_TICKS = 3
"""Speeds must have differed for so many ticks with rows."""
_EVEN_TICKS = 30
"""And have been alike for so many before the tasks are let go again."""
_WORTH = 0.05
"""Shares are changed for at least this much more capacity."""


class Dealer:
    """The deals of one pipeline's maps."""

    def __init__(self) -> None:
        self._ticks: dict[str, int] = {}
        """For how many ticks each map has been uneven, or even while its tasks are kept."""

    def deals(self, measurement: Measurement) -> dict[str, tuple[float, ...]]:
        """New shares for the maps that need them."""
        found = {}
        for one in measurement.operators:
            if one.rows <= 0 or (one.route and not one.dealt):  # rows follow their keys
                continue
            shares = self._shares(one)
            if shares is not None:
                self._ticks[one.name] = 0
                found[one.name] = shares
        return found

    def _shares(self, one: OperatorMeasurement) -> tuple[float, ...] | None:
        """The new shares of a map; None if they stay as they are.

        Without the speed of every task there is nothing to deal by: one executor runs them all, or
        there is one task. Tasks that are kept in their places are then let go as if all were alike.
        """
        if one.tasks < 2 or len(one.task_rates) != one.tasks or min(one.task_rates) <= 0.0:
            let_go = one.dealt and self._lasts(one.name, True, _EVEN_TICKS)
            return () if let_go else None
        ratio = max(one.task_rates) / min(one.task_rates)
        if not one.route:
            even = tuple([1.0 / one.tasks] * one.tasks)
            return even if self._lasts(one.name, ratio >= _UNEVEN, _TICKS) else None
        now = np.bincount(np.array(one.route), minlength=one.tasks) / len(one.route)
        better, gain = redealt(now.tolist(), one.task_rates)
        if gain >= _WORTH:
            return tuple(round(share, 4) for share in better.tolist())
        return () if self._lasts(one.name, ratio <= _EVEN, _EVEN_TICKS) else None

    def _lasts(self, name: str, holds: bool, ticks: int) -> bool:
        """Whether something has held for so many ticks in a row."""
        self._ticks[name] = self._ticks.get(name, 0) + 1 if holds else 0
        return self._ticks[name] >= ticks
