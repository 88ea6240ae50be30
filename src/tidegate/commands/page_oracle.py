"""The oracle of runs that a page follows, computed anew now and then in a thread of its own.

It takes seconds for a long run, so it is at most a small share of one core's work, and the page
says until when it is known.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from tidegate.commands.oracle import best_of
from tidegate.control.record import Record
from tidegate.logs import reason
from tidegate.view.live.page.feed import TICKS, Feed, OracleUntil

log = logging.getLogger("tidegate.page")

SHARE = 0.01
"""At most this share of a core's time is spent on it."""
LEAST_PAUSE_S = 10.0
_LOOK_EVERY_S = 0.5


class FollowedOracle:
    """The oracle of one run that is followed."""

    def __init__(
        self,
        feed: Feed,
        records: Sequence[Record] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        """`records` are those that the feed has already."""
        self._feed = feed
        self._records = list(records)
        self._most = max(len(self._records), TICKS)
        """A run that grows beyond this has none: memory and time are bounded."""
        self._clock, self._spent = clock, spent
        self._due_s = clock()
        self._told = 0
        """How many records the newest one is about."""

    def add(self, record: Record) -> None:
        """Take a record that came, in the thread that follows."""
        if len(self._records) <= self._most:
            self._records.append(record)

    def look(self) -> None:
        """Compute it, if records have come and it is time to."""
        if self._clock() < self._due_s or len(self._records) == self._told:
            return
        known = list(self._records)
        self._told = len(known)
        began_s = self._spent()
        self._feed.oracle = oracle_until(known) if len(known) <= self._most else None
        took_s = self._spent() - began_s
        self._due_s = self._clock() + max(LEAST_PAUSE_S, took_s / SHARE)


def oracle_until(records: Sequence[Record]) -> OracleUntil | None:
    """The oracle of these records; None where it cannot be told."""
    best = best_of(records)
    if best is None:
        return None
    used = sum(one.measurement.cores_granted * one.measurement.interval_s for one in records)
    at_s = records[-1].measurement.at_s
    return OracleUntil(at_s, best.core_seconds, used, best.within, best.estimated)


def keep_oracles(oracles: Sequence[FollowedOracle], end: threading.Event) -> threading.Thread:
    """Start the thread that keeps them up to date until the end."""

    def looks() -> None:
        while True:
            try:
                for one in oracles:
                    one.look()
            except Exception as error:  # the page does without
                log.warning("the oracle could not be computed: %s", reason(error))
                return
            if end.wait(_LOOK_EVERY_S):
                return

    thread = threading.Thread(target=looks, name="tidegate-oracle", daemon=True)
    thread.start()
    return thread
