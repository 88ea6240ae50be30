"""Compiles a segment and the plan of a micro-batch to Spark DataFrames."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.columns import IntColumn
from tidegate.control.learning.traces import NO_IDS
from tidegate.errors import TidegateError
from tidegate.pipelines.graph import (
    Aside,
    Channel,
    Keyed,
    Map,
    Merge,
    Node,
    Packed,
    Segment,
    Sink,
    Source,
    Write,
)
from tidegate.pipelines.keyed import Combiner
from tidegate.pipelines.origins import origins_of
from tidegate.pipelines.schema import struct_of
from tidegate.pipelines.walks import (
    hosted_before,
    mixed_readers,
    packed_input,
    reader_counts,
    sole_reader,
    timed_source,
)
from tidegate.spark.batch.anchors import ALONE, AnchorFrames, ExecutorNames, beside
from tidegate.spark.batch.asides import aside_of, asides_of, output_of, with_asides
from tidegate.spark.batch.combine_task import CombineStage, CombineTask
from tidegate.spark.batch.keyed_task import KeyedStage, KeyedTask
from tidegate.spark.batch.map_task import MapStage, MapTask
from tidegate.spark.batch.packed import packed_arrivals, packed_at_once, packed_rows
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.preview import counted, shard_of, way_to
from tidegate.spark.batch.rehearsed_task import RehearsedTask
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.traces import FIELD, SPARK_TYPE, TraceSample, with_traces
from tidegate.spark.batch.unanchored import unanchored
from tidegate.spark.batch.worker import HASH, ORDER, ORIGIN, PARTED, TASK, TRACE, packed
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.sources import Intake, ShedSources, quoted
from tidegate.spark.state.cache_place import CachePlace
from tidegate.spark.state.files import Durable
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.packed_version import PackedVersion
from tidegate.spark.state.task import Keeper
from tidegate.spark.state.version import Version

INPUT = "__input"


def arrival_sample(segment: Segment, node: Node, every: int) -> ArrivalSample | None:
    """How an operator notes when rows arrived; None for one that does not have to."""
    if node.name in mixed_readers(segment):
        return None
    several = packed_input(segment, node)
    if several is not None:
        return packed_arrivals(segment, several, node, every)
    source = timed_source(segment, node)
    if source is None or source.arrival is None:
        return None
    return ArrivalSample(source.arrival, every)


def trace_samples(segment: Segment, traced: frozenset[str], every: int) -> dict[str, TraceSample]:
    """The operators that sample the inputs of a source themselves: they alone read it."""
    found = {}
    for source in segment.reads:
        if isinstance(source, Source) and source.arrival and source.name in traced:
            reader = sole_reader(segment, source.name)
            if reader is not None and reader.name in traced:
                found[reader.name] = TraceSample(source.arrival, every)
    return found


def trace_tellers(segment: Segment, traced: frozenset[str]) -> frozenset[str]:
    """The operators that tell the traces of the rows that leave them, so that no column has to.

    All their rows go straight into one channel, whose reader does not need the traces itself.
    """
    readers = reader_counts(segment)
    operators = {node.name for node in segment.nodes if isinstance(node, Map | Keyed)}
    found: set[str] = set()
    for write in segment.writes:
        if write.channel.name not in traced and all(
            name in traced and name in operators and readers[name] == 1 for name in write.inputs
        ):
            found.update(write.inputs)
    return frozenset(found)


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
        traced: frozenset[str] = frozenset(),
        earlier: Mapping[str, tuple[pa.Schema, ...]] = MappingProxyType({}),
        combines: bool = True,
    ) -> None:
        self.traced = traced
        """The nodes and channels of the pipeline whose rows carry traces (`pipelines.traces`)."""
        self._sample_every = sample_every
        self._samples = trace_samples(segment, traced, sample_every)
        self._tellers = trace_tellers(segment, traced)
        self._segment = segment
        self._accumulator = accumulator
        self._stages: dict[str, bytes] = {}
        self._readers = reader_counts(segment)
        self._rehearses = False
        self._arrivals: dict[str, ArrivalSample | None] = {}
        self._combines = combines
        self._combine_stages: dict[str, bytes] = {}
        self._behind_combined: dict[str, bytes] = {}
        self._origins = origins_of(segment)
        self.sources = ShedSources(segment, accumulator, sample_every)
        for node in segment.nodes:
            if not isinstance(node, Map | Keyed):
                continue
            offered = self.sources.classes_counted_by(node)
            sample = self._arrivals[node.name] = arrival_sample(segment, node, sample_every)
            if isinstance(node, Map):
                carried = node.name in self._origins.carried
                stage = MapStage(
                    node.name,
                    node.function,
                    node.schema,
                    sample,
                    offered,
                    carried,
                    node.name in traced,
                    self._samples.get(node.name),
                    node.name in self._tellers,
                    sample_every,
                    node.on_error == "skip",
                    self._asides(node),
                )
                self._stages[node.name] = packed(stage)
            else:
                layouts = earlier.get(node.name, ())
                folder = NodeCache(node.name, state(node.name), node.shards, cache, layouts)
                keeper = Keeper(
                    operator=node.name,
                    key=node.key_schema,
                    bound=node.bound,
                    cache=folder,
                    ttl_us=node.ttl_us,
                )
                combiner = self._combiner(node)
                if combiner is not None:
                    needs = pa.schema([node.rows.field(name) for name in combiner.needs])
                    in_front = CombineStage(
                        node.name, combiner, needs, sample, offered, sample_every
                    )
                    self._combine_stages[node.name] = packed(in_front)
                behind = KeyedStage(
                    keeper,
                    node.rows,
                    node.order_by,
                    sample,
                    offered,
                    self._origins.names,
                    node.name in traced,
                    self._samples.get(node.name),
                    node.name in self._tellers,
                    sample_every,
                    node.on_error == "skip",
                    self._asides(node),
                    combiner,
                )
                self._stages[node.name] = packed(behind)
                if combiner is not None:
                    self._behind_combined[node.name] = packed(behind.of_combined(combiner))

    @property
    def combinable(self) -> frozenset[str]:
        """The operators whose rows can be combined before they are sent to their tasks."""
        return frozenset(self._combine_stages)

    def _combiner(self, node: Keyed) -> Combiner | None:
        """How an operator's rows are combined; None where something is told of single rows.

        Behind a shuffle these are traces, origins of several sources with event time, and rows that
        are put aside or left out.
        """
        combiner = node.bound.combiner
        apart = bool(self._asides(node)) or node.on_error == "skip"
        told = node.name in self.traced or bool(self._origins.told_apart(node))
        if combiner is None or told or apart or not self._combines:
            return None
        return combiner if node.order_by is None or combiner.any_order else None

    def _asides(self, node: Map | Keyed) -> dict[str, pa.Schema]:
        """The rows that an operator puts aside and somebody reads."""
        return asides_of(self._segment, node.name)

    @property
    def stages(self) -> tuple[bytes, ...]:
        """The fixed parts of all operators, with the users' functions in them."""
        return (*self._stages.values(), *self._combine_stages.values())

    def rehearsing(self) -> "Compiler":
        """One that makes the same DataFrames, with tasks that load the operators and run nothing.

        To Spark, both are the same plan: what it compiles for the one it has for the other.
        """
        other = copy.copy(self)
        other._rehearses = True
        return other

    def frames(
        self,
        batch: DataFrame,
        plan: BatchPlan,
        versions: Mapping[str, Version],
        anchors: AnchorFrames,
        executors: ExecutorNames,
        made: "Frames | None" = None,
    ) -> "Frames":
        """The DataFrame of every node, beside those that a preview has made. Nothing runs yet."""
        made = made or Frames()
        for node in (*self._segment.reads, *self._segment.nodes):
            if node.name not in made.of and not isinstance(node, Sink):
                self._make(node, batch, made, plan, versions, anchors, executors)
        return made

    def counted(
        self,
        batch: DataFrame,
        plan: BatchPlan,
        operator: str,
        expected: int,
        anchors: AnchorFrames,
        executors: ExecutorNames,
        made: "Frames",
    ) -> NDArray[np.int64]:
        """Preview an operator: the rows of each of its shards (`preview.counted`).

        What leads to it is computed, and kept in `made` for the rest of the batch.
        """
        keyed = next(node for node in self._segment.keyed if node.name == operator)
        way = way_to(self._segment, keyed)
        assert way is not None
        for node in way:
            if node.name not in made.of:
                last = node is way[-1]
                self._make(node, batch, made, plan, {}, anchors, executors, keep=last)
        return counted(made.of[way[-1].name], keyed, expected)

    def _make(
        self,
        node: Node,
        batch: DataFrame,
        made: "Frames",
        plan: BatchPlan,
        versions: Mapping[str, Version],
        anchors: AnchorFrames,
        executors: ExecutorNames,
        *,
        keep: bool = False,
    ) -> None:
        """Make the DataFrame of a node whose inputs are made; with `keep` compute it only once."""
        readers = self._readers
        many = len(self._segment.reads) > 1
        if made.batch is None:
            packs = (one for one in self._segment.nodes if isinstance(one, Packed))
            apart = many and not any(self._at_once(one, plan) for one in packs)
            several = apart or any(readers[one.name] > 1 for one in self._segment.reads)
            made.batch = made.keep(batch) if several else batch
        frame = self._frame(node, made.batch, many, made, plan, versions, anchors, executors)
        parts = self._asides(node) if isinstance(node, Map | Keyed) else {}
        if parts:
            made.parted[node.name] = made.keep(frame)
            frame = output_of(made.parted[node.name], parts)
        # An input that nothing is added to is the batch itself, which is kept already.
        plain = isinstance(node, Source) and not self.sources.sheds(plan)
        shared = readers[node.name] > 1 and not (isinstance(node, Channel) or plain)
        shown = any(
            isinstance(other, Sink) and other.write and node.name in other.inputs
            for other in self._segment.nodes
        )
        parted = bool(parts) or isinstance(node, Aside)
        if (shared or shown or keep) and not parted:
            frame = made.keep(frame)
        is_source = isinstance(node, Source)
        hidden = self._origin(node.name) if is_source else self._hidden(node.name)
        made.add(node.name, frame, hidden)
        if isinstance(node, Source) and node.name in self.traced and not self._sampled(node):
            made.hidden[node.name] = with_traces(frame, node, self._sample_every), (TRACE,)

    def _sampled(self, source: Source) -> bool:
        """Whether the reader of a source samples its inputs."""
        reader = sole_reader(self._segment, source.name)
        return reader is not None and reader.name in self._samples

    def channel_rows(self, write: Write, made: "Frames") -> DataFrame:
        """What is written into a channel, with traces where there are any."""
        hidden = (TRACE,) if any(self._carries(name) for name in write.inputs) else ()
        return _union([self._branch(name, made, hidden) for name in write.inputs])

    def told_traces(self, reports: Sequence[TaskReport]) -> dict[str, NDArray[np.int64]]:
        """For each channel whose traces operators tell: those of the rows written in a batch."""
        found = {}
        for write in self._segment.writes:
            if self._tellers.issuperset(write.inputs):
                left = [
                    r.left for r in reports if r.operator in write.inputs and r.left is not None
                ]
                found[write.channel.name] = np.unique(np.concatenate([NO_IDS, *left]))
        return found

    def _origin(self, name: str) -> tuple[str, ...]:
        return (ORIGIN,) if name in self._origins.carried else ()

    def _hidden(self, name: str) -> tuple[str, ...]:
        """The hidden columns that the rows of a node carry."""
        return (*self._origin(name), *((TRACE,) if self._carries(name) else ()))

    def _carries(self, name: str) -> bool:
        """Whether the rows of a node carry their traces in a hidden column."""
        return name in self.traced and name not in self._tellers

    def _takes(self, node: Map | Keyed) -> bool:
        """Whether an operator finds traces on the rows that enter it."""
        return node.name in self.traced and node.name not in self._samples

    def _frame(
        self,
        node: Node,
        batch: DataFrame,
        many: bool,
        made: "Frames",
        plan: BatchPlan,
        versions: Mapping[str, Version],
        anchors: AnchorFrames,
        executors: ExecutorNames,
    ) -> DataFrame:
        if isinstance(node, Source | Channel):
            rows = batch
            if many:
                rows = batch.filter(F.col(INPUT) == node.name).select(f"`{node.name}`.*")
            return self.sources.rows(node, rows, plan) if isinstance(node, Source) else rows
        if isinstance(node, Map):
            hidden = (*self._origin(node.name), *((TRACE,) if self._takes(node) else ()))
            dealt = plan.operators.get(node.name)
            rows = made.rows(node.inputs[0], hidden)
            if dealt is not None and dealt.route and executors != ALONE:
                kept = anchors.of(node.name, dealt.tasks, executors)
                return self._anchored_map(node, rows, dealt, plan, kept)
            return self._map(node, rows, dealt, plan)
        if isinstance(node, Aside):
            return aside_of(made.parted[node.inputs[0]], node.kind, self._hidden(node.name))
        if isinstance(node, Packed):
            return self._packed(node, batch, many, made, plan)
        if isinstance(node, Merge):
            hidden = self._hidden(node.name)
            return _union([self._branch(name, made, hidden) for name in node.inputs])
        if isinstance(node, Keyed):
            entry = plan.operators[node.name]
            anchor = None
            if entry.parts == 1 and not unanchored(self._segment, node, executors):
                anchor = anchors.of(node.name, entry.tasks, executors)
            apart = (ORIGIN,) if self._origins.told_apart(node) else ()
            traces = (TRACE,) if self._takes(node) else ()
            rows = made.rows(node.inputs[0], (*apart, *traces))
            intake = self._intake(node, plan)
            combined = entry.combine and node.name in self._combine_stages
            if combined:
                rows, intake = self._combined(node, rows, plan, intake, made), Intake()
            else:
                intake = self._needed(node, intake, (*apart, *traces))
            return self._keyed(node, rows, entry, plan, versions, anchor, intake, combined)
        raise TidegateError(f"'{node.name}' cannot stand inside a segment")

    def _branch(self, name: str, made: "Frames", hidden: tuple[str, ...]) -> DataFrame:
        """The rows that a merge or a channel reads, with all the hidden columns that it needs."""
        there = [column for column in hidden if column in made.hidden_columns(name)]
        rows = made.rows(name, tuple(there))
        if ORIGIN in hidden and ORIGIN not in there:
            (origin,) = self._origins.of[name]
            rows = rows.withColumn(ORIGIN, F.lit(self._origins.numbers[origin]))
        if TRACE in hidden and TRACE not in there:
            rows = rows.withColumn(TRACE, F.lit(None).cast(SPARK_TYPE))
        return rows

    def _packed(
        self, node: Packed, batch: DataFrame, many: bool, made: "Frames", plan: BatchPlan
    ) -> DataFrame:
        """The rows of several inputs in one table."""
        hidden = self._hidden(node.name)
        if many and self._at_once(node, plan):
            origins = self._origins.numbers if ORIGIN in hidden else None
            return packed_at_once(node, batch, INPUT, origins)
        branches = [self._branch(name, made, hidden) for name in node.inputs]
        return _union(
            [packed_rows(node, number, rows, hidden) for number, rows in enumerate(branches)]
        )

    def _at_once(self, node: Packed, plan: BatchPlan) -> bool:
        """Whether an operator reads all sources of the segment, and nothing else does.

        Then the rows are packed in one pass over the batch, where otherwise the batch is kept and
        read once for each source.
        """
        names = [one.name for one in self._segment.reads]
        return (
            sorted(node.inputs) == sorted(names)
            and all(self._readers[name] == 1 for name in names)
            and TRACE not in self._hidden(node.name)
            and not self.sources.changes_rows(plan)
        )

    def _map(
        self, node: Map, rows: DataFrame, entry: OperatorPlan | None, plan: BatchPlan
    ) -> DataFrame:
        intake = self._intake(node, plan)
        if entry is not None:
            # Rows are dealt out by their position and sorted by it behind the shuffle. So a replay
            # deals them alike, and what follows sees one order whatever the shuffle delivered.
            rows = (
                rows.selectExpr(*intake.columns, f"{intake.order} as {ORDER}")
                .repartitionById(entry.tasks, F.expr(_dealt(entry)))
                .sortWithinPartitions(ORDER)
            )
        schema = self._map_schema(node)
        task: MapTask | RehearsedTask
        if self._rehearses:
            task = RehearsedTask(self._stages[node.name], schema)
        else:
            task = self._map_task(node, entry, plan, intake)
        return rows.mapInArrow(lambda blocks: task(blocks), struct_of(schema))

    def _anchored_map(
        self,
        node: Map,
        rows: DataFrame,
        entry: OperatorPlan,
        plan: BatchPlan,
        anchor: DataFrame,
    ) -> DataFrame:
        """A map whose tasks stay on their executors, because these are not equally fast."""
        intake = self._intake(node, plan)
        dealt = rows.selectExpr(*intake.columns, f"{intake.order} as {ORDER}").withColumn(
            TASK, F.expr(_dealt(entry))
        )
        task = replace(self._map_task(node, entry, plan, intake), block_rows=_block_rows(rows))
        schema = self._map_schema(node)
        both = beside(anchor, dealt.repartitionById(entry.tasks, F.col(TASK)), entry.tasks)
        return both.applyInArrow(lambda a, b: task.anchored(a, b, schema), struct_of(schema))

    def _map_task(
        self, node: Map, entry: OperatorPlan | None, plan: BatchPlan, intake: Intake
    ) -> MapTask:
        return MapTask(
            self._stages[node.name],
            plan.batch_id,
            self._accumulator,
            intake.shed,
            None if entry is None else entry.tasks,
            () if entry is None else entry.route,
        )

    def _map_schema(self, node: Map) -> pa.Schema:
        """The columns that leave a map, hidden ones included."""
        schema = node.schema
        if node.name in self._origins.carried:
            schema = schema.append(pa.field(ORIGIN, pa.int32()))
        if self._carries(node.name):
            schema = schema.append(FIELD)
        return with_asides(schema, self._asides(node))

    def _intake(self, node: Map | Keyed, plan: BatchPlan) -> Intake:
        """How rows enter an operator, with the traces that they carry."""
        intake = self.sources.intake(node, plan)
        if not self._takes(node) or "*" in intake.columns:
            return intake
        return replace(intake, columns=(*intake.columns, TRACE))

    def _keyed(
        self,
        node: Keyed,
        rows: DataFrame,
        entry: OperatorPlan,
        plan: BatchPlan,
        versions: Mapping[str, Version],
        anchor: DataFrame | None,
        intake: Intake,
        combined: bool,
    ) -> DataFrame:
        keys = ", ".join(f"`{name}`" for name in node.key)
        # One literal string: a literal per shard overflows Spark's stack.
        route = _in_one_string(entry.route)
        shard = shard_of(node.key, node.shards)
        columns = [
            *intake.columns,
            f"xxhash64({keys}) as {HASH}",
            f"monotonically_increasing_id() as {ORDER}",
            f"cast(split('{route}', ',') as array<int>)[{shard}] as {TASK}",
        ]
        in_parts = entry.parts > 1 and not self._rehearses
        if in_parts:
            parts = _in_one_string(entry.part_of)
            columns.append(f"cast(split('{parts}', ',') as array<int>)[{shard}] as {PARTED}")
        routed = rows.selectExpr(*columns)
        if in_parts:
            routed = _named(routed, entry.tasks)
        routed = routed.repartitionById(entry.tasks, F.col(TASK))
        leaving = node.schema.append(FIELD) if self._carries(node.name) else node.schema
        leaving = with_asides(leaving, self._asides(node))
        schema = struct_of(leaving)
        stage = (self._behind_combined if combined else self._stages)[node.name]
        if self._rehearses:
            rehearsed = RehearsedTask(stage, leaving)
            if anchor is None:
                return routed.mapInArrow(lambda blocks: rehearsed(blocks), schema)
            both = beside(anchor, routed, entry.tasks)
            return both.applyInArrow(lambda a, b: rehearsed.anchored(a, b), schema)
        task = KeyedTask(
            stage,
            plan.batch_id,
            plan.at_us,
            PackedVersion.of(versions[node.name]),
            np.array(entry.route, dtype=np.int32),
            self._accumulator,
            np.array(entry.part_of, dtype=np.int32) if in_parts else None,
            intake.shed,
        )
        if in_parts:
            sorted_rows = routed.sortWithinPartitions(PARTED)
            return sorted_rows.mapInArrow(lambda blocks: task.in_parts(blocks), schema)
        if anchor is None:
            return routed.mapInArrow(lambda blocks: task.without_anchor(blocks), schema)
        both = beside(anchor, routed, entry.tasks)
        return both.applyInArrow(lambda a, b: task(a, b), schema)

    def _needed(self, node: Keyed, intake: Intake, hidden: tuple[str, ...] = ()) -> Intake:
        """An intake without the columns that nothing in the operator's task looks at."""
        folded = {name.casefold() for name in node.rows.names}
        ambiguous = len(folded) < len(node.rows.names)  # to Spark, where it ignores case
        if intake.columns != ("*",) or node.bound.needs is None or ambiguous or self._asides(node):
            return intake
        sample, traces = self._arrivals.get(node.name), self._samples.get(node.name)
        offered = self.sources.classes_counted_by(node)
        names = (
            *node.key,
            *node.bound.needs,
            node.bound.event_time,
            node.order_by,
            None if sample is None else sample.column,
            None if traces is None else traces.arrival,
            None if offered is None else offered.by,
            *hidden,
        )
        columns = tuple(quoted(name) for name in dict.fromkeys(names) if name is not None)
        return replace(intake, columns=columns)

    def _combined(
        self, node: Keyed, rows: DataFrame, plan: BatchPlan, intake: Intake, made: "Frames"
    ) -> DataFrame:
        """The rows of an operator, combined where they are: in the call of the maps before it."""
        assert node.bound.combiner is not None
        stage, schema = self._combine_stages[node.name], struct_of(node.bound.combiner.rows)
        if self._rehearses:
            rehearsed = RehearsedTask(stage, node.bound.combiner.rows)
            return rows.mapInArrow(lambda blocks: rehearsed(blocks), schema)
        task = CombineTask(stage, plan.batch_id, plan.at_us, self._accumulator, intake.shed)
        maps = hosted_before(self._segment, node)
        if not maps or not (self._origins.carried | self.traced).isdisjoint(m.name for m in maps):
            given = rows.selectExpr(*self._needed(node, intake).columns)
            return given.mapInArrow(lambda blocks: task(blocks), schema)
        calls = [self._map_task(one, None, plan, self._intake(one, plan)) for one in maps]

        def call(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for each in calls:
                blocks = each(blocks)
            return task(blocks)

        return made.rows(maps[0].inputs[0], ()).mapInArrow(call, schema)


def _named(rows: DataFrame, tasks: int) -> DataFrame:
    """The rows with one more for each task, which only names it, and which comes first."""
    empty = [
        F.lit(None).cast(field.dataType).alias(field.name)
        for field in rows.schema.fields
        if field.name not in (TASK, PARTED)
    ]
    numbers = rows.sparkSession.range(0, tasks, 1, 1)
    named = numbers.select(
        *empty, F.col("id").cast("int").alias(TASK), F.lit(-1).cast("int").alias(PARTED)
    )
    return rows.unionByName(named)


def _block_rows(rows: DataFrame) -> int | None:
    """The most rows that Spark gives a Python function at once; None: there is no limit."""
    limit = int(rows.sparkSession.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") or 0)
    return limit if limit > 0 else None


def _dealt(entry: OperatorPlan) -> str:
    """The task of a row of a map, by its position: in turn, or by the slots of its route."""
    if not entry.route:
        return f"cast(pmod({ORDER}, {entry.tasks}) as int)"
    # One literal string: a literal per slot overflows Spark's stack.
    route = _in_one_string(entry.route)
    slot = f"cast(pmod({ORDER}, {len(entry.route)}) as int)"
    return f"cast(split('{route}', ',') as array<int>)[{slot}]"


def _in_one_string(numbers: Sequence[int]) -> str:
    """Numbers with commas between them."""
    column = numbers if isinstance(numbers, IntColumn) else IntColumn(numbers)
    return column.json_text[1:-1]


def _union(frames: list[DataFrame]) -> DataFrame:
    """The rows of all frames, which have the same columns."""
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionByName(frame)
    return union


@dataclass(slots=True)
class Frames:
    """The DataFrame of each node in one micro-batch, and those that are cached until it ends."""

    batch: DataFrame | None = None
    """What Spark gave; None before the first node is made."""
    of: dict[str, DataFrame] = field(default_factory=dict)
    kept: list[DataFrame] = field(default_factory=list)
    hidden: dict[str, tuple[DataFrame, tuple[str, ...]]] = field(default_factory=dict)
    """The same rows with hidden columns, and the names of these, where an operator needs them."""
    parted: dict[str, DataFrame] = field(default_factory=dict)
    """What the tasks of an operator returned that puts rows aside: its output, and those rows."""

    def add(self, name: str, frame: DataFrame, hidden: tuple[str, ...]) -> None:
        """The frame of a node, with the hidden columns that it has."""
        if hidden:
            self.hidden[name] = frame, hidden
            frame = frame.drop(*hidden)
        self.of[name] = frame

    def hidden_columns(self, name: str) -> tuple[str, ...]:
        """The hidden columns that the rows of a node have."""
        return self.hidden[name][1] if name in self.hidden else ()

    def rows(self, name: str, hidden: tuple[str, ...]) -> DataFrame:
        """The rows of a node, as the user knows them, and those hidden columns that are needed."""
        if not hidden:
            return self.of[name]
        frame, columns = self.hidden[name]
        return frame.drop(*(column for column in columns if column not in hidden))

    def keep(self, frame: DataFrame) -> DataFrame:
        """Compute it once, however often it is read."""
        frame = frame.persist()
        self.kept.append(frame)
        return frame

    def release(self) -> None:
        """Drop the cached frames."""
        for frame in self.kept:
            frame.unpersist()
