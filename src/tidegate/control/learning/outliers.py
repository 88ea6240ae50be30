"""Finds batches that are no guide to the next one: first batches, new tasks, odd durations."""

import math
import statistics
from collections import deque
from collections.abc import Mapping
from typing import Any

from tidegate.control.measurement import BatchMeasurement

_MEMORY = 31
_FEWEST = 5
_SPREADS = 5.0
"""A batch is odd when it lies more than this many robust deviations from the others."""
_LEAST_SPREAD = 0.05
"""The least robust deviation to assume, in the logarithm of measured over expected duration."""
_IN_A_ROW = 3
"""This many odd batches in a row on the same side are no accident: the world has changed, and they
count."""


_LARGER = 1.4
"""A batch that is larger than all others by this factor, and took less time than expected, is no
accident: many things make a batch long, but only cheap rows make a large one short."""

FIRST = "first"
"""Workers were started and code was compiled, which is no cost of its rows."""
COLD = "cold"
"""One of the next batches of a query of others, whose executors still load and compile code. It is
learned from only until a warm one has ended."""
NEW_TASKS = "new tasks"
"""Python workers had to be started, so the batch took a little longer than the next will."""
NEW_EXECUTORS = "new executors"
"""It was the first with executors that had just come, which load and compile code first."""


WAITING_TASKS = "tasks that wait for cores"
"""It had more tasks than cores, because more were on their way."""


class Outliers:
    """Sees the batches of one segment in order, and says which to leave out of learning.

    The first batch starts Python workers and compiles code; so does a batch with more tasks than
    the one before it. Other batches are compared with the duration that the model expected, by
    median and MAD, so that a batch is not odd merely for being large.
    """

    def __init__(self) -> None:
        self._ratios: deque[float] = deque(maxlen=_MEMORY)
        self._tasks: int | None = None
        self._odd_in_a_row = 0
        self._side = 0.0
        self._largest = 0
        """Rows of the largest batch so far."""

    def reason(self, batch: BatchMeasurement, expected_s: float | None) -> str | None:
        """Why the batch should be left out of learning, or None."""
        before, self._tasks = self._tasks, batch.tasks
        if batch.outlier is not None:
            return batch.outlier
        if before is None or batch.batch_id == 0:
            return FIRST
        if batch.tasks > before:
            return NEW_TASKS
        if expected_s is None or expected_s <= 0.0 or batch.duration_s <= 0.0:
            return None
        largest, self._largest = self._largest, max(self._largest, batch.rows)
        if 0 < largest * _LARGER < batch.rows and batch.duration_s < expected_s:
            return None
        return self._odd(math.log(batch.duration_s / expected_s))

    def learned(self) -> dict[str, Any]:
        """How measured and expected durations compared so far."""
        return {"ratios": list(self._ratios)}

    def recall(self, learned: Mapping[str, Any]) -> None:
        """Begin with the comparisons of an earlier run; the next batch is a first one again."""
        self._ratios.extend(float(ratio) for ratio in learned.get("ratios", ())[-_MEMORY:])

    def _odd(self, ratio: float) -> str | None:
        others = sorted(self._ratios)
        self._ratios.append(ratio)
        if len(others) < _FEWEST:
            return None
        middle = statistics.median(others)
        deviation = statistics.median([abs(other - middle) for other in others])
        spread = max(1.4826 * deviation, _LEAST_SPREAD)
        off = (ratio - middle) / spread
        if abs(off) <= _SPREADS:
            self._odd_in_a_row = 0
            return None
        side = math.copysign(1.0, off)
        self._odd_in_a_row = self._odd_in_a_row + 1 if side == self._side else 1
        self._side = side
        if self._odd_in_a_row >= _IN_A_ROW:
            return None
        return f"{math.exp(ratio - middle):.2g} times as long as such batches take"
