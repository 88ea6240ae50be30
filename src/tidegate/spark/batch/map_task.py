"""A map operator inside Spark's Python workers: the user's function on every block of rows."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.control.learning.sojourn import Stamps, merged
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.on_error import ERROR
from tidegate.spark.batch.asides import Asides, put_aside
from tidegate.spark.batch.failure import told_of
from tidegate.spark.batch.narrow import Failed, narrowed
from tidegate.spark.batch.traces import FIELD, Marks, TraceSample, joined, numbered
from tidegate.spark.batch.worker import (
    ORDER,
    ORIGIN,
    TASK,
    ReceivedBlocks,
    part_report,
    unpacked,
    without_ours,
)
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.task import ShedStage, ShedTask, class_rows
from tidegate.spark.state.conform import conform


@dataclass(frozen=True, slots=True)
class MapStage:
    """The fixed part of a map operator."""

    operator: str
    function: Callable[[pa.Table], pa.Table | Derived]
    schema: pa.Schema
    arrivals: ArrivalSample | None = None
    offered: ShedStage | None = None
    """The source whose rows it counts by class; None when it is not the first to read one."""
    origins: bool = False
    """Whether its rows carry their origin in a hidden column, which those that leave it need."""
    traced: bool = False
    """Whether the rows that leave it carry traces in a hidden column."""
    sample: TraceSample | None = None
    """How it samples the inputs of its source; None: the rows that enter it carry their traces."""
    tells: bool = False
    """Whether it tells the driver the traces of the rows that leave it. Then no column has them."""
    every: int = 1
    """N_m: one input in so many is noted or traced."""
    skips: bool = False
    """Whether rows that the function cannot process are left out."""
    asides: Asides = field(default_factory=dict)
    """The rows that it puts aside, where somebody reads them."""


@dataclass(frozen=True, slots=True)
class MapTask:
    """A map operator in one micro-batch: callable for Spark's mapInArrow."""

    stage: bytes
    batch_id: int
    accumulator: Any
    shed: ShedTask | None = None
    """Set when its source is shed here, before the function, and not in a stage of its own."""
    tasks: int | None = None
    """How many tasks the rows were dealt to by their order; None: it runs where its rows are."""
    route: Sequence[int] = ()
    """The task of each slot that rows were dealt to; empty: they were dealt to tasks in turn."""
    block_rows: int | None = None
    """Rows that the function is given at once, at most, where Spark does not cut blocks itself;
    None: all of them."""

    def anchored(self, anchor: pa.Table, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """Run the task that the anchor names on all its rows, for Spark's cogroup."""
        order = rows.column(ORDER).to_numpy()
        if np.any(order[1:] < order[:-1]):  # a shuffle delivers blocks in any order
            rows = rows.take(pa.array(np.argsort(order, kind="stable")))
        # In one piece first: a table keeps the pieces in which the shuffle happened to deliver it,
        # and a replay must give the function the same blocks.
        blocks = iter(rows.combine_chunks().to_batches(max_chunksize=self.block_rows))
        own = anchor.column(TASK)[0].as_py()
        return pa.Table.from_batches(list(self._run(blocks, own, kept=True)), schema)

    def __call__(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the user's function on every block of rows."""
        yield from self._run(blocks)

    def _run(
        self, blocks: Iterator[pa.RecordBatch], own: int | None = None, *, kept: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Run all blocks. `own` is the number of the task, if it is known before its rows.

        It is `kept` in its place by an anchor; how long it waited for its rows is then not known.
        """
        stage: MapStage = unpacked(self.stage)
        started_s = time.time()
        rows_in = rows_out = 0
        busy_s = 0.0
        skipped: list[Failed] = []
        seen: list[Stamps] = []
        by_class: list[tuple[int, ...]] = []
        born: list[NDArray[np.int64]] = []
        left: list[NDArray[np.int64]] = []
        shedder = None if self.shed is None else self.shed.shedder()
        received = ReceivedBlocks(blocks)
        for block in received:
            if not block.num_rows:
                continue
            if self.tasks is not None and own is None:
                own = self._task_of(block.column(ORDER)[0].as_py(), self.tasks)
            table = pa.Table.from_batches([block]) if shedder is None else shedder.kept(block)
            if not table.num_rows:
                continue
            if stage.arrivals is not None:
                seen.append(stage.arrivals.of(table, self.batch_id + rows_in))
            if shedder is None and stage.offered is not None:
                by_class.append(class_rows(table, stage.offered))
            before = time.perf_counter()
            with told_of(stage.operator):
                parts = mapped_by_origin(stage, table) if stage.origins else [mapped(stage, table)]
            busy_s += time.perf_counter() - before
            result = parts[0].rows if len(parts) == 1 else pa.concat_tables(p.rows for p in parts)
            if stage.traced:
                marks = self._marks(stage, table, rows_in)
                born.append(marks.born)
                passed = traces_of(parts, marks.settled)
                if stage.tells:
                    left.append(passed.traces)
                else:
                    result = result.append_column(FIELD, passed.column(result.num_rows))
            rows_in += table.num_rows
            rows_out += result.num_rows
            skipped += [one for part in parts for one in part.failed]
            if stage.asides:
                settled = marks.settled if stage.traced else None
                result = put_aside(result, stage.asides, failed_of(table, parts, settled))
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
            skipped_rows=len(skipped),
            skipped_error=skipped[0].error if skipped else None,
            stamps=merged(seen) if seen else None,
            sampled=stage.every,
            class_rows=tuple(sum(part) for part in zip(*by_class, strict=True)),
            born=np.concatenate(born) if born else None,
            left=np.unique(np.concatenate(left)) if left else None,
            bytes_in=received.bytes,
            # Without tasks of its own it waits for the operator in whose tasks it runs.
            waited_s=None if self.tasks is None or kept else received.waited_s,
        )
        self.accumulator.add([told])

    def _task_of(self, order: int, tasks: int) -> int:
        """The task that a row was dealt to."""
        return self.route[order % len(self.route)] if self.route else order % tasks

    def _marks(self, stage: MapStage, table: pa.Table, before: int) -> Marks:
        """The traces on the rows of a block, which comes after so many rows of its partition."""
        if stage.sample is None:
            return Marks.of(table)
        if self.tasks is not None:
            return stage.sample.of(table, table.column(ORDER).to_numpy())
        return stage.sample.of(table, numbered(before, table.num_rows))


@dataclass(frozen=True, slots=True, eq=False)
class MappedRows:
    """What the user's function returned for some rows of a block."""

    rows: pa.Table
    parents: NDArray[np.int64] | None
    """For each row the place of the row that it was derived from, where the function said so."""
    given: int
    """How many rows the function was given."""
    chosen: NDArray[np.int64] | None = None
    """The places of these rows in the block; None: all rows of the block."""
    failed: tuple[Failed, ...] = ()
    """The given rows that the function could not process, by their place among them."""


def mapped(stage: MapStage, table: pa.Table) -> MappedRows:
    """The user's function on rows, without the columns that we added."""
    table = without_ours(table)
    if not stage.skips:
        return called(stage, table)
    found = narrowed(
        lambda begin, end: called(stage, table.slice(begin, end - begin)),
        table.num_rows,
        f"operator '{stage.operator}'",
    )
    if not found.failed:
        return found.done[0][2]
    parts = [part for _, _, part in found.done]
    rows = pa.concat_tables([stage.schema.empty_table(), *(part.rows for part in parts)])
    parents = [own_parents(part) + begin for begin, _, part in found.done]
    none = np.empty(0, dtype=np.int64)
    return MappedRows(
        rows, np.concatenate([none, *parents]), table.num_rows, failed=tuple(found.failed)
    )


def own_parents(part: MappedRows) -> NDArray[np.int64]:
    """The parent of each row, spread evenly where the function does not say (`Marks.passed`)."""
    if part.parents is not None:
        return part.parents
    made = part.rows.num_rows
    spread: NDArray[np.int64] = np.arange(made) * part.given // max(1, made)
    return spread


def called(stage: MapStage, table: pa.Table) -> MappedRows:
    """One call of the user's function, checked."""
    result = stage.function(table)
    parents = None
    if isinstance(result, Derived):
        result, parents = result.rows, result.positions(table.num_rows)
    if not isinstance(result, pa.Table):
        raise TypeError(
            f"the function returned {type(result).__name__}, expected a pyarrow.Table or tg.Derived"
        )
    rows = conform(result, stage.schema, f"operator '{stage.operator}'")
    return MappedRows(rows, parents, table.num_rows)


def mapped_by_origin(stage: MapStage, table: pa.Table) -> list[MappedRows]:
    """The function once for the rows of each origin: what comes out has the origin of these rows.

    The function may drop, repeat or reorder rows, so nothing else tells where its rows come from.
    """
    origin = table.column(ORIGIN).to_numpy()
    parts = []
    for number in np.unique(origin):
        mine = np.flatnonzero(origin == number)
        part = mapped(stage, table if len(mine) == len(origin) else table.take(pa.array(mine)))
        numbers = pa.array(np.full(part.rows.num_rows, number, dtype=np.int32))
        rows = part.rows.append_column(ORIGIN, numbers)
        parts.append(replace(part, rows=rows, chosen=mine))
    return parts


def failed_of(table: pa.Table, parts: list[MappedRows], marks: Marks | None) -> dict[str, pa.Table]:
    """The rows of a block that could not be processed, with the errors and our hidden columns."""
    places, errors = [], []
    for part in parts:
        for one in part.failed:
            places.append(one.place if part.chosen is None else int(part.chosen[one.place]))
            errors.append(one.error)
    if not places:
        return {}
    rows = table.take(pa.array(places, pa.int64()))
    failed = without_ours(rows).append_column(ERROR, pa.array(errors, pa.string()))
    if ORIGIN in rows.column_names:
        failed = failed.append_column(ORIGIN, rows.column(ORIGIN))
    if marks is not None:
        chosen = np.array(places, dtype=np.int64)
        traces = marks.inherited(chosen, table.num_rows)
        failed = failed.append_column(FIELD, traces.column(len(places)))
    return {"failed": failed}


def traces_of(parts: list[MappedRows], marks: Marks) -> Marks:
    """The traces on all that came out of a block."""
    passed = [
        (
            (marks if part.chosen is None else marks.within(part.chosen)).passed(
                part.given, part.rows.num_rows, part.parents
            ),
            part.rows.num_rows,
        )
        for part in parts
    ]
    return joined(passed)
