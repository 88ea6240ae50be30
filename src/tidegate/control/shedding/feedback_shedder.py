"""Shedding by feedback alone: the overload paper's controller, eq. 7, with its gain derived.

n(t+1) = n(t) + q n(t) (T - l(t-d)) / T, where n is the number of rows kept in a round, l the
measured latency and d the loop's delay in steps. Three things differ from the paper. The gain q
follows from the measured delay: the paper's fixed 0.1 every 250 ms violates its own proposition 1
for T = 3 s, where d is 12 and the bound 0.08. n never exceeds the rows offered: otherwise it would
wind up while there is no overload. And n starts from the model's estimate instead of from nothing.
"""

import math

from tidegate.control.shedding.overload_switch import Switch
from tidegate.control.shedding.shedder import LEAST_KEEP, Look, check_target, most_keep

PAPER_GAIN = 0.1
PAPER_INTERVAL_S = 0.25


def stable_below(delay_steps: int) -> float:
    """Proposition 1: the loop is stable for gains above 0 and below 2 / (2 d + 1)."""
    return 2.0 / (2.0 * delay_steps + 1.0)


def gain(delay_steps: int) -> float:
    """The fastest gain that does not overshoot: d^d / (d + 1)^(d + 1), about 1 / e of the bound.

    With this gain, z^(d+1) - z^d + q, the characteristic polynomial of the linear loop, has a
    double real root at d / (d + 1). A higher gain makes it a complex pair, and latency oscillates.
    """
    if delay_steps == 0:
        return 1.0
    d = float(delay_steps)
    return math.exp(d * math.log(d) - (d + 1.0) * math.log(d + 1.0))


def corrected(value: float, target_s: float, latency_s: float, q: float) -> float:
    """One step of eq. 7. The error is limited to one target, so that no step makes n negative."""
    error = max((target_s - latency_s) / target_s, -1.0)
    return value * (1.0 + q * error)


class FeedbackSteps:
    """Decides when results reflect the keep in force, and how many steps late they are."""

    def __init__(self) -> None:
        self._moved_s: float | None = None

    def delay_steps(self, look: Look, since_s: float) -> int | None:
        """The delay d of a step taken now; None when no step can be taken yet.

        A step needs new results. Their rows must not have waited for a round that began before
        shedding did (at `since_s`): such results still reflect a load that was not shed.
        """
        began_s = look.waits_since_s
        if began_s is None:
            began_s = look.at_s - look.delay_s
        if look.latency_s is None or began_s < since_s:
            return None
        step_s = look.at_s - (since_s if self._moved_s is None else max(self._moved_s, since_s))
        self._moved_s = look.at_s
        return math.ceil(look.delay_s / max(step_s, 1e-9) - 1e-9)


class FeedbackShedder:
    """Eq. 7 with a gain within proposition 1, clamped, and started from the model's estimate.

    It is switched off when there is no overload.
    """

    name = "feedback"

    def __init__(self, target_s: float) -> None:
        self._target_s = check_target(target_s)
        self._switch = Switch(target_s)
        self._steps = FeedbackSteps()
        self._rows: float | None = None

    def keep(self, look: Look) -> float:
        """Take a step of eq. 7 if there are new results; return n over the rows offered."""
        offered = max(look.outlook.offered_rows, 1e-9)
        if not self._switch.update(look):
            self._rows = None
            return 1.0
        if self._rows is None:
            self._rows = offered * most_keep(look.outlook.latency_s, self._target_s)
        delay_steps = self._steps.delay_steps(look, self._switch.since_s)
        if delay_steps is not None and look.latency_s is not None:
            q = gain(delay_steps)
            self._rows = corrected(self._rows, self._target_s, look.latency_s, q)
        self._rows = min(max(self._rows, LEAST_KEEP * offered), offered)
        return self._rows / offered


class PaperShedder:
    """Eq. 7 as printed in the paper, as a baseline.

    q is fixed, n is not clamped, it starts from the rows offered, and it is never switched off.
    """

    name = "paper"

    def __init__(self, target_s: float, q: float = PAPER_GAIN) -> None:
        self._target_s = check_target(target_s)
        self._q = q
        self._rows: float | None = None
        self._latency_s: float | None = None

    def keep(self, look: Look) -> float:
        """Take a step every time, with the newest latency there is."""
        offered = max(look.outlook.offered_rows, 1e-9)
        self._latency_s = look.latency_s if look.latency_s is not None else self._latency_s
        if self._rows is None:
            self._rows = offered
        elif self._latency_s is not None:
            error = (self._target_s - self._latency_s) / self._target_s
            # The paper's n is a number of rows, so at least one. It may exceed the rows offered.
            self._rows = max(self._rows * (1.0 + self._q * error), 1.0)
        return min(max(self._rows / offered, LEAST_KEEP), 1.0)
