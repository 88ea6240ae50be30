"""What runs inside Spark's Python workers: one Arrow call per task."""

import os
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from numpy.typing import NDArray
from pyspark import TaskContext

from tidegate.control.learning.sojourn import Stamps, merged
from tidegate.pipelines.keyed import KeyedBatch, Update
from tidegate.spark.batch.failure import told_of
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.task import Shedder, ShedStage, class_of
from tidegate.spark.state.layer import NodeCache
from tidegate.spark.state.layout import shard_of, slot_of
from tidegate.spark.state.task import Keeper, TaskState, conform
from tidegate.spark.state.version import Version

HASH = "__hash"
ORDER = "__order"
TASK = "__task"
OURS = (HASH, ORDER, TASK)
_PRUNE_EVERY = 16


@lru_cache(maxsize=256)
def unpacked(content: bytes) -> Any:
    """An operator's fixed part, unpacked once per worker process and not once per batch."""
    return pickle.loads(content)


def place() -> str:
    """Where this runs; two executors of one host have different working directories."""
    return f"{socket.gethostname()}:{Path.cwd()}"


def node_of(cache: NodeCache) -> str:
    """Whose cache it is: the host's, or with a relative directory the executor's own."""
    return socket.gethostname() if Path(cache.directory).is_absolute() else place()


@dataclass(frozen=True, slots=True)
class KeyedStage:
    """The fixed part of a keyed operator."""

    keeper: Keeper
    rows: pa.Schema
    """The columns that enter it."""
    order_by: str | None
    arrivals: ArrivalSample | None = None
    offered: ShedStage | None = None
    """The source that it is the first to read, when rows are to be counted by class."""


