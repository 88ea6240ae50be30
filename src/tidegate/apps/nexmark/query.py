"""A query of Nexmark, three times: as an elastic pipeline, in plain Spark, and one by one."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tidegate.pipelines.derived import Derived
from tidegate.pipelines.stream import Stream

Row = dict[str, Any]
Answers = Counter[tuple[Any, ...]]
"""How often each answer is there; times are microseconds since the epoch."""
TASKS = (1, 24)
SHARDS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """Which rows of a kind a query needs, and which of their columns."""

    kind: str
    where: str
    """The condition in SQL; "true": all."""
    select: tuple[str, ...]
    """The columns in SQL."""
    schema: str
    """The same columns, as Spark's DDL declares them."""
    rows: Callable[[pa.Table], Derived]
    """The same as a function of a table of events."""

    def of(self, frame: DataFrame) -> DataFrame:
        """The rows by Spark's own expressions."""
        return frame.where(self.where).selectExpr(*self.select)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One of Nexmark's queries."""

    name: str
    title: str
    about: str
    picks: tuple[Pick, ...]
    """Its inputs."""
    operators: tuple[str, ...]
    """Those of its pipeline that have tasks of their own."""
    build: Callable[[Sequence[Stream], Mapping[str, float | None]], Stream]
    """The pipeline behind the picked inputs; the times are those of `stretch`."""
    plain: Callable[[Sequence[DataFrame]], DataFrame]
    """The query behind the picked inputs in Spark, on streams or on tables."""
    expected: Callable[[Sequence[list[Row]]], Answers]
    """All answers for the picked rows, computed one by one. Windows are as if all were closed."""
    stretched_s: Mapping[str, float]
    """Modelled: seconds per row of each operator."""
    closed: str | None = None
    """The operator whose watermark closes windows; None: every answer comes at once."""
    end: int | None = None
    """Where the end of its window stands in an answer."""


def answers_of(table: pa.Table | None) -> Answers:
    """The rows of a table as answers."""
    if table is None:
        return Answers()
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        columns.append(column.to_pylist())
    return Answers(zip(*columns, strict=True))


def micros(rows: pa.Table) -> list[Row]:
    """Rows one by one, with times in microseconds since the epoch."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(place, field.name, rows.column(place).cast(pa.int64()))
    found: list[Row] = rows.to_pylist()
    return found
