"""A driver without Spark: the real transactions, tasks, meter and controller on imitated rows.

What Tidegate adds to a micro-batch is its own Python: the plan, the tasks that are packed for the
workers, state that is opened and written, reports, the manifest, cleaning up, and a tick of the
control loop. All of that is the code that runs on Spark. Only Spark is missing: the shuffle, which
is a slice here, and the launch of tasks, which run one after the other.

Seconds are those of the processor, not of the clock on the wall, so that other work on the machine
does not count. Files should be on a filesystem in memory, where nobody waits for a disk.
"""

import statistics
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

import tidegate as tg
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.learning.sojourn import BatchStamps, merged
from tidegate.control.measurement import (
    BatchMeasurement,
    Latency,
    Measurement,
    SegmentMeasurement,
)
from tidegate.control.target import Target
from tidegate.pipelines.graph import Graph, Keyed, Segment, Sink, Source, TaskBounds
from tidegate.recording import RecordWriter
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.keyed_task import KeyedStage, KeyedTask
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import TaskReport, once
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.step import Step, Steps
from tidegate.spark.batch.transaction import Done, Transactions
from tidegate.spark.batch.worker import HASH, ORDER, TASK, packed
from tidegate.spark.measure.operator_meter import OperatorMeter
from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.segment_batches import FinishedBatch
from tidegate.spark.owner.epochs import Epochs
from tidegate.spark.owner.lease import Lease
from tidegate.spark.owner.process import Process
from tidegate.spark.shedding.ledger import Ledger, SourceTotals
from tidegate.spark.shedding.sources import ShedSources
from tidegate.spark.state.files import Durable
from tidegate.spark.state.layout import shard_of
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.packed_version import PackedVersion
from tidegate.spark.state.task import Keeper
from tidegate.spark.state.version import Version

ROWS = pa.schema([("k", pa.int64())])
BATCH_S = 10.0
"""The time between two batches, for whatever reads the clock."""
_BEGIN_S = 1_700_000_000.0


def hashes(keys: np.ndarray) -> np.ndarray:
    """A hash of each key that spreads over all 64 bits (SplitMix64's finisher)."""
    mixed = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).view(np.int64)


def counting(operators: int, shards: int) -> Segment:
    """A pipeline of one segment: a source, and keyed counts that all read it."""
    graph = Graph("growth")
    graph.add(Source(name="source", inputs=(), schema=ROWS, frame=None))
    for number in range(operators):
        bound = tg.count().bind(ROWS, ("k",))
        node = Keyed(
            name=f"count{number}",
            inputs=("source",),
            schema=bound.output,
            key=("k",),
            rows=ROWS,
            bound=bound,
            shards=shards,
            tasks=TaskBounds(1, shards),
        )
        graph.add(node)
        graph.add(
            Sink(name=f"out{number}", inputs=(node.name,), schema=node.schema, write=_nothing)
        )
    (segment,) = graph.segments()
    return segment


def _nothing(*_: object) -> None:
    """Write nothing anywhere."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What is varied, and what stays the same."""

    tasks: int = 4
    shards: int = 1024
    operators: int = 1
    keys: int = 10_000
    rows: int = 1_000
    """Rows of a batch."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The seconds of one micro-batch, by what took them."""

    plan_s: float
    """Planning, and writing the plan."""
    pack_s: float
    """Packing the tasks of all operators as they travel to workers."""
    commit_s: float
    """From the reports to the manifest."""
    clean_s: float
    """Removing old files, which the next batch does not wait for."""
    loop_s: float
    """Measuring, deciding and recording, which no batch waits for."""
    task_s: float
    """One task on its worker: unpacking, opening state, the function, writing state; the mean."""
    packed_bytes: int

    @property
    def driver_s(self) -> float:
        """All that the driver's Python does for a micro-batch, whoever waits for it."""
        return self.plan_s + self.pack_s + self.commit_s + self.clean_s + self.loop_s


class _Told:
    """In the place of Spark's accumulator."""

    def __init__(self) -> None:
        self.value: list[TaskReport] = []

    def add(self, reports: list[TaskReport]) -> None:
        """What a task reports."""
        self.value += reports


_told = _Told()
"""One for all tasks: what is unpacked finds it by its name, as it does Spark's on a worker."""


class _Accumulator:
    """What tasks are given: it finds the reports of this process after it was packed."""

    def add(self, reports: list[TaskReport]) -> None:
        """What a task reports."""
        _told.add(reports)