@dataclass(frozen=True, slots=True)
class KeyedTask:
    """A keyed operator in one micro-batch: callable for Spark's cogroup of (anchor, rows).

    `straight` is the same without an anchor, for Spark's mapInArrow (see `unanchored`).
    """

    stage: bytes
    batch_id: int
    at_us: int
    version: Version
    route: tuple[int, ...]
    accumulator: Any
    shed: "ShedTask | None" = None
    """The source that it reads: Spark has drawn, and what was shed is counted here."""

    def __call__(self, anchor: pa.Table, rows: pa.Table) -> pa.Table:
        """Run the task that the anchor names."""
        return self._run(anchor.column(TASK)[0].as_py(), rows)

    def straight(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the task that the rows name, or the partition's where there are none."""
        given = list(blocks)
        if any(block.num_rows for block in given):
            rows = pa.Table.from_batches(given)
            yield from self._run(rows.column(TASK)[0].as_py(), rows).to_batches()
            return
        task, part = part_of_task(unpacked(self.stage).keeper.operator)
        if part == 0:
            yield from self._run(task, None).to_batches()

    def _run(self, task: int, rows: pa.Table | None) -> pa.Table:
        stage: KeyedStage = unpacked(self.stage)
        started_s = time.time()
        keeper = stage.keeper
        if self.shed is not None and rows is not None:
            shedder = self.shed.shedder()
            rows = shedder.kept(rows)
            self.shed.tell(shedder, started_s, task)
        clock = time.perf_counter()
        if rows is None:
            rows, hashes = stage.rows.empty_table(), np.empty(0, dtype=np.int64)
        else:
            rows, hashes = in_order(rows, stage.order_by)
        shards = [shard for shard, owner in enumerate(self.route) if owner == task]
        with told_of(keeper.operator):
            keeper.cache.make()
            state = TaskState(keeper, self.version, shards, self.batch_id, self.at_us, task)
            batch = state.batch(rows, slot_of(hashes, self.version.shards))
            before = time.perf_counter()
            update = keeper.bound.update(batch)
            function_s = time.perf_counter() - before
            output = self._output(keeper, update)
            change = state.change(update)
        if self.batch_id % _PRUNE_EVERY == task % _PRUNE_EVERY:
            keeper.cache.prune(self.version.names, self.batch_id - 2)
        counts = np.bincount(shard_of(hashes, self.version.shards), minlength=self.version.shards)
        touched = np.flatnonzero(counts)
        self.accumulator.add(
            [
                TaskReport(
                    batch_id=self.batch_id,
                    operator=keeper.operator,
                    task=task,
                    rows_in=rows.num_rows,
                    rows_out=output.num_rows,
                    busy_s=time.perf_counter() - clock,
                    function_s=function_s,
                    executor=place(),
                    started_s=started_s,
                    shard_rows=(touched, counts[touched]),
                    shard_bytes=state.shard_bytes(),
                    change=change,
                    own_reads=len(state.reads.own),
                    durable_reads=len(state.reads.durable),
                    durable_bytes=state.reads.durable_bytes,
                    node=node_of(keeper.cache),
                    newest_event_us=newest_event_us(batch, keeper.bound.event_time),
                    late_rows=update.late_rows,
                    stamps=None if stage.arrivals is None else stage.arrivals.of(rows),
                    sampled=1 if stage.arrivals is None else stage.arrivals.every,
                    class_rows=class_rows(rows, stage.offered),
                )
            ]
        )
        return output

    def _output(self, keeper: Keeper, update: Update) -> pa.Table:
        if not isinstance(update, Update):
            raise TypeError(f"the function returned {type(update).__name__}, expected tg.Update")
        if update.output is None:
            return keeper.bound.output.empty_table()
        return conform(update.output, keeper.bound.output, f"operator '{keeper.operator}': output")


def in_order(rows: pa.Table, order_by: str | None) -> tuple[pa.Table, NDArray[np.int64]]:
    """Rows in the order that a replay has too, without our columns, and the hashes of their keys.

    A shuffle delivers blocks in any order; the number given before it brings the first order back.
    """
    order = rows.column(ORDER).to_numpy()
    hashes = rows.column(HASH).to_numpy()
    rows = rows.drop_columns([name for name in OURS if name in rows.column_names])
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


def newest_event_us(batch: KeyedBatch, event_time: str | None) -> int | None:
    """The newest event time among the rows."""
    if event_time is None or not batch.rows.num_rows:
        return None
    column = batch.rows.column(event_time)
    newest = compute.max(column.cast(pa.timestamp("us", column.type.tz))).value
    return None if newest is None else int(newest)


@dataclass(frozen=True, slots=True)
class MapStage:
    """The fixed part of a map operator."""

    operator: str
    function: Callable[[pa.Table], pa.Table]
    schema: pa.Schema
    arrivals: ArrivalSample | None = None
    offered: ShedStage | None = None
    """The source that it is the first to read, when rows are to be counted by class."""


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


@dataclass(frozen=True, slots=True)
class MapTask:
    """A map operator in one micro-batch: callable for Spark's mapInArrow."""

    stage: bytes
    batch_id: int
    accumulator: Any
    shed: ShedTask | None = None
    """The source that it reads is shed here, before the function: no stage of its own."""
    tasks: int | None = None
    """Rows were dealt to so many tasks by their order."""

    def __call__(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the user's function on every block of rows."""
        stage: MapStage = unpacked(self.stage)
        started_s = time.time()
        rows_in = rows_out = 0
        busy_s = 0.0
        seen: list[Stamps] = []
        by_class: list[tuple[int, ...]] = []
        shedder = None if self.shed is None else self.shed.shedder()
        own: int | None = None
        for block in blocks:
            if not block.num_rows:
                continue
            if self.tasks is not None and own is None:
                own = block.column(ORDER)[0].as_py() % self.tasks
            table = pa.Table.from_batches([block]) if shedder is None else shedder.kept(block)
            if not table.num_rows:
                continue
            if stage.arrivals is not None:
                seen.append(stage.arrivals.of(table))
            if shedder is None and stage.offered is not None:
                by_class.append(class_rows(table, stage.offered))
            before = time.perf_counter()
            with told_of(stage.operator):
                result = stage.function(_without_ours(table))
                if not isinstance(result, pa.Table):
                    raise TypeError(
                        f"the function returned {type(result).__name__}, expected a pyarrow.Table"
                    )
                result = conform(result, stage.schema, f"operator '{stage.operator}'")
            busy_s += time.perf_counter() - before
            rows_in += table.num_rows
            rows_out += result.num_rows
            yield from result.to_batches()
        part = part_report(self.batch_id, stage.operator, rows_in, rows_out, busy_s, started_s)
        if own is not None:
            part = replace(part, task=own, part=0)  # the rows' own, whoever computes it
        elif self.tasks is not None:
            part = replace(part, part=part.part + 1)  # never in the place of one that had rows
        if self.shed is not None and shedder is not None:
            self.shed.tell(shedder, started_s, part.task, part.part)
        told = replace(
            part,
            function_s=busy_s,
            stamps=merged(seen) if seen else None,
            sampled=1 if stage.arrivals is None else stage.arrivals.every,
            class_rows=tuple(sum(part) for part in zip(*by_class, strict=True)),
        )
        self.accumulator.add([told])


def class_rows(rows: pa.Table, offered: ShedStage | None) -> tuple[int, ...]:
    """Rows of each class, where a source has classes."""
    if offered is None:
        return ()
    return tuple(np.bincount(class_of(rows, offered), minlength=len(offered.classes)).tolist())


def _without_ours(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in OURS if name in table.column_names])


_parts: dict[tuple[int, str], int] = {}


def part_of_task(operator: str) -> tuple[int, int]:
    """The Spark task, and the how-manieth run of this operator inside it.

    A user's sink may coalesce, so that one Spark task runs an operator several times.
    """
    context = TaskContext.get()
    if context is None:
        return os.getpid(), 0
    mark = (context.taskAttemptId(), operator)
    if len(_parts) > 4096:
        _parts.clear()
    part = _parts.get(mark, 0)
    _parts[mark] = part + 1
    return context.partitionId(), part


def part_report(
    batch_id: int, operator: str, rows_in: int, rows_out: int, busy_s: float, started_s: float
) -> TaskReport:
    """What a stage without state tells of one run inside a Spark task."""
    task, part = part_of_task(operator)
    return TaskReport(
        batch_id=batch_id,
        operator=operator,
        task=task,
        part=part,
        rows_in=rows_in,
        rows_out=rows_out,
        busy_s=busy_s,
        function_s=0.0,
        executor=place(),
        started_s=started_s,
    )


__all__ = [
    "HASH",
    "ORDER",
    "TASK",
    "KeyedStage",
    "KeyedTask",
    "MapStage",
    "MapTask",
    "ShedTask",
    "part_of_task",
    "part_report",
    "place",
]
