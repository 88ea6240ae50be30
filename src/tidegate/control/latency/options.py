"""The options of the latency policy."""

import math
from dataclasses import dataclass

from tidegate.errors import AskedWrongly


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOptions:
    """The policy's numbers; docs/decisions.md explains each."""

    catch_up_s: float = 5.0
    """Time within which a backlog is to be drained."""
    scale_in_after_s: float = 10.0
    """How long fewer cores must have been enough before some are released; three times the observed
    time to grant cores, when that is longer. After a fall of the load, down to a tenth of it."""
    aim: float = 0.9
    """Share of the target that a change plans for. The rest is a band in which nothing changes."""
    slow_aim: float = 0.85
    """The same where cores take longer to be granted than a backlog may last: a plan that proves
    too tight cannot be corrected in time there."""
    coverage: float = 0.9
    """Share of forecasts whose load must stay within the forecast's margin."""
    surge_factor: float = 2.0
    """The surge that a reserve of cores is kept for while nothing is known: a load that rises by
    this factor from one batch to the next still meets the target in that very batch. Less is kept
    where the surges so far make that cheaper, more where they went further. 1 keeps no reserve."""
    least_saving: float = 0.1
    """Share of the cores that a scale-in must save; at least one core."""
    assumed_grant_s: float = 0.0
    """Time to grant cores that is assumed until it has been observed."""

    def __post_init__(self) -> None:
        positive = (self.catch_up_s, self.aim, 1.0 - self.aim + 1e-12, 1.0 - self.coverage)
        if not 1.0 <= self.surge_factor < math.inf:
            raise AskedWrongly(
                f"the surge factor cannot be {self.surge_factor:g}; give a factor of 1 or more"
            )
        if min(positive) <= 0.0 or min(self.scale_in_after_s, self.coverage) < 0.0:
            raise AskedWrongly(
                "catch_up_s must be above 0, scale_in_after_s at least 0, and aim and coverage"
                " between 0 and 1"
            )

    def aim_at(self, observed_s: float | None) -> float:
        """The aim for an observed time to grant cores."""
        slow = self.grant_s(observed_s) > self.catch_up_s
        return min(self.aim, self.slow_aim) if slow else self.aim

    def grant_s(self, observed_s: float | None) -> float:
        """The time to grant cores: the observed one, or the assumed one before that."""
        return self.assumed_grant_s if observed_s is None else observed_s
