"""Holds all batches of an application between two micro-batches.

An executor holds shuffle files, so it may be released only when no batch needs them any more,
whichever session its query belongs to. A moment without running tasks is not enough, because it may
lie between two stages.

A segment of a pipeline has a lock that it takes for each batch. A query that Tidegate did not start
has one of Spark's: its thread takes the progress lock twice per batch, before it logs the offsets
of a new batch, and after a batch's work, before the commit. While we hold that lock and the thread
waits for it, no job of the query is running, no job needs earlier shuffle files, and no job can
start. Until then the query loses no time: a running batch goes on to its end.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly

_LOOK_EVERY_S = 0.005
_LOCK_S = 0.05
"""A lock is waited for in turns of this length, to notice that nobody needs it any more."""


class Boundary(Protocol):
    """Makes contexts in which no batch runs. The value says whether this was reached in time."""

    def __call__(
        self, patience_s: float, needed: Callable[[], bool]
    ) -> AbstractContextManager[bool]:
        """Wait for at most `patience_s`, and only as long as `needed` says so."""
        ...


@dataclass(frozen=True, slots=True)
class Wait:
    """How long to wait for a batch, and how."""

    until_s: float
    needed: Callable[[], bool]
    clock: Callable[[], float]
    pause: Callable[[float], object]

    @property
    def left_s(self) -> float:
        """The time that is left."""
        return max(0.0, self.until_s - self.clock())

    @property
    def over(self) -> bool:
        """Whether the time is up, or nobody needs the boundary any more."""
        return self.left_s <= 0.0 or not self.needed()


class Holdable(Protocol):
    """Something that runs batches and can be held between two of them."""

    @property
    def batch_s(self) -> float:
        """The duration of the last batch; infinite before the first one has ended."""
        ...

    @property
    def leaving(self) -> bool:
        """Whether it is being stopped. Then nothing is held any longer."""
        ...

    def hold(self, held: ExitStack, wait: Wait) -> bool:
        """Hold it until `held` is closed; False if it did not get between two batches in time."""
        ...


class BatchBoundary:
    """The boundary of all that runs batches.

    The one with the longest batches is waited for first: at most it is then delayed by the shorter
    batches of the others, and they are not delayed by its long ones.
    """

    def __init__(
        self,
        running: Callable[[], Sequence[Holdable]],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._running = running
        self._clock = clock
        self._pause = pause

    @contextmanager
    def __call__(self, patience_s: float, needed: Callable[[], bool]) -> Iterator[bool]:
        """Hold everything between two batches; False if something did not get there in time."""
        running = sorted(self._running(), key=lambda one: one.batch_s, reverse=True)

        def still_needed() -> bool:
            return needed() and not any(one.leaving for one in running)

        wait = Wait(self._clock() + patience_s, still_needed, self._clock, self._pause)
        with ExitStack() as held:
            yield all(one.hold(held, wait) for one in running)


class BatchLock(Protocol):
    """The part of a running segment that its boundary needs."""

    busy: Lock
    """Locked while a batch runs."""
    stopping: bool
    """Whether the pipeline is being stopped: then its locks must be free soon."""

    @property
    def results(self) -> Sequence[Any]:
        """The results of its last batches."""
        ...


@dataclass(frozen=True, slots=True)
class SegmentHold:
    """Holds a segment of a pipeline of ours."""

    segment: BatchLock

    @property
    def leaving(self) -> bool:
        """Whether the pipeline is being stopped."""
        return self.segment.stopping

    @property
    def batch_s(self) -> float:
        """The duration of its last batch."""
        results = self.segment.results
        return float(results[-1].duration_s) if results else float("inf")

    def hold(self, held: ExitStack, wait: Wait) -> bool:
        """Take the lock that its batches take."""
        while not self.segment.busy.acquire(timeout=min(_LOCK_S, wait.left_s)):
            if wait.over:
                return False
        held.callback(self.segment.busy.release)
        return True


@dataclass(frozen=True, slots=True)
class QueryHold:
    """Holds a streaming query by Spark's own lock; `execution` is its `StreamExecution`."""

    execution: Any
    jvm: Any
    pinned: bool = True
    """Whether a JVM lock is released by the thread that took it. If not, it cannot be held."""
    leaving: bool = False

    @property
    def batch_s(self) -> float:
        """The duration of its last batch."""
        progress = self.execution.lastProgress()
        if progress is None:
            return float("inf")
        return float(progress.durationMs().get("triggerExecution") or 0) / 1000.0

    def hold(self, held: ExitStack, wait: Wait) -> bool:
        """Take the progress lock, then wait until the query's thread waits for it."""
        if not self.pinned:
            return False
        lock = self.execution.awaitProgressLock()
        unit = self.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        while not lock.tryLock(round(1000 * min(_LOCK_S, wait.left_s)), unit):
            if wait.over:
                return False
        held.callback(lock.unlock)
        while not self._waits(lock):
            if wait.over:
                return False
            wait.pause(_LOOK_EVERY_S)
        return True

    def _waits(self, lock: Any) -> bool:
        """Whether the query waits for its lock or its next trigger, or has ended."""
        if lock.hasQueuedThread(self.execution.queryExecutionThread()):
            return True
        return not self.execution.status().isTriggerActive() or not self.execution.isActive()


def queries_of_all_sessions(session: SparkSession, but: Collection[str] = ()) -> list[QueryHold]:
    """All streaming queries of the Spark application, except those whose run ids are in `but`.

    A session lists only its own queries, but all sessions share the executors.
    """
    found = executions_of_all_sessions(session)
    others = [one for one in found if str(one.runId().toString()) not in but]
    return [QueryHold(one, session.sparkContext._jvm, _pinned(session)) for one in others]


def executions_of_all_sessions(session: SparkSession) -> list[Any]:
    """The JVM's executions of all streaming queries of the application."""
    java: Any = session._jsparkSession
    try:
        return list(java.sharedState().activeStreamingQueries().values())
    except (Py4JError, TypeError):  # a Spark version that keeps them elsewhere
        return [query._jsq.streamingQuery() for query in session.streams.active]


def refuse_unpinned_threads(session: SparkSession) -> None:
    """Refuse to hold queries if the JVM could lock in one thread and unlock in another."""
    if not _pinned(session):
        raise AskedWrongly(
            "PYSPARK_PIN_THREAD is false, so executors cannot be released safely; unset it,"
            " which means true"
        )


def _pinned(session: SparkSession) -> bool:
    return isinstance(session.sparkContext._gateway, ClientServer)
