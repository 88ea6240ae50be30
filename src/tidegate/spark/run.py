"""A handle on a running pipeline: change it while it runs, wait for it, stop it."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Unpack

from pyspark import SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.control_failure import ControlFailure
from tidegate.control.row_counts import SourceCount
from tidegate.control.shedding.keep import Keep
from tidegate.errors import AskedWrongly, TidegateError, nearest
from tidegate.pipelines.graph import Graph
from tidegate.spark.at_exit import any_active, look_after
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.plan import OperatorPlan
from tidegate.spark.batch.preview import previewable
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.segment import SegmentRun
from tidegate.spark.interrupt import leave_batches_alone, stopped_by
from tidegate.spark.job import Job
from tidegate.spark.options import CHANGEABLE, StartOptions, takes
from tidegate.spark.owner.epochs import Fenced
from tidegate.spark.savepoint.index import Savepoint
from tidegate.spark.savepoint.make import savepoint_of_run
from tidegate.spark.supervisor import Loop, Supervisor
from tidegate.spark.warm_up import WarmUp

STOP_PATIENCE_S = 120.0
"""How long `stop` waits by default: long enough to finish and commit a batch of a minute."""


class Run:
    """A running pipeline: one streaming query per segment."""

    def __init__(
        self,
        graph: Graph,
        segments: dict[str, SegmentRun],
        remove_caches: Callable[[], None] = lambda: None,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = graph.name
        self._segments = segments
        self.warmed: WarmUp | None = None
        """What was done before the first row was read; None without a warm-up."""
        self._remove_caches = remove_caches
        self._release = release
        self._supervisor = Supervisor(self.name, segments, _spark_is_up, self._clean_up)

    def _begin(self, name: str, query: StreamingQuery) -> None:
        self._supervisor.add(name, query)

    def _is_job(self, checkpoint: Checkpoint) -> None:
        """The run ends when it has processed what its sources had."""
        segments = [part.segment for part in self._segments.values()]
        self._supervisor.job = Job.of(segments, checkpoint)

    def _watch(self) -> None:
        """Watch over the queries from now on: if one ends, the others are stopped."""
        look_after(self._supervisor)
        leave_batches_alone(any_active)
        self._supervisor.watch()

    def _clean_up(self) -> None:
        try:
            failure = self._supervisor.failure
            if failure is None or not isinstance(failure.original, Fenced):
                self._remove_caches()  # a driver that has taken over uses them now
        finally:
            self._release()

    def lost(self, error: Fenced) -> None:
        """End the run because another driver has its checkpoint. Nothing is committed any more."""
        self._supervisor.abort(error)

    @property
    def loop(self) -> Loop | None:
        """The control loop that keeps the target; None if no target was given."""
        return self._supervisor.loop

    @loop.setter
    def loop(self, loop: Loop) -> None:
        self._supervisor.loop = loop

    @property
    def queries(self) -> Mapping[str, StreamingQuery]:
        """The Spark streaming query of each segment, by the segment's name."""
        return self._supervisor.queries

    @property
    def segments(self) -> Mapping[str, SegmentRun]:
        """The object that runs the micro-batches of each segment, by the segment's name."""
        return dict(self._segments)

    @property
    def isActive(self) -> bool:  # noqa: N802 (as Spark's queries spell it)
        """Whether all queries of the pipeline are running; of a job, whether one is."""
        active = [query.isActive for query in self.queries.values()]
        enough = any(active) if self._supervisor.job is not None else all(active)
        return not self._supervisor.ended and enough

    @property
    def ended(self) -> bool:
        """Whether all queries of the pipeline have ended."""
        return self._supervisor.ended or not any(q.isActive for q in self.queries.values())

    @property
    def failure(self) -> TidegateError | None:
        """Why the pipeline ended by itself; None while it runs and after a clean stop.

        It is logged as soon as it is found. `rescale`, `reroute`, `shed`, `processAllAvailable` and
        `awaitTermination` raise it; `stop` raises it unless one of them did so before.
        """
        return self._supervisor.failure

    @property
    def control_failure(self) -> ControlFailure | None:
        """Why nothing controls the pipeline at the moment; None while control works.

        The pipeline itself runs on, and control is tried again until it works.
        """
        return None if self.loop is None else self.loop.control_failure

    @property
    def page(self) -> str | None:
        """The address of the live page, with its token if it has one; None without a page."""
        return None if self.loop is None else self.loop.page

    @takes(StartOptions, CHANGEABLE)
    def update(self, **options: Unpack[StartOptions]) -> None:
        """Change settings of the running pipeline, from its next tick on.

        What is not given stays as it is. Everything is checked as at the start, and a refused
        setting changes nothing. The record of the next tick says what has changed.
        """
        self._raise_failure()
        if self.ended:
            raise AskedWrongly(f"pipeline '{self.name}' has ended; start it with other options")
        if self.loop is None:
            raise AskedWrongly(
                f"pipeline '{self.name}' was started without a target, so nothing controls it; stop"
                " it, and start it again with target="
            )
        self.loop.change_settings(options)

    def rescale(self, operator: str, tasks: int) -> None:
        """Change the number of tasks of an operator, from its next micro-batch on."""
        self._raise_failure()
        self._segment_of(operator).allocation.rescale(operator, tasks)

    def reroute(self, operator: str, moves: Mapping[int, int]) -> None:
        """Move shards of a keyed operator to other tasks, from its next micro-batch on.

        `moves` maps a shard to its new task.
        """
        self._raise_failure()
        self._segment_of(operator).allocation.reroute(operator, moves)

    def deal(self, operator: str, shares: Sequence[float]) -> None:
        """Deal the rows of a map to its tasks by these shares, from its next micro-batch on.

        The map must have tasks of its own, which then stay on their executors. With no shares, rows
        are dealt in turn again.
        """
        self._raise_failure()
        self._segment_of(operator).allocation.deal(operator, shares)

    def in_parts(self, operator: str, parts: int) -> None:
        """Let each task of a keyed operator work on its rows in parts, one after the other.

        A part has some of the task's shards, and only its rows are in memory. The function is
        called once for each part, with other keys each time. Holds from the next micro-batch on.
        """
        self._raise_failure()
        self._segment_of(operator).allocation.in_parts(operator, parts)

    def preview(self, operator: str, begins: bool = True) -> None:
        """Count the rows of a keyed operator by shard before each micro-batch is routed.

        Its route then suits the batch's own rows, at the price of a Spark job for every batch. With
        `begins=False` it is no longer done. The operator must read a source or a channel, or maps
        behind one that have no tasks of their own.
        """
        self._raise_failure()
        part = self._segment_of(operator)
        if operator not in previewable(part.segment):
            raise AskedWrongly(
                f"the rows of operator '{operator}' cannot be counted before they are routed: it"
                " must be keyed, and read a source, a channel, or maps without tasks behind one"
            )
        part.allocation.preview(operator, begins)

    def parts(self) -> dict[str, int]:
        """The operators whose tasks work in more than one part, with the number of parts."""
        found: dict[str, int] = {}
        for part in self._segments.values():
            found |= part.allocation.parts()
        return found

    def previews(self) -> frozenset[str]:
        """The operators whose rows are counted before they are routed."""
        return frozenset(
            name for part in self._segments.values() for name in part.allocation.previews()
        )

    def shed(self, keep: float = 1.0, by_class: Mapping[str, float] | None = None) -> None:
        """Keep this fraction of the sources' rows from the next micro-batch on; 1 keeps all.

        `by_class` sets the fraction of single classes; all others use `keep`. No class gets less
        than the minimum that the pipeline declares for it.
        """
        self._raise_failure()
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

        Raises the error that made the pipeline fail. Ctrl-C stops the pipeline at a batch boundary
        and then raises `KeyboardInterrupt`; a second Ctrl-C raises it at once.
        """
        try:
            ended = self._supervisor.wait(timeout)
        except KeyboardInterrupt as interrupt:
            self._supervisor.ask()
            self._supervisor.wait(STOP_PATIENCE_S)
            raise stopped_by(interrupt, self.name, self._how_far()) from None
        if not ended:
            return False
        self._raise_failure()
        self._raise_failure_of_the_loop()
        return True

    def _how_far(self) -> str:
        """Which batches are committed, for the line after Ctrl-C."""
        last = {
            name: part.results[-1].plan.batch_id
            for name, part in self._segments.items()
            if part.results
        }
        if not last:
            return "before its first batch was done"
        return "after batch " + ", ".join(
            str(batch) if len(self._segments) == 1 else f"{batch} of segment '{name}'"
            for name, batch in last.items()
        )

    def processAllAvailable(self) -> None:  # noqa: N802 (as Spark's queries spell it)
        """For tests: wait until every row that has arrived is processed in all segments."""
        while True:
            before = self._batches_done()
            for query in self.queries.values():
                try:
                    query.processAllAvailable()
                except StreamingQueryException:
                    self._supervisor.wait(STOP_PATIENCE_S)
                    self._raise_failure()
                    raise
            if self._batches_done() == before:
                if not self.isActive:
                    self._supervisor.wait(STOP_PATIENCE_S)
                self._raise_failure()
                return

    def _batches_done(self) -> list[int]:
        return [
            segment.results[-1].plan.batch_id if segment.results else -1
            for segment in self._segments.values()
        ]

    def savepoint(self, target: str | os.PathLike[str]) -> Savepoint:
        """Copy all that is needed to go on from here to a directory or URL of its own.

        All segments wait at the end of their batches while the small files are copied. The state
        is copied while they go on. `start(..., savepoint=target)` begins with it, at any time and
        any number of times.
        """
        self._raise_failure()
        if self._called_from_inside():
            raise AskedWrongly(
                "a sink or a watcher cannot make a savepoint: its own batch has to end first"
            )
        if self.ended:
            raise AskedWrongly(
                f"pipeline '{self.name}' has ended; use `tidegate savepoint CHECKPOINT TARGET`"
            )
        one = next(iter(self._segments.values()))
        return savepoint_of_run(
            one.checkpoint.root, target, self._between_batches(), one.cleaner.held()
        )

    @contextmanager
    def _between_batches(self) -> Iterator[None]:
        """Within this, no batch of any segment runs."""
        with ExitStack() as held:
            for segment in self._segments.values():
                held.enter_context(segment.busy)
            yield

    def stop(self, timeout: float | None = STOP_PATIENCE_S) -> None:
        """Stop at a batch boundary. Batches that run are finished and committed first.

        Any thread may call this, any number of times; all callers return when everything is
        stopped. After `timeout` seconds (120 by default, None for no limit) it raises an error that
        says what it waits for. The stop then goes on in the background. A sink or a watcher that
        calls this does not wait, because its own batch or tick has to end first.

        If the pipeline has failed and no call has raised the failure yet, this one does, after
        everything is cleaned up.
        """
        if timeout is not None and not timeout >= 0:
            raise AskedWrongly(f"stop: timeout = {timeout}; give seconds, or None for no limit")
        self._supervisor.ask()
        if self._called_from_inside():
            return
        if not self._supervisor.wait(timeout):
            raise TidegateError(
                f"pipeline '{self.name}' has not stopped within {timeout:g} s:"
                f" {self._supervisor.hanging()}; it still stops in the background, so call"
                " stop(timeout=...) again to wait longer, or end the process: the batch then"
                " repeats at the next start"
            )
        if self._supervisor.unheard is not None:
            self._raise_failure()

    def _called_from_inside(self) -> bool:
        """Whether the calling thread is one that runs a batch or a tick of this run."""
        inside = any(segment.runs_here for segment in self._segments.values())
        return inside or (self.loop is not None and self.loop.ticks_here)

    def _raise_failure(self) -> None:
        failure = self._supervisor.failure
        if failure is not None:
            if not self._called_from_inside():  # the control loop tells nobody
                self._supervisor.heard = True
            again = failure.again()
            raise again from again.__cause__

    def _raise_failure_of_the_loop(self) -> None:
        if self.loop is not None and self.loop.failure is not None:
            raise TidegateError(
                f"the control loop ended ({self.loop.failure}); the pipeline ran on without it"
            ) from self.loop.failure

    def _segment_of(self, operator: str) -> SegmentRun:
        for segment in self._segments.values():
            if operator in segment.allocation:
                return segment
        known = [name for part in self._segments.values() for name in part.allocation.snapshot()]
        raise AskedWrongly(
            f"there is no operator '{operator}' with tasks of its own{nearest(operator, known)}"
        )


def _spark_is_up() -> bool:
    """Whether nobody has stopped Spark. A Java process that has died was not stopped."""
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return False
    try:
        return not context._jsc.sc().isStopped()
    except Exception:
        return True
