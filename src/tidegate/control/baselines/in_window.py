"""Hands a policy the rates of a metrics window instead of those of a tick.

A tick in which a micro-batch ends has all of its rows, and the others have none. Autoscalers that
divide rates by busy time are made for rates over a window, so it is only fair to give them that.
"""

import dataclasses

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.learning.smoothing import Window
from tidegate.control.measurement import Measurement
from tidegate.control.policy import Policy
from tidegate.control.wrapper import Wrapper


class InWindow(Wrapper):
    """Averages arrivals, processed rows and busy cores over so many ticks."""

    def __init__(self, inner: Policy, ticks: int) -> None:
        super().__init__(inner)
        self._arrived, self._processed, self._busy = (Window(ticks) for _ in range(3))

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner decision on the means; all else is as it was measured in this tick."""
        busy = measurement.cores_busy
        means = dataclasses.replace(
            measurement,
            arrival_rate=self._arrived.update(measurement.arrival_rate),
            processed_rate=self._processed.update(measurement.processed_rate),
            cores_busy=None if busy is None else self._busy.update(busy),
        )
        return self._inner.decide(means, constraints)