@dataclass(slots=True)
class _Work:
    """The part of a batch that a cluster does, done here one task after the other."""

    pipeline: "ImitatedPipeline"
    batch_id: int
    keys: np.ndarray
    """The keys of its rows; none: its tasks are passed over, and report that nothing changed."""
    pack_s: float = 0.0
    tasks_s: list[float] = field(default_factory=list)
    packed_bytes: int = 0
    _plan: BatchPlan = field(init=False)
    _before: Mapping[str, Version] = field(init=False)

    def operators(self) -> Mapping[str, OperatorPlan]:
        """As they are wished for: nothing is placed here."""
        return self.pipeline.allocation.followed(lambda name, entry: entry.route)

    def previewed(self, plan: BatchPlan) -> BatchPlan:
        """Nothing is counted ahead."""
        return plan

    def compile(self, plan: BatchPlan, before: Mapping[str, Version]) -> None:
        """Nothing runs yet."""
        self._plan, self._before = plan, before

    def write_sinks(self, check: Callable[[], None], replayed: bool) -> None:
        """Pack the tasks of each operator, and run all of them."""
        check()
        keys, hashed = self.keys, hashes(self.keys)
        for node in self.pipeline.segment.keyed:
            entry = self._plan.operators[node.name]
            if not len(keys):
                _told.add([self._nothing(node.name, task) for task in range(entry.tasks)])
                continue
            begun_s = time.process_time()
            task = KeyedTask(
                self.pipeline.stages[node.name],
                self.batch_id,
                self._plan.at_us,
                PackedVersion.of(self._before[node.name]),
                np.array(entry.route, dtype=np.int32),
                _Accumulator(),
            )
            content = cloudpickle.dumps(task)
            self.pack_s += time.process_time() - begun_s
            self.packed_bytes += len(content)
            self._run(content, entry, keys, hashed)

    def _nothing(self, operator: str, task: int) -> TaskReport:
        """The report of a task that had no rows."""
        return TaskReport(
            batch_id=self.batch_id,
            operator=operator,
            task=task,
            rows_in=0,
            rows_out=0,
            busy_s=0.0,
            function_s=0.0,
            executor="imitated",
            started_s=0.0,
        )

    def _run(
        self, content: bytes, entry: OperatorPlan, keys: np.ndarray, hashed: np.ndarray
    ) -> None:
        task_of = np.array(entry.route)[shard_of(hashed, self.pipeline.shape.shards)]
        order = np.argsort(task_of, kind="stable")
        rows = pa.table(
            {
                "k": keys[order],
                HASH: hashed[order],
                ORDER: order,
                TASK: task_of[order].astype(np.int32),
            }
        )
        ends = np.searchsorted(task_of[order], np.arange(entry.tasks + 1))
        for number in range(entry.tasks):
            first, end = int(ends[number]), int(ends[number + 1])
            anchor, mine = pa.table({TASK: [number]}), rows.slice(first, end - first)
            begun_s = time.process_time()
            cloudpickle.loads(content)(anchor, mine)
            self.tasks_s.append(time.process_time() - begun_s)

    def write_channels(self) -> dict[str, list[tuple[str, int]]]:
        """There is no channel."""
        return {}

    def reports(self, counting: Collection[str]) -> list[TaskReport]:
        """All tasks have run: what they reported, once each."""
        found = once(_told.value)
        _told.value = []
        return found

    def release(self) -> None:
        """Nothing is held."""


