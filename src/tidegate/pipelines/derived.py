"""What a map function may return to say which input row each of its rows was derived from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """The rows that a map function returns, with the input row that each was derived from.

    A function may return its rows alone. Then latencies through a function that drops, repeats or
    reorders rows are an estimate, because nothing tells which row became which.
    """

    rows: pa.Table
    parents: Any
    """Whole numbers: for each returned row the position of its input row. Or booleans: for each
    input row whether it was kept, as given to `pyarrow.Table.filter`."""

    def positions(self, given: int) -> NDArray[np.int64]:
        """For each returned row the position of its parent among `given` input rows."""
        parents = self.parents
        if isinstance(parents, pa.Array | pa.ChunkedArray):
            if parents.null_count and pa.types.is_boolean(parents.type):
                parents = parents.fill_null(False)
            if isinstance(parents, pa.ChunkedArray):
                parents = parents.combine_chunks()
            parents = parents.to_numpy(zero_copy_only=False)
        found = np.asarray(parents)
        if found.dtype == np.bool_:
            if len(found) != given:
                raise ValueError(
                    f"parents has {len(found)} booleans for {given} input rows; give one for each"
                )
            found = np.flatnonzero(found)
        if not len(found):
            found = found.astype(np.int64)
        if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer):
            raise TypeError(
                f"parents is of type {found.dtype}, expected positions of input rows, or booleans "
                "that say which input rows were kept"
            )
        if len(found) != self.rows.num_rows:
            raise ValueError(
                f"parents names {len(found)} input rows for {self.rows.num_rows} returned rows; "
                "name one for each"
            )
        if len(found) and not (found.min() >= 0 and found.max() < given):
            raise ValueError(
                f"parents has positions from {found.min()} to {found.max()}, but the function was "
                f"given {given} rows; count from 0"
            )
        return found.astype(np.int64)
