"""A keyed operator inside Spark's Python workers: one Arrow call per task, with its state."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from numpy.typing import NDArray

from tidegate.control.learning.traces import NO_IDS
from tidegate.pipelines.keyed import ROWS, Combiner, Update
from tidegate.pipelines.on_error import ERROR
from tidegate.spark.batch.ahead import AHEAD_US
from tidegate.spark.batch.asides import Asides, put_aside
from tidegate.spark.batch.failure import told_of
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.rows_left import rows_left
from tidegate.spark.batch.skip_keys import SkippedKeys, emitted, skipping
from tidegate.spark.batch.traces import FIELD, Marks, TraceSample
from tidegate.spark.batch.worker import (
    HASH,
    ORDER,
    ORIGIN,
    PARTED,
    TASK,
    ReceivedBlocks,
    node_of,
    part_of_task,
    place,
    unpacked,
    without_ours,
)
from tidegate.spark.batch.worker_memory import worker_memory
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.task import ShedStage, ShedTask, class_rows
from tidegate.spark.state.chains import Shards
from tidegate.spark.state.event_times import ALL
from tidegate.spark.state.layout import shard_of, slot_of
from tidegate.spark.state.packed_version import PackedVersion
from tidegate.spark.state.task import Keeper, TaskState


@dataclass(frozen=True, slots=True)
class KeyedStage:
    """The fixed part of a keyed operator."""

    keeper: Keeper
    rows: pa.Schema
    """The columns that enter it."""
    order_by: str | None
    arrivals: ArrivalSample | None = None
    offered: ShedStage | None = None
    """The source whose rows it counts by class; None when it is not the first to read one."""
    origins: tuple[str, ...] = ()
    """The sources by the numbers in its rows' hidden column; empty without such a column."""
    traced: bool = False
    """Whether the rows that leave it carry traces in a hidden column."""
    sample: TraceSample | None = None
    """How it samples the inputs of its source; None: the rows that enter it carry their traces."""
    tells: bool = False
    """Whether it tells the driver the traces of the rows that leave it. Then no column has them."""
    every: int = 1
    """N_m: one input in so many is noted or traced."""
    skips: bool = False
    """Whether keys that the function cannot process are left out."""
    asides: Asides = field(default_factory=dict)
    """The rows that it puts aside, where somebody reads them."""
    combiner: Combiner | None = None
    """How its rows may be combined before they are sent to it; None: they never are."""

    def of_combined(self, combiner: Combiner) -> "KeyedStage":
        """The same operator where its rows were combined in front of it.

        What is told of single rows was told there.
        """
        bound = replace(
            self.keeper.bound, update=combiner.update, event_time=combiner.time, combiner=None
        )
        keeper = replace(self.keeper, bound=bound)
        return replace(self, keeper=keeper, rows=combiner.rows, arrivals=None, offered=None)


