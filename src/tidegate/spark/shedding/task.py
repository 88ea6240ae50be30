"""The shedder: which rows of a micro-batch are kept (the overload paper, section 2), in a task.

A row's fate is drawn from its own content, the batch and the source, and compared with the keep
fraction of its class. So it does not matter which task reads a row or in which order: a replay of
the batch keeps the same rows even when the source was cut into other partitions. Rows that are
alike to the last column are told apart by their order within a partition, or else a stream of a
few values would be shed by whole values. Where the user named columns that no two rows share, the
draw is of them alone and Spark may have made it already (see `draw`). The rows are counted as they
pass: there is no second pass.
"""

import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from numpy.typing import NDArray

from tidegate.control.learning.sojourn import Stamps, merged
from tidegate.control.row_counts import ClassCount, SourceCount
from tidegate.pipelines.shedding import WEIGHT
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.report import ShedCounts, TaskReport
from tidegate.spark.batch.worker import place, unpacked
from tidegate.spark.measure.stamps import ArrivalSample

ROW = "__row"
"""Hash of a row's content (made by Spark, in the same pass); of unique rows, what is drawn."""
PART = "__part"
"""The partition of the source that a row is in, whoever computes it."""
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
    """How one source is shed: the part that stays."""

    source: str
    by: str | None = None
    classes: tuple[str, ...] = ()
    """Their names; the last one is that of all other values."""
    shards: int = 0
    weight: bool = False
    arrivals: ArrivalSample | None = None
    key: tuple[str, ...] = ()
    """Rows are counted by the shards of these columns."""
    unique: tuple[str, ...] = ()
    """Columns that no two rows share; with them a row's draw needs no other row."""


@dataclass(slots=True)
class Shedder:
    """Sheds the rows of one task in one micro-batch, block after block."""

    stage: ShedStage
    batch_id: int
    keeps: tuple[float, ...]
    """The keep fraction of each class; one when there are no classes."""
    part: int | None = None
    """The source's partition that it saw; none where Spark drew before the rows came here."""
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
            self._stamps.append(stage.arrivals.of(block))
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
    """A source that sheds in one micro-batch: callable for Spark's mapInArrow.

    A map that reads the source where its rows are does this in its own call instead.
    """

    stage: bytes
    batch_id: int
    keeps: tuple[float, ...]
    accumulator: Any

    def shedder(self) -> Shedder:
        """For one partition."""
        return Shedder(unpacked(self.stage), self.batch_id, self.keeps)

    def __call__(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Let the rows through that are kept."""
        shedder, started_s = self.shedder(), time.time()
        for block in blocks:
            if block.num_rows:
                yield from shedder.kept(block).to_batches()
        self.tell(shedder, started_s)

    def tell(self, shedder: Shedder, started_s: float, task: int = 0, part: int = 0) -> None:
        """Report the counts under the source's own partition: whoever computes it, it is one.

        Rows that Spark drew come from behind a shuffle: they are counted under the task there.
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
    """Stafford's finaliser: every bit of the input reaches every bit of the output."""
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
    """Numbers rows that are alike: 0 for the first of its kind in the partition, then 1, 2, ..."""

    def __init__(self) -> None:
        self._kinds: Words = np.empty(0, dtype=np.uint64)
        self._counts: Counts = np.empty(0, dtype=np.int64)

    def number(self, rows: Words) -> Words:
        """The number of each row among those like it, in this block and those before."""
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


def sheds(plan: BatchPlan, stages: Mapping[str, ShedStage]) -> bool:
    """Whether any source of a segment is shed in a micro-batch; then all of them count."""
    return any(min(plan.keep.of(stage.classes)) < 1.0 for stage in stages.values())


def source_count(stage: ShedStage, parts: list[ShedCounts]) -> SourceCount:
    """The count of a source from those of its partitions."""
    by_class = np.zeros((max(1, len(stage.classes)), 2), dtype=np.int64)
    for part in parts:
        by_class += np.asarray(part.classes, dtype=np.int64)
    groups = np.zeros((2, stage.shards), dtype=np.int64)
    for part in parts:
        if part.groups is not None:
            groups += np.stack(part.groups)
    return SourceCount(
        name=stage.source,
        offered=int(by_class[:, 0].sum()),
        kept=int(by_class[:, 1].sum()),
        classes=tuple(
            ClassCount(name=name, offered=int(offered), kept=int(kept))
            for name, (offered, kept) in zip(stage.classes, by_class, strict=False)
        ),
        groups_offered=tuple(groups[0].tolist()),
        groups_kept=tuple(groups[1].tolist()),
    )
