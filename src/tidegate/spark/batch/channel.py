"""A durable log between two segments: Arrow files, handed over once per producer batch.

The producer's tasks write files. When its batch hands over, one small file lists them under the
producer's batch id; a replayed batch finds that list and leaves it. The consumer is an ordinary
streaming source whose offset is a producer batch id, so Spark replays it by offset.

Instead of files, tasks can write records of a Kafka topic (`spark.kafka.channel_topic`). The list
then names records. Both kinds may be in one channel, when its pipeline was changed.
"""

import itertools
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tidegate.control.learning.traces import NO_IDS
from tidegate.errors import TidegateError
from tidegate.spark.batch.traces import ARROW_TYPE, Marks
from tidegate.spark.batch.worker import TRACE, part_report
from tidegate.spark.kafka.channel_topic import ChannelTopic
from tidegate.spark.kafka.reference import RecordsReference
from tidegate.spark.state.files import Durable, Missing, missing

FORMAT = "tidegate-channel"
TOPIC_OPTION = "topicsecrets"
"""Spark shows no option whose name has 'secret' in it; settings of Kafka may have a password."""
MOST_ROWS = 1_000_000
MOST_FILES = 1_000
"""The most that the consumer reads in one batch, unless a single producer batch has more."""
PACKED_ROWS = 4096
"""Small files are read together, in partitions of about this many rows."""
_KEPT = 3
_SWEEP_EVERY = 64
_FORGET_EVERY = 4
_FORGET_RECORDS_OF = 32
"""Records are deleted for so many batches at once: that is a request to a broker."""
POSITION = "position.json"


@dataclass(frozen=True, slots=True)
class Handover:
    """A producer batch in a channel."""

    batch_id: int
    previous: int | None
    """The batch that was handed over before it; -1 for none, None where an older version of
    Tidegate did not say."""
    files: tuple[tuple[str, int], ...]
    """Each file with its rows."""

    @property
    def rows(self) -> int:
        """The rows of all its files."""
        return sum(rows for _, rows in self.files)


