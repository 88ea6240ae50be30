"""The load ahead: a forecast up to the horizon, with a margin calibrated on its past errors.

Forecast errors cluster: a forecast of a quiet load is nearly exact, one of a ramp is not. So the
margin is calibrated in units of how much the load has just been changing (locally weighted
conformal prediction, Lei et al. 2018). A surge widens it at once, and the calm after a surge does
not pay for it.
"""

import math
from collections import deque
from dataclasses import dataclass

from tidegate.control.learning.smoothing import Alpha
from tidegate.forecast import Forecaster
from tidegate.forecast.conformal import AdaptiveConformal
from tidegate.forecast.seasonal import SeasonalForecaster
from tidegate.forecast.selection import SelectedForecaster
from tidegate.forecast.simple import LastValue, RecentMaximum
from tidegate.forecast.trend import DampedTrend

MOST_MARGIN = math.log(1.25)
"""The margin covers noise and drift. A jump that no history foretold is met by catching up; its
size must not make every later minute more expensive."""

JUMP = 0.2
"""A rate this far (in its logarithm) above forecast and margin is no noise: the load jumped."""

RISE = 0.08
"""Growth by this much (in its logarithm) twice in a row is a ramp: noise goes up and down."""

MOST_MOMENTUM = 1.4
"""Growth beyond noise is taken to go on for one more tick, by this factor at most: cores that come
too early cost seconds, cores that come too late a backlog."""

_MOST_CHANGE = 0.5
_CALM = 0.025
"""The least that a rate is taken to change from tick to tick, in its logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAhead:
    """The load up to the horizon, in rows per second."""

    rate: float
    """The highest expected rate."""
    margin: float
    """A factor of at least 1: the load stays below rate x margin with the coverage asked for."""

    @property
    def planned(self) -> float:
        """The rate to plan for."""
        return self.rate * self.margin


class LoadForecast:
    """Sees the rate of every tick; the margin is conformal on log(actual / forecast), scaled."""

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
        self._margin = AdaptiveConformal(memory=300, fading=0.99, gain=0.1, prior_sd=1.5, prior=8)
        self._said: tuple[int, float, float] | None = None
        """Until which tick, what rate was forecast, and how restless the load was."""
        self._changes = Alpha(0.75)
        self._restless = _CALM
        self._since: deque[float] = deque(maxlen=3600)
        self._step = 0
        self._last = 0.0
        self._grown = 0.0
        """log(rate / rate of the tick before)."""
        self._grown_before = 0.0

    def observe(self, rate: float, at_s: float) -> None:
        """One more tick; settles the forecast whose horizon it ends.

        Nothing is learned before the first row: that load begins says nothing of how it changes.
        """
        if rate <= 0.0 and self._step == 0:
            return
        self._step += 1
        self._forecaster.observe(rate, at_s)
        self._grown_before, self._grown = self._grown, 0.0
        if rate > 0.0 and self._last > 0.0:
            self._grown = math.log(rate / self._last)
            change = min(abs(self._grown), _MOST_CHANGE)
            self._restless = max(self._changes.update(change), _CALM)
        self._since.append(rate)
        self._last = rate
        if self._said is not None and self._step >= self._said[0]:
            highest, (_, said, restless) = max(self._since), self._said
            if highest > 0.0 and said > 0.0:
                self._margin.update(math.log(highest / said) / restless)
            self._said = None

    def within(self, ticks: int) -> LoadAhead:
        """The load of the next ticks; called after `observe`."""
        ahead = max(ticks, 1)
        if self._step == 0:
            return LoadAhead(rate=0.0, margin=1.0)
        rate = max(float(self._forecaster.forecast(ahead).mean.max()), 0.0)
        units = max(self._margin.quantile(self._coverage), 0.0)
        margin = min(units * self._restless, MOST_MARGIN)
        if self._last > rate * math.exp(margin + JUMP):
            rate = self._last
        if self._grown >= JUMP or min(self._grown, self._grown_before) >= RISE:
            further = self._last * min(math.exp(self._grown), MOST_MOMENTUM)
            if further > rate * math.exp(margin):
                rate, margin = further, 0.0  # growth that goes on is reserve enough
        if self._said is None:
            self._said = (self._step + ahead, rate, self._restless)
            self._since.clear()
        return LoadAhead(rate=rate, margin=math.exp(margin))
