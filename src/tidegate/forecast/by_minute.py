"""Forecasters that work on minutes, for horizons of minutes and loads that follow the clock.

They run beside the forecasters of every tick: once a minute each, and not all in the same tick, so
that no decision waits for them. Between two runs they answer from their last forecast.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.forecast import Forecaster
from tidegate.forecast.analogues import Analogues
from tidegate.forecast.arma import ArmaForecaster
from tidegate.forecast.minute_rates import MINUTE_S, MinuteRate, MinuteRates
from tidegate.forecast.remembering import Remembered, finite, plain
from tidegate.forecast.seasonal import SeasonalForecaster
from tidegate.forecast.simple import RecentMaximum
from tidegate.forecast.trend import DampedTrend

LONGEST = 31
"""The most minutes ahead that are forecast; a longer horizon gets the forecast for this many."""
_LENGTHS = (2, 3, 4, 6, 8, 12, 16, 24, LONGEST)
"""Windows of the analogues: the shortest that covers the horizon is used."""
_REFILLED_A_TICK = 25
"""Minutes that the analogues of a new window learn in one tick; each takes about 50 us."""
_ANALOGUES, _GAP = "analogues", "gap"
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
        self.path = None
        if path is not None and len(path) == LONGEST:
            self.path = np.array([finite(one) for one in path])

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
        self._refilling: deque[tuple[int, float | None] | MinuteRate] = deque()
        """Minutes that the analogues of a new window have yet to learn."""
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
        return (*self._stepwise, _ANALOGUES)

    def observe(self, over: Sequence[MinuteRate]) -> None:
        """Learn the minutes that are over; `work` does it, a part in each tick."""
        for minute in over:
            names = self.names if minute.rate is not None else (_GAP, _ANALOGUES)
            self._due.extend((name, minute) for name in names)

    def work(self, tick_s: float) -> None:
        """Do the part of one tick: all of it is done within half a minute."""
        jobs = max(math.ceil(len(self._due) * tick_s / (0.5 * MINUTE_S)), 1)
        for _ in range(min(jobs, len(self._due))):
            self._run(*self._due.popleft())
        for _ in range(min(_REFILLED_A_TICK, len(self._refilling))):
            self._learn_analogue(MinuteRate(*self._refilling.popleft()))

    def finish(self) -> None:
        """Do all that is left at once."""
        while self._due:
            self._run(*self._due.popleft())
        while self._refilling:
            self._learn_analogue(MinuteRate(*self._refilling.popleft()))

    def points(self, horizon_s: float, at_s: float, history: MinuteRates) -> dict[str, float]:
        """The highest load up to the horizon, by each forecaster that can tell.

        `history` is that from which the analogues of a new horizon begin.
        """
        found: dict[str, float] = {}
        if self._last is None:
            return found
        since_s = max(at_s - self._last.ended_s, 0.0)
        if since_s > LONGEST * MINUTE_S:
            return found  # what was forecast before a long gap says nothing about now
        ahead = min(max(math.ceil((since_s + horizon_s) / MINUTE_S), 1), LONGEST)
        for name, one in self._stepwise.items():
            if one.path is not None:
                found[name] = float(one.path[ahead - 1])
        self._fit_window(horizon_s, history)
        if self._highest is not None and not self._refilling:
            found[_ANALOGUES] = self._highest
        return {name: point for name, point in found.items() if point > 0.0}

    def learned(self) -> dict[str, Any]:
        """What each forecaster has learned, and what it has still to learn.

        The analogues' minutes are in the history. Nothing is changed: a run that is kept decides as
        one that is not.
        """
        return {
            "stepwise": plain(self._stepwise),
            "analogues": self._analogues.learned(),
            "length": self._analogues.length,
            "highest": self._highest,
            "last": None if self._last is None else list(self._last),
            "missing": self._missing,
            "due": [[name, *minute] for name, minute in self._due],
            "refill_from": (_begins(MinuteRate(*self._refilling[0])) if self._refilling else None),
        }

    def recall(self, learned: Mapping[str, Any], age_s: float, history: MinuteRates) -> None:
        """Begin with what an earlier run learned, and with the minutes of its history."""
        for name, one in learned.get("stepwise", {}).items():
            if name in self._stepwise:
                self._stepwise[name].recall(one, age_s)
        known_names = {*self.names, _GAP}
        self._due.extend(
            (name, _minute(*minute))
            for name, *minute in learned.get("due", ())
            if name in known_names
        )
        length = int(learned.get("length", _LENGTHS[0]))
        self._analogues = Analogues(lead=0, length=min(max(length, 1), LONGEST))
        begin = learned.get("refill_from")
        for number, rate in self._not_due(history):
            if begin is not None and number >= begin:
                self._refilling.append((number, rate))
            else:
                self._learn_analogue(MinuteRate(number, rate))
        self._analogues.recall(learned.get("analogues", {}), age_s)
        highest, last = learned.get("highest"), learned.get("last")
        self._highest = None if highest is None else finite(highest)
        self._last = None if last is None else _minute(*last)
        self._missing = int(learned.get("missing", 0))

    def _fit_window(self, horizon_s: float, history: MinuteRates) -> None:
        """Let the analogues' window cover the horizon, from any second of a minute on."""
        needed = min(math.ceil(horizon_s / MINUTE_S) + 1, LONGEST)
        length = self._analogues.length
        if needed > length or 2 * needed < length:
            fitting = next(one for one in _LENGTHS if one >= needed)
            self._analogues = Analogues(lead=0, length=fitting)
            self._highest = None
            self._refilling = deque(self._not_due(history))

    def _not_due(self, history: MinuteRates) -> Iterable[tuple[int, float | None]]:
        """The minutes of the history that the analogues are not about to learn anyway."""
        waiting = [_begins(minute) for name, minute in self._due if name == _ANALOGUES]
        return history.until(min(waiting, default=None))

    def _run(self, name: str, minute: MinuteRate) -> None:
        if name == _GAP:
            before = self._missing
            self._missing += minute.minutes
            if before <= _FILLED_GAP < self._missing:
                self._start_again()
            return
        if name == _ANALOGUES:
            if self._refilling:
                self._refilling.append(minute)
                return
            self._learn_analogue(minute)
            self._highest = None
            if minute.rate is not None:
                self._highest = self._analogues.outlook().highest_load(self._coverage)
            return
        self._missing = 0
        if minute.rate is not None:
            self._stepwise[name].run(minute, minute.rate)
            self._last = minute

    def _learn_analogue(self, minute: MinuteRate) -> None:
        if minute.rate is None:
            self._analogues.miss(minute.ended_s, minute.minutes)
        else:
            self._analogues.observe(minute.rate, minute.ended_s)


def _begins(minute: MinuteRate) -> int:
    """The number of its first minute, which differs from its last in a gap."""
    return minute.number - minute.minutes + 1


def _minute(number: int, rate: float | None, minutes: int = 1) -> MinuteRate:
    """A minute of a document."""
    return MinuteRate(int(number), None if rate is None else finite(rate), int(minutes))
