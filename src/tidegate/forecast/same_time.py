"""Rises that come at the same time of the day: what followed this minute on earlier days.

A rise that comes once a day is too rare to show in the average loss of a forecaster, yet it is what
matters most where cores take minutes to be granted. So it is looked up: if the load rose within the
horizon yesterday, the day before or a week ago, from the same minute on, it is expected to rise by
as much today.
"""

import math
from typing import ClassVar

from tidegate.forecast.minute_rates import MINUTE_S, MinuteRates
from tidegate.forecast.remembering import Remembered

DAYS_BACK = (1, 2, 7)
RISE = 0.15
"""Growth (in logarithms) that is more than noise."""
_DAY = 24 * 60
_HOUR = 60
_EARLY = 1
"""Minutes by which a rise may come earlier than on another day."""
_NEAR = 2
"""Minutes before and after a time of another day that are averaged."""
_HIGHER = 1.1
"""A load may be expected to exceed that of the other day by this factor, at the same level."""
_FADING = 0.8
_PAYS = 0.25
"""Share of expected rises that must have come. An unneeded rise costs some minutes of cores; an
unforeseen one costs seconds above the target."""


class SameTime(Remembered):
    """Looks up rises in the history of minutes, and learns how often they come again."""

    _LEARNED = ("kept", "_awaited")
    _LIKE: ClassVar = {"_awaited": (0, 0.0)}

    def __init__(self) -> None:
        self.kept = 0.5
        """The share of expected rises that came, faded."""
        self._awaited: tuple[int, float] | None = None
        """The last minute of the window of an expected rise, and the load that would confirm it."""
        self._asked: tuple[int, int] | None = None
        self._answer: float | None = None

    def expected(self, ahead: int, history: MinuteRates) -> float | None:
        """The highest load of the next `ahead` minutes if a usual rise is due; else None."""
        now = history.newest
        if now is None:
            return None
        if self._asked != (now, ahead):
            self._asked = (now, ahead)
            self._judge(now, history)
            self._answer = self._look_up(now, ahead, history)
        return self._answer if self.kept >= _PAYS else None

    def _look_up(self, now: int, ahead: int, history: MinuteRates) -> float | None:
        level = _mean(history, now - 1, now)
        usual = _mean(history, now - _HOUR, now)
        if level is None or usual is None or level <= 0.0:
            return None
        expected = 0.0
        for days in DAYS_BACK:
            then = now - days * _DAY
            before = _mean(history, then - 1, then)
            usual_then = _mean(history, then - _HOUR, then)
            rates = [history.rate_of(then + 1 + n) for n in range(ahead + _EARLY)]
            window = [rate for rate in rates if rate is not None]
            if not before or not usual_then or not window:
                continue
            highest = max(window)
            if highest > before * math.exp(RISE):
                most = _HIGHER * highest * max(usual / usual_then, 1.0)
                expected = max(expected, min(level * highest / before, most))
        if expected <= level * math.exp(RISE):
            return None
        if self._awaited is None:
            confirmed = level * math.exp(0.5 * math.log(expected / level))
            self._awaited = (now + ahead + 2 * _EARLY, confirmed)
        return expected

    def _judge(self, now: int, history: MinuteRates) -> None:
        """Whether the rise that was expected has come by now."""
        if self._awaited is None:
            return
        until, confirmed = self._awaited
        rate = history.rate_of(now)
        came = rate is not None and rate >= confirmed
        if came or now >= until:
            self.kept = _FADING * self.kept + (1.0 - _FADING) * float(came)
            self._awaited = None


def usual_rate(at_s: float, history: MinuteRates) -> float | None:
    """The load at this time on the other days that are known, the highest of them; else None.

    It is what to expect where no load was measured for so long that the last one says nothing.
    """
    now = math.floor(at_s / MINUTE_S)
    rates = (
        _mean(history, now - days * _DAY - _NEAR, now - days * _DAY + _NEAR) for days in DAYS_BACK
    )
    return max((rate for rate in rates if rate is not None), default=None)


def _mean(history: MinuteRates, first: int, last: int) -> float | None:
    rates = [history.rate_of(number) for number in range(first, last + 1)]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None
