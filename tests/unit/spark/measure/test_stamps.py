"""Stamps that tasks note of every n-th row."""

import numpy as np
import pyarrow as pa
import pytest

from tidegate.spark.measure.stamps import ArrivalSample


@pytest.mark.parametrize("every", [1, 3, 10])
@pytest.mark.parametrize("rows", [2, 7, 40])
def test_one_row_in_so_many_is_noted_however_small_blocks_are(every: int, rows: int) -> None:
    """A task gets its rows in two blocks, in each of a hundred batches."""
    sample, noted = ArrivalSample("at", every), 0
    at = pa.array(np.arange(rows)).cast(pa.timestamp("us"))
    for batch_id in range(100):
        table = pa.table({"at": at})
        first = table.slice(0, rows // 2)
        noted += sample.of(first, batch_id).rows
        noted += sample.of(table.slice(rows // 2), batch_id + rows // 2).rows
    assert noted == pytest.approx(100 * rows / every, abs=rows)
