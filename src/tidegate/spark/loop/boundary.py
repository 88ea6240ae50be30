"""Holds queries that Tidegate did not start between two micro-batches.

An executor holds shuffle files, so it may be released only when no batch needs them any more. A
moment without running tasks is not enough, because it may lie between two stages. Spark's query
thread takes the query's progress lock twice per batch: before it logs the offsets of a new batch,
and after a batch's work, before the commit. While we hold that lock and the thread waits for it, no
job of the query is running, no job needs earlier shuffle files, and no job can start. Until then
the query loses no time: a running batch goes on to its end.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from py4j.clientserver import ClientServer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.errors import AskedWrongly

PATIENCE_S = 2.0
"""How long a tick waits for a batch boundary; after that, the next tick tries again."""
_LOOK_EVERY_S = 0.005


class QueryBoundary:
    """Makes contexts in which no batch of any of the queries runs.

    The context's value says whether this was reached in time. The query with the longest batches is
    waited for first: at most it is then delayed by the shorter batches of the others, and they are
    not delayed by its long ones.
    """

    def __init__(
        self,
        session: SparkSession,
        queries: Callable[[], Sequence[StreamingQuery]],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        if not isinstance(session.sparkContext._gateway, ClientServer):
            # Without pinned threads, the JVM could lock in one thread and unlock in another.
            raise AskedWrongly(
                "PYSPARK_PIN_THREAD is false, so executors cannot be released safely; unset it,"
                " which means true"
            )
        self._jvm: Any = session.sparkContext._jvm
        self._queries = queries
        self._clock = clock
        self._pause = pause

    @contextmanager
    def __call__(self) -> Iterator[bool]:
        """Hold every query between two batches; False if a query did not get there in time."""
        until_s = self._clock() + PATIENCE_S
        with ExitStack() as held:
            running = sorted(self._queries(), key=_batch_ms, reverse=True)
            yield all(self._hold(query, held, until_s) for query in running)

    def _hold(self, query: StreamingQuery, held: ExitStack, until_s: float) -> bool:
        execution: Any = query._jsq.streamingQuery()
        lock = execution.awaitProgressLock()
        left_ms = max(0, round(1000 * (until_s - self._clock())))
        if not lock.tryLock(left_ms, self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS):
            return False
        held.callback(lock.unlock)
        while not _waits(query, execution, lock):
            if self._clock() >= until_s:
                return False
            self._pause(_LOOK_EVERY_S)
        return True


def _waits(query: StreamingQuery, execution: Any, lock: Any) -> bool:
    """Whether the query waits for its lock or its next trigger, or has ended."""
    if lock.hasQueuedThread(execution.queryExecutionThread()):
        return True
    return not query._jsq.status().isTriggerActive() or not query.isActive


def _batch_ms(query: StreamingQuery) -> float:
    """The duration of the last batch; infinite before the first one has ended."""
    progress = query.lastProgress
    return float("inf") if progress is None else progress["durationMs"].get("triggerExecution", 0)
