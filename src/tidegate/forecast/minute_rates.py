"""Adds up the rates of ticks to rates of minutes. Time stamps tell which minutes are missing.

Ticks may be long or short, late, or absent while nothing was measured. A minute counts only if at
least half of it was covered by ticks. A missing minute is a gap in the history, not a load of zero.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tidegate.errors import AskedWrongly
from tidegate.forecast.remembering import Remembered

MINUTE_S = 60.0
MEMORY = 7 * 24 * 60
"""Minutes that are kept: a week."""
LONGEST_TICK_S = 15.0
"""A tick that ends later than this after the one before covers only as much as a usual tick."""


class MinuteRate(NamedTuple):
    """The mean rate of one minute."""

    number: int
    """Minutes since the epoch until it began."""
    rate: float | None
    """Rows per second; None: less than half of the minute was measured."""

    @property
    def ended_s(self) -> float:
        """When it ended, in seconds since the epoch."""
        return MINUTE_S * (self.number + 1)


class MinuteRates(Remembered):
    """The rates of the last week's minutes; call `observe` once a tick."""

    _LEARNED = ("_number", "_rows", "_covered_s", "_last_s", "_usual_s")

    def __init__(self, memory: int = MEMORY, *, tick_s: float = 1.0) -> None:
        if memory < 1:
            raise AskedWrongly(f"a history cannot keep {memory} minutes; give 1 or more")
        self._memory = memory
        self._known: list[MinuteRate] = []
        self._number: int | None = None
        self._rows = 0.0
        self._covered_s = 0.0
        self._last_s: float | None = None
        self._usual_s = tick_s
        """The usual length of a tick."""

    @property
    def known(self) -> tuple[MinuteRate, ...]:
        """The minutes in memory, oldest first, without the one that is not over yet."""
        return tuple(self._known[-self._memory :])

    @property
    def newest(self) -> int | None:
        """The number of the last minute that is over; None before the first."""
        return self._known[-1].number if self._known else None

    def rate_of(self, number: int) -> float | None:
        """The rate of a minute; None if it is not known."""
        place = number - self._known[0].number if self._known else -1
        return self._known[place].rate if 0 <= place < len(self._known) else None

    def observe(self, rate: float, at_s: float) -> list[MinuteRate]:
        """Add a tick that ended at `at_s`; return the minutes that are over now, gaps included."""
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
        self._known.extend(MinuteRate(number, rate) for number, rate in minutes)
        if self._known:
            self._number = self._known[-1].number + 1

    def learned(self) -> dict[str, Any]:
        """The minutes in memory, and what is known of the one that is not over yet."""
        known = self.known
        first = known[0].number if known else None
        return {**super().learned(), "first": first, "rates": [one.rate for one in known]}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the minutes of an earlier run. Those since then will be missing."""
        first = learned.get("first")
        if first is not None:
            self.refill((first + n, rate) for n, rate in enumerate(learned["rates"]))
        super().recall(learned, age_s)

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
            self._known, over = [], []  # all that was known is older than the memory
        first = max(self._number + 1, number - self._memory)
        over += [MinuteRate(missing, None) for missing in range(first, number)]
        self._known.extend(over)
        if len(self._known) > 2 * self._memory:
            del self._known[: -self._memory]
        self._number, self._rows, self._covered_s = number, 0.0, 0.0
        return over