class ImitatedPipeline:
    """The driver of one pipeline on a checkpoint, and the nodes' cache of its state."""

    def __init__(self, root: Path, shape: Shape, *, first_batch: int = 0) -> None:
        self.shape = shape
        self.segment = counting(shape.operators, shape.shards)
        self.checkpoint = Checkpoint(Durable(str(root / "checkpoint")))
        self.allocation = NextAllocation(self.segment.nodes, shape.tasks)
        self.random = np.random.default_rng(first_batch)
        self.stages = {
            node.name: packed(
                KeyedStage(
                    Keeper(
                        operator=node.name,
                        key=node.key_schema,
                        bound=node.bound,
                        cache=NodeCache(
                            str(root / "cache" / node.name),
                            self.checkpoint.state(node.name),
                            shape.shards,
                        ),
                    ),
                    node.rows,
                    None,
                )
            )
            for node in self.segment.keyed
        }
        self.next_batch = first_batch
        self._jobs: dict[str, Callable[[], None]] = {}
        counts = SourceTotals(
            self.segment,
            ShedSources(self.segment, accumulator=None),
            Ledger(self.checkpoint.segment("main").below("counts")),
        )
        epochs = Epochs(self.checkpoint.root.below("owner"))
        epoch = epochs.make(epochs.newest(), Process.here(), time.time())
        assert epoch is not None
        self.transactions = Transactions(
            self.segment,
            self.checkpoint,
            self.allocation,
            counts,
            Lease(epochs, epoch),
            self._jobs.__setitem__,
        )
        self.transactions.prepare()
        self.clean()
        self._meter = OperatorMeter(self.segment)
        self.controller = new_controller(
            Assembly(
                target=Target(BATCH_S), bounds=Bounds(shape.tasks, shape.tasks), tick_s=BATCH_S
            )
        )
        self.records = RecordWriter(root / "checkpoint")

    def clean(self) -> None:
        """Do what is left to clean up, which on Spark a thread of its own does."""
        while self._jobs:
            self._jobs.pop(next(iter(self._jobs)))()

    def batch(self, keys: np.ndarray | None = None, *, tick: bool = True) -> Spent:
        """Run the next micro-batch to its commit, as Spark would have it run.

        Without `keys`, its rows have keys by chance. With none at all, its tasks are passed over.
        """
        if keys is None:
            keys = self.random.integers(0, self.shape.keys, self.shape.rows)
        number, at_s = self.next_batch, _BEGIN_S + BATCH_S * self.next_batch
        took_s: dict[Step, float] = {}
        last_s = time.process_time()

        def reached(step: Step, _: int) -> None:
            nonlocal last_s
            now_s = time.process_time()
            took_s[step], last_s = now_s - last_s, now_s

        work, steps = _Work(self, number, keys), Steps(number, reached)
        done = self.transactions.run(
            number,
            work,
            steps,
            lambda operators: BatchPlan(number, round(at_s * 1e6), operators),
        )
        assert done is not None
        self._spark_logs(number)
        begun_s = time.process_time()
        self.clean()
        clean_s = time.process_time() - begun_s
        begun_s = time.process_time()
        if tick:
            self._tick(done, steps, at_s)
        loop_s = time.process_time() - begun_s
        self.next_batch += 1
        commit = (Step.RAN, Step.HANDED_OVER, Step.ENTERED, Step.COMMITTED, Step.CLEANED)
        return Spent(
            plan_s=sum(took_s[one] for one in (Step.PREVIEWED, Step.PLANNED, Step.COMPILED)),
            pack_s=work.pack_s,
            commit_s=sum(took_s[one] for one in commit),
            clean_s=clean_s,
            loop_s=loop_s,
            task_s=statistics.mean(work.tasks_s or [0.0]),
            packed_bytes=work.packed_bytes,
        )

    def _spark_logs(self, number: int) -> None:
        """The entries of Spark's own logs, of which it keeps a hundred."""
        spark = self.checkpoint.segment("main").below("spark")
        for log in ("offsets", "commits"):
            folder = spark.below(log)
            if number == 0:
                folder.make()
            folder.write(str(number), b"v1\n{}\n0")
            if number >= 100:
                folder.remove(str(number - 100))

    def _tick(self, done: Done, steps: Steps, at_s: float) -> None:
        """Measure the batch as a run's meter does, decide, and record."""
        shape, busy_s = self.shape, sum(steps.took_s.values())
        result = BatchResult(
            segment="main",
            plan=done.plan,
            replayed=done.replayed,
            started_s=at_s,
            ended_s=at_s + 1.0,
            steps_s=steps.took_s,
            reports=done.reports,
            executors=1,
            sources=done.sources,
        )
        progress = BatchProgress(
            batch_id=done.plan.batch_id,
            rows=shape.rows,
            arrival_rate=shape.rows / BATCH_S,
            processed_rate=float(shape.rows),
            start_us=round(at_s * 1e6),
            duration_s=1.0,
            offsets_s=0.0,
            planning_s=0.0,
            reading_s=0.0,
            work_s=1.0,
            log_s=0.0,
            other_s=0.0,
        )
        stamps = BatchStamps(merged([]), progress.end_us)
        finished = FinishedBatch(result, progress, stamps, None, at_s - BATCH_S)
        operators = self._meter.measure([finished], self.allocation.snapshot(), BATCH_S)
        batch = BatchMeasurement(
            batch_id=done.plan.batch_id,
            rows=shape.rows,
            tasks=shape.tasks,
            imbalance=1.0,
            duration_s=max(busy_s, 1e-3),
            ended_s=at_s + 1.0,
        )
        latency = Latency(mean_s=1.0, p50_s=1.0, p95_s=1.0, p99_s=1.0)
        rate = shape.rows / BATCH_S
        segment = SegmentMeasurement(
            name="main",
            arrival_rate=rate,
            backlog_rows=0.0,
            tasks=shape.tasks,
            batches=(batch,),
            latency=latency,
        )
        record = self.controller.tick(
            Measurement(
                at_s=at_s + 1.0,
                interval_s=BATCH_S,
                arrival_rate=rate,
                processed_rate=rate,
                backlog_rows=0.0,
                cores_asked=shape.tasks,
                cores_granted=shape.tasks,
                saturated=False,
                latency=latency,
                operators=tuple(operators),
                segments=(segment,),
            )
        )
        self.records.write(record)


def parts_of(spent: list[Spent]) -> dict[str, float]:
    """The median seconds of each part over some batches."""
    names = ("driver_s", "plan_s", "pack_s", "commit_s", "clean_s", "loop_s", "task_s")
    return {name[:-2]: statistics.median(getattr(one, name) for one in spent) for name in names}
