"""How many rows come to a segment for each row from outside: its visit ratio.

A later segment gets its rows a batch after they arrived. So while the load falls, its rate of this
moment is that of an earlier and higher load, and the quotient of the two rates is far too high.
Here both rates are averaged over many batches first: a delay of one batch then changes the quotient
by a few per cent at most, however fast the load falls.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from tidegate.control.measurement import Measurement
from tidegate.forecast.remembering import Remembered

_LEAST_S = 60.0
"""The shortest time over which rates are averaged."""
_BATCHES = 10.0
"""Rates are averaged over so many times the longest batch."""


class _Ratio(Remembered):
    """The visit ratio of one segment, since it got its first row."""

    _LEARNED = ("_rows", "_outside")

    def __init__(self) -> None:
        self._rows = 0.0
        self._outside = 0.0

    def update(self, rate: float, outside: float, fresh: float) -> None:
        """Average both rates; `fresh` is the weight of this tick."""
        if rate <= 0.0 and self._rows == 0.0:
            return
        self._rows += fresh * (rate - self._rows)
        self._outside += fresh * (outside - self._outside)

    @property
    def value(self) -> float | None:
        return self._rows / self._outside if self._outside > 0.0 else None


class Visits:
    """The visit ratios of a pipeline's segments; `learn` is called once a tick."""

    _MOST: ClassVar[int] = 256
    """Segments that are remembered."""

    def __init__(self) -> None:
        self._ratios: dict[str, _Ratio] = {}
        self._batch_s = 0.0

    def learn(self, measurement: Measurement) -> None:
        """Average the rates of a tick. A time without any row says nothing about the ratios."""
        longest_s = [one.duration_s for part in measurement.segments for one in part.batches]
        self._batch_s = max(longest_s, default=self._batch_s)
        over_s = max(_LEAST_S, _BATCHES * self._batch_s)
        fresh = -math.expm1(-max(measurement.interval_s, 0.0) / over_s)
        for segment in measurement.segments:
            ratio = self._ratios.setdefault(segment.name, _Ratio())
            ratio.update(segment.arrival_rate, measurement.arrival_rate, fresh)

    def ratio(self, name: str) -> float | None:
        """The averaged visit ratio of a segment; None before its first row."""
        found = self._ratios.get(name)
        return None if found is None else found.value

    def learned(self) -> dict[str, Any]:
        """The averages of each segment."""
        newest = list(self._ratios.items())[-self._MOST :]
        return {name: ratio.learned() for name, ratio in newest}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the averages of an earlier run."""
        for name, part in learned.items():
            self._ratios[name] = _Ratio()
            self._ratios[name].recall(part, age_s)
