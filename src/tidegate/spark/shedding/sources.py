"""What the driver does to shed a segment's sources in a micro-batch.

A source is shed in one of three places, all before the first operator's function sees a row:

- in the call of the map that alone reads it where its rows are: no stage is added;
- by Spark's own expressions, in front of the shuffle of the operator that alone reads it, where no
  two rows share the columns that the user named. A row's draw is then a function of that row alone.
  A shed row still travels, without its bulky columns, and the operator behind the shuffle counts
  and drops it: counts stay exact under retries, and there is no second pass;
- else in a stage of its own right behind the source.

While nothing is shed, the plan of the batch has no trace of it.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from tidegate.pipelines.graph import Keyed, Map, Segment, Source
from tidegate.pipelines.schema import struct_of
from tidegate.pipelines.shedding import NOT_DECLARED, WEIGHT
from tidegate.pipelines.walks import (
    direct_keyed,
    first_reader,
    origins,
    packed_input,
    sole_reader,
)
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.worker import packed
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.task import GROUP, KEPT, PART, ROW, ShedStage, ShedTask


@dataclass(frozen=True, slots=True)
class Intake:
    """How rows enter an operator in one micro-batch."""

    shed: ShedTask | None = None
    """What sheds its source inside the operator's own task; None: all rows that enter are kept."""
    columns: tuple[str, ...] = ("*",)
    """The expressions to select in front of a shuffle; with them Spark draws for each row."""
    order: str = "monotonically_increasing_id()"
    """The number by which rows are dealt to tasks and put back into order behind a shuffle."""


class ShedSources:
    """The sources of one segment, each with the way it is shed."""

    def __init__(self, segment: Segment, accumulator: Any, sample_every: int = 1) -> None:
        self._segment = segment
        self._accumulator = accumulator
        self.stages = {
            node.name: shed_stage(segment, node, sample_every)
            for node in segment.reads
            if isinstance(node, Source)
        }
        self._packed = {name: packed(stage) for name, stage in self.stages.items()}
        self._sole = {name: sole_reader(segment, name) for name in self.stages}

    @property
    def unique(self) -> dict[str, tuple[str, ...]]:
        """For a new plan: the columns that rows are drawn by, of the sources that name some."""
        return {name: stage.unique for name, stage in self.stages.items() if stage.unique}

    def sheds(self, plan: BatchPlan) -> bool:
        """Whether any source is shed in a micro-batch; then all of them count their rows."""
        return any(min(plan.keep.of(stage.classes)) < 1.0 for stage in self.stages.values())

    def changes_rows(self, plan: BatchPlan) -> bool:
        """Whether rows of a source differ from those that Spark gives: shed ones, or a weight."""
        return self.sheds(plan) or any(stage.weight for stage in self.stages.values())

    def rows(self, source: Source, rows: DataFrame, plan: BatchPlan) -> DataFrame:
        """The rows of a source: shed here, or marked for the operator that sheds them."""
        stage, task = self._stage(source.name, plan), self._task(source.name, plan)
        if task is None:
            return rows.selectExpr("*", f"double(1) as {WEIGHT}") if stage.weight else rows
        if self._drawn_before(source, plan) is not None:
            return rows
        rows = marked(rows, stage, plan.batch_id)
        if self._shed_within(source.name) is not None:
            return rows
        return rows.mapInArrow(lambda blocks: task(blocks), struct_of(source.schema))

    def intake(self, node: Map | Keyed, plan: BatchPlan) -> Intake:
        """How rows enter an operator: one that alone reads a source may have to shed it."""
        for source in self._segment.reads:
            if not isinstance(source, Source):
                continue
            task = self._task(source.name, plan)
            drawn_before = self._drawn_before(source, plan)
            if task is None or node not in (drawn_before, self._shed_within(source.name)):
                continue
            if drawn_before is None:
                return Intake(task)
            return drawn(source, self._stage(source.name, plan), task)
        return Intake()

    def classes_counted_by(self, node: Map | Keyed) -> ShedStage | None:
        """The source whose rows an operator counts by class while nothing is shed."""
        if packed_input(self._segment, node) is not None:
            return None  # its rows have other columns than the source's
        read = origins(self._segment, node.name)
        if len(read) != 1 or first_reader(self._segment, read[0].name) is not node:
            return None
        stage = self.stages.get(read[0].name)
        return stage if stage is not None and stage.classes else None

    def counting_maps(self) -> list[str]:
        """Maps with tasks of their own that count a source's rows, as the first to read them."""
        found = (first_reader(self._segment, name) for name in self.stages)
        return [node.name for node in found if isinstance(node, Map) and node.tasks is not None]

    def _stage(self, source: str, plan: BatchPlan) -> ShedStage:
        """How a source is shed in this batch: rows are drawn by the columns that its plan names."""
        stage = self.stages[source]
        unique = plan.unique.get(source, ())
        return stage if stage.unique == unique else replace(stage, unique=unique)

    def _task(self, source: str, plan: BatchPlan) -> ShedTask | None:
        """The task that sheds a source in this batch; None when the segment keeps all rows."""
        if not self.sheds(plan):
            return None
        stage = self._stage(source, plan)
        content = self._packed[source] if stage is self.stages[source] else packed(stage)
        return ShedTask(content, plan.batch_id, plan.keep.of(stage.classes), self._accumulator)

    def _shed_within(self, source: str) -> Map | None:
        """The map that sheds a source in its own call: its only reader, where the rows are."""
        reader = self._sole[source]
        return reader if isinstance(reader, Map) and reader.tasks is None else None

    def _drawn_before(self, source: Source, plan: BatchPlan) -> Map | Keyed | None:
        """The operator in front of whose shuffle Spark draws by its own expressions."""
        if not spark_draws(source, self._stage(source.name, plan)):
            return None
        if self._shed_within(source.name) is not None:
            return None
        return self._sole[source.name]


