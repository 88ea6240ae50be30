"""The attached queries that run now, and one line in the log for each that has failed.

A program that waits for its query gets Spark's error, with pages of Java around it. One that does
not wait would learn nothing.
"""

import logging
from collections.abc import Callable, Sequence

from pyspark.sql.streaming.query import StreamingQuery

from tidegate.spark.batch.failure import foreign_failure

_log = logging.getLogger("tidegate.loop")


class AttachedQueries:
    """Call it for the running queries; those that have gone since the last call are looked at."""

    def __init__(self, running: Callable[[], Sequence[StreamingQuery]]) -> None:
        self._running = running
        self._known: dict[str, StreamingQuery] = {}

    def __call__(self) -> Sequence[StreamingQuery]:
        """The queries that run now."""
        running = self._running()
        ids = {str(query.runId): query for query in running}
        for run_id, query in self._known.items():
            if run_id not in ids and (error := query.exception()) is not None:
                name = query.name or query.id
                _log.warning("the attached query '%s' failed: %s", name, foreign_failure(error))
        self._known = ids
        return running
