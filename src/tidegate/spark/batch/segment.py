"""One segment at work on Spark: the micro-batches of its streaming query.

The order of their steps, which makes a batch exactly once, is in `transaction`.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock, get_ident

from pyspark.sql import DataFrame, SparkSession

from tidegate.control.shedding.next_batch import time_gathering_s
from tidegate.pipelines.graph import Segment, Sink
from tidegate.spark.batch.ahead import AheadRows
from tidegate.spark.batch.anchors import Anchors, ExecutorNames, working_executors
from tidegate.spark.batch.backpressure import Backpressure
from tidegate.spark.batch.batch_clock import BatchClock
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.cleaner import Cleaner
from tidegate.spark.batch.combining import Combining
from tidegate.spark.batch.compile import Compiler
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.rehearsal import Rehearsal
from tidegate.spark.batch.report import Reports
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.skipped import SkippedRows
from tidegate.spark.batch.spark_work import SparkWork
from tidegate.spark.batch.step import AfterStep, Steps
from tidegate.spark.batch.transaction import Transactions
from tidegate.spark.measure.memory import BoundedMemory, remembered_results
from tidegate.spark.owner.lease import Lease
from tidegate.spark.shedding.ledger import Ledger, SourceTotals, Totals
from tidegate.spark.sinks.of_format import FormatSink, sink_of
from tidegate.spark.state.event_times import IDLE_US
from tidegate.spark.state.kept_versions import KeptVersions

_log = logging.getLogger("tidegate.batch")
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
    lease: Lease
    cleaner: Cleaner
    pipeline: str = ""
    """The name of the pipeline, for log lines."""
    idle_after_us: int = IDLE_US
    """From when on a source without rows does not hold back the watermark."""
    rule: KeptVersions = field(default_factory=KeptVersions)
    """Which versions of the state are kept."""
    results: BoundedMemory[BatchResult] = field(default_factory=remembered_results)
    stopping: bool = False
    busy: Lock = field(default_factory=Lock)
    failure: BaseException | None = None
    before: Callable[[], None] | None = None
    """Called before each micro-batch is planned, so that the control loop can still change it."""
    after_step: AfterStep | None = None
    """Called after each step of a micro-batch; what it raises fails the batch at that step."""
    combine: str = "auto"
    """When rows are combined before they are sent to the tasks of their keys: by what it saves,
    "always" or "never"."""
    rehearsal: Rehearsal | None = None
    """Warms up executors; None: they are not warmed up."""
    counted: Callable[[ExecutorNames], ExecutorNames] = lambda executors: executors
    """Those of the executors that get tasks which stay on one executor."""
    waits: bool = False
    """Whether a micro-batch is about to be planned and waits for `before` to return."""
    running: BatchPlan | None = None
    """The plan of the micro-batch whose stages run now."""
    steps: Steps | None = None
    """The steps of the micro-batch that runs now."""
    _clock: BatchClock = field(default_factory=BatchClock)
    _thread: int | None = None
    """The thread that runs a batch now."""
    _begun_us: int | None = None
    """When the last batch of this run was planned; rows of the next batch arrive from then on."""
    _ahead: AheadRows = field(init=False)
    _skipped: SkippedRows = field(init=False)
    _backpressure: Backpressure = field(init=False)
    _counts: SourceTotals = field(init=False)
    _transactions: Transactions = field(init=False)
    _combining: Combining | None = None
    _formats: dict[str, FormatSink] = field(default_factory=dict)
    """The sinks that write to a format of Spark."""
    _query_id: str = ""

    def __post_init__(self) -> None:
        ledger = Ledger(self.checkpoint.segment(self.segment.name).below("counts"))
        self._counts = SourceTotals(self.segment, self.compiler.sources, ledger)
        self._ahead = AheadRows(self.pipeline)
        self._skipped = SkippedRows(self.pipeline)
        self._backpressure = Backpressure.of(self.segment, self.checkpoint, self.pipeline)
        self._transactions = Transactions(
            self.segment,
            self.checkpoint,
            self.allocation,
            self._counts,
            self.lease,
            self.cleaner.later,
            self.idle_after_us,
            self.rule,
        )

    @property
    def totals(self) -> Totals:
        """Rows offered and kept since counting began, per source."""
        return self._counts.totals

    def prepare(self) -> None:
        """Create directories, check what an earlier run left, and continue with its routes."""
        self._transactions.prepare()
        self._combining = self._begin_combining()
        self._formats = {
            node.name: sink_of(node, self.anchors.session)
            for node in self.segment.nodes
            if isinstance(node, Sink) and node.format is not None
        }

    def _begin_combining(self) -> Combining:
        """Combine rows as it was asked for; "auto" goes on as the last run ended."""
        combinable = self.compiler.combinable
        for node in self.segment.keyed:
            if self.combine != "auto" or node.name not in combinable:
                always = self.combine == "always" and node.name in combinable
                self.allocation.combine(node.name, always)
        chosen = combinable if self.combine == "auto" else frozenset[str]()
        return Combining.of(self.pipeline, self.allocation, sorted(chosen))

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Run one micro-batch."""
        self._thread = get_ident()
        try:
            self._wait(batch_id)
            with self.busy:
                self._refuse_when_stopping(batch_id)
                self._run(batch, batch_id)
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self.running = self.steps = self._thread = None

    @property
    def runs_here(self) -> bool:
        """Whether the calling thread is the one that runs a batch, as that of a sink is."""
        return self._thread == get_ident()

    def _wait(self, batch_id: int) -> None:
        """Wait until the batch may be planned: for the control loop, and for full channels."""
        if self.before is not None:
            self.waits = True
            self.before()
            self.waits = False
        self._backpressure.wait(batch_id, lambda: self.stopping)

    def _refuse_when_stopping(self, batch_id: int) -> None:
        if self.stopping:
            raise Stopping(f"segment '{self.segment.name}' stops before batch {batch_id}")

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        steps = self.steps = Steps(batch_id, self.after_step)
        session = with_our_settings(batch.sparkSession)
        self.anchors.session = session  # what is joined with an anchor runs in the anchor's session
        executors = self.counted(working_executors(session))
        work = SparkWork(
            self.segment,
            self.checkpoint,
            self.allocation,
            self.compiler,
            self.reports,
            self.anchors,
            batch=batch,
            batch_id=batch_id,
            executors=executors,
            pipeline=self.pipeline,
            query_id=self._spark_id,
            formats=self._formats,
            stopping=lambda: self.stopping,
            rows_before=self._rows_before,
        )
        done = self._transactions.run(
            batch_id,
            work,
            steps,
            lambda operators: self._new_plan(batch_id, operators),
            self._now_running,
        )
        if done is None:
            _log.info(
                "pipeline '%s': batch %d of segment '%s' was committed by an earlier run",
                self.pipeline,
                batch_id,
                self.segment.name,
            )
            return
        self._ahead.look(done.reports, done.plan.at_us)
        self._skipped.look(done.reports)
        if self._combining is not None:
            self._combining.look(done.plan, done.reports)
        self.results.append(
            BatchResult(
                segment=self.segment.name,
                plan=done.plan,
                replayed=done.replayed,
                started_s=steps.started_s,
                ended_s=time.time(),
                steps_s=steps.took_s,
                reports=done.reports,
                executors=max(1, len(executors)),
                sources=done.sources,
                written=work.written,
                previews_s=work.previews_s,
                traces={**work.traces, **self.compiler.told_traces(done.reports)},
            )
        )

    def _spark_id(self) -> str:
        """The id of the segment's query: Spark wrote it into the checkpoint before any batch."""
        if not self._query_id:
            spark = self.checkpoint.segment(self.segment.name).below("spark")
            self._query_id = str(spark.read_json("metadata")["id"])
        return self._query_id

    def _rows_before(self, operator: str) -> int:
        """Rows of an operator in the last batch of this run."""
        last = self.results[-1].of(operator) if self.results else []
        return sum(report.rows_in for report in last)

    def _now_running(self, plan: BatchPlan) -> None:
        self.running = plan
        self._begun_us = plan.at_us

    def _new_plan(self, batch_id: int, operators: Mapping[str, OperatorPlan]) -> BatchPlan:
        """The plan of a batch that was not tried before."""
        now_us = self._clock.now_us(self._before_us())
        return self.allocation.plan(
            batch_id,
            now_us,
            operators,
            gathered_s=self._gathered_s(now_us / 1e6),
            offered=self._offered(),
            unique=self.compiler.sources.unique,
        )

    def _before_us(self) -> int | None:
        """When the batch before was planned, by this run or the last one; None if there is none."""
        if self._begun_us is not None:
            return self._begun_us
        newest = self._transactions.plans.newest()
        return None if newest is None else newest.at_us

    def _gathered_s(self, now_s: float) -> float:
        """Time over which the rows of a batch that begins now arrived; zero where not known."""
        if self._begun_us is None or not self.results:
            return 0.0
        return time_gathering_s(self._begun_us / 1e6, self.results[-1].ended_s, now_s)

    def _offered(self) -> dict[str, float]:
        """Rows of each class that were offered to the last batch."""
        sources = self.results[-1].sources if self.results else ()
        return {part.name: float(part.offered) for one in sources for part in one.classes}


def with_our_settings(session: SparkSession) -> SparkSession:
    """The session of a query's batches, set up for them; the user's own session is another.

    A micro-batch is small and we plan it: planning it again stage by stage (AQE) cost a fifth of
    its time. A sink that wants AQE may set it again in its own session.
    """
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _RECORDS_PER_BLOCK)
    return session
