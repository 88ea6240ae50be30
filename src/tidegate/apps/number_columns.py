"""Columns of whole numbers as one matrix, for loops that are compiled."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def matrix_of(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Columns side by side, a row for each row."""
    found = np.empty((table.num_rows, len(names)), dtype=np.int64)
    for place, name in enumerate(names):
        found[:, place] = table[name].to_numpy()
    return found
