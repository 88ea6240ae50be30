"""DataFrames without Spark: the few operations that a compiled micro-batch is made of, at once.

What a function returns is checked against the columns that were declared, as Spark would read it.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from tests.helpers.keyed_store import hashes_of
from tidegate.pipelines.schema import arrow_schema
from tidegate.spark.batch.worker import TASK

BLOCK_ROWS = 300


class HandContext:
    """Stands for Spark's TaskContext: the task that runs now, and its partition."""

    attempt = 0
    partition = 0

    @classmethod
    def get(cls) -> "HandContext":
        """The present one."""
        return cls()

    @classmethod
    def begin(cls, partition: int) -> None:
        """Another task runs."""
        cls.attempt, cls.partition = cls.attempt + 1, partition

    def taskAttemptId(self) -> int:  # noqa: N802 (Spark's name)
        """Unique for each task that was begun."""
        return self.attempt

    def partitionId(self) -> int:  # noqa: N802
        """The number of its partition."""
        return self.partition


@dataclass
class HandFrame:
    """The rows of a frame, by partition."""

    parts: list[pa.Table]

    isStreaming = True  # noqa: N815 (Spark's name)

    def selectExpr(self, *expressions: str) -> "HandFrame":  # noqa: N802
        """All columns, single ones, the hash of keys, a row's number, and its task."""
        return HandFrame(
            [self._selected(n, part, expressions) for n, part in enumerate(self.parts)]
        )

    def _selected(self, number: int, part: pa.Table, expressions: tuple[str, ...]) -> pa.Table:
        columns: dict[str, pa.ChunkedArray | pa.Array] = {}
        for text in expressions:
            body, _, name = text.rpartition(" as ")
            if text == "*":
                columns |= {one: part[one] for one in part.column_names}
            elif re.fullmatch(r"`[^`]+`", text):
                columns[text.strip("`")] = part[text.strip("`")]
            elif body.startswith("xxhash64("):
                keys = re.findall(r"`([^`]+)`", body)
                columns[name] = pa.array(hashes_of(part.select(keys), 62))
            elif body.startswith("monotonically_increasing_id"):
                columns[name] = pa.array((number << 33) + np.arange(part.num_rows))
            elif found := re.fullmatch(r"cast\(split\('([\d,]+)', ','\).*?\[(.*)\]", body):
                route = np.array([int(task) for task in found[1].split(",")], dtype=np.int32)
                keys = re.findall(r"`([^`]+)`", found[2])
                hashes = hashes_of(part.select(keys), 62)
                columns[name] = pa.array(route[hashes % len(route)])
            else:
                raise AssertionError(f"not known here: {text}")
        return pa.table(columns)

    def repartitionById(self, tasks: int, column: str) -> "HandFrame":  # noqa: N802
        """Rows by their task; a shuffle delivers blocks in any order."""
        rows = pa.concat_tables(reversed(self.parts))
        task = rows[column].to_numpy()
        return HandFrame([rows.filter(pa.array(task == number)) for number in range(tasks)])

    def mapInArrow(  # noqa: N802
        self, call: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], ddl: StructType
    ) -> "HandFrame":
        """Call a function with the blocks of each partition."""
        found = []
        for number, part in enumerate(self.parts):
            HandContext.begin(number)
            blocks = part.combine_chunks().to_batches(max_chunksize=BLOCK_ROWS)
            found.append(as_declared(list(call(iter(blocks))), ddl))
        return HandFrame(found)

    def groupBy(self, *columns: str) -> "HandFrame":  # noqa: N802
        """Partitions are the groups; a single one needs no column."""
        assert columns == (TASK,) if len(self.parts) > 1 else columns in ((), (TASK,))
        return self

    def cogroup(self, other: "HandFrame") -> "Cogroup":
        """The groups of both."""
        return Cogroup(self, other)

    def persist(self) -> "HandFrame":
        """Computed already."""
        return self

    def drop(self, *names: str) -> "HandFrame":
        """The frame without these columns."""
        return HandFrame([part.drop_columns(list(names)) for part in self.parts])

    @property
    def rows(self) -> pa.Table:
        """All rows."""
        return pa.concat_tables(self.parts)


@dataclass
class Cogroup:
    """The groups of an anchor and of rows."""

    anchor: HandFrame
    other: HandFrame

    def applyInArrow(  # noqa: N802
        self, call: Callable[[pa.Table, pa.Table], pa.Table], ddl: StructType
    ) -> HandFrame:
        """Call a function with both tables of each task."""
        pairs = zip(self.anchor.parts, self.other.parts, strict=True)
        return HandFrame([as_declared(call(*pair).to_batches(), ddl) for pair in pairs])


@dataclass
class HandAnchors:
    """Anchors of any number of tasks."""

    def of(self, operator: str, tasks: int, executors: object) -> HandFrame:
        """One row per task."""
        return HandFrame([pa.table({TASK: pa.array([n], pa.int32())}) for n in range(tasks)])


def as_declared(blocks: list[pa.RecordBatch], ddl: StructType) -> pa.Table:
    """What a function returned; Spark reads it by the declared types, whatever it really has."""
    declared = arrow_schema(ddl)
    for block in blocks:
        assert block.schema.names == declared.names
        assert block.schema.types == declared.types
    rows = pa.Table.from_batches(blocks, blocks[0].schema) if blocks else declared.empty_table()
    return rows.cast(declared)


def in_partitions(rows: pa.Table, parts: int) -> HandFrame:
    """A frame of rows in so many partitions."""
    step = max(1, -(-rows.num_rows // parts))
    return HandFrame([rows.slice(start * step, step) for start in range(parts)])


@dataclass
class HandStream:
    """A streaming frame of which only the columns are asked."""

    schema: StructType
    isStreaming = True  # noqa: N815
