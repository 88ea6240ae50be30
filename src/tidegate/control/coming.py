"""The load that is coming: a forecast at the horizon and a margin calibrated on what came of it."""

import math
from collections import deque
from dataclasses import dataclass

from tidegate.forecast import Forecaster
from tidegate.forecast.conformal import AdaptiveConformal
from tidegate.forecast.seasonal import SeasonalForecaster
from tidegate.forecast.selection import SelectedForecaster
from tidegate.forecast.simple import LastValue, RecentMaximum
from tidegate.forecast.trend import DampedTrend

MOST_MARGIN = math.log(1.35)
"""The margin covers noise and drift. A leap that no history foretold is met by catching up; its
size must not make every later minute dearer."""

LEAP = 0.2
"""Beyond the margin and this, a rate is no noise: the load has leapt, whatever was forecast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """Rows per second up to the horizon."""

    rate: float
    """The highest expected."""
    margin: float
    """Factor to add, at least 1, so that the load stays below with the coverage asked for."""

    @property
    def planned(self) -> float:
        """The rate to plan for."""
        return self.rate * self.margin


class ComingLoad:
    """Sees the rate of every tick; the margin is conformal on log(came / forecast)."""

    def __init__(
        self, *, coverage: float = 0.9, tick_s: float = 1.0, forecaster: Forecaster | None = None
    ) -> None:
        self._coverage = coverage
        self._forecaster = forecaster or SelectedForecaster(
            {
                "last value": LastValue(),
                "recent maximum": RecentMaximum(window=5),
                "trend": DampedTrend(),
                "seasonal": SeasonalForecaster(tick_s),
            },
            lead=1,
            cycle=3,
            every=4,
            rho=coverage,
            fading=0.95,
        )
        self._margin = AdaptiveConformal(memory=300, fading=0.99, gain=0.1, prior_sd=0.04, prior=8)
        self._said: tuple[int, float] | None = None
        self._since: deque[float] = deque(maxlen=3600)
        self._step = 0
        self._last = 0.0

    def observe(self, rate: float, at_s: float) -> None:
        """One more tick; settles the forecast whose horizon it ends."""
        self._step += 1
        self._forecaster.observe(rate, at_s)
        self._since.append(rate)
        self._last = rate
        if self._said is not None and self._step >= self._said[0]:
            highest, said = max(self._since), self._said[1]
            if highest > 0.0 and said > 0.0:
                self._margin.update(math.log(highest / said))
            self._said = None

    def within(self, ticks: int) -> Coming:
        """The load of the next ticks; called after `observe`."""
        ahead = max(ticks, 1)
        rate = max(float(self._forecaster.forecast(ahead).mean.max()), 0.0)
        margin = min(max(self._margin.quantile(self._coverage), 0.0), MOST_MARGIN)
        if self._last > rate * math.exp(margin + LEAP):
            rate = self._last
        if self._said is None:
            self._said = (self._step + ahead, rate)
            self._since.clear()
        return Coming(rate=rate, margin=math.exp(margin))
