"""The paper's two yardsticks (V-A4): all that the peak needs, always; and hindsight."""

from collections.abc import Sequence

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement


class StaticPeak:
    """Keeps what the largest load needs."""

    name = "static-peak"

    def __init__(self, machines: int) -> None:
        self._machines = machines

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Ask once."""
        if measurement.cores_asked == self._machines:
            return hold("static")
        return Decision(cores=self._machines, reason="what the peak load needs")


class GroundTruth:
    """Knows the future: the fewest machines that sustain each coming minute.

    Of use in a backtest only, where machines come and go at once for it (eq. 23's m_t).
    """

    name = "ground-truth"

    def __init__(self, needed: Sequence[int]) -> None:
        self._needed = needed
        self._minute = 0

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """What the next minute needs."""
        self._minute += 1
        if self._minute >= len(self._needed):
            return hold("the trace is over")
        return Decision(cores=int(self._needed[self._minute]), reason="known in hindsight")
