"""What Spark's own expressions do of shedding: marks to draw by, or the draw itself.

Where rows carry something that no two of them share, a row's draw is a function of that row alone,
and Spark can draw before a shuffle with no Python stage in front of it. A row that is shed then
still travels, without its bulky columns, and the operator behind the shuffle counts it: so counts
stay exact under retries, and there is no second pass.
"""

import zlib
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from tidegate.pipelines.graph import Source
from tidegate.pipelines.shedding import WEIGHT
from tidegate.spark.shedding.task import GROUP, KEPT, PART, ROW, ShedStage


@dataclass(frozen=True, slots=True)
class Draws:
    """How a source's rows are selected when Spark draws for them."""

    columns: tuple[str, ...]
    """Expressions: the source's columns, and what the shedder counts by."""
    kept: str
    """Whether a row is kept."""
    word: str
    """What it is drawn from: 64 bits that tell the row apart."""

    @property
    def order(self) -> str:
        """The number of a kept row among those of its partition; shed rows have negative ones.

        Spark counts up only where it evaluates: kept rows are numbered without gaps, and whoever
        deals by the number deals them evenly.
        """
        shed = f"-1 - shiftrightunsigned({self.word}, 1)"
        return f"if({self.kept}, monotonically_increasing_id(), {shed})"


def marked(rows: DataFrame, stage: ShedStage, batch_id: int = 0) -> DataFrame:
    """The rows with what a task needs to shed them; Spark makes it as it reads them."""
    if stage.unique:
        word = _word(stage, batch_id)
    else:
        known = ", ".join(_quoted(c.name) for c in rows.schema.fields if hashable(c.dataType))
        word = f"xxhash64({known or '0'})"
    columns = ["*", f"{word} as {ROW}", f"spark_partition_id() as {PART}"]
    return rows.selectExpr(*columns, *_group(stage))


def draws(source: Source, stage: ShedStage, batch_id: int, keeps: tuple[float, ...]) -> Draws:
    """Spark's own draw: the same numbers as those that a task draws for rows told apart."""
    word = _word(stage, batch_id)
    kept = f"shiftrightunsigned({word}, 11) * {2.0**-53!r}D < {_keep(stage, keeps)}"
    needed = {stage.by, source.arrival}
    columns = [
        f"if({kept}, {_quoted(field.name)}, null) as {_quoted(field.name)}"
        if _bulky(field.type) and field.name not in needed
        else _quoted(field.name)
        for field in source.schema
        if field.name != WEIGHT
    ]
    return Draws((*columns, *_group(stage), f"{kept} as {KEPT}"), kept, word)


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
    unique = ", ".join(_quoted(name) for name in stage.unique)
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
    return f"case cast({_quoted(str(stage.by))} as string) {cases} else {other!r}D end"


def _group(stage: ShedStage) -> tuple[str, ...]:
    """The key group of a row, where rows are counted by it."""
    if not stage.shards:
        return ()
    keys = ", ".join(_quoted(name) for name in stage.key)
    return (f"cast(pmod(xxhash64({keys}), {stage.shards}) as int) as {GROUP}",)


def _bulky(kind: pa.DataType) -> bool:
    """Whether a null is smaller than a value of this type, in a row of Spark's."""
    return not pa.types.is_primitive(kind) and not pa.types.is_boolean(kind)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _literal(text: str) -> str:
    """By its bytes, which no setting of Spark's parser escapes or substitutes."""
    return f"cast(X'{text.encode().hex()}' as string)"


__all__ = ["Draws", "draws", "hashable", "marked", "spark_draws"]
