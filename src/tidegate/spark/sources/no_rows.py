"""A streaming source without rows: one micro-batch of it runs everything that a real one does.

Its tasks hold their Python workers for a moment, so that every core starts a worker of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from tidegate.spark.python_workers import hold_worker


class BatchesRead(TypedDict):
    """How many batches were read: none, or the only one."""

    read: int


class NoRowsSource(DataSource):
    """The data source, which Spark finds by its name."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "tidegate-no-rows"

    def schema(self) -> StructType:
        """The columns that were asked for."""
        raise NotImplementedError("it has the columns that it is given: use .schema(...)")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Spark calls this on the driver's machine, and to plan the micro-batch."""
        return NoRowsReader(self.options)


@dataclass(frozen=True)
class Slot(InputPartition):
    """What one task reads: nothing."""

    number: int


class NoRowsReader(DataSourceStreamReader):
    """Plans one micro-batch with as many tasks as there are cores."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._tasks = int(options["tasks"])

    def initialOffset(self) -> BatchesRead:  # type: ignore[override]  # noqa: N802
        """Nothing is read yet."""
        return BatchesRead(read=0)

    def latestOffset(self, start: BatchesRead, limit: ReadLimit) -> BatchesRead:  # type: ignore[override]  # noqa: N802
        """One batch, and no other after it."""
        return BatchesRead(read=1)

    def partitions(self, start: BatchesRead, end: BatchesRead) -> Sequence[Slot]:  # type: ignore[override]
        """One task for each core."""
        return [Slot(number) for number in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """No rows, after a moment."""
        hold_worker()
        return iter(())
