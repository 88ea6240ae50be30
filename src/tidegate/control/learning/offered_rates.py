"""lambda_i of operators that work in micro-batches: visit ratios times the rate from outside.

An operator behind a cut gets the rows of a whole batch at once, and none until the next batch ends.
Its rate over a window of a few seconds is then that of one batch more or less. And while an
operator before it does not keep up, its rate is what that one lets through, not its share of the
load. So what hardly changes is counted row by row: the rows that a batch handed over, and that its
operators got, for each row that this same batch took. The traffic equations (DRS III-B) turn these
into visits per row from outside, and the rate from outside is known by the second.
"""

import math

import numpy as np

from tidegate.control.measurement import Measurement, SegmentMeasurement

_LEAST_S = 60.0
"""The shortest time over which rows are counted."""
_BATCHES = 10.0
"""Rows are counted over so many times the longest batch."""
_MOST_VISITS = 1e6
"""With more visits than this, a loop has no end that counts could show."""


class OfferedRates:
    """The rates of a pipeline's operators; `learn` is called once a tick."""

    def __init__(self) -> None:
        self._batch_s = 0.0
        self._taken: dict[str, float] = {}
        """Rows that the batches of a segment took, older ones fading."""
        self._handed: dict[tuple[str, str], float] = {}
        """Rows that they handed over from one segment to another."""
        self._rows: dict[str, float] = {}
        """Rows that an operator got."""
        self._visits: dict[str, float] = {}
        self._outside: dict[str, float] = {}
        """Rows from outside that come to a segment, per row from outside."""
        self._looped: frozenset[str] = frozenset()
        """Segments that are part of a loop."""

    def learn(self, measurement: Measurement) -> None:
        """Count the batches of a tick, and solve the traffic equations."""
        durations = [one.duration_s for part in measurement.segments for one in part.batches]
        if not durations:
            return
        self._batch_s = max(durations)
        fading = math.exp(-measurement.interval_s / max(_LEAST_S, _BATCHES * self._batch_s))
        for segment in measurement.segments:
            self._count(segment, fading)
        for operator in measurement.operators:
            self._rows[operator.name] = fading * self._rows.get(operator.name, 0.0) + operator.rows
        self._outside = {measurement.segments[0].name: 1.0}
        self._looped = frozenset(one.name for one in measurement.segments if one.loops)
        self._visits = self._solved(measurement.segments)

    def rate(self, operator: str, segment: str, outside: float) -> float | None:
        """lambda_i at this rate from outside; None where counts cannot tell it."""
        visits, taken = self._visits.get(segment), self._taken.get(segment, 0.0)
        if visits is None or taken <= 0.0:
            return None
        return outside * visits * self._rows.get(operator, 0.0) / taken

    def visits(self, segment: str) -> float | None:
        """Rows that come to a segment for each row from outside; None where counts do not tell."""
        return self._visits.get(segment)

    def passes(self, segment: str) -> float | None:
        """Visits of a segment in a loop for each row that comes to it from outside the loop.

        Rows that are multiplied before they reach the loop are more rows, not more passes.
        """
        visits = self._visits.get(segment)
        if visits is None:
            return None
        entering = self._outside.get(segment, 0.0)
        for (writer, reader), rows in self._handed.items():
            if reader == segment and writer not in self._looped and self._taken[writer] > 0.0:
                entering += self._visits.get(writer, 0.0) * rows / self._taken[writer]
        return max(visits / entering, 1.0) if entering > 0.0 else None

    def _count(self, segment: SegmentMeasurement, fading: float) -> None:
        taken = sum(batch.rows for batch in segment.batches)
        self._taken[segment.name] = fading * self._taken.get(segment.name, 0.0) + taken
        handed = {
            reader: fading * rows
            for (writer, reader), rows in self._handed.items()
            if writer == segment.name
        }
        for reader, rows in segment.handed.items():
            handed[reader] = handed.get(reader, 0.0) + rows
        self._handed.update({(segment.name, reader): rows for reader, rows in handed.items()})

    def _solved(self, segments: tuple[SegmentMeasurement, ...]) -> dict[str, float]:
        """v = e + R'v, with r_sj rows handed from s to j for each row that s took.

        Only where all rows from outside come to the first segment: how a second source divides the
        rows from outside is no matter of counts within batches.
        """
        if any(segment.apart for segment in segments):
            return {}
        place = {segment.name: number for number, segment in enumerate(segments)}
        handed = np.zeros((len(segments), len(segments)))
        for (writer, reader), rows in self._handed.items():
            if writer in place and reader in place and self._taken[writer] > 0.0:
                handed[place[reader], place[writer]] = rows / self._taken[writer]
        taken = {name: self._taken[name] for name in place}
        outside = np.zeros(len(segments))
        outside[0] = 1.0
        try:
            visits = np.linalg.solve(np.eye(len(segments)) - handed, outside)
        except np.linalg.LinAlgError:
            return {}
        if not ((visits >= -1e-9) & (visits < _MOST_VISITS)).all():
            return {}  # a loop that brings back more rows than it takes has no equilibrium
        if any(visits[place[name]] <= 0.0 < rows for name, rows in taken.items()):
            return {}  # its rows came from elsewhere
        return {name: float(max(visits[number], 0.0)) for name, number in place.items()}
