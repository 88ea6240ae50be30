"""The streaming queries of a whole Spark application, of whichever of its sessions.

A session lists only its own queries. A program may have several sessions (`newSession`), and they
share the executors.
"""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.spark.loop.boundary import executions_of_all_sessions


class QueriesOfAllSessions:
    """Called once a tick. It asks the JVM for a query only when it is new."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._known: dict[str, StreamingQuery] = {}

    def __call__(self) -> list[StreamingQuery]:
        """The queries that run now."""
        running: dict[str, StreamingQuery] = {}
        for execution in executions_of_all_sessions(self._session):
            run_id = str(execution.runId().toString())
            query = self._known.get(run_id) or _query(execution)
            if query is not None:
                running[run_id] = query
        self._known = running
        return list(running.values())


def _query(execution: Any) -> StreamingQuery | None:
    """The query that a user has of an execution; None if it ended just now."""
    found = execution.sparkSession().streams().get(execution.id())
    return None if found is None else StreamingQuery(found)
