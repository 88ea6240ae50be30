"""Tells the ticks of a pipeline as minutes, to policies that count in minutes.

The policies of this folder are called once a minute, as in the paper. On a pipeline a step of some
seconds takes the place of a minute: the ticks of a step are folded into one measurement, its time
is told as so many minutes, and its backlog as what it would be after steps as long as minutes. So
the same policy object decides in both places.
"""

import math
from collections.abc import Sequence

from tidegate.control.capacity.batch_samples import ShownCapacity
from tidegate.control.measurement import Measurement

_MINUTE_S = 60.0
_MOST_AT_ONCE = 30
"""After a standstill, so many steps are made up for; what was longer ago matters to no plan."""


class StepFold:
    """Folds ticks into steps of `step_s` and counts them.

    None is left out, but for those of a standstill that are longer ago than the newest 30 steps.
    """

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        self._number: int | None = None
        self._ended_s = -math.inf
        self._rows = 0.0
        self._seconds = 0.0
        self._seen: list[ShownCapacity] = []
        self.samples: tuple[ShownCapacity, ...] = ()
        """What the batches of the last step have shown, one sample for each number of cores."""

    def add(
        self, measurement: Measurement, shown: Sequence[ShownCapacity]
    ) -> tuple[Measurement, ...]:
        """Add a tick; the steps that end with it, as minutes. Empty within a step."""
        now_s = measurement.at_s
        if self._number is None:
            # The first step begins with the end of this tick, so its rows belong to none.
            self._number = round(now_s / self._step_s)
            self._ended_s = now_s
            self._seen += shown
            return ()
        self._rows += measurement.arrival_rate * measurement.interval_s
        self._seconds += measurement.interval_s
        self._seen += shown
        since_s = now_s - self._ended_s
        if since_s < self._step_s - 0.5 * measurement.step_s:
            return ()
        ended = max(round(since_s / self._step_s), 1)
        first = self._number + 1 + max(ended - _MOST_AT_ONCE, 0)
        self._number += ended
        self._ended_s = now_s
        self.samples = _means(self._seen)
        # Of several steps that end with this tick, its batches ended in the last one.
        earlier = [self._minute(number, measurement, None) for number in range(first, self._number)]
        newest = self.samples[-1] if self.samples else None
        told = (*earlier, self._minute(self._number, measurement, newest))
        self._rows = self._seconds = 0.0
        self._seen.clear()
        return told

    def _minute(self, number: int, last: Measurement, shown: ShownCapacity | None) -> Measurement:
        """The measurement of a step.

        A minute is saturated when the load reaches the capacity that the batches on these cores
        have shown, or when they took too long. Its rate is then that capacity (MST III-B), and
        otherwise the load, with as many cores busy as it has of the capacity. A step in which no
        batch ended says nothing of capacity: a sample must not be learned once more with it.
        """
        rate = self._rows / self._seconds if self._seconds > 0.0 else last.arrival_rate
        cores, busy, saturated, processed = last.cores_granted, None, False, rate
        if shown is not None and shown.cores == sum(max(one.tasks, 1) for one in last.segments):
            cores, capacity = shown.cores, shown.rows_per_s
            saturated = shown.saturated or capacity <= rate
            busy = cores * min(rate / max(capacity, 1e-9), 1.0)
            processed = capacity if saturated else rate
        return Measurement(
            at_s=_MINUTE_S * number,
            interval_s=_MINUTE_S,
            arrival_rate=rate,
            processed_rate=processed,
            backlog_rows=last.backlog_rows * _MINUTE_S / self._step_s,
            cores_asked=last.cores_asked,
            cores_granted=cores,
            saturated=saturated,
            cores_busy=busy,
        )


def _means(seen: Sequence[ShownCapacity]) -> tuple[ShownCapacity, ...]:
    """The mean for each number of cores, the newest last: of saturated batches, if there were any.

    Batches vary more than intervals do, and MST's sample is that of an interval.
    """
    newest = list(dict.fromkeys(one.cores for one in reversed(seen)))
    found = []
    for cores in reversed(newest):
        mine = [one for one in seen if one.cores == cores]
        saturated = [one for one in mine if one.saturated]
        counted = saturated or mine
        mean = sum(one.rows_per_s for one in counted) / len(counted)
        found.append(ShownCapacity(cores, mean, bool(saturated)))
    return tuple(found)
