"""A handle on a running pipeline: change it while it runs, wait for it, stop it."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Protocol

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.control_failure import ControlFailure
from tidegate.control.row_counts import SourceCount
from tidegate.control.shedding.keep import Keep
from tidegate.errors import AskedWrongly, TidegateError, nearest
from tidegate.pipelines.graph import Graph
from tidegate.spark.batch.failure import plain_message
from tidegate.spark.batch.plan import OperatorPlan
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.segment import SegmentRun, Stopping
from tidegate.spark.loop.boundary import PATIENCE_S
from tidegate.spark.owner.epochs import Fenced

_COMMIT_PATIENCE_S = 5.0


class Loop(Protocol):
    """The control loop of a run, as the run sees it."""

    failure: BaseException | None
    """The error that ended the loop early, if any."""
    control_failure: ControlFailure | None
    """The failure that control has not recovered from yet; None while it works."""

    def stop(self) -> None:
        """Stop ticking."""
        ...

    def leave(self) -> None:
        """Give the run's cores back, because the run has ended."""
        ...


class Run:
    """A running pipeline: one streaming query per segment."""

    def __init__(
        self,
        graph: Graph,
        segments: dict[str, SegmentRun],
        local_cache: str | None = None,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = graph.name
        self._segments = segments
        self._queries: dict[str, StreamingQuery] = {}
        self._local_cache = local_cache
        self._release = release
        self.loop: Loop | None = None
        """The control loop that keeps the target; None if no target was given."""

    def _begin(self, name: str, query: StreamingQuery) -> None:
        self._queries[name] = query

    @property
    def queries(self) -> Mapping[str, StreamingQuery]:
        """The Spark streaming query of each segment, by the segment's name."""
        return dict(self._queries)

    @property
    def segments(self) -> Mapping[str, SegmentRun]:
        """The object that runs the micro-batches of each segment, by the segment's name."""
        return dict(self._segments)

    def boundary(self, patience_s: float = PATIENCE_S) -> AbstractContextManager[bool]:
        """A context between two micro-batches: inside it, no batch of any segment runs.

        Its value is False if a batch did not end within `patience_s`.
        """
        return between_batches(self._segments.values(), patience_s)

    @property
    def isActive(self) -> bool:  # noqa: N802 (as Spark's queries spell it)
        """Whether all queries of the pipeline are running."""
        return all(query.isActive for query in self._queries.values())

    @property
    def ended(self) -> bool:
        """Whether all queries of the pipeline have ended."""
        return not any(query.isActive for query in self._queries.values())

    @property
    def control_failure(self) -> ControlFailure | None:
        """Why nothing controls the pipeline at the moment; None while control works.

        The pipeline itself runs on, and control is tried again until it works.
        """
        return None if self.loop is None else self.loop.control_failure

    def rescale(self, operator: str, tasks: int) -> None:
        """Change the number of tasks of an operator, from its next micro-batch on."""
        self._segment_of(operator).allocation.rescale(operator, tasks)

    def reroute(self, operator: str, moves: Mapping[int, int]) -> None:
        """Move shards of a keyed operator to other tasks, from its next micro-batch on.

        `moves` maps a shard to its new task.
        """
        self._segment_of(operator).allocation.reroute(operator, moves)

    def shed(self, keep: float = 1.0, by_class: Mapping[str, float] | None = None) -> None:
        """Keep this fraction of the sources' rows from the next micro-batch on; 1 keeps all.

        `by_class` sets the fraction of single classes; all others use `keep`. No class gets less
        than the minimum that the pipeline declares for it.
        """
        given = dict(by_class or {})
        known = [name for part in self._segments.values() for name in part.allocation.classes]
        for name, fraction in (("keep", keep), *given.items()):
            if not 0.0 <= fraction <= 1.0:
                raise AskedWrongly(
                    f"shed: {name} = {fraction:g}; give the fraction of rows to keep, from 0 to 1"
                )
        for name in given:
            if name not in known:
                raise AskedWrongly(
                    f"shed: there is no class '{name}'{nearest(name, known)}"
                    + ("" if known else "; declare classes with .shed(by=..., classes=...)")
                )
        self.keep_from_now(Keep(keep, given))

    def keep_from_now(self, keep: Keep) -> None:
        """Shed by `keep` from the next micro-batch on.

        If `keep` was decided for a span of arrivals (`span_s`), that is the span of the first
        segment's batches. Other segments start their batches at other times and ignore it.
        """
        for number, part in enumerate(self._segments.values()):
            part.allocation.shed(keep if number == 0 else replace(keep, span_s=None))

    def keep(self) -> Keep:
        """The fraction of rows that the next micro-batch keeps, overall and by class."""
        keeps = [part.allocation.keep() for part in self._segments.values()]
        by_class = {name: share for one in keeps for name, share in one.by_class.items()}
        return replace(keeps[0], by_class=by_class)

    def counts(self) -> dict[str, SourceCount]:
        """Rows offered and kept per source, exact through crashes and restarts.

        If the pipeline declares `.shed(...)`, rows are counted from the checkpoint's first
        micro-batch on, otherwise from the first micro-batch that sheds.
        """
        return {
            name: count
            for segment in self._segments.values()
            for name, count in segment.totals.items()
        }

    def allocation(self) -> dict[str, OperatorPlan]:
        """The tasks and routes that the next micro-batch will use, by operator."""
        return {
            name: entry
            for segment in self._segments.values()
            for name, entry in segment.allocation.snapshot().items()
        }

    def results(self, segment: str | None = None) -> list[BatchResult]:
        """The results of the latest micro-batches of all segments or of one, oldest first."""
        chosen = [self._segments[segment]] if segment else list(self._segments.values())
        found = [result for part in chosen for result in list(part.results)]
        return sorted(found, key=lambda result: result.ended_s)

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        """Wait until the pipeline ends, or for `timeout` seconds. Returns whether it has ended.

        Raises the error that made the pipeline fail.
        """
        until = None if timeout is None else time.monotonic() + timeout
        first = next(iter(self._queries.values()))
        while self.isActive:
            left = 0.2 if until is None else min(0.2, until - time.monotonic())
            if left <= 0:
                return False
            try:
                first.awaitTermination(max(left, 0.001))  # type: ignore[arg-type]
            except StreamingQueryException:
                break
        self._stop_the_rest()
        self._raise_failure()
        return True

    def _stop_the_rest(self) -> None:
        """Stop all segments if one has failed: a pipeline runs as a whole or not at all."""
        if self._queries and not self.isActive and self._failed():
            self.stop()

    def _failed(self) -> bool:
        return any(query.exception() is not None for query in self._queries.values())

    def processAllAvailable(self) -> None:  # noqa: N802 (as Spark's queries spell it)
        """For tests: wait until every row that has arrived is processed in all segments."""
        while True:
            before = self._batches_done()
            for query in self._queries.values():
                try:
                    query.processAllAvailable()
                except StreamingQueryException:
                    self._raise_failure()
                    raise
            if self._batches_done() == before:
                return

    def _batches_done(self) -> list[int]:
        return [
            segment.results[-1].plan.batch_id if segment.results else -1
            for segment in self._segments.values()
        ]

    def stop(self) -> None:
        """Stop at a batch boundary. A running batch is finished and committed first."""
        if self.loop is not None:
            self.loop.stop()
        for segment in self._segments.values():
            segment.stopping = True
        for name, query in self._queries.items():
            with self._segments[name].busy:
                pass
            self._await_commit(name, query)
            query.stop()
            self._segments[name].anchors.release()
        if self.loop is not None:
            self.loop.leave()
        if self._local_cache is not None:
            shutil.rmtree(self._local_cache, ignore_errors=True)
        self._release()

    def lost(self, error: Fenced) -> None:
        """End the run because another driver has its checkpoint. Nothing is committed any more."""
        for segment in self._segments.values():
            segment.stopping = True
            segment.failure = segment.failure or error
        for query in self._queries.values():
            query.stop()

    def _await_commit(self, name: str, query: StreamingQuery) -> None:
        """Wait a moment for Spark to log the last batch, so that a restart does not repeat it."""
        results = self._segments[name].results
        until = time.monotonic() + _COMMIT_PATIENCE_S
        while results and query.isActive and time.monotonic() < until:
            progress = query.lastProgress
            if progress is not None and progress["batchId"] >= results[-1].plan.batch_id:
                return
            time.sleep(0.01)

    def _raise_failure(self) -> None:
        if self.loop is not None and self.loop.failure is not None:
            raise TidegateError(
                f"the control loop ended ({self.loop.failure}); the pipeline ran on without it"
            ) from self.loop.failure
        for name, segment in self._segments.items():
            query = self._queries.get(name)
            error = None if query is None else query.exception()
            if error is None or isinstance(segment.failure, Stopping):
                continue
            message = plain_message(f"{segment.failure} {error}")
            if message is not None:
                raise TidegateError(message) from None
            if isinstance(segment.failure, TidegateError):
                raise segment.failure from None
            raise error

    def _segment_of(self, operator: str) -> SegmentRun:
        for segment in self._segments.values():
            if operator in segment.allocation:
                return segment
        known = [name for part in self._segments.values() for name in part.allocation.snapshot()]
        raise AskedWrongly(
            f"there is no operator '{operator}' with tasks of its own{nearest(operator, known)}"
        )


@contextmanager
def between_batches(
    segments: Iterable[SegmentRun], patience_s: float = PATIENCE_S
) -> Iterator[bool]:
    """A context in which no batch of these segments runs; its value is False on a timeout.

    It waits for the segment with the longest batches first, so that the others keep running
    meanwhile.
    """
    until_s = time.monotonic() + patience_s
    with ExitStack() as held:
        for segment in sorted(segments, key=_batch_s, reverse=True):
            if not segment.busy.acquire(timeout=max(0.0, until_s - time.monotonic())):
                yield False
                return
            held.callback(segment.busy.release)
        yield True


def _batch_s(segment: SegmentRun) -> float:
    """The duration of the last batch; infinite before the first one has ended."""
    return segment.results[-1].duration_s if segment.results else float("inf")
