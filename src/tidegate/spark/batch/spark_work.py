"""What Spark does in one micro-batch: the `Work` of a transaction."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from tidegate.control.shards.balance import balance
from tidegate.pipelines.graph import Segment, Sink
from tidegate.spark.batch.anchors import Anchors, ExecutorNames
from tidegate.spark.batch.channel import FILES, ChannelTask, Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.compile import Compiler, Frames
from tidegate.spark.batch.complete import complete
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import Reports, TaskReport
from tidegate.spark.batch.sinks import write_sink
from tidegate.spark.kafka.channel_topic import ChannelTopic
from tidegate.spark.sinks.attempt import Attempt
from tidegate.spark.sinks.of_format import FormatSink
from tidegate.spark.state.version import Version


@dataclass(slots=True)
class SparkWork:
    """Runs the stages, gives sinks their frames, and writes the files of channels."""

    segment: Segment
    checkpoint: Checkpoint
    allocation: NextAllocation
    compiler: Compiler
    told: Reports
    anchors: Anchors
    batch: DataFrame
    batch_id: int
    executors: ExecutorNames
    pipeline: str
    """The name of the pipeline, for log lines."""
    query_id: Callable[[], str]
    """The id that Spark keeps for the segment's query in the checkpoint."""
    formats: Mapping[str, FormatSink]
    """The sinks that write to a format of Spark."""
    stopping: Callable[[], bool]
    """Whether the run is being stopped, so that no failed sink is retried."""
    rows_before: Callable[[str], int]
    """How many rows an operator had in the batch before."""
    _plan: BatchPlan = field(init=False)
    _frames: Frames = field(default_factory=Frames)
    written: dict[str, int] = field(default_factory=dict)
    """Rows that were written into each channel; a channel that got none is left out."""
    traces: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    """The traces that these rows carry."""
    previews_s: dict[str, float] = field(default_factory=dict)
    """How long the preview of each operator took that had one."""

    def operators(self) -> dict[str, OperatorPlan]:
        """Tasks and routes as they are wished for, numbered so that shards stay where they are."""
        anchors, executors = self.anchors, self.executors
        keyed = {node.name for node in self.segment.keyed}
        wished = self.allocation.followed(
            lambda name, entry: anchors.follow(
                name, entry.route, entry.tasks, executors, stateful=name in keyed
            )
        )
        for name, entry in wished.items():
            if not entry.route:  # a map whose rows are no longer dealt by shares
                anchors.let_go(name)
        return wished

    def previewed(self, plan: BatchPlan) -> BatchPlan:
        """The plan with routes that suit the rows of this batch, where they are to be counted."""
        routed = dict(plan.operators)
        for name in self.allocation.previews():
            begun_s = time.perf_counter()
            entry = routed[name]
            if entry.combine:  # no key is heavy then
                continue
            loads = self.compiler.counted(
                self.batch,
                plan,
                name,
                self.rows_before(name),
                self.anchors,
                self.executors,
                self._frames,
            )
            nodes = self.anchors.nodes(name)
            found = balance(loads, entry.route, entry.tasks, nodes=nodes)
            if found.worth_it:
                routed[name] = self.allocation.routed(name, entry, found.moves)
                self.anchors.routed(name, routed[name].route)
            self.previews_s[name] = time.perf_counter() - begun_s
        return replace(plan, operators=routed) if self.previews_s else plan

    def compile(self, plan: BatchPlan, before: Mapping[str, Version]) -> None:
        """The DataFrame of every node; nothing runs yet but what a preview needed."""
        self._plan = plan
        self._frames = self.compiler.frames(
            self.batch, plan, before, self.anchors, self.executors, self._frames
        )

    def write_sinks(self, check: Callable[[], None], replayed: bool) -> None:
        """Give each sink its frame: what it reads runs."""
        for node in self.segment.nodes:
            if isinstance(node, Sink):
                into = self.formats.get(node.name)
                query = "" if into is None else self.query_id()
                write_sink(
                    node,
                    self._frames.of[node.inputs[0]],
                    Attempt(self.pipeline, node.name, query, self.batch_id, replayed, check),
                    into,
                    stopping=self.stopping,
                )

    def write_channels(self) -> dict[str, list[tuple[str, int]]]:
        """Write each channel's rows; the names of the files are the result of the job."""
        written = {}
        for write in self.segment.writes:
            name = write.channel.name
            log = Log(self.checkpoint.channel(name))
            rows = self.compiler.channel_rows(write, self._frames)
            passes = name in self.compiler.traced
            topic = ChannelTopic.of(self.pipeline, write.channel, self.checkpoint.root.url)
            task = ChannelTask(name, log.data, self.batch_id, self.told.accumulator, passes, topic)
            files = rows.mapInArrow(_callable(task), FILES).toArrow()
            written[name] = list(
                zip(files["file"].to_pylist(), files["rows"].to_pylist(), strict=True)
            )
            if written[name]:
                self.written[name] = sum(count for _, count in written[name])
                traces = files["traces"].combine_chunks().flatten()
                self.traces[name] = np.unique(traces.to_numpy(zero_copy_only=False))
        return written

    def reports(self, counting: Collection[str]) -> list[TaskReport]:
        """The reports of all tasks; those that no sink or channel has run are run now."""
        return complete(self._frames, self._plan, self.told, self.segment.keyed, counting)

    def release(self) -> None:
        """Drop the cached frames."""
        self._frames.release()


def _callable(task: ChannelTask) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A plain function, which is what Spark wants to look at."""
    return lambda blocks: task(blocks)
