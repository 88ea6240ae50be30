"""A source that is always full of the rows of a sample, over and over: recorded rows of a pipeline.

Time goes on from one turn to the next: all times of a sample move by its length. Otherwise the rows
of the second turn would be late for windows that the first one has closed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tidegate.apps.full_source import FullRange, FullRanges, full_options
from tidegate.errors import AskedWrongly
from tidegate.pipelines.schema import arrow_schema, struct_of

MOST_ROWS = 2_000_000
"""Every worker has the sample in memory, so it must not be a whole data set."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Recorded rows."""

    rows: pa.Table
    period_us: int
    """How far times move from one turn to the next; 0 without times."""

    def batches(self, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows with these numbers, of however many turns."""
        length = self.rows.num_rows
        while first < end:
            turn, place = divmod(first, length)
            taken = min(length - place, end - first)
            part = _later(self.rows.slice(place, taken), turn * self.period_us)
            yield from part.combine_chunks().to_batches()
            first += taken


@lru_cache(maxsize=4)
def read_sample(path: Path) -> Sample:
    """The rows of a Parquet file or directory, with the types that Spark gives them."""
    try:
        found = pq.read_table(path)
        struct = struct_of(found.schema)
        rows = found.cast(arrow_schema(struct))
    except FileNotFoundError:
        raise AskedWrongly(
            f"--rows {path}: there is no such file; give Parquet, a file or a directory"
        ) from None
    except (OSError, pa.ArrowException, PySparkException) as error:
        reason = str(error).strip().splitlines()[0]
        raise AskedWrongly(f"--rows {path}: this cannot be read as Parquet ({reason})") from None
    if not 1 <= rows.num_rows <= MOST_ROWS:
        raise AskedWrongly(
            f"--rows {path}: it has {rows.num_rows:,} rows; give a sample of 1 to {MOST_ROWS:,}"
        )
    return Sample(rows, _period_us(rows))


def sample_source(
    spark: SparkSession, path: Path, *, size_file: Path, partitions: int
) -> DataFrame:
    """A streaming DataFrame with the columns of a sample, whose batches are always full."""
    spark.dataSource.register(SampleSource)
    options = {"sample": str(path.resolve()), **full_options(size_file, partitions=partitions)}
    return (
        spark.readStream.format(SampleSource.name())
        .schema(struct_of(read_sample(path).rows.schema))
        .options(**options)
        .load()
    )


class SampleSource(DataSource):
    """The data source, which Spark finds by its name."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "tidegate_sample"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Spark calls this to plan every micro-batch."""
        return SampleReader(self.options)


class SampleReader(FullRanges):
    """Hands out the rows of a sample, over and over."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._path = Path(options["sample"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range."""
        assert isinstance(partition, FullRange)
        return read_sample(self._path).batches(partition.first, partition.end)


def _times(rows: pa.Table) -> list[int]:
    return [place for place, column in enumerate(rows.schema) if pa.types.is_timestamp(column.type)]


def _period_us(rows: pa.Table) -> int:
    """The longest time that a column spans, and one mean gap, so that turns do not overlap."""
    spans = []
    for place in _times(rows):
        ends = pc.min_max(rows.column(place).cast(pa.int64()))
        if ends["min"].is_valid:
            spans.append(ends["max"].as_py() - ends["min"].as_py())
    if not spans:
        return 0
    return int(max(spans) + max(max(spans) // max(rows.num_rows - 1, 1), 1))


def _later(rows: pa.Table, us: int) -> pa.Table:
    """The rows with all their times moved on."""
    for place in _times(rows) if us else ():
        column = rows.schema.field(place)
        moved = pc.add(rows.column(place).cast(pa.int64()), us).cast(column.type)
        rows = rows.set_column(place, column, moved)
    return rows
