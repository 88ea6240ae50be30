"""A durable log between two segments: Arrow files, handed over once per producer batch.

The producer's tasks write files. When its batch hands over, one small file lists them under the
producer's batch id; a replayed batch finds that list and leaves it. The consumer is an ordinary
streaming source whose offset is a producer batch id, so Spark replays it by offset.
"""

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tidegate.spark.batch.worker import part_report
from tidegate.spark.state.files import Durable, Missing

FORMAT = "tidegate-channel"
_KEPT = 3
_SWEEP_EVERY = 64


@dataclass(frozen=True, slots=True)
class Log:
    """The files of one channel."""

    directory: Durable

    @property
    def data(self) -> Durable:
        """Where the rows are."""
        return self.directory.below("data")

    @property
    def commits(self) -> Durable:
        """Where the batches that were handed over are listed."""
        return self.directory.below("commits")

    def make(self) -> None:
        """Create the directories."""
        self.data.make()
        self.commits.make()

    def length(self) -> int:
        """One more than the newest producer batch that was handed over."""
        names = [name for name in self.commits.names() if name.endswith(".json")]
        return int(names[-1].removesuffix(".json")) + 1 if names else 0

    def commit(self, batch_id: int, files: list[tuple[str, int]]) -> None:
        """Hand a producer batch over; a batch that was handed over already stays as it is.

        An empty batch is not handed over: the consumer is not woken for nothing, and a loop with no
        rows left in it comes to rest.
        """
        name = _name(batch_id)
        if files and not self.commits.exists(name):
            self.commits.write_json(name, {"batch": batch_id, "files": sorted(files)})
        if batch_id % _SWEEP_EVERY == 0:
            self.sweep(batch_id - _KEPT)

    def sweep(self, until_batch: int) -> None:
        """Remove what failed tries left: files of old batches that were not handed over.

        The consumer may forget a batch meanwhile; then its files are being removed anyway.
        """
        handed: set[str] = set()
        names = self.commits.names()
        for name in names:
            try:
                handed.update(file for file, _ in self.commits.read_json(name)["files"])
            except Missing:
                continue
        self.data.sweep(handed, until_batch)
        self.commits.sweep(names, until_batch)

    def files(self, start: int, end: int) -> list[str]:
        """The files of the producer batches from `start` until before `end`, in order."""
        first, behind = _name(start), _name(end)
        return [
            file
            for name in self.commits.names()
            if first <= name < behind
            for file, _ in self.commits.read_json(name)["files"]
        ]

    def forget(self, end: int) -> None:
        """Remove batches that the consumer has committed and will not read again."""
        for name in self.commits.names():
            if int(name.removesuffix(".json")) >= end - _KEPT:
                break
            for file, _ in self.commits.read_json(name)["files"]:
                self.data.remove(file)
            self.commits.remove(name)


def _name(batch_id: int) -> str:
    return f"{batch_id:010d}.json"


@dataclass(frozen=True, slots=True)
class ChannelTask:
    """Writes the rows of one task into one file of the channel: callable for Spark's mapInArrow."""

    channel: str
    data: Durable
    batch_id: int
    accumulator: Any

    def __call__(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows and report the file's name; no rows are emitted."""
        started_s, clock = time.time(), time.perf_counter()
        kept = [block for block in blocks if block.num_rows]
        rows = sum(block.num_rows for block in kept)
        told = part_report(self.batch_id, self.channel, rows, rows, 0.0, started_s)
        name = f"{self.batch_id:010d}-{told.task:05d}-{told.part:03d}-{uuid.uuid4().hex[:8]}.arrow"
        if kept:
            buffer = pa.BufferOutputStream()
            with pa.ipc.new_file(buffer, kept[0].schema) as writer:
                for block in kept:
                    writer.write_batch(block)
            self.data.write(name, buffer.getvalue())
        file = (name, rows) if kept else None
        self.accumulator.add([replace(told, busy_s=time.perf_counter() - clock, file=file)])
        yield from ()


@dataclass(frozen=True, slots=True)
class _File(InputPartition):
    name: str


class ChannelReader(DataSourceStreamReader):
    """The consumer's side of a channel."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """Before the first producer batch."""
        return {"batches": 0}

    def latestOffset(self, *_: Any) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """After the newest producer batch."""
        return {"batches": self._log.length()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One per file."""
        files = self._log.files(start["batches"], end["batches"])
        return [_File(name) for name in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a file, as they were written."""
        assert isinstance(partition, _File)
        with self._log.data.open(partition.name) as stream:
            yield from pa.ipc.open_file(stream).read_all().to_batches()

    def commit(self, end: dict[str, int]) -> None:
        """The consumer will not read again what lies before `end`."""
        self._log.forget(end["batches"])


class ChannelSource(DataSource):
    """`spark.readStream.format("tidegate-channel").load(directory)`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """As the channel was declared."""
        return StructType.fromJson(json.loads(self.options["columns"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The consumer's side of a channel."""
        return ChannelReader(Log(Durable(self.options["path"])))
