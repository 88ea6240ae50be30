"""Names clocks that differ: those of executors, and of who stamps the rows.

Latency is the time from a row's stamp to the end of its batch by the driver's clock. If the clock
of who stamps it is ahead, latency is told too low, and too high if it is behind. Nothing tells a
clock that is behind from rows that come late to their source, so the note names both. Tidegate
takes no time from the clocks of executors, but functions of the user may.
"""

import math
from collections import deque

from tidegate.control.learning.executor_speeds import executor_words
from tidegate.control.measurement import Measurement, SegmentMeasurement

_AHEAD_S = 2.0
"""Clocks that are kept by a time server differ by less."""
_BEHIND_S = 20.0
_BATCHES = 5
"""So many batches in a row must say the same."""
_LONG = 3.0
"""Rows that wait for a batch are not older than so many batches."""


class ClockNotes:
    """Sees every tick in time order, and returns the notes for its record."""

    def __init__(self) -> None:
        self._executors: dict[str, deque[float]] = {}
        self._ages: dict[str, deque[float]] = {}

    def notes(self, measurement: Measurement) -> tuple[str, ...]:
        """A sentence for each clock that differs; empty where none does."""
        found = []
        for one in measurement.executors:
            last = self._executors.setdefault(one.name, deque(maxlen=_BATCHES))
            last.append(one.clock_ahead_s)
        for name, last in self._executors.items():
            note = _of_executor(name, last)
            if note is not None:
                found.append(note)
        for segment in measurement.segments:
            note = self._of_stamps(segment)
            if note is not None:
                found.append(note)
        self._forget(measurement)
        return tuple(found)

    def _of_stamps(self, segment: SegmentMeasurement) -> str | None:
        ages = self._ages.setdefault(segment.name, deque(maxlen=_BATCHES))
        for batch in segment.batches:
            if batch.newest_age_s is None:
                continue
            waited = batch.duration_s * _LONG
            late = batch.newest_age_s > max(_BEHIND_S, waited) and not _behind(segment)
            ages.append(batch.newest_age_s if late or batch.newest_age_s < 0.0 else 0.0)
        if len(ages) < _BATCHES:
            return None
        if max(ages) <= -_AHEAD_S:
            return (
                f"rows of segment '{segment.name}' carry arrival times about {_about(-max(ages))}"
                " ahead of the driver's clock, so their latency is told too low: check the clocks"
                " of who stamps them"
            )
        if min(ages) >= _BEHIND_S:
            return (
                f"the newest rows of segment '{segment.name}' are always about {_about(min(ages))}"
                " old when they are read, although none wait: they come late to their source, or"
                " the clock of who stamps them is behind. Their latency includes it, and no core"
                " helps"
            )
        return None

    def _forget(self, measurement: Measurement) -> None:
        """Forget executors that are gone, once there are many."""
        if len(self._executors) > 64 + 2 * len(measurement.executors):
            there = {one.name for one in measurement.executors}
            self._executors = {n: last for n, last in self._executors.items() if n in there}


def _of_executor(name: str, last: deque[float]) -> str | None:
    if len(last) < _BATCHES:
        return None
    ahead_s = min(last) if min(last) > 0.0 else max(last)
    if abs(ahead_s) < _AHEAD_S:
        return None
    way = "ahead of" if ahead_s > 0.0 else "behind"
    return (
        f"the clock of {executor_words(name)} is at least {_about(abs(ahead_s))} {way} the"
        " driver's: what functions stamp there is wrong by that; let a time server keep the clocks"
    )


def _behind(segment: SegmentMeasurement) -> bool:
    """Whether rows wait in the source."""
    return segment.lag is not None and segment.lag.rows > 0


def _about(seconds: float) -> str:
    """A time for a person that does not change with every tick."""
    if seconds < 10.0:
        return f"{math.floor(seconds)} s"
    return f"{5 * math.floor(seconds / 5.0)} s"
