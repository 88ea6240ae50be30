"""One segment at work: what happens in a micro-batch, in the order that makes it exactly once.

1. The plan: an earlier try's is read, or a new one written. 2. The state of the batch before.
3. The stages run; their tasks write state files and channel files that nobody looks at yet.
4. The sinks. 5. Channels are handed over. 6. The ledger of rows offered
and kept, where there is one, and the manifest, which makes the new state current.
7. The callback returns and Spark commits the offsets. A crash anywhere repeats the batch from 1,
and every step does again what it did (docs/exactly-once.md).
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame

from tidegate.control.row_counts import SourceCount
from tidegate.control.shedding.next_batch import time_gathering_s
from tidegate.errors import TidegateError
from tidegate.pipelines.graph import Keyed, Segment, Sink
from tidegate.spark.batch.anchors import Anchors, Executors, working_executors
from tidegate.spark.batch.channel import ChannelTask, Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.compile import Compiler, Frames
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, Plans
from tidegate.spark.batch.report import Reports, TaskReport
from tidegate.spark.shedding.ledger import Ledger, SourceTotals, Totals
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.version import Version

_REMEMBERED = 512
_RECORDS_PER_BLOCK = 1 << 17
"""Rows of an Arrow block that Spark hands over; set in the query's own session only."""


