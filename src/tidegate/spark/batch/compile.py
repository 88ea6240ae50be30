"""A segment's operators as Spark DataFrames of one micro-batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.errors import TidegateError
from tidegate.pipelines.graph import Channel, Keyed, Map, Merge, Node, Segment, Sink, Source
from tidegate.pipelines.schema import struct_of
from tidegate.pipelines.shedding import NOTHING_SAID, WEIGHT
from tidegate.pipelines.walks import (
    direct_keyed,
    first_reader,
    origins,
    reader_counts,
    sole_reader,
    timed_source,
)
from tidegate.spark.batch.anchors import Anchors, Executors
from tidegate.spark.batch.keyed_task import KeyedStage, KeyedTask
from tidegate.spark.batch.map_task import MapStage, MapTask
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.unanchored import unanchored
from tidegate.spark.batch.worker import HASH, ORDER, TASK, packed
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.sources import Draws, draws, marked, spark_draws
from tidegate.spark.shedding.task import ShedStage, ShedTask, sheds
from tidegate.spark.state.files import Durable
from tidegate.spark.state.layer import NodeCache
from tidegate.spark.state.task import Keeper
from tidegate.spark.state.version import Version

INPUT = "__input"


def arrivals_of(segment: Segment, node: Node, every: int) -> ArrivalSample | None:
    """How an operator notes when rows arrived, if it is the one that notes it for a source."""
    source = timed_source(segment, node)
    if source is None or source.arrival is None:
        return None
    return ArrivalSample(source.arrival, every)


def shed_stage(segment: Segment, source: Source, every: int) -> ShedStage:
    """How a source is shed; one of which nothing was said has rows of one kind."""
    arrivals = None if source.arrival is None else ArrivalSample(source.arrival, every)
    asked = source.shedding or NOTHING_SAID
    key, shards = asked.key, asked.shards
    keyed = direct_keyed(segment, source.name)
    if not key and keyed is not None:
        # Without a key of its own it is counted by the shards of a keyed operator that reads it.
        key, shards = keyed.key, keyed.shards
    return ShedStage(
        source.name,
        asked.by,
        asked.names,
        shards,
        asked.weight,
        arrivals,
        key,
        asked.unique,
    )


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
        self._readers = reader_counts(segment)
        self.sheds = {
            node.name: shed_stage(segment, node, sample_every)
            for node in segment.reads
            if isinstance(node, Source)
        }
        for name, shed in self.sheds.items():
            self._stages[name] = packed(shed)
        for node in segment.nodes:
            offered = self._classes(node)
            if isinstance(node, Map):
                sample = arrivals_of(segment, node, sample_every)
                stage = MapStage(node.name, node.function, node.schema, sample, offered)
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
                    KeyedStage(keeper, node.rows, node.order_by, sample, offered)
                )

    def _classes(self, node: Node) -> ShedStage | None:
        """The source whose classes an operator counts while nothing is shed."""
        if not isinstance(node, Map | Keyed):
            return None
        read = origins(self._segment, node.name)
        if len(read) != 1 or first_reader(self._segment, read[0].name) is not node:
            return None
        stage = self.sheds.get(read[0].name)
        return stage if stage is not None and stage.classes else None

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
        readers = self._readers
        many = len(self._segment.reads) > 1
        if many or any(readers[node.name] > 1 for node in self._segment.reads):
            batch = made.keep(batch)
        for node in (*self._segment.reads, *self._segment.nodes):
            if node.name in made.of or isinstance(node, Sink):
                continue
            frame = self._frame(node, batch, many, made.of, plan, versions, anchors, executors)
            raw = isinstance(node, Source | Channel) and self._shed(node, plan) is None
            shared = readers[node.name] > 1 and not raw
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
            rows = batch
            if many:
                rows = batch.filter(F.col(INPUT) == node.name).select(f"`{node.name}`.*")
            return self._source(node, rows, plan) if isinstance(node, Source) else rows
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
            if not unanchored(self._segment, node, executors):
                anchor = anchors.of(node.name, entry.tasks, executors)
            return self._keyed(node, made[node.inputs[0]], entry, plan, versions, anchor)
        raise TidegateError(f"'{node.name}' cannot stand inside a segment")

    @property
    def unique(self) -> dict[str, tuple[str, ...]]:
        """The columns that rows are drawn by, of sources that say so: for a new plan."""
        return {name: stage.unique for name, stage in self.sheds.items() if stage.unique}

    def counting_maps(self) -> list[str]:
        """Maps with tasks of their own that count the rows of a source as the first to read it."""
        found = (first_reader(self._segment, name) for name in self.sheds)
        return [node.name for node in found if isinstance(node, Map) and node.tasks is not None]

    def _stage(self, source: str, plan: BatchPlan) -> ShedStage:
        """How a source is shed in this micro-batch: drawn as the try that wrote the plan drew."""
        stage = self.sheds[source]
        unique = plan.unique.get(source, ())
        return stage if stage.unique == unique else replace(stage, unique=unique)

    def _shed(self, node: Node, plan: BatchPlan) -> ShedTask | None:
        """What sheds a source in this micro-batch; None when all its rows are kept."""
        if not isinstance(node, Source) or not sheds(plan, self.sheds):
            return None
        stage = self._stage(node.name, plan)
        content = self._stages[node.name] if stage is self.sheds[node.name] else packed(stage)
        return ShedTask(content, plan.batch_id, plan.keep.of(stage.classes), self._accumulator)

    def _source(self, node: Source, rows: DataFrame, plan: BatchPlan) -> DataFrame:
        """The rows of a source, with what is to be shed taken out, or about to be."""
        task, stage = self._shed(node, plan), self._stage(node.name, plan)
        if task is None:
            return rows.selectExpr("*", f"double(1) as {WEIGHT}") if stage.weight else rows
        if self._drawing(node, plan) is not None:
            return rows
        rows = marked(rows, stage, plan.batch_id)
        if self._fused(node.name) is not None:
            return rows
        return rows.mapInArrow(lambda blocks: task(blocks), struct_of(node.schema))

    def _fused(self, source: str) -> Map | None:
        """The map that sheds a source in its own call: its only reader, where the rows are."""
        reader = sole_reader(self._segment, source)
        return reader if isinstance(reader, Map) and reader.tasks is None else None

    def _drawing(self, source: Source, plan: BatchPlan) -> Map | Keyed | None:
        """The operator in front of whose shuffle Spark itself draws, with no stage of ours."""
        if not spark_draws(source, self._stage(source.name, plan)) or self._fused(source.name):
            return None
        return sole_reader(self._segment, source.name)

    def _shed_by(self, node: Map | Keyed, plan: BatchPlan) -> tuple[ShedTask | None, Draws | None]:
        """The source that an operator sheds in its own call, and how Spark draws before it."""
        for source in self._segment.reads:
            if not isinstance(source, Source):
                continue
            task, drawing = self._shed(source, plan), self._drawing(source, plan)
            if task is None or node not in (drawing, self._fused(source.name)):
                continue
            if drawing is None:
                return task, None
            return task, draws(source, self._stage(source.name, plan), plan.batch_id, task.keeps)
        return None, None

    def _map(self, node: Map, rows: DataFrame, plan: BatchPlan) -> DataFrame:
        entry = plan.operators.get(node.name)
        shed, drawn = self._shed_by(node, plan)
        if entry is not None:
            # Dealt out by position and put back into order, so that a replay deals the same and
            # what follows sees the same order, whatever order the shuffle delivered.
            columns = ("*",) if drawn is None else drawn.columns
            order = "monotonically_increasing_id()" if drawn is None else drawn.order
            rows = (
                rows.selectExpr(*columns, f"{order} as {ORDER}")
                .repartitionById(entry.tasks, F.expr(f"cast(pmod({ORDER}, {entry.tasks}) as int)"))
                .sortWithinPartitions(ORDER)
            )
        tasks = None if entry is None else entry.tasks
        task = MapTask(self._stages[node.name], plan.batch_id, self._accumulator, shed, tasks)
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
        shed, drawn = self._shed_by(node, plan)
        routed = rows.selectExpr(
            *(("*",) if drawn is None else drawn.columns),
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
            shed,
        )
        schema = struct_of(node.schema)
        if anchor is None:
            return routed.mapInArrow(lambda blocks: task.without_anchor(blocks), schema)
        both = anchor.groupBy(TASK).cogroup(routed.groupBy(TASK))
        return both.applyInArrow(lambda a, b: task(a, b), schema)


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
