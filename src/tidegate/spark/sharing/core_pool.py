"""The pool of cores that the pipelines of one Spark application share.

Spark keeps one number of executors per application, so pipelines that each requested their own
would undo each other's requests. The pool requests the sum, and divides the available cores among
the pipelines (`control/sharing`). There is one `CorePool` per SparkContext. A pipeline joins it
when its control loop starts and leaves it when it stops.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.bounds import Bounds
from tidegate.control.claim import Claim
from tidegate.control.measurement import Overdue
from tidegate.control.sharing.division import Sharing
from tidegate.logs import PipelineLogger, reason
from tidegate.spark.batch.rehearsal import Rehearsal
from tidegate.spark.batch.segment import SegmentRun
from tidegate.spark.loop.boundary import (
    BatchBoundary,
    Holdable,
    SegmentHold,
    queries_of_all_sessions,
)
from tidegate.spark.loop.negotiate import ExecutorNegotiator, cores_there, executors_expected
from tidegate.spark.loop.release import Background, in_a_thread
from tidegate.spark.loop.warm_executors import ExecutorRehearsals, WarmExecutors
from tidegate.spark.sharing.scaler import PIPELINES, scale
from tidegate.spark.warm_up import WarmUp

_of_application: dict[str, "CorePool"] = {}
_guard = threading.Lock()


class Pipeline(Protocol):
    """A running pipeline, as the pool sees it."""

    @property
    def ended(self) -> bool:
        """Whether all queries of the pipeline have ended."""
        ...

    @property
    def segments(self) -> Mapping[str, SegmentRun]:
        """The object that runs the micro-batches of each segment, by the segment's name."""
        ...

    @property
    def queries(self) -> Mapping[str, StreamingQuery]:
        """The Spark streaming query of each segment, by the segment's name."""
        ...

    @property
    def warmed(self) -> WarmUp | None:
        """What was done before its first row was read; None without a warm-up."""
        ...


