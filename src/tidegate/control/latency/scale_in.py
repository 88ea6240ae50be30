"""When cores may be released: only with patience, so that they are not asked for again soon.

Fewer cores must have been enough for a while, and releasing the rest must save enough to be worth a
change. Waiting costs the cores that are held meanwhile. So after a fall of the load the wait is
shorter, the more cores it would release: down to a tenth, for 60 % of them or more. Where cores
take long to come back and a load returns soon after such a release, the next one waits twice as
long. While the load rises, no core is released, nor for a minute after a scale-out that the load
does not explain. A scale-in that had to be taken back at the same load makes the next one wait
twice as long.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from tidegate.control.measurement import Measurement
from tidegate.forecast.remembering import Remembered
from tidegate.units import counted

_LONGEST_PATIENCE = 8.0
_SAME_LOAD = 1.15
"""A scale-out counts as taking back the last scale-in only if the load has grown by no more than
this factor since."""
_SHORT_WAIT_S = 30.0
"""Up to this wait, a scale-in must save the whole least share. Longer waits make changes rare by
themselves, so that smaller savings are worth one."""
_MANY_TICKS = 20
_GAP_S = 5.0
"""A restart that took longer than this interrupts a wait."""
_FALL, _SLOW_FALL = 1.2, 2.0
"""A load that was this many times as high within the waiting time has fallen; and where cores take
long to come back, so that a load which only goes up and down keeps its cores."""
_USUAL_SAVING = 0.06
"""The share of the cores up to which a release waits for the whole time."""
_SHORTEST_WAIT = 0.1
_SETTLE_S = 60.0
"""After a scale-out that no higher load explains, no core is released for this long unless the load
falls. Otherwise the policy would chase a machine that is fast one minute and slow the next. A run's
first minute is exempt: first guesses should be corrected soon."""
_RISING = 1.08
"""A load that has grown by this factor since the wait began is rising: cores that are released now
would soon be asked for again."""


def shortened(saved: float) -> float:
    """The share of the usual wait after which so large a share of the cores may be released."""
    return min(max(_USUAL_SAVING / max(saved, 1e-9), _SHORTEST_WAIT), 1.0)


class FitWords(NamedTuple):
    """How the present cores fit the target, in words."""

    fits: str
    """The latency that is expected, and the target."""
    right: str
    """What is said of the present cores where fewer are not enough."""
    would_do: str
    """What is said of fewer cores that are enough, or as good."""


class ScaleIn(Remembered):
    """Remembers what the last ticks needed, and says why no core may be released now."""

    _LEARNED = (
        "_needs",
        "_rates",
        "_cores_before",
        "_changed_s",
        "_scaled_in_s",
        "_scaled_in_rate",
        "_patience",
        "_fall_patience",
        "_first_s",
        "_grown_s",
        "_grown_rate",
    )
    _LIKE: ClassVar = {"_needs": (0.0, 0), "_cores_before": 0}

    def __init__(self, after_s: float, least_saving: float) -> None:
        self._after_s = after_s
        self._least_saving = least_saving
        self._needs: deque[tuple[float, int]] = deque()
        """Time and cores needed, for each tick of the waiting time."""
        self._rates: deque[float] = deque()
        """The arrival rates of the same ticks."""
        self._cores_before: int | None = None
        self._changed_s = -math.inf
        self._scaled_in_s = -math.inf
        self._scaled_in_rate = 0.0
        self._patience = 1.0
        self._fall_patience = 1.0
        """How many times the shortened wait must have passed after a fall, where cores are slow."""
        self._first_s = math.inf
        self._grown_s = -math.inf
        """Time of the last scale-out without a higher load, after the first minute of the run."""
        self._grown_rate = 0.0
        """The arrival rate at the last scale-out."""

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the patience of an earlier run; a wait does not go on across a gap."""
        super().recall(learned, age_s)
        self._patience = min(max(self._patience, 1.0), _LONGEST_PATIENCE)
        self._fall_patience = min(max(self._fall_patience, 1.0), _LONGEST_PATIENCE)
        if age_s > _GAP_S or len(self._needs) != len(self._rates):
            self._needs.clear()
            self._rates.clear()
            self._cores_before = None

    def notice(self, measurement: Measurement) -> None:
        """Notice a change of the cores asked for. A quick reversal doubles the patience."""
        self._first_s = min(self._first_s, measurement.at_s)
        before, now = self._cores_before, measurement.cores_asked
        self._cores_before = now
        if before is None or before == now:
            return
        self._changed_s = measurement.at_s
        if now < before:
            self._scaled_in_s = measurement.at_s
            self._scaled_in_rate = measurement.arrival_rate
            return
        since_s = measurement.at_s - self._scaled_in_s
        same_load = measurement.arrival_rate <= _SAME_LOAD * self._scaled_in_rate
        self._grown_rate = measurement.arrival_rate
        risen = measurement.arrival_rate > _SAME_LOAD * min(self._rates, default=0.0)
        if measurement.at_s - self._first_s > _SETTLE_S and not risen:
            self._grown_s = measurement.at_s
        if since_s < 4.0 * self._after_s and same_load:
            self._patience = min(2.0 * self._patience, _LONGEST_PATIENCE)
        else:
            self._patience = max(self._patience / 2.0, 1.0)
        soon = since_s < self._usual_wait_s(measurement)
        if soon and not same_load and not self._quick(measurement):
            self._fall_patience = min(2.0 * self._fall_patience, _LONGEST_PATIENCE)
        else:
            self._fall_patience = max(self._fall_patience / 2.0, 1.0)

    def remember(self, measurement: Measurement, needed: int) -> None:
        """Remember the cores that this tick needs."""
        self._needs.append((measurement.at_s, needed))
        self._rates.append(measurement.arrival_rate)
        window_s = self.wait_s(measurement)
        while len(self._needs) > 1 and self._needs[1][0] <= measurement.at_s - window_s:
            self._needs.popleft()
            self._rates.popleft()

    @property
    def needed(self) -> int:
        """The most cores that any tick of the waiting time needed.

        In a wait of many ticks the highest tenth is left out: noise alone makes some of them high.
        """
        needs = sorted(needed for _, needed in self._needs)
        return needs[-1 - len(needs) // 10] if len(needs) >= _MANY_TICKS else needs[-1]

    def enough(self, measurement: Measurement) -> int:
        """The fewest cores that have been enough for as long as releasing the rest must wait."""
        most, found = 0, self.needed
        if not self._fallen(measurement):
            return found
        grown_s = self._changed_s if self._changed_s > self._scaled_in_s else -math.inf
        for at_s, needed in reversed(self._needs):
            if at_s < grown_s:
                break
            most = max(most, needed)
            if measurement.at_s - at_s >= self._wait_after_fall_s(measurement, most):
                found = min(found, most)
        return found

    def _fallen(self, measurement: Measurement) -> bool:
        """Whether the load explains that fewer cores are enough."""
        rate, highest = measurement.arrival_rate, max(self._rates, default=0.0)
        factor = _FALL if self._quick(measurement) else _SLOW_FALL
        rising = rate > _RISING * min(self._rates, default=rate)
        return not rising and rate * factor < highest

    def _quick(self, measurement: Measurement) -> bool:
        """Whether cores that were released come back quickly."""
        return 3.0 * (measurement.grant_s or 0.0) <= self._after_s

    def _wait_after_fall_s(self, measurement: Measurement, needed: int) -> float:
        """How long so few cores must have been enough after a fall, at least a grant's time.

        Released cores take that long to come back. Until then they cost no more than they save. A
        load that swings within the usual wait would have them released and started in every swing,
        so the wait grows up to the usual one while that happens.
        """
        usual_s = self._usual_wait_s(measurement)
        shorter_s = usual_s * shortened(1.0 - needed / max(measurement.cores_asked, 1))
        granted_s = measurement.grant_s or 0.0
        return min(max(shorter_s, granted_s) * self._fall_patience, usual_s)

    def enough_for_s(self, measurement: Measurement, cores: int) -> float:
        """For how long no tick has needed more than these cores."""
        since_s = measurement.at_s
        for at_s, needed in reversed(self._needs):
            if needed > cores:
                break
            since_s = at_s
        return measurement.at_s - since_s

    def wait_s(self, measurement: Measurement) -> float:
        """How long fewer cores must have been enough before some are released.

        It is longer where granting cores takes long, because released cores take as long to come
        back.
        """
        return self._usual_wait_s(measurement) * self._patience

    def _usual_wait_s(self, measurement: Measurement) -> float:
        return max(self._after_s, 3.0 * (measurement.grant_s or 0.0))

    def objection(self, measurement: Measurement, least: int, words: FitWords) -> str | None:
        """Why no core is released now, in these words; None if cores may be released."""
        asked, needed = measurement.cores_asked, self.enough(measurement)
        wait_s = self.wait_s(measurement)
        if self._fallen(measurement):
            # Patience is for scale-ins that were taken back at the same load, and this is another.
            wait_s = self._wait_after_fall_s(measurement, needed)
        # A scale-in soon after another must save twice as much to be worth it.
        again = measurement.at_s - self._scaled_in_s < wait_s
        share = (
            self._least_saving
            * (2.0 if again else 1.0)
            * min(_SHORT_WAIT_S / max(wait_s, 1e-9), 1.0)
        )
        if asked - max(needed, least) < max(1, math.ceil(share * asked)):
            return f"{words.right}: {words.fits}"
        would = f"{counted(needed, 'core')} {words.would_do}"
        # A scale-in that follows another starts no new wait: fewer cores were enough all along.
        grown_s = self._changed_s if self._changed_s > self._scaled_in_s else -math.inf
        since_s = measurement.at_s - max(grown_s, self._needs[0][0])
        if since_s < wait_s:
            return (
                f"{would}, and cores are released after {wait_s:.0f} s of that, of which"
                f" {since_s:.0f} s have passed: {words.fits}"
            )
        if measurement.arrival_rate > _RISING * self._rates[0]:
            return f"the load is rising, so that no core is released: {would} now"
        since_s = measurement.at_s - self._grown_s
        if since_s < _SETTLE_S and measurement.arrival_rate * _SAME_LOAD > self._grown_rate:
            return (
                f"{would}, but cores were added {since_s:.0f} s ago and stay for {_SETTLE_S:.0f} s"
            )
        return None
