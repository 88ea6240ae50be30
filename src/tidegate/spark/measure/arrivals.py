"""The rate at which rows arrive at a segment from outside, and which wait, by their stamps.

Rows that arrived before the run began are a backlog. However fast they once came, they say nothing
about the rate now, so no rate contains them.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from tidegate.control.learning.sojourn import SLOT_US, Stamps
from tidegate.spark.batch.segment import SegmentRun
from tidegate.spark.measure.running_batch import (
    RunningArrivals,
    arrivals_of,
    running_arrivals,
    since,
)

_RATE_WINDOW_S = 1.0
_WINDOW_SLOTS = round(_RATE_WINDOW_S * 1e6 / SLOT_US)
_SHORTEST_S = 0.1
"""A rate is counted over at least so long, however recently the first row arrived."""
_REMEMBERED = 64


class Arrivals:
    """When rows arrived, as far as finished and running batches have told."""

    def __init__(self, since_s: float = 0.0) -> None:
        self._since_us = round(since_s * 1e6)
        """When the run began."""
        self._finished: deque[Stamps] = deque(maxlen=_REMEMBERED)
        self._running: dict[int, RunningArrivals] = {}
        """What batches have told that are not finished, by their ids."""
        self._newest_us = 0
        """The newest arrival among finished rows."""
        self._oldest_us = 0
        """The first arrival of all: no rate is counted over the time before it."""

    def add(self, offered: Stamps) -> None:
        """The rows of one more finished batch."""
        offered = since(offered, self._since_us)
        if not offered.rows:
            return
        if not self._oldest_us:
            self._oldest_us = int(offered.slots[0]) * SLOT_US
        self._newest_us = max(self._newest_us, int(offered.slots[-1]) * SLOT_US)
        # Only the newest second is ever counted, and the newest arrival never gets older.
        recent = offered.slots > self._newest_us // SLOT_US - _WINDOW_SLOTS
        self._finished.append(Stamps(offered.slots[recent], offered.counts[recent], 0))

    def caught_up(self) -> None:
        """The backlog from before the run is done: later rows have arrived since, by any clock."""
        self._since_us = 0

    def look_ahead(
        self, part: SegmentRun, newest: int, trusted: Callable[[int], bool] = lambda _: True
    ) -> None:
        """Ask a segment for its batches behind `newest`, the last one that is finished.

        Those are the batch that runs and those whose duration Spark has not told yet. What a batch
        told once is remembered until it is finished, whatever step it is at meanwhile. Arrivals
        that are not `trusted`, by the newest of them, are left out.
        """
        done = [arrivals_of(part, r) for r in list(part.results) if r.plan.batch_id > newest]
        for told in (*done, running_arrivals(part)):
            if told is not None and trusted(told.newest_us):
                fresh = since(told.offered, self._since_us)
                self._running[told.batch_id] = replace(told, offered=fresh)
        self._running = {b: told for b, told in self._running.items() if b > newest}

    @property
    def running_rows(self) -> int:
        """Rows kept by batches that are not finished: they are not done yet."""
        return sum(told.kept for told in self._running.values())

    def rate(self) -> float | None:
        """Rows per second of the newest second that any batch tells of; None without any arrival.

        By the rows' own stamps, so that a late batch does not look like a late surge.
        """
        if not self._finished:
            return None
        running = [told.offered for told in self._running.values()]
        newest = self._told_us() // SLOT_US
        counted = sum(
            int(stamps.counts[stamps.slots > newest - _WINDOW_SLOTS].sum())
            for stamps in (*self._finished, *running)
        )
        since_first_s = (newest - self._oldest_us // SLOT_US + 1) * SLOT_US / 1e6
        return counted / min(_RATE_WINDOW_S, max(since_first_s, _SHORTEST_S))

    def silent_s(self, now_s: float) -> float:
        """Time since the newest arrival that any batch tells of; zero where none has stamps."""
        return max(0.0, now_s - self._told_us() / 1e6) if self._newest_us else 0.0

    def _told_us(self) -> int:
        """The newest arrival that any batch has told of."""
        return max([self._newest_us, *(told.newest_us for told in self._running.values())])


def decayed(rate: float, silent_s: float) -> float:
    """A rate that held until `silent_s` seconds ago, when nothing has arrived since."""
    return rate * _RATE_WINDOW_S / (_RATE_WINDOW_S + silent_s)
