"""The paper's scheduling cycle: plan every S minutes, ahead or not, and hold in between."""

from dataclasses import dataclass

from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement


@dataclass(frozen=True, slots=True)
class Cycle:
    """S and U of the MST paper, in minutes (one call of a policy a minute)."""

    minutes: int = 10
    startup_minutes: int = 2

    def minute_of(self, measurement: Measurement) -> int:
        """Minutes into the cycle at the end of this tick; 0 is where the next cycle begins."""
        return round(measurement.at_s / 60.0) % self.minutes


class Ahead:
    """Carries a plan made U before the cycle: more at once, fewer when the cycle begins.

    New machines take U to start, so they must be asked for at t - U to be there at t (MST fig. 4);
    machines leave at once, so letting go before t would take them from the running cycle.
    """

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self._planned: tuple[int, str] | None = None

    @property
    def plans_at(self) -> int:
        """Minute of the cycle at which to plan the next one."""
        return self.cycle.minutes - self.cycle.startup_minutes

    def plan(self, machines: int, reason: str, measurement: Measurement) -> Decision:
        """At t - U: ask for more now, keep fewer for later."""
        if machines > measurement.cores_asked:
            self._planned = None
            return Decision(cores=machines, reason=reason)
        self._planned = (machines, reason)
        return hold("the plan lets machines go when the cycle begins")

    def begin(self, measurement: Measurement, at_least: int = 0) -> Decision:
        """At t: let go what the plan does not need, but keep `at_least`."""
        if self._planned is None:
            return hold("the plan is in force")
        machines, reason = self._planned
        self._planned = None
        machines = max(machines, at_least)
        if machines >= measurement.cores_asked:
            return hold("as many as the plan needs are up")
        return Decision(cores=machines, reason=reason)
