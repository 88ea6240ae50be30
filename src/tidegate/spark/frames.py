"""A segment's operators as Spark DataFrames of one micro-batch."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.errors import TidegateError
from tidegate.pipelines.graph import Channel, Keyed, Map, Merge, Node, Segment, Sink, Source
from tidegate.pipelines.schema import struct_of
from tidegate.spark.anchors import Anchors, Executors
from tidegate.spark.batchplan import BatchPlan, OperatorPlan
from tidegate.spark.state.files import Durable
from tidegate.spark.state.layer import NodeCache
from tidegate.spark.state.task import Keeper
from tidegate.spark.state.version import Version
from tidegate.spark.straight import straight
from tidegate.spark.worker import (
    HASH,
    ORDER,
    TASK,
    ArrivalSample,
    KeyedStage,
    KeyedTask,
    MapStage,
    MapTask,
)

INPUT = "__input"


def arrivals_of(segment: Segment, node: Node, every: int) -> ArrivalSample | None:
    """How the first operator that reads a source, directly or through merges, notes arrivals."""
    known = {other.name: other for other in (*segment.reads, *segment.nodes)}
    waiting = list(node.inputs)
    while waiting:
        origin = known[waiting.pop()]
        if isinstance(origin, Source) and origin.arrival is not None:
            first = next(
                other
                for other in segment.nodes
                if isinstance(other, Map | Keyed) and origin.name in _origins(known, other)
            )
            return ArrivalSample(origin.arrival, every) if first is node else None
        if isinstance(origin, Merge):
            waiting += origin.inputs
    return None


def _origins(known: Mapping[str, Node], node: Node) -> set[str]:
    """What a node reads, seen through merges."""
    found: set[str] = set()
    waiting = list(node.inputs)
    while waiting:
        name = waiting.pop()
        found.add(name)
        if isinstance(known[name], Merge):
            waiting += known[name].inputs
    return found


def packed(stage: MapStage | KeyedStage) -> bytes:
    """An operator's fixed part with the user's function in it, as tasks get it."""
    content: bytes = cloudpickle.dumps(stage)  # type: ignore[no-untyped-call]
    return content


def tagged(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Several streams as one, so that one query can read them: a tag and a struct for each."""
    if len(frames) == 1:
        return next(iter(frames.values()))
    parts = []
    for name, frame in frames.items():
        columns = [F.lit(name).alias(INPUT)]
        for other, its in frames.items():
            whole = F.struct(*[F.col(f"`{c}`") for c in frame.columns])
            columns.append((whole if other == name else F.lit(None).cast(its.schema)).alias(other))
        parts.append(frame.select(*columns))
    union = parts[0]
    for part in parts[1:]:
        union = union.unionByName(part)
    return union


