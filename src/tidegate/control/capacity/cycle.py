"""The MST paper's scheduling cycle: plan every S minutes, at its start or U before it.

On a pipeline a step takes the place of a minute (`steps`).
"""

from dataclasses import dataclass

from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement


@dataclass(frozen=True, slots=True)
class Cycle:
    """S and U of the MST paper, in minutes; a policy is called once a minute."""

    minutes: int = 10
    startup_minutes: int = 2

    def minute_of(self, measurement: Measurement) -> int:
        """Minutes into the cycle at the end of this tick; 0 is where the next cycle begins."""
        return round(measurement.at_s / 60.0) % self.minutes


class PlanAhead:
    """A plan made U before its cycle: it adds machines at once, and removes them at its start.

    New machines take U to start, so they must be requested at t - U to be ready at t (MST fig. 4).
    Machines stop at once, so releasing them before t would take them from the running cycle.
    """

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self._planned: tuple[int, str] | None = None

    @property
    def plans_at(self) -> int:
        """The minute of the cycle at which the next one is planned."""
        return -self.cycle.startup_minutes % self.cycle.minutes

    def plan(self, machines: int, reason: str, measurement: Measurement) -> Decision:
        """At t - U: request additional machines now, or remember to release some later."""
        if machines > measurement.cores_asked:
            self._planned = None
            return Decision(cores=machines, reason=reason)
        self._planned = (machines, reason)
        return hold("the next plan needs fewer, which are released when it begins")

    def begin(self, measurement: Measurement, at_least: int = 0) -> Decision:
        """At t: release the machines that the plan does not need, but keep `at_least`."""
        if self._planned is None:
            return hold("what was planned is in force")
        machines, reason = self._planned
        self._planned = None
        machines = max(machines, at_least)
        if machines >= measurement.cores_asked:
            return hold("the plan needs all that there is")
        return Decision(cores=machines, reason=reason)
