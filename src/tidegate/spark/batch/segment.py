"""One segment at work: the micro-batches of its streaming query, step by step.

The order of the steps (`step.Step`) makes a batch exactly once: a crash anywhere repeats the batch
from its plan, and every step does again what it did (docs/exactly-once.md).
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidegate.control.shedding.next_batch import time_gathering_s
from tidegate.pipelines.graph import Segment, Sink
from tidegate.spark.batch.anchors import Anchors, ExecutorNames, working_executors
from tidegate.spark.batch.channel import ChannelTask, Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.compile import Compiler, Frames
from tidegate.spark.batch.complete import complete, compute
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, Plans
from tidegate.spark.batch.report import Reports, TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.step import AfterStep, Step, Steps
from tidegate.spark.shedding.ledger import Ledger, SourceTotals, Totals
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.version import Version

_REMEMBERED = 512
_RECORDS_PER_BLOCK = 1 << 17
"""Rows of an Arrow block that Spark hands over; set in the query's own session only."""


class Stopping(Exception):
    """Raised by a batch that begins after `stop`: it is not run and stays for the next start."""


@dataclass(slots=True)
class SegmentRun:
    """Runs the micro-batches of one segment; Spark calls it, one at a time."""

    segment: Segment
    checkpoint: Checkpoint
    allocation: NextAllocation
    compiler: Compiler
    reports: Reports
    anchors: Anchors
    results: deque[BatchResult] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    stopping: bool = False
    busy: Lock = field(default_factory=Lock)
    failure: BaseException | None = None
    before: Callable[[], None] | None = None
    """Called before each micro-batch is planned, so that the control loop can still change it."""
    after_step: AfterStep | None = None
    """Called after each step of a micro-batch; what it raises fails the batch at that step."""
    waits: bool = False
    """Whether a micro-batch is about to be planned and waits for `before` to return."""
    running: BatchPlan | None = None
    """The plan of the micro-batch whose stages run now."""
    _begun_us: int | None = None
    """When the last batch of this run was planned; rows of the next batch arrive from then on."""
    _current: tuple[int, dict[str, Version]] | None = None
    """The last batch that this run committed, and the state after it."""
    _counts: SourceTotals = field(init=False)

    def __post_init__(self) -> None:
        ledger = Ledger(self.checkpoint.segment(self.segment.name).below("counts"))
        self._counts = SourceTotals(self.segment, self.compiler.sources, ledger)

    @property
    def plans(self) -> Plans:
        """Its plan files."""
        return Plans(self.checkpoint.segment(self.segment.name).below("plans"))

    @property
    def manifests(self) -> Manifests:
        """Its committed versions."""
        folder = self.checkpoint.segment(self.segment.name).below("manifests")
        return Manifests(folder, self.checkpoint.state)

    @property
    def totals(self) -> Totals:
        """Rows offered and kept since counting began, per source."""
        return self._counts.totals

    def prepare(self) -> None:
        """Create directories, check what an earlier run left, and continue with its routes."""
        self.plans.directory.make()
        self.manifests.directory.make()
        for operator in self.segment.keyed:
            self.checkpoint.state.below(operator.name).make()
        for write in self.segment.writes:
            log = Log(self.checkpoint.channel(write.channel.name))
            log.make()
            log.sweep(log.length() - 1)
        committed = self.manifests.committed()
        if committed:
            self.manifests.verify(self._versions(committed[-1]))
            self.manifests.tidy()
            self.plans.tidy(committed[-1])
        newest = self.plans.newest()
        if newest is not None:
            self.allocation.adopt(newest)
        self._counts.open()

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Run one micro-batch."""
        if self.before is not None:
            self.waits = True
            self.before()
            self.waits = False
        with self.busy:
            if self.stopping:
                raise Stopping(f"segment '{self.segment.name}' stops before batch {batch_id}")
            try:
                self.results.append(self._run(batch, batch_id))
            except BaseException as error:
                self.failure = error
                raise
            finally:
                self.running = None

    def _run(self, batch: DataFrame, batch_id: int) -> BatchResult:
        steps = Steps(batch_id, self.after_step)
        session = with_our_settings(batch.sparkSession)
        self.anchors.session = session  # what is joined with an anchor runs in the anchor's session
        executors = working_executors(session)
        plan, replayed = self._planned(batch_id, executors)
        steps.reached(Step.PLANNED)
        before = self._versions(batch_id - 1)
        frames = self.compiler.frames(batch, plan, before, self.anchors, executors)
        steps.reached(Step.COMPILED)
        self.running = plan
        try:
            self._write_sinks(frames, batch_id)
            steps.reached(Step.SINKS_WRITTEN)
            self._write_channels(frames, batch_id)
            steps.reached(Step.CHANNELS_WRITTEN)
            maps = self._counts.counting_maps(plan)
            reports = complete(frames, plan, self.reports, self.segment.keyed, maps)
            steps.reached(Step.RAN)
        finally:
            frames.release()
        self._hand_over(batch_id, reports)
        steps.reached(Step.HANDED_OVER)
        sources = self._counts.enter(plan, reports)
        steps.reached(Step.ENTERED)
        self._commit(batch_id, before, reports, steps)
        return BatchResult(
            segment=self.segment.name,
            plan=plan,
            replayed=replayed,
            started_s=steps.started_s,
            ended_s=time.time(),
            steps_s=steps.took_s,
            reports=tuple(reports),
            executors=max(1, len(executors)),
            sources=sources,
        )

    def _planned(self, batch_id: int, executors: ExecutorNames) -> tuple[BatchPlan, bool]:
        """The plan of a batch, written down, and whether an earlier try had made it."""
        earlier = self.plans.read(batch_id)
        if earlier is not None:
            plan = self.allocation.completed(earlier)
        else:
            operators = self.allocation.followed(
                lambda name, entry: self.anchors.follow(name, entry.route, entry.tasks, executors)
            )
            now_us = time.time_ns() // 1000
            plan = self.allocation.plan(
                batch_id,
                now_us,
                operators,
                gathered_s=self._gathered_s(now_us / 1e6),
                offered=self._offered(),
                unique=self.compiler.sources.unique,
            )
        if plan is not earlier:
            self.plans.write(plan)
        self._begun_us = plan.at_us
        return plan, earlier is not None

    def _gathered_s(self, now_s: float) -> float:
        """Time over which the rows of a batch that begins now arrived; zero where not known."""
        if self._begun_us is None or not self.results:
            return 0.0
        return time_gathering_s(self._begun_us / 1e6, self.results[-1].ended_s, now_s)

    def _offered(self) -> dict[str, float]:
        """Rows of each class that were offered to the last batch."""
        sources = self.results[-1].sources if self.results else ()
        return {part.name: float(part.offered) for one in sources for part in one.classes}

    def _versions(self, batch_id: int) -> dict[str, Version]:
        """The state after a batch: from memory when this run committed it, else its manifest."""
        shards = {operator.name: operator.shards for operator in self.segment.keyed}
        if not shards:
            return {}
        if self._current is not None and self._current[0] == batch_id:
            return self._current[1]
        if batch_id >= 0 and not self.manifests.committed():
            batch_id = -1  # the segment had no keyed operator before
        found = self.manifests.read(batch_id, shards)
        return {name: found.get(name, Version.empty(count)) for name, count in shards.items()}

    def _write_sinks(self, frames: Frames, batch_id: int) -> None:
        for node in self.segment.nodes:
            if not isinstance(node, Sink):
                continue
            frame = frames.of[node.inputs[0]]
            if node.write is not None:
                node.write(frame, batch_id)
            else:
                writer = frame.write.format(str(node.format)).mode("append")
                writer.options(**dict(node.options)).save()

    def _write_channels(self, frames: Frames, batch_id: int) -> None:
        for write in self.segment.writes:
            log = Log(self.checkpoint.channel(write.channel.name))
            rows = frames.of[write.inputs[0]]
            for name in write.inputs[1:]:
                rows = rows.unionByName(frames.of[name])
            task = ChannelTask(write.channel.name, log.data, batch_id, self.reports.accumulator)
            compute(rows.mapInArrow(_callable(task), rows.schema))

    def _hand_over(self, batch_id: int, reports: list[TaskReport]) -> None:
        for write in self.segment.writes:
            files = [r.file for r in reports if r.operator == write.channel.name and r.file]
            Log(self.checkpoint.channel(write.channel.name)).commit(batch_id, files)

    def _commit(
        self,
        batch_id: int,
        before: Mapping[str, Version],
        reports: list[TaskReport],
        steps: Steps,
    ) -> None:
        """Make the new state current by one manifest, then remove what nobody can need."""
        after = {name: self._after(name, version, reports) for name, version in before.items()}
        if after:
            self.manifests.commit(batch_id, after)
        steps.reached(Step.COMMITTED)
        if after:
            self.manifests.clean(batch_id, after)
        self._current = (batch_id, after)
        steps.reached(Step.CLEANED)

    def _after(self, name: str, version: Version, reports: list[TaskReport]) -> Version:
        own = [report for report in reports if report.operator == name]
        changes = [report.change for report in own if report.change is not None]
        newest = [r.newest_event_us for r in own if r.newest_event_us is not None]
        delay_us = next(node.bound.delay_us for node in self.segment.keyed if node.name == name)
        return version.after(changes, max(newest) if newest else None, delay_us)


def _callable(task: ChannelTask) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A plain function, which is what Spark wants to look at."""
    return lambda blocks: task(blocks)


def with_our_settings(session: SparkSession) -> SparkSession:
    """The session of a query's batches, set up for them; the user's own session is another.

    A micro-batch is small and we plan it: planning it again stage by stage (AQE) cost a fifth of
    its time. A sink that wants AQE may set it again in its own session.
    """
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _RECORDS_PER_BLOCK)
    return session
