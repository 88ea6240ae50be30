"""Arrival stamps counted inside the tasks, on their way to the driver.

The rows are counted as they pass through an Arrow stage that is there anyway, so measuring costs
no stage of its own. Counts travel by accumulator under the key (batch, partition): a task that is
tried again puts the same counts in the same place, and nothing counts twice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Accumulator, AccumulatorParam, SparkContext, TaskContext

from tidegate.control.learning.sojourn import Stamps, merged

ArrowStage: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What `DataFrame.mapInArrow` takes."""
_Parts: TypeAlias = dict[tuple[int, int], Stamps]

BATCH_ID = "streaming.sql.batchId"
"""The local property in which Spark tells a task its micro-batch."""


class _UnionOfParts(AccumulatorParam[_Parts]):
    def zero(self, value: _Parts) -> _Parts:
        return {}

    def addInPlace(self, value1: _Parts, value2: _Parts) -> _Parts:  # noqa: N802
        value1.update(value2)
        return value1


class StampCounter:
    """Counts the rows of one place in a pipeline by their time of arrival."""

    def __init__(self, context: SparkContext, arrival: str = "timestamp") -> None:
        """`arrival` names the timestamp column that says when a row arrived."""
        self._arrival = arrival
        self._parts: Accumulator[_Parts] = context.accumulator({}, _UnionOfParts())

    def counting(self, stage: ArrowStage) -> ArrowStage:
        """The same stage, with the rows that go into it counted."""
        parts, arrival = self._parts, self._arrival

        def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            seen: list[Stamps] = []

            def watched() -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    seen.append(Stamps.of(arrival_us(batch.column(arrival))))
                    yield batch

            yield from stage(watched())
            context = TaskContext.get()
            batch_id = context.getLocalProperty(BATCH_ID) if context is not None else None
            if context is not None and batch_id is not None and seen:
                parts.add({(int(batch_id), context.partitionId()): merged(seen)})

        return counted

    def take(self, batch_id: int) -> Stamps:
        """The counts of a batch that is over; earlier ones are forgotten."""
        # The accumulator's server thread adds whole entries to this same dict; taking single keys
        # out of it is safe beside that.
        parts = self._parts.value
        done = [key for key in list(parts) if key[0] <= batch_id]
        taken = [(key, parts.pop(key)) for key in done]
        return merged([stamps for key, stamps in taken if key[0] == batch_id])


def arrival_us(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A timestamp column as microseconds since the epoch; rows without a stamp are left out."""
    micros = pc.cast(column, pa.timestamp("us", tz=column.type.tz), safe=False)
    if micros.null_count:
        micros = micros.drop_null()
    return np.asarray(micros.cast(pa.int64()).to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class ArrivalSample:
    """How an operator that reads a source notes when its rows arrived (DRS IV-A)."""

    column: str
    every: int = 1
    """N_m: every so-manieth row is looked at."""

    def of(self, rows: pa.Table | pa.RecordBatch) -> Stamps:
        """The stamps of some rows."""
        column = rows.column(self.column)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return Stamps.of(arrival_us(whole)[:: self.every])
