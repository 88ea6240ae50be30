"""Adds up the rates of ticks to rates of minutes. Time stamps tell which minutes are missing.

Ticks may be long or short, late, or absent while nothing was measured. A minute counts only if at
least half of it was covered by ticks. A missing minute is a gap in the history, not a load of zero.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from tidegate.errors import AskedWrongly
from tidegate.forecast.remembering import Remembered, finite

MINUTE_S = 60.0
MEMORY = 7 * 24 * 60
"""Minutes that are kept: a week."""
LONGEST_TICK_S = 15.0
"""A tick that ends later than this after the one before covers only as much as a usual tick."""


class MinuteRate(NamedTuple):
    """The mean rate of one minute, or a gap of several minutes."""

    number: int
    """Minutes since the epoch until it began; of a gap: its last minute."""
    rate: float | None
    """Rows per second; None: less than half of the minute was measured."""
    minutes: int = 1
    """The length of a gap: days without a tick are one entry, not thousands."""

    @property
    def ended_s(self) -> float:
        """When it ended, in seconds since the epoch."""
        return MINUTE_S * (self.number + 1)


class MinuteRates(Remembered):
    """The rates of the last week's minutes; call `observe` once a tick."""

    _LEARNED = ("_number", "_rows", "_covered_s", "_last_s", "_usual_s")
    _LIKE: ClassVar = {"_number": 0, "_last_s": 0.0}

    def __init__(self, memory: int = MEMORY, *, tick_s: float = 1.0) -> None:
        if memory < 1:
            raise AskedWrongly(f"a history cannot keep {memory} minutes; give 1 or more")
        self._memory = memory
        self._first = 0
        """The number of the first minute in memory."""
        self._rates: list[float | None] = []
        """The rates of the minutes that are over, none left out."""
        self._number: int | None = None
        self._rows = 0.0
        self._covered_s = 0.0
        self._last_s: float | None = None
        self._usual_s = tick_s
        """The usual length of a tick."""

    @property
    def known(self) -> tuple[MinuteRate, ...]:
        """The minutes in memory, oldest first, without the one that is not over yet."""
        return tuple(MinuteRate(number, rate) for number, rate in self.until(None))

    def until(self, end: int | None) -> Iterable[tuple[int, float | None]]:
        """Numbers and rates of the minutes in memory before this one; None: of all."""
        begin = max(len(self._rates) - self._memory, 0)
        stop = len(self._rates)
        if end is not None:
            stop = max(min(end - self._first, stop), begin)
        numbers = range(self._first + begin, self._first + stop)
        return zip(numbers, self._rates[begin:stop], strict=True)

    def retime(self, tick_s: float) -> None:
        """Expect ticks of another length from now on."""
        self._usual_s = tick_s

    @property
    def newest(self) -> int | None:
        """The number of the last minute that is over; None before the first."""
        return self._first + len(self._rates) - 1 if self._rates else None

    def rate_of(self, number: int) -> float | None:
        """The rate of a minute; None if it is not known."""
        place = number - self._first
        return self._rates[place] if 0 <= place < len(self._rates) else None

    def observe(self, rate: float, at_s: float) -> list[MinuteRate]:
        """Add a tick that ended at `at_s`; return the minutes that are over now.

        Minutes without a tick are returned as one gap.
        """
        since_s = self._usual_s if self._last_s is None else at_s - self._last_s
        if since_s <= 0.0:
            return []
        if since_s <= max(LONGEST_TICK_S, 3.0 * self._usual_s):
            self._usual_s += 0.2 * (since_s - self._usual_s)
        else:
            since_s = self._usual_s
        self._last_s = at_s
        number = math.ceil(at_s / MINUTE_S) - 1
        over = self._end_before(number)
        self._rows += rate * since_s
        self._covered_s += since_s
        return over

    def refill(self, minutes: Iterable[tuple[int, float | None]]) -> None:
        """Begin with the minutes of an earlier run, oldest first and none left out."""
        for number, rate in minutes:
            if not self._rates:
                self._first = number
            self._rates.append(rate)
        if self._rates:
            self._number = self._first + len(self._rates)

    def learned(self) -> dict[str, Any]:
        """The minutes in memory, and what is known of the one that is not over yet."""
        begin = max(len(self._rates) - self._memory, 0)
        first = self._first + begin if self._rates else None
        return {**super().learned(), "first": first, "rates": self._rates[begin:]}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the minutes of an earlier run. Those since then will be missing."""
        first = learned.get("first")
        if first is not None:
            rates = [None if rate is None else finite(rate) for rate in learned["rates"]]
            self.refill((int(first) + n, rate) for n, rate in enumerate(rates))
        super().recall(learned, age_s)
        if self._rates:
            self._number = self._first + len(self._rates)

    def _end_before(self, number: int) -> list[MinuteRate]:
        if self._number is None:
            self._number = number
        if number <= self._number:
            return []
        whole = self._covered_s >= 0.5 * MINUTE_S
        # Six digits are more than any forecast can use, and keep the stored history small.
        rate = float(f"{self._rows / self._covered_s:.6g}") if whole else None
        over = [MinuteRate(self._number, rate)]
        if number - self._number > self._memory:
            self._rates, over = [], []  # all that was known is older than the memory
        missed = min(number - self._number - 1, self._memory)
        if missed > 0:
            over.append(MinuteRate(number - 1, None, missed))
        for one in over:
            self._rates += [one.rate] * one.minutes
        if len(self._rates) > 2 * self._memory:
            del self._rates[: -self._memory]
        self._first = number - len(self._rates)
        self._number, self._rows, self._covered_s = number, 0.0, 0.0
        return over
