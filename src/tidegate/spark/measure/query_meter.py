"""The meter of one streaming query: Spark's own progress reports, each read once."""

import re

from pyspark.sql.streaming.query import StreamingQuery

from tidegate.spark.measure.progress import BatchProgress, batch_progress

_STARTING = "Initializing"
"""How the message of Spark's status begins until a query first looks at its sources."""
_INTERVAL = re.compile(r"ProcessingTimeTrigger\((\d+)\)")


class QueryMeter:
    """Reads a running query, batch after batch. It is pulled by whoever keeps time: no listener.

    The query keeps its last reports (`spark.sql.streaming.numRecentProgressUpdates`; our sessions
    keep 1,000), and only new ones are fetched from the JVM.
    """

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._last_batch_id = -1

    def read(self) -> list[BatchProgress]:
        """The batches that ended since the last call, oldest first."""
        reports = self._query._jsq.recentProgress()
        fresh: list[BatchProgress] = []
        for index in range(len(reports) - 1, -1, -1):
            report = reports[index]
            if report.batchId() <= self._last_batch_id:
                break
            progress = batch_progress(report.json())
            if progress is not None:
                fresh.append(progress)
        if fresh:
            self._last_batch_id = fresh[0].batch_id
        return fresh[::-1]


def has_started(message: str) -> bool:
    """Whether a query has come so far that it looks at its sources, by its status's message."""
    return not message.startswith(_STARTING)


def trigger_interval_s(query: StreamingQuery) -> float:
    """P of a query with a fixed trigger interval; 0 where the next batch follows at once."""
    trigger = query._jsq.streamingQuery().trigger().toString()
    found = _INTERVAL.search(trigger)
    return int(found[1]) / 1000.0 if found else 0.0
