"""When a keyed operator needs no anchor: then a task is named by its Spark partition.

An anchor costs about a fifth of a small micro-batch (a second input, two sorts and more planning).
In one process every task runs in the same place, so an anchor is only needed to tell a task without
rows its number. The number of the Spark partition tells the same, as long as nothing between the
operator and the end of its Spark stage puts partitions together: no union, no user's own sink, no
format that may coalesce.
"""

from tidegate.pipelines.graph import Keyed, Map, Segment, Sink
from tidegate.spark.batch.anchors import ALONE, ExecutorNames

KEEPS_PARTITIONS = frozenset({"noop", "parquet", "orc", "json", "csv", "text", "kafka"})
"""Formats that write one partition with one task."""


def unanchored(segment: Segment, node: Keyed, executors: ExecutorNames) -> bool:
    """Whether this operator may run right behind its shuffle, without an anchor."""
    return executors == ALONE and node.bound.due is None and _alone_to_the_end(segment, node.name)


def _alone_to_the_end(segment: Segment, name: str) -> bool:
    readers = [node for node in segment.nodes if name in node.inputs]
    writes = [write for write in segment.writes if name in write.inputs]
    if len(readers) + len(writes) > 1 or any(len(write.inputs) > 1 for write in writes):
        return False
    if not readers:
        return True
    reader = readers[0]
    if isinstance(reader, Keyed):
        return True
    if isinstance(reader, Sink):
        return reader.write is None and str(reader.format).lower() in KEEPS_PARTITIONS
    return isinstance(reader, Map) and _alone_to_the_end(segment, reader.name)
