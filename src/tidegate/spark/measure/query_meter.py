"""The meter: Spark's progress and the rows' own stamps, folded into one picture per batch."""

import re
from dataclasses import dataclass

from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.learning.sojourn import BatchStamps, SojournWindow, sojourn
from tidegate.control.measurement import Latency
from tidegate.spark.measure.progress import BatchProgress, batch_progress
from tidegate.spark.measure.stamps import StampCounter

_INTERVAL = re.compile(r"ProcessingTimeTrigger\((\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeteredBatch:
    """A batch that is over, and how long its rows were in the pipeline."""

    progress: BatchProgress
    latency: Latency | None
    """`None` when there are no rows or no stamps on them."""
    stamps: BatchStamps | None
    """What the latency was made from, for whoever wants it over more than one batch."""


class Meter:
    """Reads a running query, batch after batch; pulled by whoever keeps time, with no listener.

    The query keeps its last reports (`spark.sql.streaming.numRecentProgressUpdates`; our sessions
    keep 1,000), and only those that are new are fetched from the JVM.
    """

    def __init__(
        self, query: StreamingQuery, stamps: StampCounter | None = None, *, window_s: float = 10.0
    ) -> None:
        self._query = query
        self._stamps = stamps
        self._window = SojournWindow(window_s)
        self._last_batch_id = -1

    def read(self) -> list[MeteredBatch]:
        """The batches that ended since the last call, oldest first."""
        batches = []
        for progress in self._new_progress():
            self._last_batch_id = progress.batch_id
            stamps = latency = None
            if self._stamps is not None:
                stamps = BatchStamps(self._stamps.take(progress.batch_id), progress.end_us)
                self._window.add(stamps)
                latency = sojourn([stamps])
            batches.append(MeteredBatch(progress=progress, latency=latency, stamps=stamps))
        return batches

    def latency(self, now_us: int) -> Latency | None:
        """Sojourn over the rows of all batches that were read and ended within the window."""
        return self._window.latency(now_us)

    def _new_progress(self) -> list[BatchProgress]:
        reports = self._query._jsq.recentProgress()
        fresh: list[BatchProgress] = []
        for index in range(len(reports) - 1, -1, -1):
            report = reports[index]
            if report.batchId() <= self._last_batch_id:
                break
            progress = batch_progress(report.json())
            if progress is not None:
                fresh.append(progress)
        return fresh[::-1]


def trigger_interval_s(query: StreamingQuery) -> float:
    """P of a query with a fixed trigger interval; 0 where the next batch follows at once."""
    trigger = query._jsq.streamingQuery().trigger().toString()
    found = _INTERVAL.search(trigger)
    return int(found[1]) / 1000.0 if found else 0.0
