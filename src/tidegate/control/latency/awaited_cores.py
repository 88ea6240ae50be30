"""How long cores that were asked for still take to come.

What is known is how long grants took so far, and how long the present one has taken. Without the
first, or once that has passed, a wait is taken to be half over: what has taken a while takes as
long again, and at least until the next tick.
"""

from tidegate.control.measurement import Measurement


class AwaitedCores:
    """Sees every tick in time order, and knows since when cores are awaited."""

    def __init__(self) -> None:
        self._granted = 0
        self._since_s: float | None = None

    def observe(self, measurement: Measurement) -> None:
        """Add a tick. Cores that come begin a new wait for the others."""
        if measurement.cores_granted >= measurement.cores_asked:
            self._since_s = None
        elif self._since_s is None or measurement.cores_granted > self._granted:
            self._since_s = measurement.at_s
        self._granted = measurement.cores_granted

    def left_s(self, measurement: Measurement) -> float:
        """How long the next of them should still take."""
        if self._since_s is None:
            return 0.0
        waited_s = measurement.at_s - self._since_s
        usual_s = measurement.grant_s or 0.0
        return usual_s - waited_s if usual_s > waited_s else max(waited_s, measurement.step_s)
