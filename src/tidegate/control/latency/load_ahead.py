"""The load ahead: a forecast up to the horizon, with a margin calibrated on its past errors.

Forecast errors cluster: a forecast of a quiet load is nearly exact, one of a ramp is not. So the
margin is calibrated in units of how much the load has recently been changing (locally weighted
conformal prediction, Lei et al. 2018). A surge widens the margin at once, and it shrinks again when
the load calms down.
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
"""The largest margin. It covers noise and drift. A jump that nothing in the history announced is
met by catching up; its size must not make every later minute more expensive."""

JUMP = 0.2
"""A rate this far above forecast and margin (in logarithms) is not noise: the load has jumped."""

RISE = 0.08
"""Growth by this much (in logarithms) twice in a row is a ramp: noise goes up and down."""

MOST_MOMENTUM = 1.4
"""Growth beyond noise is assumed to continue for one more tick, by this factor at most. Cores that
come too early cost a few seconds; cores that come too late cost a backlog."""

_MOST_CHANGE = 0.5
_CALM = 0.025
"""The least change of the rate to assume from tick to tick, in its logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAhead:
    """The load up to the horizon, in rows per second."""

    rate: float
    """The highest expected rate."""
    margin: float
    """A factor of at least 1: the load stays below rate x margin with the configured coverage."""

    @property
    def planned(self) -> float:
        """The rate to plan for."""
        return self.rate * self.margin


class LoadForecast:
    """Forecasts the load from the rate of every tick.

    The margin is a conformal quantile of log(actual / forecast), in units of the recent change.
    """

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
        """The open forecast: its last tick, its rate, and the recent change of the load then."""
        self._changes = Alpha(0.75)
        self._restless = _CALM
        self._since: deque[float] = deque(maxlen=3600)
        self._step = 0
        self._last = 0.0
        self._grown = 0.0
        """log(rate / rate of the tick before)."""
        self._grown_before = 0.0

    def observe(self, rate: float, at_s: float) -> None:
        """Add the rate of a tick, and score a forecast whose horizon ends with it.

        Ticks before the first row are ignored: the start of a load says nothing about how it
        changes.
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
        """The forecast for the next ticks; call it after `observe`."""
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
                rate, margin = further, 0.0  # the assumed growth is margin enough
        if self._said is None:
            self._said = (self._step + ahead, rate, self._restless)
            self._since.clear()
        return LoadAhead(rate=rate, margin=math.exp(margin))
