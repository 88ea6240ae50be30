"""How often and how far the load of this stream leaps, and which reserve that is worth.

A surge is growth that the plan did not foresee: the load exceeds what was planned for one reaction
time before (the time to notice it, to be granted cores and to use them). Surges are counted with
their sizes, over the time that was watched. A prior stands in for what has not been watched yet:
with it the expected rate of surges of a new stream is high, and falls as quiet time passes. From
the rate follows the reserve: the plan that minimises the cores it holds, plus the seconds above the
target that surges beyond its reach would cost.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar

from tidegate.forecast.remembering import Remembered

PRICE = 30.0
"""What a second above the target costs, as a multiple of the cores that the load needs."""
PRIOR_SURGES, PRIOR_S = 1.0, 20.0
"""The prior: as if so many surges had been seen in so much time."""
PRIOR_TAIL = 2.0
"""The share of surges beyond a factor f is f^-this in the prior."""
LEAST = 1.1
"""Growth beyond the plan by less than this factor is noise."""
MOST = 4.0
"""No reserve is kept for a surge beyond this factor."""
HALF_LIFE_S = 6.0 * 3600.0
"""The age at which a surge, or a quiet second, has half its weight."""
_FADED = 0.05
"""A surge of which less than this weight is left is forgotten: it was more than a day ago."""
_MOST_SURGES = 200
_SILENCE_S = 15.0


class SurgeHistory(Remembered):
    """Counts surges; call `observe` once a tick, and then `plan_for` with what was planned."""

    _LEARNED = ("_watched_s", "_weights", "_sizes", "_running", "_planned", "_last_s")
    _LIKE: ClassVar = {"_running": 0.0, "_planned": (0.0, 0.0), "_last_s": 0.0}

    def __init__(self) -> None:
        self._watched_s = 0.0
        self._weights: list[float] = []
        self._sizes: list[float] = []
        """Logarithms of the surges' factors."""
        self._running: float | None = None
        """The size of a surge that goes on, so far."""
        self._planned: deque[tuple[float, float]] = deque()
        self._last_s: float | None = None

    def observe(self, rate: float, at_s: float, reaction_s: float) -> None:
        """Compare the rate of a tick with what was planned one reaction time ago."""
        since_s = 0.0 if self._last_s is None else at_s - self._last_s
        self._last_s = at_s
        if since_s > max(_SILENCE_S, 3.0 * reaction_s):
            self._planned.clear()
            self._running = None
            return
        while len(self._planned) > 1 and self._planned[1][0] <= at_s - reaction_s:
            self._planned.popleft()
        if not self._planned or self._planned[0][0] > at_s - reaction_s or rate <= 0.0:
            return
        self._fade(since_s)
        self._watched_s += since_s
        size = math.log(rate) - math.log(self._planned[0][1])
        if size > math.log(LEAST):
            if self._running is None:
                self._weights.append(1.0)
                self._sizes.append(size)
                del self._weights[:-_MOST_SURGES], self._sizes[:-_MOST_SURGES]
                self._running = size
            elif size > self._running:
                self._running = self._sizes[-1] = size
        elif size < 0.0:
            self._running = None

    def plan_for(self, planned: float, at_s: float) -> None:
        """Remember the rate that is planned for from now on."""
        if planned > 0.0:
            self._planned.append((at_s, planned))

    def rate(self, factor: float) -> float:
        """Expected surges a second that grow beyond the factor."""
        beyond = math.log(max(factor, 1.0))
        seen = sum(
            weight for weight, size in zip(self._weights, self._sizes, strict=True) if size > beyond
        )
        prior = PRIOR_SURGES * math.exp(-PRIOR_TAIL * beyond)
        return (seen + prior) / (self._watched_s + PRIOR_S)

    def repeated(self) -> float:
        """The factor that two of the remembered surges reached, up to `MOST`; 1: none.

        A load that leaps once may have changed for good. To hold cores for a leap beyond the usual
        one, it must have come twice.
        """
        known = sorted(
            size for size, weight in zip(self._sizes, self._weights, strict=True) if weight > _FADED
        )
        return math.exp(min(known[-2], math.log(MOST))) if len(known) > 1 else 1.0

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the surges of an earlier run, faded by their age."""
        super().recall(learned, age_s)
        if len(self._weights) != len(self._sizes) or min(self._weights, default=0.0) < 0.0:
            self._weights, self._sizes, self._running = [], [], None
        self._watched_s = max(self._watched_s, 0.0)
        self._planned = deque(entry for entry in self._planned if entry[1] > 0.0)
        self._fade(age_s)

    def _fade(self, since_s: float) -> None:
        kept = 0.5 ** (since_s / HALF_LIFE_S)
        self._watched_s *= kept
        self._weights = [kept * weight for weight in self._weights]
