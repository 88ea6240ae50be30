"""Predicts when the next micro-batch begins and how many rows it will have.

Shedding is decided for that batch: a decision takes effect with the next batch, which takes the
rows that arrived since the last one began. Its size can be predicted from the arrivals so far and
the remaining time of the running batch, so a surge is seen long before latency shows it. Between
two batches, the next batch is the one that waits for the decision.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.control.measurement import Measurement
from tidegate.control.shedding.keep import keep_over

IDLE_S = 0.5
"""A longer gap between two batches means that there was no load: under load, the next batch follows
almost at once."""


def time_gathering_s(begun_s: float, ended_s: float, now_s: float) -> float:
    """Time over which the rows of a batch that begins now arrived: since the last batch began.

    Zero after an idle gap: the source was silent, or the query waited for its trigger, so the time
    is unknown. The batch then keeps the planned share of its rows instead of a number of rows.
    """
    return 0.0 if now_s - ended_s > IDLE_S else now_s - begun_s


@dataclass(frozen=True, slots=True)
class NextBatch:
    """The first batch that a decision made now applies to."""

    begins_s: float
    offered_rows: float
    span_s: float
    """Time over which its rows arrive: from the start of the batch before it to its own."""


@dataclass(frozen=True, slots=True)
class _Running:
    """The batch that has begun and not yet ended."""

    begun_s: float
    kept_rows: float
    shed_rows: float


class NextBatchWatch:
    """Follows the batches of the first segment, which reads the sources, tick by tick."""

    def __init__(self) -> None:
        self._rates: deque[tuple[float, float, float]] = deque()
        """Begin, end and rate of the ticks since the newest ended batch began."""
        self._running: _Running | None = None
        self._ended: tuple[float, float] | None = None
        """End and duration of the newest batch, while the keep of the next may still change."""
        self._between = False
        self.begun_s: float | None = None
        """When the newest batch that has ended began."""
        self.waits_since_s: float | None = None
        """When the batch before that one began: since then, its rows have been arriving."""

    def observe(self, measurement: Measurement, span_s: float | None = None) -> None:
        """Take in a tick; `span_s` is the span that the keep in force was planned for."""
        at_s = measurement.at_s
        self._rates.append((at_s - measurement.interval_s, at_s, measurement.arrival_rate))
        first = measurement.segments[0] if measurement.segments else None
        self._between = first is not None and first.between
        if first is not None and first.batches:
            begun = [self.begun_s, *(batch.ended_s - batch.duration_s for batch in first.batches)]
            self.waits_since_s, self.begun_s = begun[-2:]
            self._ended = first.batches[-1].ended_s, first.batches[-1].duration_s
        if self._ended is not None and self.begun_s is not None:
            ended_s, duration_s = self._ended
            offered = self.arrived(self.begun_s, ended_s)
            kept = keep_over(measurement.keep, span_s, duration_s) * offered
            self._running = _Running(ended_s, kept, offered - kept)
            while self._rates[0][1] < self.begun_s:
                self._rates.popleft()
            if not self._between:
                self._ended = None

    def arrived(self, begin_s: float, end_s: float) -> float:
        """Rows that arrived between two times, by the rates of the ticks."""
        return sum(
            rate * max(min(end, end_s) - max(begin, begin_s), 0.0)
            for begin, end, rate in self._rates
        )

    def next_batch(
        self, measurement: Measurement, duration_s: Callable[[float, float], float]
    ) -> NextBatch | None:
        """The next batch; None before any batch has ended.

        `duration_s` gives the duration of a batch from its rows kept and shed.
        """
        running = self._running
        if running is None or self.begun_s is None:
            return None
        if self._between:
            # The backlog is computed from the newest rate; earlier ticks may have missed a surge.
            at_s = measurement.at_s
            rows = max(self.arrived(self.begun_s, at_s), measurement.segments[0].backlog_rows)
            return NextBatch(at_s, rows, at_s - self.begun_s)
        takes_s = duration_s(running.kept_rows, running.shed_rows)
        takes_s = max(takes_s, measurement.segments[0].trigger_s)
        begins_s = max(running.begun_s + takes_s, measurement.at_s)
        waiting = self.arrived(running.begun_s, measurement.at_s)
        coming = measurement.arrival_rate * (begins_s - measurement.at_s)
        return NextBatch(begins_s, waiting + coming, begins_s - running.begun_s)
