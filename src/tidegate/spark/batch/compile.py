"""Compiles a segment and the plan of a micro-batch to Spark DataFrames."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.errors import TidegateError
from tidegate.pipelines.graph import Channel, Keyed, Map, Merge, Node, Segment, Sink, Source
from tidegate.pipelines.origins import origins_of
from tidegate.pipelines.schema import struct_of
from tidegate.pipelines.walks import reader_counts, timed_source
from tidegate.spark.batch.anchors import Anchors, ExecutorNames
from tidegate.spark.batch.keyed_task import KeyedStage, KeyedTask
from tidegate.spark.batch.map_task import MapStage, MapTask
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.unanchored import unanchored
from tidegate.spark.batch.worker import HASH, ORDER, ORIGIN, TASK, packed
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.sources import ShedSources
from tidegate.spark.state.cache_place import CachePlace
from tidegate.spark.state.files import Durable
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.task import Keeper
from tidegate.spark.state.version import Version

INPUT = "__input"


def arrival_sample(segment: Segment, node: Node, every: int) -> ArrivalSample | None:
    """How an operator notes when rows arrived; None for one that does not have to."""
    source = timed_source(segment, node)
    if source is None or source.arrival is None:
        return None
    return ArrivalSample(source.arrival, every)


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
    """Makes the DataFrames of each micro-batch. What never changes is packed once, at the start."""

    def __init__(
        self,
        segment: Segment,
        state: Callable[[str], Durable],
        cache: CachePlace,
        accumulator: Any,
        sample_every: int = 1,
    ) -> None:
        self._segment = segment
        self._accumulator = accumulator
        self._stages: dict[str, bytes] = {}
        self._readers = reader_counts(segment)
        self._origins = origins_of(segment)
        self.sources = ShedSources(segment, accumulator, sample_every)
        for node in segment.nodes:
            if not isinstance(node, Map | Keyed):
                continue
            offered = self.sources.classes_counted_by(node)
            sample = arrival_sample(segment, node, sample_every)
            if isinstance(node, Map):
                carried = node.name in self._origins.carried
                stage = MapStage(node.name, node.function, node.schema, sample, offered, carried)
                self._stages[node.name] = packed(stage)
            else:
                folder = NodeCache(node.name, state(node.name), node.shards, cache)
                keeper = Keeper(
                    operator=node.name,
                    key=node.key_schema,
                    bound=node.bound,
                    cache=folder,
                    ttl_us=node.ttl_us,
                )
                self._stages[node.name] = packed(
                    KeyedStage(
                        keeper, node.rows, node.order_by, sample, offered, self._origins.names
                    )
                )

    def frames(
        self,
        batch: DataFrame,
        plan: BatchPlan,
        versions: Mapping[str, Version],
        anchors: Anchors,
        executors: ExecutorNames,
    ) -> "Frames":
        """The DataFrame of every node. Nothing runs yet."""
        made = Frames()
        readers = self._readers
        many = len(self._segment.reads) > 1
        sheds = self.sources.sheds(plan)
        if many or any(readers[node.name] > 1 for node in self._segment.reads):
            batch = made.keep(batch)
        for node in (*self._segment.reads, *self._segment.nodes):
            if node.name in made.of or isinstance(node, Sink):
                continue
            frame = self._frame(node, batch, many, made, plan, versions, anchors, executors)
            # An input that nothing is added to is the batch itself, which is kept already.
            raw = isinstance(node, Channel) or (isinstance(node, Source) and not sheds)
            shared = readers[node.name] > 1 and not raw
            shown = any(
                isinstance(other, Sink) and other.write and node.name in other.inputs
                for other in self._segment.nodes
            )
            if shared or shown:
                frame = made.keep(frame)
            if node.name in self._origins.carried:
                made.with_origin[node.name] = frame
                frame = frame.drop(ORIGIN)
            made.of[node.name] = frame
        return made

    def _frame(
        self,
        node: Node,
        batch: DataFrame,
        many: bool,
        made: "Frames",
        plan: BatchPlan,
        versions: Mapping[str, Version],
        anchors: Anchors,
        executors: ExecutorNames,
    ) -> DataFrame:
        carried = self._origins.carried
        if isinstance(node, Source | Channel):
            rows = batch
            if many:
                rows = batch.filter(F.col(INPUT) == node.name).select(f"`{node.name}`.*")
            return self.sources.rows(node, rows, plan) if isinstance(node, Source) else rows
        if isinstance(node, Map):
            return self._map(node, made.rows(node.inputs[0], node.name in carried), plan)
        if isinstance(node, Merge):
            branches = [self._branch(name, made, node.name in carried) for name in node.inputs]
            union = branches[0]
            for branch in branches[1:]:
                union = union.unionByName(branch)
            return union
        if isinstance(node, Keyed):
            entry = plan.operators[node.name]
            anchor = None
            if not unanchored(self._segment, node, executors):
                anchor = anchors.of(node.name, entry.tasks, executors)
            rows = made.rows(node.inputs[0], bool(self._origins.told_apart(node)))
            return self._keyed(node, rows, entry, plan, versions, anchor)
        raise TidegateError(f"'{node.name}' cannot stand inside a segment")

    def _branch(self, name: str, made: "Frames", with_origin: bool) -> DataFrame:
        """The rows that a merge reads, with the number of their origin where that is needed."""
        if not with_origin or name in self._origins.carried:
            return made.rows(name, with_origin)
        (origin,) = self._origins.of[name]
        return made.of[name].withColumn(ORIGIN, F.lit(self._origins.numbers[origin]))

    def _map(self, node: Map, rows: DataFrame, plan: BatchPlan) -> DataFrame:
        entry = plan.operators.get(node.name)
        intake = self.sources.intake(node, plan)
        if entry is not None:
            # Rows are dealt out by their position and sorted by it behind the shuffle. So a replay
            # deals them alike, and what follows sees one order whatever the shuffle delivered.
            rows = (
                rows.selectExpr(*intake.columns, f"{intake.order} as {ORDER}")
                .repartitionById(entry.tasks, F.expr(f"cast(pmod({ORDER}, {entry.tasks}) as int)"))
                .sortWithinPartitions(ORDER)
            )
        tasks = None if entry is None else entry.tasks
        stage = self._stages[node.name]
        task = MapTask(stage, plan.batch_id, self._accumulator, intake.shed, tasks)
        schema = node.schema
        if node.name in self._origins.carried:
            schema = schema.append(pa.field(ORIGIN, pa.int32()))
        return rows.mapInArrow(lambda blocks: task(blocks), struct_of(schema))

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
        intake = self.sources.intake(node, plan)
        routed = rows.selectExpr(
            *intake.columns,
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
            intake.shed,
        )
        schema = struct_of(node.schema)
        if anchor is None:
            return routed.mapInArrow(lambda blocks: task.without_anchor(blocks), schema)
        both = anchor.groupBy(TASK).cogroup(routed.groupBy(TASK))
        return both.applyInArrow(lambda a, b: task(a, b), schema)


@dataclass(slots=True)
class Frames:
    """The DataFrame of each node in one micro-batch, and those that are cached until it ends."""

    of: dict[str, DataFrame] = field(default_factory=dict)
    kept: list[DataFrame] = field(default_factory=list)
    with_origin: dict[str, DataFrame] = field(default_factory=dict)
    """The same rows with their origin in a hidden column, where an operator needs it."""

    def rows(self, name: str, with_origin: bool) -> DataFrame:
        """The rows of a node, as the user knows them or with their origin."""
        return self.with_origin[name] if with_origin else self.of[name]

    def keep(self, frame: DataFrame) -> DataFrame:
        """Compute it once, however often it is read."""
        frame = frame.persist()
        self.kept.append(frame)
        return frame

    def release(self) -> None:
        """Drop the cached frames."""
        for frame in self.kept:
            frame.unpersist()
