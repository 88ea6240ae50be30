"""How many rows of a task would be left if they were combined before they are sent to it.

A task that is given rows has all rows of its keys, each with the number that it got in its source.
So it can tell for each key how many of the reading tasks sent it rows. It looks at a part of the
keys, chosen by their hashes: that costs a few milliseconds at most.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.pipelines.functions.times import microseconds_of
from tidegate.pipelines.keyed import ROWS, Combiner
from tidegate.spark.batch.worker import HASH, ORDER

FEWEST_ROWS = 1 << 14
"""Of fewer rows nothing is told: combining would cost more than it saves."""
_LOOKED_AT = 1 << 15
"""About so many rows are looked at."""
_PARTITION_BITS = 33
"""Spark numbers the rows of a partition from a multiple of 2^33 on."""


def rows_left(rows: pa.Table | None, combiner: Combiner | None) -> int | None:
    """About how many combined rows these rows would be, as they come from the shuffle.

    Of combined rows it is how many they are; None where rows cannot be combined.
    """
    if combiner is None:
        return None
    if rows is None:
        return 0
    if rows.num_rows < FEWEST_ROWS or ROWS in rows.column_names:
        return int(rows.num_rows)
    hashes = rows.column(HASH).to_numpy().view(np.uint64)
    one_in = 1 << max(0, (rows.num_rows // _LOOKED_AT).bit_length() - 1)
    # Bits that choose neither the shard nor the place in a state file.
    chosen = np.flatnonzero(_mixed(hashes) & np.uint64(one_in - 1) == 0)
    code = hashes[chosen]
    part = rows.column(ORDER).to_numpy()[chosen] >> _PARTITION_BITS
    code = _mixed(code ^ _mixed(part.view(np.uint64)))
    if combiner.pane_us is not None and combiner.event_time is not None:
        time_us, _ = microseconds_of(rows.column(combiner.event_time).take(pa.array(chosen)))
        pane = np.ascontiguousarray(time_us // combiner.pane_us)
        code = _mixed(code ^ pane.view(np.uint64))
    left = len(np.unique(code)) * one_in * combiner.most
    return int(min(left, rows.num_rows))


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finisher: every bit of the result depends on every bit of the word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