@dataclass(frozen=True, slots=True)
class KeyedTask:
    """A keyed operator in one micro-batch: callable for Spark's cogroup of (anchor, rows).

    `without_anchor` is the same for Spark's mapInArrow, where no anchor is needed (`unanchored`).
    """

    stage: bytes
    batch_id: int
    at_us: int
    version: PackedVersion
    route: NDArray[np.int32]
    accumulator: Any
    parts: NDArray[np.int32] | None = None
    """The part of each shard, where tasks work in parts; None: they work on all rows at once."""
    shed: ShedTask | None = None
    """Set when Spark drew for the source in front of it: the shed rows are counted and dropped
    here."""

    def __call__(self, anchor: pa.Table, rows: pa.Table) -> pa.Table:
        """Run the task that the anchor names."""
        return self._run(anchor.column(TASK)[0].as_py(), rows)

    def without_anchor(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task that the rows name; without rows, the one that the partition names."""
        received = ReceivedBlocks(blocks)
        given = list(received)
        if any(block.num_rows for block in given):
            rows = pa.Table.from_batches(given)
            task = rows.column(TASK)[0].as_py()
            yield from self._run(task, rows, received.waited_s).to_batches()
            return
        task, part = part_of_task(unpacked(self.stage).keeper.operator)
        if part == 0:
            yield from self._run(task, None).to_batches()

    def in_parts(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task that the rows name in parts, for Spark's mapInArrow.

        Spark has sorted the rows by their part, on its disks where they are many. So no more than
        one part is in memory at a time. Every partition has a row that names its task and comes
        first.
        """
        task, part = None, 0
        held: list[pa.RecordBatch] = []
        for block in blocks:
            for number, piece in pieces(block):
                if number < 0:
                    yield from self._rest(task, part, held)
                    task, part, held = piece.column(TASK)[0].as_py(), 0, []
                    continue
                while part < number:
                    yield from self._part(task, part, held)
                    part, held = part + 1, []
                held.append(piece)
        yield from self._rest(task, part, held)

    def _rest(
        self, task: int | None, part: int, held: list[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """The last part that has rows, and those behind it: they may have state that falls due."""
        if task is None or self.parts is None:
            return
        yield from self._part(task, part, held)
        for later in range(part + 1, int(self.parts.max()) + 1):
            yield from self._part(task, later, [])

    def _part(
        self, task: int | None, part: int, held: list[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        assert task is not None
        rows = pa.Table.from_batches(held) if held else None
        yield from self._run(task, rows, part=part).to_batches()

    def _shards(self, task: int, part: int) -> Shards:
        """The shards of a task, or of one part of it."""
        mine = self.route == task
        return np.flatnonzero(mine if self.parts is None else mine & (self.parts == part))

    def _run(
        self,
        task: int,
        rows: pa.Table | None,
        waited_s: float | None = None,
        part: int = 0,
    ) -> pa.Table:
        stage: KeyedStage = unpacked(self.stage)
        started_s = time.time()
        bytes_in = 0 if rows is None else rows.nbytes
        keeper = stage.keeper
        if self.shed is not None and rows is not None:
            shedder = self.shed.shedder()
            rows = shedder.kept(rows)
            self.shed.tell(shedder, started_s, task, part)
        clock = time.perf_counter()
        marks, keys = None, None
        if stage.traced:
            marks, keys = traced_keys(rows, keeper.key.names, stage.sample)
        newest_us, ahead = newest_events(
            rows, keeper.bound.event_time, stage.origins, self.at_us + AHEAD_US
        )
        left = rows_left(rows, stage.combiner)
        if rows is None:
            rows, hashes = stage.rows.empty_table(), np.empty(0, dtype=np.int64)
        else:
            rows, hashes = in_order(rows, stage.order_by)
        shards = self._shards(task, part)
        with told_of(keeper.operator):
            keeper.cache.make()
            version = self.version.only(shards)
            state = TaskState(keeper, version, shards, self.batch_id, self.at_us, task)
            batch = state.batch(rows, slot_of(hashes, self.version.shards))
            before = time.perf_counter()
            if stage.skips:
                update, skipped = skipping(keeper, batch)
            else:
                update, skipped = keeper.bound.update(batch), SkippedKeys()
            function_s = time.perf_counter() - before
            output = emitted(keeper, update)
            change = state.change(update)
        keeper.cache.forget(self.version, self.batch_id)
        passed = None if marks is None else marks.settled.grouped(keys, output)
        self.accumulator.add(
            [
                TaskReport(
                    batch_id=self.batch_id,
                    operator=keeper.operator,
                    task=task,
                    part=part,
                    rows_in=rows_behind(rows),
                    rows_out=output.num_rows,
                    busy_s=time.perf_counter() - clock,
                    function_s=function_s,
                    executor=place(),
                    started_s=started_s,
                    shard_rows=self._shard_rows(hashes),
                    shard_bytes=state.shard_bytes(),
                    change=change,
                    own_reads=len(state.reads.own),
                    durable_reads=len(state.reads.durable),
                    durable_bytes=state.reads.durable_bytes,
                    node=node_of(keeper.cache),
                    newest_us=newest_us,
                    ahead_rows=ahead,
                    late_rows=late_behind(rows, update),
                    skipped_rows=skipped.count,
                    skipped_error=skipped.error,
                    stamps=None
                    if stage.arrivals is None
                    else stage.arrivals.of(rows, self.batch_id),
                    sampled=stage.every,
                    class_rows=class_rows(rows, stage.offered),
                    combined_rows=left,
                    born=None if marks is None else marks.born,
                    left=np.unique(passed.traces) if passed is not None and stage.tells else None,
                    bytes_in=bytes_in,
                    waited_s=waited_s,
                    memory=worker_memory(bytes_in),
                )
            ]
        )
        if passed is not None and not stage.tells:
            output = output.append_column(FIELD, passed.column(output.num_rows))
        if not stage.asides:
            return output
        aside = {}
        if update.late is not None:
            aside["late"] = rows.filter(pa.array(update.late))
        if len(skipped.rows):
            aside["failed"] = rows.take(pa.array(skipped.rows)).append_column(
                ERROR, pa.array(skipped.errors, pa.string())
            )
        if marks is not None and keys is not None:
            for kind, table in aside.items():
                traces = marks.settled.grouped(keys, table)
                aside[kind] = table.append_column(FIELD, traces.column(table.num_rows))
        return put_aside(output, stage.asides, aside)

    def _shard_rows(self, hashes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The shards that got rows, and how many each got."""
        shards = self.version.shards
        counts = np.bincount(shard_of(hashes, shards), minlength=shards)
        touched = np.flatnonzero(counts)
        return touched, counts[touched]


def pieces(block: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """A block that is sorted by part, cut into its parts, each with its number."""
    numbers = block.column(block.schema.get_field_index(PARTED)).to_numpy()
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for begin, end in itertools.pairwise(cuts):
        if begin < end:
            yield int(numbers[begin]), block.slice(begin, end - begin)


def late_behind(rows: pa.Table, update: Update) -> int:
    """How many rows were late, where each may stand for several that were combined."""
    if update.late is None or ROWS not in rows.column_names:
        return update.late_count
    return int(rows[ROWS].to_numpy()[update.late].sum())


def rows_behind(rows: pa.Table) -> int:
    """How many rows these are, where each may stand for several that were combined."""
    if ROWS not in rows.column_names:
        return int(rows.num_rows)
    return int(compute.sum(rows[ROWS]).as_py() or 0)


def traced_keys(
    rows: pa.Table | None, key: list[str], sample: TraceSample | None
) -> tuple[Marks, pa.Table | None]:
    """The traces on the rows, and the key of each of them."""
    if rows is None:
        return Marks(NO_IDS, NO_IDS), None
    marks = Marks.of(rows) if sample is None else sample.of(rows, rows.column(ORDER).to_numpy())
    return marks, rows.select(key).take(pa.array(marks.places))


def in_order(rows: pa.Table, order_by: str | None) -> tuple[pa.Table, NDArray[np.int64]]:
    """The rows without our columns, in an order that a replay repeats, and their keys' hashes.

    A shuffle delivers blocks in any order. Rows were numbered before it, so they can be put back.
    """
    order = rows.column(ORDER).to_numpy()
    hashes = rows.column(HASH).to_numpy()
    rows = without_ours(rows)
    sort = None
    if order_by is not None:
        ranked = rows.select([order_by]).append_column(ORDER, pa.array(order))
        keys = [(order_by, "ascending"), (ORDER, "ascending")]
        sort = compute.sort_indices(ranked, sort_keys=keys).to_numpy()
    elif np.any(order[1:] < order[:-1]):
        sort = np.argsort(order, kind="stable")
    if sort is None:
        return rows, hashes
    return rows.take(pa.array(sort)), hashes[sort]


def newest_events(
    rows: pa.Table | None, event_time: str | None, origins: tuple[str, ...], until_us: int
) -> tuple[dict[str, int], int]:
    """The newest event of the rows, by the source that they came from, and the rows after `until`.

    Without a column that tells the sources apart, all rows count as coming from one. Events that
    lie further in the future are left out: the watermark would follow them, and every row that
    tells the right time would be late.
    """
    if rows is None or event_time is None or not rows.num_rows:
        return {}, 0
    column = rows.column(event_time)
    times = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    newest = compute.max(times).value
    if newest is None:
        return {}, 0
    ahead = 0
    if newest > until_us:
        there = compute.less_equal(times, pa.scalar(until_us, times.type))
        ahead = compute.sum(compute.invert(there)).as_py()
        rows, times = rows.filter(there), times.filter(there)
        newest = compute.max(times).value
        if newest is None:
            return {}, ahead
    if ORIGIN not in rows.column_names:
        return {ALL: int(newest)}, ahead
    parts = pa.table({"at": times, "origin": rows.column(ORIGIN)})
    found = parts.group_by("origin").aggregate([("at", "max")])
    return {
        origins[code]: int(newest.value)
        for code, newest in zip(found["origin"].to_pylist(), found["at_max"], strict=True)
        if newest.is_valid
    }, ahead
