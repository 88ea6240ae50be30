"""A pipeline that runs: start it, change it while it runs, wait for it, stop it."""

import hashlib
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.errors import AskedWrongly, TidegateError, nearest
from tidegate.pipelines.graph import Graph, Node, Source
from tidegate.pipelines.schema import struct_of
from tidegate.pipelines.stream import set_starter
from tidegate.spark.allocation import Allocation
from tidegate.spark.anchors import Anchors
from tidegate.spark.batchplan import OperatorPlan
from tidegate.spark.channel import FORMAT, ChannelSource
from tidegate.spark.checkpoint import Checkpoint
from tidegate.spark.failure import plain_message
from tidegate.spark.frames import Compiler, tagged
from tidegate.spark.report import Reports
from tidegate.spark.segment import BatchResult, SegmentRun, Stopping
from tidegate.spark.state.files import Durable

CACHE_VARIABLE = "TIDEGATE_CACHE"


class Run:
    """A running pipeline: one streaming query per segment."""

    def __init__(self, graph: Graph, segments: dict[str, SegmentRun]) -> None:
        self.name = graph.name
        self._segments = segments
        self._queries: dict[str, StreamingQuery] = {}

    def _begin(self, name: str, query: StreamingQuery) -> None:
        self._queries[name] = query

    @property
    def queries(self) -> Mapping[str, StreamingQuery]:
        """Spark's query behind each segment."""
        return dict(self._queries)

    @property
    def isActive(self) -> bool:  # noqa: N802 (as Spark's queries spell it)
        """Whether all its queries run."""
        return all(query.isActive for query in self._queries.values())

    def rescale(self, operator: str, tasks: int) -> None:
        """Run an operator with another number of tasks from its next micro-batch on."""
        self._segment_of(operator).allocation.rescale(operator, tasks)

    def reroute(self, operator: str, moves: Mapping[int, int]) -> None:
        """Move shards (shard to task) of a keyed operator from its next micro-batch on."""
        self._segment_of(operator).allocation.reroute(operator, moves)

    def allocation(self) -> dict[str, OperatorPlan]:
        """Tasks and routes that the next micro-batch will have."""
        return {
            name: entry
            for segment in self._segments.values()
            for name, entry in segment.allocation.snapshot().items()
        }

    def results(self, segment: str | None = None) -> list[BatchResult]:
        """What the last micro-batches did, oldest first; of all segments or of one."""
        chosen = [self._segments[segment]] if segment else list(self._segments.values())
        found = [result for part in chosen for result in list(part.results)]
        return sorted(found, key=lambda result: result.ended_s)

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        """Wait until it ends, or for `timeout` seconds; what made it fail is raised."""
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
        self._raise_failure()
        return True

    def processAllAvailable(self) -> None:  # noqa: N802 (as Spark's queries spell it)
        """For tests: wait until all that has arrived, and all that follows from it, is done."""
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
        """End on a batch boundary; a batch that runs is let finish and is committed."""
        for segment in self._segments.values():
            segment.stopping = True
        for name, query in self._queries.items():
            with self._segments[name].busy:
                pass
            query.stop()
            self._segments[name].anchors.release()

    def _raise_failure(self) -> None:
        for name, segment in self._segments.items():
            query = self._queries.get(name)
            error = None if query is None else query.exception()
            if error is None or isinstance(segment.failure, Stopping):
                continue
            told = plain_message(f"{segment.failure} {error}")
            if told is not None:
                raise TidegateError(told) from None
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


def start(
    graph: Graph,
    *,
    checkpoint: str,
    trigger: str | None = None,
    tasks: int | None = None,
    cache: str | None = None,
) -> Run:
    """Check the pipeline and its checkpoint, then start one query per segment."""
    graph.check()
    session = _session(graph)
    place = Checkpoint(Durable(checkpoint))
    place.open(graph)
    session.dataSource.register(ChannelSource)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(1 << 17))
    first_tasks = tasks or session.sparkContext.defaultParallelism
    folder = cache or os.environ.get(CACHE_VARIABLE) or _node_cache(checkpoint)
    segments: dict[str, SegmentRun] = {}
    for segment in graph.segments():
        reports = Reports(session.sparkContext)
        part = SegmentRun(
            graph,
            segment,
            place,
            Allocation(segment.nodes, first_tasks),
            Compiler(segment, place.state, folder, reports.accumulator),
            reports,
            Anchors(session),
        )
        part.prepare()
        segments[segment.name] = part
    run = Run(graph, segments)
    # Writers of channels make their directories in prepare, so any order of starting works.
    for name, part in segments.items():
        frames = {node.name: _stream(session, node, place) for node in part.segment.reads}
        writer = (
            tagged(frames)
            .writeStream.queryName(f"{graph.name}.{name}")
            .option("checkpointLocation", place.segment(name).below("spark").path(""))
            .foreachBatch(part)
        )
        if trigger is not None:
            writer = writer.trigger(processingTime=trigger)
        run._begin(name, writer.start())
    return run


def _stream(session: SparkSession, node: Node, place: Checkpoint) -> DataFrame:
    if isinstance(node, Source):
        return node.frame  # type: ignore[no-any-return]
    return (
        session.readStream.format(FORMAT)
        .option("columns", struct_of(node.schema).json())
        .load(place.channel(node.name).url)
    )


def _session(graph: Graph) -> SparkSession:
    source = next(node for node in graph.nodes.values() if isinstance(node, Source))
    session: SparkSession = source.frame.sparkSession
    return session


def _node_cache(checkpoint: str) -> str:
    """A directory of the node, one per checkpoint, shared by all its executors."""
    mark = hashlib.sha256(str(Durable(checkpoint).path("")).encode()).hexdigest()[:16]
    return str(Path(tempfile.gettempdir()) / f"tidegate-{os.getuid()}" / mark)


set_starter(start)
