"""Shedding inside a task: which rows of a micro-batch are kept (the overload paper, section 2).

A number is drawn for each row from its own content, the batch and the source; the row is kept when
the number is below the keep fraction of its class. It does not matter which task reads a row or in
which order: a replay of the batch keeps the same rows, even if the source is split into other
partitions. Rows that are equal in every column are numbered within their partition, or else a
stream with few different rows would lose all copies of some of them. Where the user named columns
that no two rows share, the number is drawn from those columns alone, and Spark may have drawn it
already (`sources`). Rows are counted as they pass: there is no second pass over them.
"""

import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from numpy.typing import NDArray

from tidegate.control.learning.sojourn import Stamps, merged
from tidegate.pipelines.shedding import WEIGHT
from tidegate.spark.batch.report import ShedCounts, TaskReport
from tidegate.spark.batch.worker import place, unpacked
from tidegate.spark.measure.stamps import ArrivalSample

ROW = "__row"
"""Hash of a row's content, which Spark makes as it reads; for unique rows, the drawn word."""
PART = "__part"
"""The source's partition that a row is in, whichever task works on it."""
GROUP = "__group"
"""The key group of a row."""
KEPT = "__kept"
"""Whether Spark has drawn that a row is kept."""
OF_SHEDDING = (ROW, PART, GROUP, KEPT)

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]
_STEP = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class ShedStage:
    """How one source is shed, whatever fraction a micro-batch keeps."""

    source: str
    by: str | None = None
    classes: tuple[str, ...] = ()
    """Their names; the last one stands for all values that are not named."""
    shards: int = 0
    weight: bool = False
    arrivals: ArrivalSample | None = None
    key: tuple[str, ...] = ()
    """Rows are counted by the shards of these columns."""
    unique: tuple[str, ...] = ()
    """Columns that no two rows share; with them a row's draw needs no other row."""


@dataclass(slots=True)
class RowShedder:
    """Sheds the rows of one task in one micro-batch, block after block."""

    stage: ShedStage
    batch_id: int
    keeps: tuple[float, ...]
    """The keep fraction of each class; one when there are no classes."""
    part: int | None = None
    """The source's partition whose rows it saw; None where Spark drew in front of a shuffle."""
    spent_s: float = 0.0
    _seen: "Copies" = field(default_factory=lambda: Copies())
    _offered: Counts = field(init=False)
    _kept: Counts = field(init=False)
    _groups: tuple[Counts, Counts] = field(init=False)
    _stamps: list[Stamps] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._offered = np.zeros(len(self.keeps), dtype=np.int64)
        self._kept = np.zeros(len(self.keeps), dtype=np.int64)
        shards = self.stage.shards
        self._groups = (np.zeros(shards, dtype=np.int64), np.zeros(shards, dtype=np.int64))

    def kept(self, block: pa.RecordBatch | pa.Table) -> pa.Table:
        """The rows of a block that are kept, with their weights where asked for."""
        begun = time.perf_counter()
        stage = self.stage
        table = block if isinstance(block, pa.Table) else pa.Table.from_batches([block])
        if block.num_rows and PART in block.schema.names:
            self.part = block.column(PART)[0].as_py()
        if stage.arrivals is not None:
            place = self.batch_id + int(self._offered.sum())
            self._stamps.append(stage.arrivals.of(block, place))
        code = class_of(block, stage)
        fractions = np.asarray(self.keeps)
        chosen = self._chosen(block, fractions[code])
        self._count(code, chosen, block)
        table = table.drop_columns([name for name in OF_SHEDDING if name in table.column_names])
        if stage.weight:
            with np.errstate(divide="ignore"):
                weights = (1.0 / fractions)[code]
            table = table.append_column(WEIGHT, pa.array(weights))
        if not chosen.all():
            table = table.filter(pa.array(chosen))
        self.spent_s += time.perf_counter() - begun
        return table

    def _chosen(
        self, block: pa.RecordBatch | pa.Table, keep: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Which rows are kept, by a draw below their keep fraction."""
        if KEPT in block.schema.names:
            return np.asarray(block.column(KEPT), dtype=np.bool_)
        if min(self.keeps) >= 1.0:
            return np.ones(block.num_rows, dtype=np.bool_)
        rows = block.column(ROW).to_numpy().view(np.uint64)
        if self.stage.unique:
            return _fraction(rows) < keep
        return draw(rows, self._seen.number(rows), self.stage.source, self.batch_id) < keep

    def _count(
        self, code: Counts, chosen: NDArray[np.bool_], block: pa.RecordBatch | pa.Table
    ) -> None:
        classes = len(self.keeps)
        self._offered += np.bincount(code, minlength=classes)
        self._kept += np.bincount(code[chosen], minlength=classes)
        if self.stage.shards:
            group = block.column(GROUP).to_numpy()
            offered, kept = self._groups
            offered += np.bincount(group, minlength=self.stage.shards)
            kept += np.bincount(group[chosen], minlength=self.stage.shards)

    @property
    def offered(self) -> int:
        """Rows that were looked at."""
        return int(self._offered.sum())

    def counts(self) -> ShedCounts:
        """What was counted."""
        return ShedCounts(
            classes=tuple(zip(self._offered.tolist(), self._kept.tolist(), strict=True)),
            groups=self._groups if self.stage.shards else None,
            stamps=merged(self._stamps) if self._stamps else None,
        )


@dataclass(frozen=True, slots=True)
class ShedTask:
    """Sheds one source in one micro-batch: callable for Spark's mapInArrow.

    An operator that sheds the source in its own call uses `shedder` and `tell` instead.
    """

    stage: bytes
    batch_id: int
    keeps: tuple[float, ...]
    accumulator: Any

    def shedder(self) -> RowShedder:
        """A shedder for one partition."""
        return RowShedder(unpacked(self.stage), self.batch_id, self.keeps)

    def __call__(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Let through the rows that are kept."""
        shedder, started_s = self.shedder(), time.time()
        for block in blocks:
            if block.num_rows:
                yield from shedder.kept(block).to_batches()
        self.tell(shedder, started_s)

    def tell(self, shedder: RowShedder, started_s: float, task: int = 0, part: int = 0) -> None:
        """Report the counts under the number of the source's partition.

        A partition that two tasks compute is then counted once. Rows that Spark drew have crossed a
        shuffle: their counts are reported under the task behind it.
        """
        counts = shedder.counts()
        if not shedder.offered:
            return
        if shedder.part is not None:
            task, part = shedder.part, 0
        self.accumulator.add(
            [
                TaskReport(
                    batch_id=self.batch_id,
                    operator=shedder.stage.source,
                    task=task,
                    part=part,
                    rows_in=shedder.offered,
                    rows_out=sum(kept for _, kept in counts.classes),
                    busy_s=shedder.spent_s,
                    function_s=0.0,
                    executor=place(),
                    started_s=started_s,
                    shed=counts,
                )
            ]
        )


def draw(rows: Words, copies: Words, source: str, batch_id: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each row: the same whenever the same batch is read again."""
    seed = np.uint64((zlib.crc32(source.encode()) << 32) ^ (batch_id & 0xFFFFFFFF))
    with np.errstate(over="ignore"):
        mixed = _mixed(rows + _mixed(np.asarray([seed]))[0]) + copies * _STEP
        return _fraction(_mixed(mixed))


def _fraction(words: Words) -> NDArray[np.float64]:
    """The upper 53 bits as a number in [0, 1)."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(words: Words) -> Words:
    """Stafford's finaliser: each bit of the input changes each bit of the output."""
    with np.errstate(over="ignore"):
        words = words + _STEP
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))


