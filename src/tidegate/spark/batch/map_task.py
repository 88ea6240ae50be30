"""A map operator inside Spark's Python workers: the user's function on every block of rows."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.control.learning.sojourn import Stamps, merged
from tidegate.spark.batch.failure import told_of
from tidegate.spark.batch.worker import ORDER, ORIGIN, part_report, unpacked, without_ours
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.task import ShedStage, ShedTask, class_rows
from tidegate.spark.state.conform import conform


@dataclass(frozen=True, slots=True)
class MapStage:
    """The fixed part of a map operator."""

    operator: str
    function: Callable[[pa.Table], pa.Table]
    schema: pa.Schema
    arrivals: ArrivalSample | None = None
    offered: ShedStage | None = None
    """The source whose rows it counts by class; None when it is not the first to read one."""
    origins: bool = False
    """Whether its rows carry their origin in a hidden column, which those that leave it need."""


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
                result = mapped_by_origin(stage, table) if stage.origins else mapped(stage, table)
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


def mapped(stage: MapStage, table: pa.Table) -> pa.Table:
    """The user's function on rows, without the columns that we added."""
    result = stage.function(without_ours(table))
    if not isinstance(result, pa.Table):
        raise TypeError(f"the function returned {type(result).__name__}, expected a pyarrow.Table")
    return conform(result, stage.schema, f"operator '{stage.operator}'")


def mapped_by_origin(stage: MapStage, table: pa.Table) -> pa.Table:
    """The function once for the rows of each origin: what comes out has the origin of these rows.

    The function may drop, repeat or reorder rows, so nothing else tells where its rows come from.
    """
    origin = table.column(ORIGIN).to_numpy()
    parts = []
    for number in np.unique(origin):
        mine = origin == number
        result = mapped(stage, table if mine.all() else table.filter(pa.array(mine)))
        numbers = pa.array(np.full(result.num_rows, number, dtype=np.int32))
        parts.append(result.append_column(ORIGIN, numbers))
    return pa.concat_tables(parts)