def shed_stage(segment: Segment, source: Source, sample_every: int) -> ShedStage:
    """How a source is shed; without `.shed(...)` its rows are all of one kind."""
    arrivals = None if source.arrival is None else ArrivalSample(source.arrival, sample_every)
    asked = source.shedding or NOT_DECLARED
    key, shards = asked.key, asked.shards
    keyed = direct_keyed(segment, source.name)
    if not key and keyed is not None and packed_input(segment, keyed) is None:
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


def marked(rows: DataFrame, stage: ShedStage, batch_id: int = 0) -> DataFrame:
    """The rows with what a task needs to shed them; Spark adds it as it reads them."""
    if stage.unique:
        word = _word(stage, batch_id)
    else:
        known = ", ".join(quoted(c.name) for c in rows.schema.fields if hashable(c.dataType))
        word = f"xxhash64({known or '0'})"
    columns = ["*", f"{word} as {ROW}", f"spark_partition_id() as {PART}"]
    return rows.selectExpr(*columns, *_group(stage))


def drawn(source: Source, stage: ShedStage, task: ShedTask) -> Intake:
    """Spark's own draw for rows that are told apart: the same numbers that a task would draw.

    Kept rows are numbered without gaps in each partition, because Spark counts up only where it
    evaluates, so whoever deals them by their number deals evenly. Shed rows get negative numbers.
    """
    word = _word(stage, task.batch_id)
    kept = f"shiftrightunsigned({word}, 11) * {2.0**-53!r}D < {_keep(stage, task.keeps)}"
    needed = {stage.by, source.arrival}
    columns = [
        f"if({kept}, {quoted(field.name)}, null) as {quoted(field.name)}"
        if _bulky(field.type) and field.name not in needed
        else quoted(field.name)
        for field in source.schema
        if field.name != WEIGHT
    ]
    shed = f"-1 - shiftrightunsigned({word}, 1)"
    return Intake(
        task,
        (*columns, *_group(stage), f"{kept} as {KEPT}"),
        f"if({kept}, monotonically_increasing_id(), {shed})",
    )


def spark_draws(source: Source, stage: ShedStage) -> bool:
    """Whether Spark can draw for a source: rows are told apart, and it names classes as we do."""
    if not stage.unique:
        return False
    if stage.by is None:
        return True
    kind = source.schema.field(stage.by).type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
    )


def hashable(kind: DataType) -> bool:
    """Whether Spark can hash such a column."""
    if isinstance(kind, ArrayType):
        return hashable(kind.elementType)
    if isinstance(kind, StructType):
        return all(hashable(part.dataType) for part in kind.fields)
    return not isinstance(kind, MapType | VariantType)


def _word(stage: ShedStage, batch_id: int) -> str:
    """64 bits from what tells a row apart, the source and the batch."""
    unique = ", ".join(quoted(name) for name in stage.unique)
    return f"xxhash64({unique}, {zlib.crc32(stage.source.encode())}L, {batch_id}L)"


def _keep(stage: ShedStage, keeps: tuple[float, ...]) -> str:
    """The keep fraction of a row's class; the last class is that of all other values."""
    *named, other = (float(keep) for keep in keeps)
    if not named:
        return f"{other!r}D"
    cases = " ".join(
        f"when {_literal(name)} then {keep!r}D"
        for name, keep in zip(stage.classes, named, strict=False)
    )
    return f"case cast({quoted(str(stage.by))} as string) {cases} else {other!r}D end"


def _group(stage: ShedStage) -> tuple[str, ...]:
    """The key group of a row, where rows are counted by it."""
    if not stage.shards:
        return ()
    keys = ", ".join(quoted(name) for name in stage.key)
    return (f"cast(pmod(xxhash64({keys}), {stage.shards}) as int) as {GROUP}",)


def _bulky(kind: pa.DataType) -> bool:
    """Whether a null is smaller than a value of this type, in a row of Spark's."""
    return not pa.types.is_primitive(kind) and not pa.types.is_boolean(kind)


def quoted(name: str) -> str:
    """A column's name in an SQL expression."""
    return f"`{name.replace('`', '``')}`"


def _literal(text: str) -> str:
    """By its bytes, which no setting of Spark's parser escapes or substitutes."""
    return f"cast(X'{text.encode().hex()}' as string)"
