"""Forecasters that work on minutes, for horizons of minutes and loads that follow the clock.

They run beside the forecasters of every tick: once a minute each, and not all in the same tick, so
that no decision waits for them. Between two runs they answer from their last forecast.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.forecast import Forecaster
from tidegate.forecast.analogues import Analogues
from tidegate.forecast.arma import ArmaForecaster
from tidegate.forecast.minute_rates import MINUTE_S, MinuteRate, MinuteRates
from tidegate.forecast.remembering import Remembered, plain
from tidegate.forecast.seasonal import SeasonalForecaster
from tidegate.forecast.simple import RecentMaximum
from tidegate.forecast.trend import DampedTrend

LONGEST = 31
"""The most minutes ahead that are forecast; a longer horizon gets the forecast for this many."""
_LENGTHS = (2, 3, 4, 6, 8, 12, 16, 24, LONGEST)
"""Windows of the analogues: the shortest that covers the horizon is used."""
_REFILLED_A_TICK = 25
"""Minutes that the analogues of a new window learn in one tick; each takes about 50 us."""
_FILLED_GAP = 3
"""Minutes without a reading that are bridged; after a longer gap, a forecaster starts again."""

Path = NDArray[np.float64]


class _Stepwise(Remembered):
    """A forecaster of minutes, with its last forecast as the highest load up to each minute."""

    _LEARNED = ("forecaster",)

    def __init__(self, forecaster: Forecaster) -> None:
        self.forecaster = forecaster
        self.path: Path | None = None

    def learned(self) -> dict[str, Any]:
        path = None if self.path is None else self.path.tolist()
        return {**super().learned(), "path": path}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        super().recall(learned, age_s)
        path = learned.get("path")
        self.path = None if path is None else np.array(path)

    def run(self, minute: MinuteRate, rate: float) -> None:
        self.forecaster.observe(rate, minute.ended_s)
        found = self.forecaster.forecast(LONGEST)
        self.path = np.maximum.accumulate(found.mean + np.sqrt(found.variance))


class MinuteForecasts:
    """All forecasters of minutes; `observe` the minutes that are over, then ask for `points`."""

    def __init__(self, coverage: float = 0.9) -> None:
        self._coverage = coverage
        self._analogues = Analogues(lead=0, length=_LENGTHS[0])
        self._highest: float | None = None
        """The highest load of the analogues' window, with the coverage."""
        self._refilling: deque[MinuteRate] = deque()
        self._due: deque[tuple[str, MinuteRate]] = deque()
        self._season = SeasonalForecaster(MINUTE_S)
        self._last: MinuteRate | None = None
        self._missing = 0
        self._start_again()

    def _start_again(self) -> None:
        """Begin without the minutes before a gap; the season and the analogues keep them."""
        self._stepwise = {
            "highest minute": _Stepwise(RecentMaximum(window=3)),
            "trend by minute": _Stepwise(DampedTrend(damping=0.95)),
            "season": _Stepwise(self._season),
            "arma": _Stepwise(ArmaForecaster(max_order=(2, 1))),
        }
        self._highest = None

    @property
    def names(self) -> tuple[str, ...]:
        """The forecasters."""
        return (*self._stepwise, "analogues")

    def observe(self, over: Sequence[MinuteRate]) -> None:
        """Learn the minutes that are over; `work` does it, a part in each tick."""
        for minute in over:
            self._due.extend((name, minute) for name in self.names)

    def work(self, tick_s: float) -> None:
        """Do the part of one tick: all of it is done within half a minute."""
        jobs = max(math.ceil(len(self._due) * tick_s / (0.5 * MINUTE_S)), 1)
        for _ in range(min(jobs, len(self._due))):
            self._run(*self._due.popleft())
        for _ in range(min(_REFILLED_A_TICK, len(self._refilling))):
            self._learn_analogue(self._refilling.popleft())

    def finish(self) -> None:
        """Do all that is left at once."""
        while self._due:
            self._run(*self._due.popleft())
        while self._refilling:
            self._learn_analogue(self._refilling.popleft())

    def points(self, horizon_s: float, at_s: float, history: MinuteRates) -> dict[str, float]:
        """The highest load up to the horizon, by each forecaster that can tell.

        `history` is that from which the analogues of a new horizon begin.
        """
        found: dict[str, float] = {}
        if self._last is None:
            return found
        since_s = max(at_s - self._last.ended_s, 0.0)
        ahead = min(max(math.ceil((since_s + horizon_s) / MINUTE_S), 1), LONGEST)
        for name, one in self._stepwise.items():
            if one.path is not None:
                found[name] = float(one.path[ahead - 1])
        self._fit_window(horizon_s, history)
        if self._highest is not None and not self._refilling:
            found["analogues"] = self._highest
        return {name: point for name, point in found.items() if point > 0.0}

    def learned(self) -> dict[str, Any]:
        """What each forecaster has learned; the analogues' minutes are in the history."""
        self.finish()
        return {
            "stepwise": plain(self._stepwise),
            "analogues": self._analogues.learned(),
            "length": self._analogues.length,
            "highest": self._highest,
            "last": None if self._last is None else list(self._last),
            "missing": self._missing,
        }

    def recall(self, learned: Mapping[str, Any], age_s: float, history: MinuteRates) -> None:
        """Begin with what an earlier run learned, and with the minutes of its history."""
        if learned.get("last") is None:
            return
        for name, one in learned["stepwise"].items():
            if name in self._stepwise:
                self._stepwise[name].recall(one, age_s)
        self._analogues = Analogues(lead=0, length=int(learned["length"]))
        for minute in history.known:
            self._learn_analogue(minute)
        self._analogues.recall(learned["analogues"], age_s)
        self._highest = learned["highest"]
        self._last = MinuteRate(*learned["last"])
        self._missing = learned["missing"]

    def _fit_window(self, horizon_s: float, history: MinuteRates) -> None:
        """Let the analogues' window cover the horizon, from any second of a minute on."""
        needed = min(math.ceil(horizon_s / MINUTE_S) + 1, LONGEST)
        length = self._analogues.length
        if needed > length or 2 * needed < length:
            fitting = next(one for one in _LENGTHS if one >= needed)
            self._analogues = Analogues(lead=0, length=fitting)
            self._highest = None
            waiting = {minute.number for name, minute in self._due if name == "analogues"}
            self._refilling = deque(one for one in history.known if one.number not in waiting)

    def _run(self, name: str, minute: MinuteRate) -> None:
        if name == "analogues":
            if self._refilling:
                self._refilling.append(minute)
                return
            self._learn_analogue(minute)
            self._highest = None
            if minute.rate is not None:
                self._highest = self._analogues.outlook().highest_load(self._coverage)
            return
        first = next(iter(self._stepwise))
        if name == first:
            self._missing = 0 if minute.rate is not None else self._missing + 1
            if self._missing == _FILLED_GAP + 1:
                self._start_again()
        if minute.rate is not None:
            self._stepwise[name].run(minute, minute.rate)
            self._last = minute

    def _learn_analogue(self, minute: MinuteRate) -> None:
        if minute.rate is None:
            self._analogues.miss(minute.ended_s)
        else:
            self._analogues.observe(minute.rate, minute.ended_s)
