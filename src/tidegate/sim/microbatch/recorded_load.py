"""The load of a recorded run: when its rows arrived, and how many were there before it began.

The rows of a micro-batch arrived between the start of the batch before it and its own. Where a tick
in between saw nothing waiting, they arrived after that tick. After the last batch, only those rows
arrived that still wait at the end. Rows that were there before the run are a backlog: however many
they are, they are no rate.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.measurement import BatchMeasurement, SegmentMeasurement
from tidegate.control.record import Record
from tidegate.workload.profile import Profile

_SHORTEST_MS = 50
"""The shortest part of a span that rows are divided over."""
_SECOND_MS = 1000
"""Ticks tell the rate of a second, so no rows are put into less time than that for their sake."""
_FIRST_STAGE = 0.7
"""The share of a batch's duration after which its arrivals are surely known."""
_TOO_MANY = 2.0
"""A first batch with so many times the rows that the told rate explains had a backlog. Rates that
change during the batch explain less."""


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """What a segment read from its source."""

    profile: Profile
    backlog_rows: float
    """Rows that were in the source when the run began."""


def batches_of(records: Sequence[Record], segment: str) -> list[BatchMeasurement]:
    """The batches of a segment, in order."""
    found = [
        batch
        for record in records
        for one in record.measurement.segments
        if one.name == segment
        for batch in one.batches
    ]
    return sorted(found, key=lambda batch: batch.ended_s)


def recorded_load(
    records: Sequence[Record], segment: str, starts_s: float, *, alone: bool
) -> RecordedLoad:
    """The load of a segment that reads a source; `alone`: no other segment does.

    The rate of a tick is that of all sources, so only a segment that is alone can divide the rows
    of a longer span by it.
    """
    told = _Told(records, segment)
    edges_ms, rates = [0], list[float]()
    backlog_rows, catching_up = 0.0, True
    before: BatchMeasurement | None = None
    for batch in batches_of(records, segment):
        begun_ms = round((batch.ended_s - batch.duration_s - starts_s) * 1000.0)
        rows = float(batch.rows + batch.shed_rows)
        if catching_up:
            old = _there_before(rows, (begun_ms - edges_ms[-1]) / 1000.0, told.after(batch))
            backlog_rows, rows, catching_up = backlog_rows + old, rows - old, old > 0.0
        if begun_ms <= edges_ms[-1]:
            if rows <= 0.0:
                continue
            begun_ms = edges_ms[-1] + 1
        if before is not None and (quiet_s := told.nothing_until(before, batch)) is not None:
            from_ms = min(round((quiet_s - starts_s) * 1000.0), begun_ms - _SECOND_MS)
            if from_ms > edges_ms[-1]:
                edges_ms.append(from_ms)
                rates.append(0.0)
        span_ms = begun_ms - edges_ms[-1]
        newest = (
            told.newest_second(batch) if alone and span_ms >= _SECOND_MS + _SHORTEST_MS else None
        )
        if newest is None:
            rates.append(1000.0 * rows / span_ms)
        else:
            newest = min(newest, rows)
            rates += [1000.0 * (rows - newest) / (span_ms - _SECOND_MS), newest]
            edges_ms.append(begun_ms - _SECOND_MS)
        edges_ms.append(begun_ms)
        before = batch
    left_s = records[-1].measurement.at_s - starts_s - edges_ms[-1] / 1000.0
    rates.append(told.waiting_at_the_end() / left_s if left_s > 0.0 else 0.0)
    return RecordedLoad(Profile(np.array(edges_ms, dtype=np.int64), np.array(rates)), backlog_rows)


def _there_before(rows: float, span_s: float, rate: float | None) -> float:
    """How many rows of one of the first batches had arrived before the run began."""
    if span_s <= 0.0:
        return rows
    if rate is None or rows <= _TOO_MANY * rate * span_s + 1.0:
        return 0.0
    return rows - rate * span_s


class _Told:
    """What the ticks told of a segment's arrivals."""

    def __init__(self, records: Sequence[Record], segment: str) -> None:
        self._ticks = [record.measurement for record in records]
        self._at_s = [tick.at_s for tick in self._ticks]
        self._name = segment

    def _segment(self, place: int) -> SegmentMeasurement | None:
        found = (one for one in self._ticks[place].segments if one.name == self._name)
        return next(found, None)

    def after(self, batch: BatchMeasurement) -> float | None:
        """The rate that the first tick after a batch told; None without one."""
        place = bisect_left(self._at_s, batch.ended_s)
        segment = self._segment(place) if place < len(self._ticks) else None
        return None if segment is None else segment.arrival_rate

    def newest_second(self, batch: BatchMeasurement) -> float | None:
        """Rows of the second before a batch began, by the rate that was told while it ran.

        Its arrivals are known once its first stage is over, and those of the next batch some time
        after its end. None without a tick in between.
        """
        place = bisect_right(self._at_s, batch.ended_s) - 1
        known_s = batch.ended_s - (1.0 - _FIRST_STAGE) * batch.duration_s
        if place < 0 or self._at_s[place] < known_s:
            return None
        return self._ticks[place].arrival_rate

    def nothing_until(self, before: BatchMeasurement, batch: BatchMeasurement) -> float | None:
        """When a tick last saw nothing waiting between two batches; None if none did.

        With a fixed interval only a trigger looks, so rows may have come since the last one.
        """
        place = bisect_left(self._at_s, batch.ended_s - batch.duration_s) - 1
        while place >= 0 and self._at_s[place] > before.ended_s:
            segment = self._segment(place)
            if segment is not None and segment.backlog_rows <= 0.0:
                return self._at_s[place] - segment.trigger_s
            place -= 1
        return None

    def waiting_at_the_end(self) -> float:
        """Rows that had arrived at the end, and that no batch was done with."""
        segment = self._segment(len(self._ticks) - 1)
        return 0.0 if segment is None else max(segment.backlog_rows, 0.0)
