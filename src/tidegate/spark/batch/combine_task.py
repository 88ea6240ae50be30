"""Combines rows in the tasks that read them, before they are sent to the tasks of their keys.

A key with half of all rows is then one row of each reading task, so no key makes its own task slow,
and little has to be shuffled. The plan of a batch says whether it is done: a replay does the same.
What a task notes of the rows themselves (when they arrived, of which class they are) is noted here,
because behind it there are only combined rows.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tidegate.control.learning.sojourn import Stamps, merged
from tidegate.pipelines.keyed import Combiner
from tidegate.spark.batch.ahead import AHEAD_US
from tidegate.spark.batch.failure import told_of
from tidegate.spark.batch.report import combining
from tidegate.spark.batch.worker import ReceivedBlocks, part_report, unpacked
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.shedding.task import ShedStage, ShedTask, class_rows

MOST_ROWS = 1 << 20
MOST_BYTES = 1 << 26
"""So much is held until it is combined at once."""


@dataclass(frozen=True, slots=True)
class CombineStage:
    """The fixed part of what is combined in front of one operator."""

    operator: str
    combiner: Combiner
    rows: pa.Schema
    """The columns that the combiner needs."""
    arrivals: ArrivalSample | None = None
    offered: ShedStage | None = None
    """The source whose rows are counted by class here; None: no operator behind has to."""
    every: int = 1
    """N_m: one input in so many is noted."""


@dataclass(frozen=True, slots=True)
class CombineTask:
    """What combines rows in one micro-batch: callable for Spark's mapInArrow."""

    stage: bytes
    batch_id: int
    at_us: int
    accumulator: Any
    shed: ShedTask | None = None
    """Set when Spark drew for the source: the shed rows are counted and dropped here."""

    def __call__(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Combine the rows of one partition."""
        stage: CombineStage = unpacked(self.stage)
        started_s = time.time()
        rows_in = rows_out = 0
        busy_s = 0.0
        seen: list[Stamps] = []
        by_class: list[tuple[int, ...]] = []
        shedder = None if self.shed is None else self.shed.shedder()
        held: list[pa.Table] = []
        received = ReceivedBlocks(blocks)
        for block in received:
            table = pa.Table.from_batches([block]) if shedder is None else shedder.kept(block)
            if not table.num_rows:
                continue
            if stage.arrivals is not None:
                seen.append(stage.arrivals.of(table, self.batch_id + rows_in))
            if shedder is None and stage.offered is not None:
                by_class.append(class_rows(table, stage.offered))
            rows_in += table.num_rows
            held.append(table.select(stage.rows.names))
            if _much(held):
                before = time.perf_counter()
                found = self._combined(stage, held)
                busy_s += time.perf_counter() - before
                rows_out += found.num_rows
                yield from found.to_batches()
                held = []
        if held:
            before = time.perf_counter()
            found = self._combined(stage, held)
            busy_s += time.perf_counter() - before
            rows_out += found.num_rows
            yield from found.to_batches()
        part = part_report(
            self.batch_id, combining(stage.operator), rows_in, rows_out, busy_s, started_s
        )
        if self.shed is not None and shedder is not None:
            self.shed.tell(shedder, started_s, part.task, part.part)
        told = replace(
            part,
            function_s=busy_s,
            stamps=merged(seen) if seen else None,
            sampled=stage.every,
            class_rows=tuple(sum(one) for one in zip(*by_class, strict=True)),
            bytes_in=received.bytes,
        )
        self.accumulator.add([told])

    def _combined(self, stage: CombineStage, held: list[pa.Table]) -> pa.Table:
        rows = held[0] if len(held) == 1 else pa.concat_tables(held)
        if rows.schema.types != stage.rows.types:
            rows = rows.cast(stage.rows)
        with told_of(stage.operator):
            return stage.combiner.combine(rows, self.at_us + AHEAD_US)


def _much(held: list[pa.Table]) -> bool:
    rows = sum(int(table.num_rows) for table in held)
    return rows >= MOST_ROWS or sum(int(table.nbytes) for table in held) >= MOST_BYTES