class Compiler:
    """Turns a segment and a plan into DataFrames. Fixed parts are packed once."""

    def __init__(
        self,
        segment: Segment,
        state: Durable,
        cache: str,
        accumulator: Any,
        sample_every: int = 1,
    ) -> None:
        self._segment = segment
        self._accumulator = accumulator
        self._stages: dict[str, bytes] = {}
        for node in segment.nodes:
            if isinstance(node, Map):
                sample = arrivals_of(segment, node, sample_every)
                stage = MapStage(node.name, node.function, node.schema, sample)
                self._stages[node.name] = packed(stage)
            elif isinstance(node, Keyed):
                folder = NodeCache(f"{cache}/{node.name}", state.below(node.name), node.shards)
                keeper = Keeper(
                    operator=node.name,
                    key=node.key_schema,
                    bound=node.bound,
                    cache=folder,
                    ttl_us=node.ttl_us,
                )
                sample = arrivals_of(segment, node, sample_every)
                self._stages[node.name] = packed(
                    KeyedStage(keeper, node.rows, node.order_by, sample)
                )

    def frames(
        self,
        batch: DataFrame,
        plan: BatchPlan,
        versions: Mapping[str, Version],
        anchors: Anchors,
        executors: Executors,
    ) -> "Frames":
        """The DataFrame behind every node. Nothing runs yet."""
        made = Frames()
        readers = Counter(name for node in self._segment.nodes for name in node.inputs)
        for write in self._segment.writes:
            readers.update(write.inputs)
        many = len(self._segment.reads) > 1
        if many or any(readers[node.name] > 1 for node in self._segment.reads):
            batch = made.keep(batch)
        for node in (*self._segment.reads, *self._segment.nodes):
            if node.name in made.of or isinstance(node, Sink):
                continue
            frame = self._frame(node, batch, many, made.of, plan, versions, anchors, executors)
            shared = readers[node.name] > 1 and not isinstance(node, Source | Channel)
            shown = any(
                isinstance(other, Sink) and other.write and node.name in other.inputs
                for other in self._segment.nodes
            )
            made.of[node.name] = made.keep(frame) if shared or shown else frame
        return made

    def _frame(
        self,
        node: Node,
        batch: DataFrame,
        many: bool,
        made: Mapping[str, DataFrame],
        plan: BatchPlan,
        versions: Mapping[str, Version],
        anchors: Anchors,
        executors: Executors,
    ) -> DataFrame:
        if isinstance(node, Source | Channel):
            if not many:
                return batch
            return batch.filter(F.col(INPUT) == node.name).select(f"`{node.name}`.*")
        if isinstance(node, Map):
            return self._map(node, made[node.inputs[0]], plan)
        if isinstance(node, Merge):
            union = made[node.inputs[0]]
            for name in node.inputs[1:]:
                union = union.unionByName(made[name])
            return union
        if isinstance(node, Keyed):
            entry = plan.operators[node.name]
            anchor = None
            if not straight(self._segment, node, executors):
                anchor = anchors.of(node.name, entry.tasks, executors)
            return self._keyed(node, made[node.inputs[0]], entry, plan, versions, anchor)
        raise TidegateError(f"'{node.name}' cannot stand inside a segment")

    def _map(self, node: Map, rows: DataFrame, plan: BatchPlan) -> DataFrame:
        entry = plan.operators.get(node.name)
        if entry is not None:
            # Dealt out by position and put back into order, so that a replay deals the same and
            # what follows sees the same order, whatever order the shuffle delivered.
            rows = (
                rows.selectExpr("*", f"monotonically_increasing_id() as {ORDER}")
                .selectExpr("*", f"cast(pmod({ORDER}, {entry.tasks}) as int) as {TASK}")
                .repartitionById(entry.tasks, F.col(TASK))
                .sortWithinPartitions(ORDER)
            )
        task = MapTask(self._stages[node.name], plan.batch_id, self._accumulator)
        return rows.mapInArrow(lambda blocks: task(blocks), struct_of(node.schema))

    def _keyed(
        self,
        node: Keyed,
        rows: DataFrame,
        entry: OperatorPlan,
        plan: BatchPlan,
        versions: Mapping[str, Version],
        anchor: DataFrame | None,
    ) -> DataFrame:
        keys = ", ".join(f"`{name}`" for name in node.key)
        # One literal string: a literal per shard overflows Spark's stack.
        route = ",".join(str(task) for task in entry.route)
        shard = f"cast(pmod(xxhash64({keys}), {node.shards}) as int)"
        routed = rows.selectExpr(
            "*",
            f"xxhash64({keys}) as {HASH}",
            f"monotonically_increasing_id() as {ORDER}",
            f"cast(split('{route}', ',') as array<int>)[{shard}] as {TASK}",
        ).repartitionById(entry.tasks, F.col(TASK))
        task = KeyedTask(
            self._stages[node.name],
            plan.batch_id,
            plan.at_us,
            versions[node.name],
            entry.route,
            self._accumulator,
        )
        if anchor is None:
            return routed.mapInArrow(lambda blocks: task.straight(blocks), struct_of(node.schema))
        both = anchor.groupBy(TASK).cogroup(routed.groupBy(TASK))
        return both.applyInArrow(lambda a, b: task(a, b), struct_of(node.schema))


@dataclass(slots=True)
class Frames:
    """The frames of one micro-batch, and those that are kept until it ends."""

    of: dict[str, DataFrame] = field(default_factory=dict)
    kept: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: DataFrame) -> DataFrame:
        """Compute it once, however often it is read."""
        frame = frame.persist()
        self.kept.append(frame)
        return frame

    def release(self) -> None:
        """Let the kept frames go."""
        for frame in self.kept:
            frame.unpersist()
