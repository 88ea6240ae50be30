"""A source that is always full: every micro-batch gets as many rows as it asks for, at once.

A rate above what a pipeline can process would make each batch longer than the last one. Here a
batch has a fixed number of rows, as behind a spout that back-pressure holds. All its rows arrive
when Spark asks for them, and that time is in the offset: so the keys' shuffles follow the clock,
and a batch that is replayed has the same rows.
"""

import itertools
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from tidegate.apps.batch_size import batch_rows_of
from tidegate.errors import AskedWrongly
from tidegate.spark.sources.arrivals import SCHEMA
from tidegate.workload.counter import words
from tidegate.workload.keys import Keys, parse_keys

_PARTITIONS = 2


class FullOffset(TypedDict):
    """How far the stream has been read."""

    start_ms: int
    """When the stream was first started, in milliseconds since the epoch."""
    ms: int
    """When the last rows were asked for, in milliseconds since the start."""
    rows: int
    """Rows so far."""


def full_source(
    spark: SparkSession,
    keys: Keys,
    *,
    seed: int,
    batch_rows: int | Path,
    first_rows: int = 0,
    partitions: int = _PARTITIONS,
) -> DataFrame:
    """A streaming DataFrame with the columns of `arrivals` and `batch_rows` rows a micro-batch.

    `batch_rows` may be a file that says how many (`batch_size`). The first micro-batch has
    `first_rows` instead, if that is not 0. So many partitions are read by as many tasks.
    """
    options = {
        "keys": str(keys),
        "seed": str(seed),
        **full_options(batch_rows, first_rows=first_rows, partitions=partitions),
    }
    spark.dataSource.register(FullSource)
    return spark.readStream.format(FullSource.name()).options(**options).load()


def full_options(
    batch_rows: int | Path, *, first_rows: int = 0, partitions: int = _PARTITIONS
) -> dict[str, str]:
    """The options that every full source has, as Spark hands them on."""
    if isinstance(batch_rows, int) and batch_rows < 1:
        raise AskedWrongly(f"{batch_rows} rows in a micro-batch are not possible; give 1 or more")
    if partitions < 1:
        raise AskedWrongly(f"{partitions} partitions are not possible; give 1 or more")
    return {
        "batchrows": str(batch_rows) if isinstance(batch_rows, int) else "",
        "sizefile": "" if isinstance(batch_rows, int) else str(batch_rows),
        "firstrows": str(first_rows),
        "partitions": str(partitions),
    }


class FullSource(DataSource):
    """The data source, which Spark finds by its name."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "tidegate_full"

    def schema(self) -> str:
        """The columns of a row."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Spark calls this to plan every micro-batch."""
        return FullReader(self.options)


@dataclass(frozen=True)
class FullRange(InputPartition):
    """The rows that one task makes, from `first` up to but not including `end`."""

    first: int
    end: int
    start_ms: int
    ms: int


class FullRanges(DataSourceStreamReader):
    """Plans the rows of a micro-batch; what the rows are is left to others."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._size_file = Path(options["sizefile"]) if options["sizefile"] else None
        self._batch_rows = int(options["batchrows"] or 0)
        self._first_rows = int(options["firstrows"])
        self._partitions = int(options["partitions"])

    def initialOffset(self) -> FullOffset:  # type: ignore[override]  # noqa: N802
        """The offset of a new stream, which starts now."""
        return FullOffset(start_ms=time.time_ns() // 1_000_000, ms=0, rows=0)

    def latestOffset(self, start: FullOffset, limit: ReadLimit) -> FullOffset:  # type: ignore[override]  # noqa: N802
        """The end of the next micro-batch: there are always enough rows for one more."""
        ms = max(time.time_ns() // 1_000_000 - start["start_ms"], start["ms"])
        more = self._first_rows if self._first_rows and not start["rows"] else self._more()
        return FullOffset(start_ms=start["start_ms"], ms=ms, rows=start["rows"] + more)

    def partitions(self, start: FullOffset, end: FullOffset) -> Sequence[FullRange]:  # type: ignore[override]
        """The rows between two offsets, in equal ranges."""
        count, parts = end["rows"] - start["rows"], self._partitions
        cuts = [start["rows"] + count * part // parts for part in range(parts + 1)]
        return [
            FullRange(first, last, end["start_ms"], end["ms"])
            for first, last in itertools.pairwise(cuts)
            if first < last
        ]

    @abstractmethod
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range."""

    def _more(self) -> int:
        return self._batch_rows if self._size_file is None else batch_rows_of(self._size_file)


class FullReader(FullRanges):
    """Makes rows with the columns of `arrivals` from their numbers."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._keys = parse_keys(options["keys"])
        self._seed = int(options["seed"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range."""
        assert isinstance(partition, FullRange)
        seq = np.arange(partition.first, partition.end, dtype=np.int64)
        arrival_us = np.full(len(seq), partition.ms * 1000, dtype=np.int64)
        stamp_us = arrival_us + partition.start_ms * 1000
        yield pa.record_batch(
            {
                "key": self._keys.at(seq, arrival_us, self._seed),
                "value": value_of(seq, self._seed),
                "seq": seq,
                "timestamp": pa.array(stamp_us).cast(pa.timestamp("us", "UTC")),
            }
        )


def value_of(seq: np.ndarray[tuple[int], np.dtype[np.int64]], seed: int) -> pa.Array:
    """The values of rows: multiples of 1/1024, whose sums are exact in any order."""
    return pa.array((words(seq, seed, stream=3) >> np.uint64(54)).astype(np.float64) / 1024.0)