@dataclass(frozen=True, slots=True)
class Log:
    """The files of one channel.

    Every batch that is handed over names the one before it. So a reader notices when a listing of
    the directory lags behind and leaves out a batch.
    """

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
        listed = self._listed()
        return listed[-1] + 1 if listed else 0

    def commit(self, batch_id: int, previous: int, files: list[tuple[str, int]]) -> int:
        """Hand a producer batch over, and return the last batch that was handed over.

        A batch that was handed over already stays as it is: the consumer may have read it. An empty
        batch is not handed over: the consumer is not woken for nothing, and a loop with no rows
        left in it comes to rest.
        """
        if not files:
            return previous
        document = {"batch": batch_id, "previous": previous, "files": sorted(files)}
        content = json.dumps(document, separators=(",", ":")).encode()
        self.commits.create(_name(batch_id), content)
        return batch_id

    def clean(self, batch_id: int) -> None:
        """After a producer batch, remove what failed tries left, now and then."""
        if batch_id % _SWEEP_EVERY == 0:
            self.sweep()

    def sweep(self) -> None:
        """Remove what failed tries left: files of batches that the consumer has done with.

        How far that is says the consumer's position and no listing, because a listing that lags
        behind would take batches that are still to be read for ones that were never handed over.
        Newer files that nobody needs stay: they may belong to an attempt that still runs, and cost
        only space. Batches whose records are to be deleted from a topic stay until they are.
        """
        until_batch = self.read_until() - _KEPT - 1
        if until_batch < 0:
            return
        listed = self._listed()
        handed: set[str] = set()
        for batch_id in listed:
            found = self.read(batch_id)
            if found is not None:
                handed.update(file for file, _ in found.files)
        self.data.sweep(handed, until_batch)
        self.commits.sweep([_name(batch_id) for batch_id in listed], until_batch)

    def read(self, batch_id: int) -> Handover | None:
        """A producer batch; None if it was not handed over, or is forgotten."""
        try:
            document = self.commits.read_json(_name(batch_id))
        except Missing:
            return None
        files = tuple((name, rows) for name, rows in document["files"])
        return Handover(document["batch"], document.get("previous"), files)

    def waiting(self, start: int) -> Iterator[Handover]:
        """The batches from `start` on, oldest first, up to one that the listing leaves out."""
        before = start - 1
        for batch_id in self._listed():
            if batch_id < start:
                continue
            found = self.read(batch_id)
            if found is None or (found.previous is not None and found.previous > before):
                return
            before = batch_id
            yield found

    def between(self, start: int, end: int) -> list[Handover]:
        """All batches from `start` until before `end`, where `end` follows one of them."""
        found = [one for one in self.waiting(start) if one.batch_id < end]
        if start >= end or (found and found[-1].batch_id == end - 1):
            return found
        # The listing lags behind: follow the links back from the last batch instead.
        back: list[Handover] = []
        at: int | None = end - 1
        while at is not None and at >= start:
            one = self.read(at)
            if one is None:
                raise missing(self.commits.path(_name(at)))
            back.append(one)
            at = one.previous
        return back[::-1]

    def files(self, start: int, end: int) -> list[str]:
        """The files of the producer batches from `start` until before `end`, in order."""
        return [name for one in self.between(start, end) for name, _ in one.files]

    def limited(self, start: int, most_rows: int, most_files: int) -> int:
        """Where a batch of the consumer ends that begins at `start`: after so many rows at most.

        It holds at least one producer batch. A consumer that has fallen behind catches up in
        batches of this size instead of one huge one.
        """
        end, rows, files = start, 0, 0
        for one in self.waiting(start):
            rows, files = rows + one.rows, files + len(one.files)
            if end > start and (rows > most_rows or files > most_files):
                break
            end = one.batch_id + 1
        return end

    def forget(self, end: int, topic: ChannelTopic | None = None) -> None:
        """Remove batches that the consumer has committed and will not read again."""
        listed = self._listed()
        old = [batch_id for batch_id in listed if batch_id < end - _KEPT]
        records = self._references(old)
        if records and topic is not None:
            if len(old) < _FORGET_RECORDS_OF:
                return
            topic.forget(records, self._references(listed[len(old) :]))
        for batch_id in old:
            found = self.read(batch_id)
            if found is not None:
                names = (name for name, _ in found.files)
                self.data.remove_all(n for n in names if RecordsReference.parsed(n) is None)
        self.commits.remove_all(_name(batch_id) for batch_id in old)

    def _references(self, batches: Iterable[int]) -> list[RecordsReference]:
        """The records of these batches, of those that are in a topic."""
        handed = filter(None, map(self.read, batches))
        parsed = (RecordsReference.parsed(name) for one in handed for name, _ in one.files)
        return [one for one in parsed if one is not None]

    def note_read(self, end: int) -> None:
        """Write down that the consumer will not read again what lies before `end`."""
        self.directory.write_json(POSITION, {"end": end})

    def backlog(self) -> int:
        """How many producer batches the consumer has not read, as far as it has written down."""
        return len(self._unread())

    def unread(self) -> dict[int, int]:
        """The rows of each producer batch that the consumer has not read, as far as it wrote."""
        found = (self.read(batch_id) for batch_id in self._unread())
        return {one.batch_id: one.rows for one in found if one is not None}

    def _unread(self) -> list[int]:
        read = self.read_until()
        return [batch_id for batch_id in self._listed() if batch_id >= read]

    def read_until(self) -> int:
        """The batch before which the consumer has read everything, as far as it wrote down."""
        try:
            return int(self.directory.read_json(POSITION)["end"])
        except Missing:
            return 0

    def _listed(self) -> list[int]:
        names = (name.removesuffix(".json") for name in self.commits.names())
        return [int(name) for name in names if name.isdigit()]


def _name(batch_id: int) -> str:
    return f"{batch_id:010d}.json"


FILES = "file string, rows long, traces array<bigint>"
"""What a channel's tasks return: the files that they wrote, and the traces that the rows carry."""