class Stopping(Exception):
    """A batch that began after `stop` was asked for: it is not run and stays for the next start."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a micro-batch did."""

    segment: str
    plan: BatchPlan
    replayed: bool
    started_s: float
    ended_s: float
    steps_s: dict[str, float]
    reports: tuple[TaskReport, ...]
    executors: int
    sources: tuple[SourceCount, ...] = ()
    """Rows offered and kept, per source."""

    @property
    def duration_s(self) -> float:
        """From the start of the callback to its end."""
        return self.ended_s - self.started_s

    def of(self, operator: str) -> list[TaskReport]:
        """The reports of one operator."""
        return [report for report in self.reports if report.operator == operator]


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
    """Called before each micro-batch is planned: the control loop's last word."""
    waits: bool = False
    """A micro-batch is about to be planned and waits for that word."""
    running: BatchPlan | None = None
    """Of the micro-batch whose stages run now."""
    _begun_us: int | None = None
    """When the last batch of this run was planned: since then rows have come for the next."""
    _current: tuple[int, dict[str, Version]] | None = None
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
        """Create directories, check what an earlier run left, and go on with its routes."""
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
        clock = _Steps()
        session = batch.sparkSession
        # A micro-batch is small and planned by us: planning it again stage by stage (AQE) cost a
        # fifth of it. A sink that wants AQE may set it again in its own session.
        session.conf.set("spark.sql.adaptive.enabled", "false")
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _RECORDS_PER_BLOCK)
        self.anchors.session = session  # what is joined with an anchor runs in the anchor's session
        executors = working_executors(session)
        plan, replayed = self._planned(batch_id, executors)
        before = self._versions(batch_id - 1)
        clock.step("plan")
        frames = self.compiler.frames(batch, plan, before, self.anchors, executors)
        clock.step("compile")
        self.running = plan
        try:
            self._sinks(frames, batch_id)
            self._channels(frames, batch_id)
            reports = self._complete(frames, plan)
            clock.step("run")
        finally:
            frames.release()
        for write in self.segment.writes:
            files = [r.file for r in reports if r.operator == write.channel.name and r.file]
            Log(self.checkpoint.channel(write.channel.name)).commit(batch_id, files)
        sources = self._counts.enter(plan, reports)
        after = {name: self._after(name, version, reports) for name, version in before.items()}
        if after:
            self.manifests.commit(batch_id, after)
            clock.step("commit")
            self.manifests.clean(batch_id, after)
        self._current = (batch_id, after)
        clock.step("clean")
        return BatchResult(
            self.segment.name,
            plan,
            replayed,
            clock.started_s,
            time.time(),
            clock.steps_s,
            tuple(reports),
            max(1, len(executors)),
            sources,
        )

    def _planned(self, batch_id: int, executors: Executors) -> tuple[BatchPlan, bool]:
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
        """How long rows have come for a batch that begins now; zero where that is not known."""
        if self._begun_us is None or not self.results:
            return 0.0
        return time_gathering_s(self._begun_us / 1e6, self.results[-1].ended_s, now_s)

    def _offered(self) -> dict[str, float]:
        """Rows of each class that the last batch was offered."""
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

    def _sinks(self, frames: Frames, batch_id: int) -> None:
        for node in self.segment.nodes:
            if not isinstance(node, Sink):
                continue
            frame = frames.of[node.inputs[0]]
            if node.write is not None:
                node.write(frame, batch_id)
            else:
                writer = frame.write.format(str(node.format)).mode("append")
                writer.options(**dict(node.options)).save()

    def _channels(self, frames: Frames, batch_id: int) -> None:
        for write in self.segment.writes:
            log = Log(self.checkpoint.channel(write.channel.name))
            rows = frames.of[write.inputs[0]]
            for name in write.inputs[1:]:
                rows = rows.unionByName(frames.of[name])
            task = ChannelTask(write.channel.name, log.data, batch_id, self.reports.accumulator)
            run(rows.mapInArrow(_callable(task), rows.schema))

    def _complete(self, frames: Frames, plan: BatchPlan) -> list[TaskReport]:
        """The tasks' reports; operators that no sink has read to the end are run now."""
        reports = self.reports.drain(plan.batch_id)
        for operator in self._ends():
            if len(_tasks(reports, operator.name)) < plan.operators[operator.name].tasks:
                run(frames.of[operator.name])
        reports = _once_more(reports, self.reports.drain(plan.batch_id))
        for name in self.compiler.sources.counting_maps() if self._counts.counts(plan) else ():
            # A sink that took only some rows leaves tasks that have not counted theirs.
            if len(_tasks(reports, name)) < plan.operators[name].tasks:
                run(frames.of[name])
                reports = _once_more(reports, self.reports.drain(plan.batch_id))
        for operator in self.segment.keyed:
            told = _tasks(reports, operator.name)
            missing = set(range(plan.operators[operator.name].tasks)) - told
            if missing:
                raise TidegateError(
                    f"operator '{operator.name}' has no report of tasks {sorted(missing)} in batch "
                    f"{plan.batch_id}; the batch is not committed"
                )
        return reports

    def _ends(self) -> list[Keyed]:
        """Keyed operators, last first, so that running one runs those before it."""
        return list(reversed(self.segment.keyed))

    def _after(self, name: str, version: Version, reports: list[TaskReport]) -> Version:
        own = [report for report in reports if report.operator == name]
        changes = [report.change for report in own if report.change is not None]
        newest = [r.newest_event_us for r in own if r.newest_event_us is not None]
        delay_us = next(node.bound.delay_us for node in self.segment.keyed if node.name == name)
        return version.after(changes, max(newest) if newest else None, delay_us)


def _callable(task: ChannelTask) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A plain function, which is what Spark wants to look at."""
    return lambda blocks: task(blocks)


def run(frame: DataFrame) -> None:
    """Compute every row of a frame and keep none."""
    frame.write.format("noop").mode("append").save()


def _tasks(reports: list[TaskReport], operator: str) -> set[int]:
    return {report.task for report in reports if report.operator == operator}


def _once_more(first: list[TaskReport], later: list[TaskReport]) -> list[TaskReport]:
    """Reports of a second run count only where the first gave none."""
    known = {(report.operator, report.task, report.part) for report in first}
    return first + [r for r in later if (r.operator, r.task, r.part) not in known]


class _Steps:
    """How long each step of a batch took."""

    def __init__(self) -> None:
        self.started_s = time.time()
        self.steps_s: dict[str, float] = {}
        self._last = time.perf_counter()

    def step(self, name: str) -> None:
        now = time.perf_counter()
        self.steps_s[name] = now - self._last
        self._last = now
