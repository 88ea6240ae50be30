"""A safety margin on a forecast, calibrated online so that its coverage comes out as requested.

A score measures how far the load exceeded its forecast: for example the logarithm of the next
cycle's highest load over the forecast one. The margin is a quantile of past scores. As in adaptive
conformal inference (Gibbs and Candes 2021) its level moves after every hit and miss, so that the
long-run share of misses is 1 - rho whatever the load does: no distribution is assumed, and drift
is allowed. The level moves in the logarithm of the tail, u: the quantile is the one with tail
(1 - rho) exp(-u), and u rises by gain * (missed - (1 - rho)). A miss then has the same effect at
every rho. Beyond the largest score the margin keeps growing like an exponential tail, where the
plain form would need an infinite one. While u stays within its bounds, the mean of `missed` over T
updates is within (its range) / (gain T) of 1 - rho.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tidegate.errors import AskedWrongly
from tidegate.forecast.remembering import Remembered, finite, held

Vector = NDArray[np.float64]

LARGEST_SHIFT = 8.0
"""Bound on |u|: the margin must not wind up under a load that no number of machines could cover."""


class AdaptiveConformal(Remembered):
    """The margin: call `quantile(rho)` before a cycle, and `update(score)` after it.

    It keeps `memory` scores; each weighs `fading` times as much as the next newer one. `prior_sd`
    is the assumed standard deviation of a score before there are any, and counts as `prior` scores.
    Scores of an earlier run weigh less the older they are, so that the first ones of a new run
    count for more.
    """

    _LEARNED = ("_scores", "_seen")

    def __init__(
        self,
        memory: int = 600,
        fading: float = 0.997,
        gain: float = 0.3,
        prior_sd: float = 0.1,
        prior: int = 8,
    ) -> None:
        if not (memory >= 1 and 0 < fading <= 1 and gain > 0 and prior_sd > 0 and prior >= 2):
            raise AskedWrongly(
                "A conformal margin needs memory >= 1, fading in (0, 1], gain and prior_sd above 0 "
                "and prior >= 2."
            )
        self._scores: deque[float] = deque(maxlen=memory)
        self._fading = fading
        self._gain = gain
        self._prior: Vector = prior_sd * ndtri((np.arange(prior) + 0.5) / prior)
        self._aged: deque[float] = deque(maxlen=memory)
        """What age has left of the weight of each of the scores."""
        self._seen = 0.0
        self._shifts: dict[float, float] = {}
        self._ordered: tuple[Vector, Vector, float] | None = None

    def quantile(self, rho: float) -> float:
        """The margin that the next score stays below with probability rho."""
        if rho not in self._shifts:
            if not 0.0 < rho < 1.0:
                raise AskedWrongly(f"rho is {rho:g}, but a coverage must be between 0 and 1.")
            self._shifts[rho] = 0.0
        return self._margin((1.0 - rho) * math.exp(-self._shifts[rho]))

    def update(self, score: float, missed: float | None = None) -> None:
        """Learn the outcome of a cycle.

        `missed` is the share of the cycle that was not covered, for callers that count minutes
        rather than cycles (MST eq. 22). By default a cycle missed if its score exceeded the margin.
        """
        if not math.isfinite(score):
            raise AskedWrongly(f"A score is {score}, but must be a finite number.")
        for rho, shift in self._shifts.items():
            outcome = float(score > self.quantile(rho)) if missed is None else missed
            moved = shift + self._gain * (outcome - (1.0 - rho))
            self._shifts[rho] = min(max(moved, -LARGEST_SHIFT), LARGEST_SHIFT)
        self._scores.append(float(score))
        self._aged.append(1.0)
        self._seen += 1.0
        self._ordered = None

    def learned(self) -> dict[str, Any]:
        """The scores, and where the level of each coverage is."""
        aged = [] if min(self._aged, default=1.0) == 1.0 else [round(one, 6) for one in self._aged]
        shifts = list(map(list, self._shifts.items()))
        return {**super().learned(), "aged": aged, "shifts": shifts}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the scores of an earlier run, and the level drawn back by their age."""
        super().recall(learned, age_s)
        left = held(age_s)
        aged = [min(max(finite(one), 0.0), 1.0) for one in learned.get("aged", ())]
        aged = aged[-len(self._scores) :] if self._scores else []
        aged += [1.0] * (len(self._scores) - len(aged))
        self._aged = deque((left * one for one in aged), maxlen=self._aged.maxlen)
        self._seen = left * max(self._seen, 0.0)
        self._shifts = {
            finite(rho): left * min(max(finite(shift), -LARGEST_SHIFT), LARGEST_SHIFT)
            for rho, shift in learned.get("shifts", ())
            if 0.0 < finite(rho) < 1.0
        }
        self._ordered = None

    def _margin(self, tail: float) -> float:
        """Weighted quantile of the scores with this tail, extrapolated by exponential tails."""
        values, above, tail_scale = self._sorted_scores()
        if tail < above[-1]:
            return float(values[-1]) + math.log(above[-1] / tail) * tail_scale
        if tail > above[0]:
            return float(values[0]) - math.log(tail / above[0]) * tail_scale
        return float(np.interp(-tail, -above, values))

    def _sorted_scores(self) -> tuple[Vector, Vector, float]:
        """Scores in order, the weight above each, and the mean excess of the upper tenth."""
        if self._ordered is None:
            count = len(self._scores)
            values = np.concatenate([self._prior, np.array(self._scores)])
            weights = np.ones(values.size)
            weights[self._prior.size :] = self._fading ** np.arange(count)[::-1]
            weights[self._prior.size :] *= np.array(self._aged)
            # The prior loses weight with every score, faster than by its share alone.
            weights[: self._prior.size] = self._prior.size / (self._prior.size + self._seen)
            order = np.argsort(values, kind="stable")
            values, weights = values[order], weights[order]
            below = np.cumsum(weights)
            above = 1.0 - (below - weights / 2) / below[-1]
            from_decile = np.interp(-0.1, -above, values)
            upper = values >= from_decile
            excess = np.average(values[upper] - from_decile, weights=weights[upper])
            self._ordered = (values, above, max(float(excess), 1e-9))
        return self._ordered