@dataclass(frozen=True, slots=True)
class ChannelTask:
    """Writes the rows of one task into one file of the channel: callable for Spark's mapInArrow.

    The name of the file is the task's result. Results are how Spark knows that a task is done, so
    none can be lost; a report through an accumulator can, and serves the measurements only.
    """

    channel: str
    data: Durable
    batch_id: int
    accumulator: Any
    passes_traces: bool = False
    """Whether the reader needs the traces, because it writes a channel itself. If not, the driver
    alone learns of them, and the file has the declared columns only."""
    topic: ChannelTopic | None = None
    """The topic that the rows go to; None: a file of the checkpoint."""

    def __call__(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows as they come, and emit the name of the file."""
        started_s, clock = time.time(), time.perf_counter()
        told = part_report(self.batch_id, self.channel, 0, 0, 0.0, started_s)
        name = f"{self.batch_id:010d}-{told.task:05d}-{told.part:03d}-{uuid.uuid4().hex[:8]}.arrow"
        marks: list[Marks] = []
        sizes: list[int] = []
        filled = (self._noted(block, marks, sizes) for block in blocks if block.num_rows)
        first = next(filled, None)
        if first is not None:
            name = self._write(name, told.task, first.schema, itertools.chain((first,), filled))
        rows = sum(sizes)
        busy_s = time.perf_counter() - clock
        told = replace(told, rows_in=rows, rows_out=rows, busy_s=busy_s)
        if marks:
            told = replace(told, born=np.concatenate([part.born for part in marks]))
        self.accumulator.add([told])
        if first is not None:
            traces = np.unique(np.concatenate([NO_IDS, *(part.settled.traces for part in marks)]))
            listed = pa.array([traces], pa.list_(pa.int64()))
            yield pa.RecordBatch.from_pydict({"file": [name], "rows": [rows], "traces": listed})

    def _write(
        self, name: str, task: int, schema: pa.Schema, blocks: Iterable[pa.RecordBatch]
    ) -> str:
        """Write the blocks; returns the name by which the reader finds them."""
        if self.topic is not None:
            return self.topic.write(name.removesuffix(".arrow"), task, schema, blocks)
        with self.data.writing(name) as stream, pa.ipc.new_file(stream, schema) as writer:
            for block in blocks:
                writer.write_batch(block)
        return name

    def _noted(self, block: pa.RecordBatch, marks: list[Marks], sizes: list[int]) -> pa.RecordBatch:
        """The block as it is to be written, after a note of its rows and traces."""
        sizes.append(block.num_rows)
        if TRACE not in block.schema.names:
            return block
        found = Marks.of(block)
        marks.append(found)
        if not self.passes_traces:
            return block.drop_columns([TRACE])
        if not len(found.born):
            return block
        place = block.schema.get_field_index(TRACE)
        return block.set_column(place, block.schema.field(place), found.settled.column(len(block)))


@dataclass(frozen=True, slots=True)
class _Files(InputPartition):
    names: tuple[str, ...]


def packed(files: Sequence[tuple[str, int]], most_rows: int) -> Iterator[tuple[str, ...]]:
    """The names of files that are read together, in their order: up to so many rows, or one file.

    A task costs some milliseconds however few rows it reads, and a segment that has fallen behind
    finds a file for each task of several batches.
    """
    names: list[str] = []
    taken = 0
    for name, rows in files:
        if names and taken + rows > most_rows:
            yield tuple(names)
            names, taken = [], 0
        names.append(name)
        taken += rows
    if names:
        yield tuple(names)


class ChannelReader(DataSourceStreamReader):
    """The consumer's side of a channel."""

    def __init__(
        self,
        log: Log,
        columns: list[str],
        most_rows: int = 0,
        topic: ChannelTopic | None = None,
    ) -> None:
        self._log = log
        self._topic = topic
        self._columns = columns
        self._most_rows = most_rows
        self._forgot = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """Before the first producer batch."""
        return {"batches": 0}

    def latestOffset(  # noqa: N802 (Spark's name)
        self, start: dict[str, int], limit: Any
    ) -> dict[str, int]:
        """After the newest producer batch, or after as many rows as one batch may have."""
        return {"batches": self._log.limited(start["batches"], MOST_ROWS, MOST_FILES)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One per file, or per pack of small files. A replay reads the same packs."""
        handed = self._log.between(start["batches"], end["batches"])
        files = [file for one in handed for file in one.files]
        return [_Files(names) for names in packed(files, self._most_rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of its files, as they were written."""
        assert isinstance(partition, _Files)
        for name in partition.names:
            for block in self._blocks(name):
                yield with_columns(block, self._columns)

    def _blocks(self, name: str) -> Iterator[pa.RecordBatch]:
        where = RecordsReference.parsed(name)
        if where is not None:
            if self._topic is None:
                raise TidegateError(
                    f"rows of a channel are in the topic '{where.topic}' ({name}), but its cut "
                    "names no broker any more; start with channel='kafka' and servers= until they "
                    "are read"
                )
            yield from self._topic.read(where)
            return
        try:
            with self._log.data.open(name) as stream:
                reader = pa.ipc.open_file(stream)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)
        except FileNotFoundError:  # a remote file may be missed at its first read only
            raise missing(self._log.data.path(name)) from None

    def commit(self, end: dict[str, int]) -> None:
        """The consumer will not read again what lies before `end`: remove it, several at a time.

        A failure to remove must not fail a batch that is done; the next call tries again.
        """
        if end["batches"] - self._forgot < _FORGET_EVERY:
            return
        try:
            self._log.note_read(end["batches"])
            self._log.forget(end["batches"], self._topic)
        except (OSError, TidegateError):
            return
        self._forgot = end["batches"]


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
        most_rows = int(self.options.get("packedrows", "0"))
        asked = json.loads(self.options.get(TOPIC_OPTION, "null"))
        topic = None if asked is None else ChannelTopic(**asked)
        log = Log(Durable(self.options["path"]))
        return ChannelReader(log, schema.names, most_rows, topic)


def with_columns(block: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
    """Rows of a file with or without traces, as the reader wants them.

    The file may be of a version of Tidegate without traces, or of a run that had no use for them.
    """
    if block.schema.names == columns:
        return block
    if TRACE in columns and TRACE not in block.schema.names:
        block = block.append_column(TRACE, pa.nulls(len(block), ARROW_TYPE))
    return block.select(columns)
