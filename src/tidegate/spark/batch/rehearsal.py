"""A rehearsal of a segment: its operators' Spark plans run once, on no rows.

Spark plans the operators and compiles code for them, and Python workers import what the operators
need. Otherwise the first micro-batch does all that, while rows wait. No function of the user's is
called, and neither state, channels, sinks nor the checkpoint are touched.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidegate.control.shards.route import even_route
from tidegate.pipelines.graph import Segment, Sink
from tidegate.spark.batch.anchors import UnplacedAnchors, working_executors
from tidegate.spark.batch.channel import FILES
from tidegate.spark.batch.compile import Compiler, Frames
from tidegate.spark.batch.complete import compute
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.state.files import Durable
from tidegate.spark.state.version import Version

_NO_BATCH = -1
"""The number of a batch that there never is."""


def no_rows(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take all rows, and return none."""
    for _ in blocks:
        pass
    yield from ()


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Runs the operators of one segment on no rows, as often as it is asked to."""

    segment: Segment
    compiler: Compiler
    allocation: NextAllocation
    columns: StructType
    """The columns of the segment's batches."""
    checkpoint: Durable
    """Where the pipeline's checkpoint is, which new executors look at once."""

    def empty_batch(self, frame: DataFrame) -> DataFrame:
        """A batch of the segment without rows, computed where the partitions of a frame are."""
        return frame.mapInArrow(lambda blocks: no_rows(blocks), self.columns)

    def run(self, batch: DataFrame, tasks: int | None = None) -> None:
        """Run every operator once, on a batch without rows.

        `tasks` is how many tasks the operators have; None: as many as in the next micro-batch.
        """
        session = batch.sparkSession
        anchors = UnplacedAnchors(session)
        frames = Frames()
        try:
            self.compiler.rehearsing().frames(
                batch,
                BatchPlan(_NO_BATCH, 0, self._operators(tasks)),
                {node.name: Version.empty(node.shards) for node in self.segment.keyed},
                anchors,
                working_executors(session),
                frames,
            )
            self._compute(frames)
        finally:
            frames.release()
            anchors.release()

    def _operators(self, tasks: int | None) -> dict[str, OperatorPlan]:
        """Tasks of the operators; the rows of a map are dealt in turn, whatever the speeds are."""
        keyed = {node.name: node for node in self.segment.keyed}
        found = {}
        for name, entry in self.allocation.snapshot().items():
            node = keyed.get(name)
            count = entry.tasks if tasks is None else tasks
            if node is None:
                found[name] = OperatorPlan(count)
            else:
                count = min(count, node.shards)
                found[name] = OperatorPlan(count, even_route(node.shards, count))
        return found

    def _compute(self, frames: Frames) -> None:
        """Compute what sinks and channels would get, and operators that lead to neither."""
        inputs = {name for node in self.segment.nodes for name in node.inputs}
        inputs |= {name for write in self.segment.writes for name in write.inputs}
        for node in self.segment.nodes:
            if isinstance(node, Sink):
                compute(frames.of[node.inputs[0]])
            elif node.name not in inputs:
                compute(frames.of[node.name])
        for write in self.segment.writes:
            rows = self.compiler.channel_rows(write, frames)
            rows.mapInArrow(lambda blocks: no_rows(blocks), FILES).toArrow()
