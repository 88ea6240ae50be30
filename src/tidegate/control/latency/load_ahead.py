"""The load ahead: a forecast up to the horizon, with a margin calibrated on its past errors.

Forecast errors cluster: a forecast of a quiet load is nearly exact, one of a ramp is not. So the
margin is calibrated in units of how much the load has recently been changing (locally weighted
conformal prediction, Lei et al. 2018). A surge widens the margin at once, and it shrinks again when
the load calms down.

Where cores take long to be granted, the last ticks do not tell the load at the horizon. So
forecasters that work on minutes (the season, analogues, ARMA and others) compete with those of
ticks, at the very horizon that is asked for. Whichever has lately needed the cheapest margin there
is used.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidegate.control.learning.smoothing import Alpha
from tidegate.forecast import Forecaster
from tidegate.forecast.by_minute import MinuteForecasts
from tidegate.forecast.conformal import AdaptiveConformal
from tidegate.forecast.horizon import HorizonSelection
from tidegate.forecast.minute_rates import MINUTE_S, MinuteRates
from tidegate.forecast.remembering import Remembered, finite
from tidegate.forecast.same_time import SameTime, usual_rate
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

_MOMENTUM, MOST_MOMENTUM = 1.5, 1.6
"""Growth beyond noise is assumed to go on for so many more ticks, by this factor at most: until the
batch ends that gets the new cores. Cores that come too early cost a few seconds; cores that come
too late cost a backlog."""
CALM_JUMP, _BEYOND_NOISE = 0.1, 4.0
"""On a calm stream less than `JUMP` is growth beyond noise: so many times its usual change from
tick to tick, and at least this much."""

RECENT_S = 600.0
"""A load that was measured longer ago than this says nothing about the load of now."""

SILENCE_S = 15.0
"""After so long without a tick, the last rate says nothing about how the load changes."""

_TICKS = "ticks"
_LEVEL = "level"
_SAME_TIME = "same time of day"
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
    forecaster: str = _TICKS
    """Which forecaster it is from; `ticks` are those of every tick."""

    @property
    def planned(self) -> float:
        """The rate to plan for."""
        return self.rate * self.margin


class LoadForecast(Remembered):
    """Forecasts the load from the rate of every tick.

    The margin is a conformal quantile of log(actual / forecast), in units of the recent change.
    """

    _LEARNED = (
        "_forecaster",
        "_margin",
        "_said",
        "_restless",
        "_restless_before",
        "_since",
        "_step",
        "_last",
        "_grown",
        "_grown_before",
        "_at_s",
        "_same_time",
    )
    _LIKE: ClassVar = {"_said": (0, 0.0, 0.0)}

    def __init__(
        self, *, coverage: float = 0.9, tick_s: float = 1.0, forecaster: Forecaster | None = None
    ) -> None:
        self._coverage = coverage
        self._tick_s = tick_s
        self._minutes = MinuteRates(tick_s=tick_s)
        self._by_minute = MinuteForecasts(coverage)
        self._selection = HorizonSelection(coverage, _TICKS, tick_s=tick_s)
        self._same_time = SameTime()
        self._at_s = -math.inf
        self._given = forecaster
        self._forecaster = forecaster or _of_ticks(coverage)
        self._margin = AdaptiveConformal(memory=300, fading=0.99, gain=0.1, prior_sd=1.5, prior=8)
        self._said: tuple[int, float, float] | None = None
        """The open forecast: its last tick, its rate, and the recent change of the load then."""
        self._changes = Alpha(0.75)
        self._restless = self._restless_before = _CALM
        """How much the load changes from tick to tick, now and one tick before."""
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
        self._by_minute.observe(self._minutes.observe(rate, at_s))
        self._by_minute.work(self._tick_s)
        self._selection.observe(rate, at_s)
        if at_s - self._at_s > max(SILENCE_S, 5.0 * self._tick_s):
            self._last, self._grown, self._said = 0.0, 0.0, None
        if at_s - self._at_s > RECENT_S and self._given is None:
            self._forecaster = _of_ticks(self._coverage)
        self._at_s = at_s
        self._forecaster.observe(rate, at_s)
        self._grown_before, self._grown = self._grown, 0.0
        if rate > 0.0 and self._last > 0.0:
            self._grown = math.log(rate) - math.log(self._last)
            change = min(abs(self._grown), _MOST_CHANGE)
            self._restless_before = self._restless
            self._restless = max(self._changes.update(change), _CALM)
        self._since.append(rate)
        self._last = rate
        if self._said is not None and self._step >= self._said[0]:
            highest, (_, said, restless) = max(self._since), self._said
            if highest > 0.0 and said > 0.0:
                self._margin.update((math.log(highest) - math.log(said)) / restless)
            self._said = None

    @property
    def tick_s(self) -> float:
        """The length of the ticks whose rates it observes."""
        return self._tick_s

    def retimed(self, tick_s: float) -> "LoadForecast":
        """A forecast for ticks of another length, which begins with the history by minutes.

        What was learned by tick is left out: a step of it has another length.
        """
        other = LoadForecast(coverage=self._coverage, tick_s=tick_s, forecaster=self._given)
        other._minutes, other._by_minute = self._minutes, self._by_minute
        other._minutes.retime(tick_s)
        other._same_time, other._at_s, other._last = self._same_time, self._at_s, self._last
        other._selection.recall(self._selection.learned(), 0.0)
        return other

    def before_rows(self, ticks: int, at_s: float) -> LoadAhead:
        """What to plan for after a restart, until the first row is measured.

        The last load is expected for some minutes after it was measured. After a longer gap it is
        the usual load of this time of the day, if that is known.
        """
        if at_s - self._at_s <= RECENT_S:
            return self.within(ticks) if self._step > 0 else LoadAhead(rate=self._last, margin=1.0)
        usual = usual_rate(at_s, self._minutes)
        if usual is None:
            return LoadAhead(rate=0.0, margin=1.0)
        return LoadAhead(rate=usual, margin=1.0, forecaster=_SAME_TIME)

    def learned(self) -> dict[str, Any]:
        """The history by tick and by minute, and how each forecaster has done."""
        return {
            **super().learned(),
            "tick_s": self._tick_s,
            "selection": self._selection.learned(),
            "minutes": self._minutes.learned(),
            "by_minute": self._by_minute.learned(),
            "changes": self._changes.value,
        }

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what an earlier run learned. What was not measured since is a gap."""
        if not learned:
            return
        super().recall(learned, age_s)
        self._selection.recall(learned["selection"], age_s)
        self._minutes.recall(learned["minutes"], age_s)
        self._by_minute.recall(learned["by_minute"], age_s, self._minutes)
        if learned["changes"] is not None:
            self._changes.update(finite(learned["changes"]))
        self._restless = max(self._restless, _CALM)

    def within(self, ticks: int) -> LoadAhead:
        """The forecast for the next ticks; call it after `observe`."""
        ahead = max(ticks, 1)
        if self._step == 0:
            return LoadAhead(rate=0.0, margin=1.0)
        by_tick = self._within_ticks(ahead)
        if by_tick.planned <= 0.0 or self._last <= 0.0:
            return by_tick
        horizon_s = ahead * self._tick_s
        chosen = self._chosen(by_tick, horizon_s)
        usual = self._same_time.expected(math.ceil(horizon_s / MINUTE_S) + 1, self._minutes)
        if usual is not None and usual > chosen.planned:
            return LoadAhead(rate=usual, margin=1.0, forecaster=_SAME_TIME)
        return chosen

    def _chosen(self, by_tick: LoadAhead, horizon_s: float) -> LoadAhead:
        """The forecast of whichever forecaster has lately done best at this horizon."""
        points = {_TICKS: by_tick.planned, _LEVEL: self._last}
        points |= self._by_minute.points(horizon_s, self._at_s, self._minutes)
        name, point, margin = self._selection.choose(points, horizon_s, self._at_s)
        if name == _TICKS:
            return by_tick
        planned = point * math.exp(margin)
        if self._rises and by_tick.planned > planned:
            return by_tick
        if self._last > planned * math.exp(JUMP):
            return by_tick  # it has jumped: what was forecast before no longer holds
        return LoadAhead(
            rate=min(point, planned), margin=math.exp(max(margin, 0.0)), forecaster=name
        )

    @property
    def _rises(self) -> bool:
        """Whether the load has grown by more than noise."""
        jump = min(max(CALM_JUMP, _BEYOND_NOISE * self._restless_before), JUMP)
        return self._grown >= jump or min(self._grown, self._grown_before) >= RISE

    def _within_ticks(self, ahead: int) -> LoadAhead:
        rate = max(float(self._forecaster.forecast(ahead).mean.max()), 0.0)
        units = max(self._margin.quantile(self._coverage), 0.0)
        margin = min(units * self._restless, MOST_MARGIN)
        if self._last > rate * math.exp(margin + JUMP):
            rate = self._last
        if self._rises:
            further = self._last * math.exp(min(_MOMENTUM * self._grown, math.log(MOST_MOMENTUM)))
            if further > rate * math.exp(margin):
                rate, margin = further, 0.0  # the assumed growth is margin enough
        if self._said is None:
            self._said = (self._step + ahead, rate, self._restless)
            self._since.clear()
        return LoadAhead(rate=rate, margin=math.exp(margin))


def _of_ticks(coverage: float) -> Forecaster:
    """The forecaster of the next ticks: whichever of three has lately done best."""
    return SelectedForecaster(
        {
            "last value": LastValue(),
            "recent maximum": RecentMaximum(window=5),
            "trend": DampedTrend(),
        },
        lead=1,
        cycle=3,
        every=4,
        rho=coverage,
        fading=0.95,
    )
