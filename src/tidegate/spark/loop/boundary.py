"""Between two micro-batches of queries that are not ours.

An executor holds shuffle files, so it may go only when no batch needs them any more; a moment
without running tasks is not enough, since it may lie between two stages. Spark's query thread takes
the query's progress lock twice a batch: before it logs the offsets of a new one, and after the work
of the last one, before it commits that. Whoever has the lock while the thread waits for it knows
that no job of this query runs, that none needs what an earlier one left, and that none begins. The
thread loses no time until then: a batch that runs goes on to its end.
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
"""How long a tick waits for the boundary; the next one goes on waiting."""
_LOOK_EVERY_S = 0.005


class QueryBoundary:
    """Call it for a context in which no batch of any of the queries runs, if that can be had soon.

    The context's value says whether it was reached. The query with the longest batches is waited
    for first: it is delayed by the batches of the others at most, and they not at all by its own.
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
            # The JVM would lock in one thread and unlock in another.
            raise AskedWrongly(
                "PYSPARK_PIN_THREAD is false, and executors cannot be let go safely then; leave it"
                " out, which means true"
            )
        self._jvm: Any = session.sparkContext._jvm
        self._queries = queries
        self._clock = clock
        self._pause = pause

    @contextmanager
    def __call__(self) -> Iterator[bool]:
        """Hold every query between two batches; False when one did not come there in time."""
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
    """Whether it waits for its lock, for its next trigger, or has ended."""
    if lock.hasQueuedThread(execution.queryExecutionThread()):
        return True
    return not query._jsq.status().isTriggerActive() or not query.isActive


def _batch_ms(query: StreamingQuery) -> float:
    """How long its last batch took; nobody knows before the first one has ended."""
    progress = query.lastProgress
    return float("inf") if progress is None else progress["durationMs"].get("triggerExecution", 0)
