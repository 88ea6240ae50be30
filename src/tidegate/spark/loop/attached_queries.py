"""The attached queries that run now, those that began, and a line in the log for each that failed.

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
        self.began: Callable[[StreamingQuery], None] = lambda _: None
        """Called with every query when it is first seen."""

    def __call__(self) -> Sequence[StreamingQuery]:
        """The queries that run now."""
        running = self._running()
        ids = {str(query.runId): query for query in running}
        for run_id, query in self._known.items():
            if run_id not in ids and (error := query.exception()) is not None:
                name = query.name or query.id
                _log.warning("the attached query '%s' failed: %s", name, foreign_failure(error))
        new = [query for run_id, query in ids.items() if run_id not in self._known]
        self._known = ids
        for query in new:
            self.began(query)
        return running

    def runs(self, run_id: str) -> bool:
        """Whether that run of a query went on when it was last looked at."""
        return run_id in self._known