def class_of(block: pa.RecordBatch | pa.Table, stage: ShedStage) -> Counts:
    """The number of each row's class."""
    if stage.by is None:
        return np.zeros(block.num_rows, dtype=np.int64)
    column = block.column(stage.by)
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    text = whole.cast(pa.string())
    other = len(stage.classes) - 1
    found = compute.index_in(text, value_set=pa.array(stage.classes[:-1], pa.string()))
    return np.asarray(found.fill_null(other).to_numpy(zero_copy_only=False), dtype=np.int64)


def class_rows(rows: pa.Table, offered: ShedStage | None) -> tuple[int, ...]:
    """Rows of each class, where a source has classes."""
    if offered is None:
        return ()
    return tuple(np.bincount(class_of(rows, offered), minlength=len(offered.classes)).tolist())


class Copies:
    """Numbers equal rows: 0 for the first of its kind in the partition, then 1, 2, ..."""

    def __init__(self) -> None:
        self._kinds: Words = np.empty(0, dtype=np.uint64)
        self._counts: Counts = np.empty(0, dtype=np.int64)

    def number(self, rows: Words) -> Words:
        """The number of each row among those equal to it, in this block and the blocks before."""
        if not len(rows):
            return rows
        order = np.argsort(rows, kind="stable")
        ranked = rows[order]
        first = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
        kinds = ranked[first]
        counts = np.diff(np.append(first, len(rows)))
        before = np.zeros(len(kinds), dtype=np.int64)
        if len(self._kinds):
            place = np.searchsorted(self._kinds, kinds).clip(max=len(self._kinds) - 1)
            known = self._kinds[place] == kinds
            before[known] = self._counts[place[known]]
            self._counts[place[known]] += counts[known]
            self._remember(kinds[~known], counts[~known])
        else:
            self._kinds, self._counts = kinds, counts
        within = np.arange(len(rows)) - np.repeat(first, counts)
        numbers = np.empty(len(rows), dtype=np.uint64)
        numbers[order] = (within + np.repeat(before, counts)).astype(np.uint64)
        return numbers

    def _remember(self, kinds: Words, counts: Counts) -> None:
        both = np.concatenate((self._kinds, kinds))
        order = np.argsort(both, kind="stable")  # two sorted runs: merged, not sorted again
        self._kinds = both[order]
        self._counts = np.concatenate((self._counts, counts))[order]
