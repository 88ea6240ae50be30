"""Smooth arrivals for demos and tests: a Python streaming source with millisecond offsets.

Spark's own `rate` source advances in whole seconds; this one follows a rate profile to the
microsecond. An offset is the stream's start and the milliseconds since. A row is a pure function of
its number, so a restart from a checkpoint continues where the stream stopped, and any range can be
read again bit for bit.
"""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from tidegate.errors import AskedWrongly
from tidegate.spark.foreign_session import require_workers
from tidegate.workload.keys import Keys, parse_keys
from tidegate.workload.parse import parse_profile
from tidegate.workload.profile import Profile
from tidegate.workload.rows import rows_between

SCHEMA = "key long, value double, seq long, timestamp timestamp"
"""`key` is a long (the cheapest type to hash and send), `seq` the row's number in the stream, and
`timestamp` its arrival time, to the microsecond."""

_ARROW_SCHEMA = pa.schema(
    {
        "key": pa.int64(),
        "value": pa.float64(),
        "seq": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
)
_ROWS_PER_ARROW_BATCH = 65_536
_ROWS_WORTH_A_TASK = 20_000
"""Starting a task takes about as long as generating this many rows."""


class Offset(TypedDict):
    """How far the stream has been read, as Spark stores it in the checkpoint."""

    start_ms: int
    """When the stream was first started, in milliseconds since the epoch."""
    ms: int
    """Milliseconds since the start."""
    workload: str
    """Fingerprint of profile, keys and seed: with others, a replay would read different rows."""


def arrivals(
    spark: SparkSession,
    profile: Profile | str = "constant:1000",
    *,
    keys: Keys | str = "uniform:1000",
    seed: int = 0,
    seconds: float | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """A streaming DataFrame of rows that arrive by a rate profile: key, value, seq, timestamp.

    The stream has no more rows after `seconds`. `partitions` fixes the number of read tasks; by
    default a batch gets one task per 20,000 rows, but no more than there are cores.
    """
    parsed_profile = parse_profile(profile) if isinstance(profile, str) else profile
    parsed_keys = parse_keys(keys) if isinstance(keys, str) else keys
    if seconds is not None and not seconds > 0:
        raise AskedWrongly(f"a stream of {seconds:g} seconds is not possible; give more than 0.")
    if partitions is not None and partitions < 1:
        raise AskedWrongly(f"{partitions} partitions are not possible; give 1 or more.")
    require_workers(spark)
    spark.dataSource.register(ArrivalsSource)
    options = {
        "profile": _portable(profile) if isinstance(profile, str) else str(parsed_profile),
        "keys": str(parsed_keys),
        "seed": str(seed),
        "seconds": "" if seconds is None else repr(float(seconds)),
        "partitions": "" if partitions is None else str(partitions),
        "cores": str(spark.sparkContext.defaultParallelism),
    }
    return spark.readStream.format(ArrivalsSource.name()).options(**options).load()


class ArrivalsSource(DataSource):
    """The data source, which Spark finds by its name."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "tidegate_arrivals"

    def schema(self) -> str:
        """The columns of a row."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Spark calls this on the driver's machine, and to plan every micro-batch."""
        return ArrivalsReader(self.options)


@dataclass(frozen=True)
class RowRange(InputPartition):
    """The rows that one task reads, from `first` up to but not including `end`."""

    first: int
    end: int
    start_ms: int
    profile: Profile


class ArrivalsReader(DataSourceStreamReader):
    """Plans ranges of rows on the driver's machine, and generates them in the tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._profile_text = options["profile"]
        self._keys = parse_keys(options["keys"])
        self._seed = int(options["seed"])
        self._limit_ms = round(float(options["seconds"]) * 1000) if options["seconds"] else None
        self._partitions = int(options["partitions"]) if options["partitions"] else None
        self._cores = int(options["cores"])
        self._profile: Profile | None = None

    @property
    def profile(self) -> Profile:
        """The profile, parsed on first use; a task gets its part of it with its range."""
        if self._profile is None:
            self._profile = parse_profile(self._profile_text)
        return self._profile

    @property
    def _workload(self) -> str:
        return f"{self.profile.fingerprint}/{self._keys}/{self._seed}"

    def initialOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        """The offset of a new stream, which starts now."""
        return Offset(start_ms=time.time_ns() // 1_000_000, ms=0, workload=self._workload)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]  # noqa: N802
        """The offset of all rows that have arrived; the old one, so no batch, if there are none."""
        ms = max(time.time_ns() // 1_000_000 - start["start_ms"], start["ms"])
        if self._limit_ms is not None:
            ms = max(min(ms, self._limit_ms), start["ms"])
        if self.profile.count(ms) == self.profile.count(start["ms"]):
            return start
        return Offset(start_ms=start["start_ms"], ms=ms, workload=start["workload"])

    def partitions(self, start: Offset, end: Offset) -> Sequence[RowRange]:  # type: ignore[override]
        """The rows between two offsets, in nearly equal ranges.

        The stream's start is taken from `end`: Spark logs the end of the first batch but not its
        start, and calls `initialOffset` again when that batch is replayed.
        """
        if end["workload"] != self._workload:
            raise AskedWrongly(
                "this checkpoint belongs to a stream with another profile, keys or seed; use the "
                "same ones, or a new checkpoint directory."
            )
        first, last = self.profile.count(start["ms"]), self.profile.count(end["ms"])
        count = self._partitions or min(self._cores, (last - first) // _ROWS_WORTH_A_TASK + 1)
        window = self.profile.window(start["ms"], end["ms"])
        cuts = [first + (last - first) * part // count for part in range(count + 1)]
        return [
            RowRange(begin, stop, end["start_ms"], window)
            for begin, stop in itertools.pairwise(cuts)
            if begin < stop
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range, in Arrow batches."""
        assert isinstance(partition, RowRange)
        for first in range(partition.first, partition.end, _ROWS_PER_ARROW_BATCH):
            end = min(first + _ROWS_PER_ARROW_BATCH, partition.end)
            rows = rows_between(partition.profile, self._keys, self._seed, first, end)
            stamps = pa.array(rows.arrival_us + partition.start_ms * 1000)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(rows.key),
                    pa.array(rows.value),
                    pa.array(rows.seq),
                    stamps.cast(_ARROW_SCHEMA.field("timestamp").type),
                ],
                schema=_ARROW_SCHEMA,
            )

    def __getstate__(self) -> dict[str, object]:
        """The state that is sent to tasks, without the whole profile."""
        return self.__dict__ | {"_profile": None, "_profile_text": ""}


def _portable(profile: str) -> str:
    """The profile's text, with the path of a CSV made absolute for other working directories."""
    kind, _, path = profile.partition(":")
    return f"csv:{Path(path.strip()).resolve()}" if kind.strip() == "csv" else profile