class CorePool:
    """The cores of one application, shared by its pipelines that have a target."""

    def __init__(
        self,
        cores: int | None,
        cores_per_executor: int,
        *,
        background: Background = in_a_thread,
    ) -> None:
        self._lock = threading.Lock()
        self._per_executor = cores_per_executor
        self._background = background
        self._sharing = None if cores is None else Sharing(cores, cores_per_executor)
        self._parts: dict[str, Part] = {}
        self.executors: ExecutorNegotiator | None = None
        """Requests executors from Spark; None in one process, where cores are available at once."""
        self.warm: WarmExecutors | None = None
        """Which executors are warm, and so count; None in one process."""

    def join(
        self,
        session: SparkSession,
        name: str,
        run: Pipeline,
        *,
        local: bool,
        bounds: Bounds,
    ) -> "Part":
        """Add a pipeline. It starts with the cores that are there for it, within its bounds.

        In one process it starts with the fewest, because more are available at once. On a cluster
        it starts with all executors that are up or on their way and that no other pipeline has.
        """
        with self._lock:
            before = self._parts.get(name)
            cores = bounds.least if local else bounds.clamp(self._free(session, name))
            part = Part(self, name, run, self._whole(cores))
            self._parts[name] = part
            try:
                if not local:
                    self._note_warm(session, run)
                    self._ask(session, bounds)
            except BaseException:
                del self._parts[name]
                if before is not None:
                    self._parts[name] = before
                raise
        return part

    def leave(self, part: "Part") -> None:
        """Remove an ended pipeline. Executors that only it needed go at the next batch boundary."""
        with self._lock:
            if self._parts.get(part.name) is not part:
                return  # it has already left, or has been restarted since
            del self._parts[part.name]
            if self._sharing is not None:
                self._sharing.leave(part.name)
            if self.executors is not None and self._parts:
                try:
                    self.executors.ask(self._asked)
                except Exception as error:  # the next decision of another pipeline asks again
                    log = PipelineLogger("executors", part.name)
                    log.warning("executors could not be given back: %s", reason(error))
        if self.empty and self.executors is not None:
            self.executors.close()

    @property
    def empty(self) -> bool:
        """Whether the pool has no pipelines."""
        return not self._parts

    def share_of(self, part: "Part", claim: Claim) -> int | None:
        """The cores that the other pipelines leave to this one, given its new claim."""
        for other in list(self._parts.values()):
            if other.run.ended:
                self.leave(other)
        with self._lock:
            if self._sharing is None or self._parts.get(part.name) is not part:
                return None
            return self._sharing.share_of(part.name, claim)

    def ask(self, part: "Part", cores: int) -> None:
        """Change the cores requested for one pipeline, and request the sum from Spark."""
        with self._lock:
            before, part.asked = part.asked, self._whole(cores)
            if self._parts.get(part.name) is not part:
                return
            if self.executors is not None:
                try:
                    self.executors.ask(self._asked)
                except BaseException:
                    part.asked = before  # what was not requested is not awaited
                    raise
            if self._sharing is not None:
                self._sharing.ask(part.name, part.asked)

    def granted(self, part: "Part") -> int:
        """The running cores that belong to a pipeline.

        Each keeps the cores it has, up to what it requests; new cores go to the pipelines in order.
        """
        with self._lock:
            if self.executors is None:
                return part.asked
            free = self.executors.granted()
            if len(self._parts) == 1:
                if self.executors.adopts:
                    part.asked = self.executors.asked
                part.held = free
                return free
            for one in self._parts.values():
                one.held = min(one.held, one.asked, free)
                free -= one.held
            for one in self._parts.values():
                more = min(one.asked - one.held, free)
                one.held += more
                free -= more
            return part.held

    def let_go(self) -> None:
        """Release executors that no pipeline needs."""
        if self.executors is not None:
            self.executors.let_go()

    def overdue(self) -> Overdue | None:
        """The request that was not granted in time; None if there is none."""
        with self._lock:
            return None if self.executors is None else self.executors.overdue()

    def _free(self, session: SparkSession, name: str) -> int:
        """Cores of executors, up or on their way, that no pipeline but `name` has."""
        there = executors_expected(session) * self._per_executor
        if self.executors is not None and self.executors.adopts:
            for part in self._parts.values():  # only one: a second one ends the taking over
                part.asked = max(part.asked, self.executors.granted())
        return there - sum(part.asked for part in self._parts.values() if part.name != name)

    def _ask(self, session: SparkSession, bounds: Bounds) -> None:
        if self.executors is None:
            self.executors = ExecutorNegotiator(
                session,
                self._per_executor,
                self._asked,
                boundary=BatchBoundary(lambda: self._running(session)),
                most=bounds.most,
                warm=self.warm,
                background=self._background,
            )
        else:
            self.executors.ask(self._asked)

    def _note_warm(self, session: SparkSession, run: Pipeline) -> None:
        """Note the executors that a pipeline was warmed up on; it is the first to know of them."""
        if self.warm is None:
            rehearsals = ExecutorRehearsals(session, self._per_executor, self._rehearsals)
            self.warm = WarmExecutors(rehearsals.warm, rehearsals.wanted, give_up=rehearsals.cancel)
        if run.warmed is not None:
            self.warm.note_warm(run.warmed.executors)

    def _rehearsals(self) -> list[Rehearsal]:
        """What executors are warmed up with: the segments of all pipelines that want it."""
        runs = [part.run for part in list(self._parts.values())]
        found = (one.rehearsal for run in runs for one in run.segments.values())
        return [one for one in found if one is not None]

    @property
    def _asked(self) -> int:
        return sum(part.asked for part in self._parts.values())

    def _whole(self, cores: int) -> int:
        return -(-cores // self._per_executor) * self._per_executor

    def _running(self, session: SparkSession) -> list[Holdable]:
        """All that runs micro-batches: the pool's pipelines, and every other query of any session.

        A pipeline without a target, or with a dry run, is not in the pool, so it is one of the
        others.
        """
        runs = [part.run for part in list(self._parts.values())]
        segments: list[Holdable] = [
            SegmentHold(one) for run in runs for one in run.segments.values()
        ]
        own = {str(query.runId) for run in runs for query in run.queries.values()}
        return [*segments, *queries_of_all_sessions(session, own)]


@dataclass(slots=True, eq=False)
class Part:
    """One pipeline's part of the pool. It is the negotiator of the pipeline's control loop."""

    pool: CorePool
    name: str
    run: Pipeline
    asked: int
    held: int = 0
    """The running cores that belong to this pipeline."""

    @property
    def grant_s(self) -> float | None:
        """The observed time from a request to its grant; 0 in one process."""
        executors = self.pool.executors
        return 0.0 if executors is None else executors.grant_s

    @property
    def warm(self) -> WarmExecutors | None:
        """Which executors are warm, and so count; None in one process."""
        return self.pool.warm

    @property
    def released(self) -> list[str]:
        """The executors that were released, in order."""
        executors = self.pool.executors
        return [] if executors is None else executors.released

    def granted(self) -> int:
        """The running cores that belong to this pipeline."""
        return self.pool.granted(self)

    def ask(self, cores: int) -> None:
        """Request this many cores for this pipeline."""
        self.pool.ask(self, cores)

    def let_go(self) -> None:
        """Release surplus executors that can go now."""
        self.pool.let_go()

    def overdue(self) -> Overdue | None:
        """The request that was not granted in time; None if there is none."""
        return self.pool.overdue()

    def release_first(self, executors: Sequence[str]) -> None:
        """Release these executors before others, by the names that their tasks give them."""
        if self.pool.executors is not None:
            self.pool.executors.release_first(executors)

    def close(self) -> None:
        """Do nothing: other pipelines may still need the pool, which ends with the last of them."""

    def share_of(self, claim: Claim) -> int | None:
        """The cores that the other pipelines leave to this one, given its new claim."""
        return self.pool.share_of(self, claim)

    def leave(self) -> None:
        """Leave the pool when the pipeline has ended; the last one to leave removes the pool."""
        with _guard:
            self.pool.leave(self)
            for application, pool in list(_of_application.items()):
                if pool is self.pool and pool.empty:
                    del _of_application[application]


def joined(
    session: SparkSession,
    name: str,
    run: Pipeline,
    *,
    local: bool,
    bounds: Bounds,
    cores_per_executor: int,
) -> Part:
    """Join the application's pool of cores; the first pipeline with a target creates it."""
    application = str(session.sparkContext.applicationId)
    with _guard:
        pool = _of_application.get(application)
        if pool is None:
            pool = CorePool(cores_there(session), cores_per_executor)
        if not local:
            scale(application, PIPELINES, lambda: not pool.empty)
        part = pool.join(session, name, run, local=local, bounds=bounds)
        _of_application[application] = pool
        return part
