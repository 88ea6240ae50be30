"""The MST paper's two references (V-A4): always enough for the peak, and perfect hindsight."""

from collections.abc import Sequence

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement


class StaticPeak:
    """Always keeps the machines that the largest load needs."""

    name = "static-peak"

    def __init__(self, machines: int) -> None:
        self._machines = machines

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Request the machines once."""
        if measurement.cores_asked == self._machines:
            return hold("the number is fixed")
        return Decision(cores=self._machines, reason="the peak load needs these machines")


class GroundTruth:
    """Knows the future: the fewest machines that sustain each minute.

    It is for backtests only, where its machines start and stop at once (m_t of eq. 23).
    """

    name = "ground-truth"

    def __init__(self, needed: Sequence[int]) -> None:
        self._needed = needed
        self._minute = 0

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Request the machines that the next minute needs."""
        self._minute += 1
        if self._minute >= len(self._needed):
            return hold("the trace is over")
        return Decision(cores=int(self._needed[self._minute]), reason="known in hindsight")
