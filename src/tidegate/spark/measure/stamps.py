"""When rows arrived, noted inside the tasks that see them anyway (DRS IV-A)."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.control.learning.sojourn import Stamps


def arrival_us(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A timestamp column as microseconds since the epoch; nulls are left out."""
    micros = pc.cast(column, pa.timestamp("us", tz=column.type.tz), safe=False)
    if micros.null_count:
        micros = micros.drop_null()
    return np.asarray(micros.cast(pa.int64()).to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class ArrivalSample:
    """How an operator that reads a source notes when its rows arrived."""

    column: str
    every: int = 1
    """N_m: one row in so many is noted."""

    def of(self, rows: pa.Table | pa.RecordBatch, place: int = 0) -> Stamps:
        """The stamps of some rows, of which the first has this place in its task.

        Places go on from block to block, and begin with the number of the batch. So one row in
        `every` is noted on average, however small blocks and batches are.
        """
        column = rows.column(self.column)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return Stamps.of(arrival_us(whole)[-place % self.every :: self.every])
