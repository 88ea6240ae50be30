"""Pieces of state files in memory: sorted by slot, mapped and not copied.

A file holds one record batch per piece. A piece covers whole shards, so that a shard that moves to
another node is fetched without the rest of the file. A process keeps its mapped pieces, and all
tasks of the node share them through the page cache (Elasticutor 3.2: state sharing inside a node).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.spark.state.evolution import read_through
from tidegate.spark.state.layout import SLOT, Slots, shard_runs

PIECE_ROWS = 1 << 16
"""A piece ends at the first shard boundary after this many rows."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One piece of a state file, mapped where it could be."""

    table: pa.RecordBatch
    slots: Slots
    shards: NDArray[np.int64]
    """The shards that have rows in it."""
    starts: NDArray[np.int64]
    """The row at which each of them begins, and the end."""
    unique: bool
    """Whether all slots differ: a lookup then needs one search instead of two."""
    mapped_bytes: int = 0
    """Bytes of the table that are mapped, and below those that are on this process's heap."""
    heap_bytes: int = 0
    through: tuple[pa.Schema, ...] = ()
    """The later layouts through which its rows are read; empty where it was written in the newest.
    The table itself stays as it was written, so that it stays mapped."""
    orders: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Orders of rows by a column (`due.DueOrder`), made when first asked for: 12 bytes a row."""

    def rows(self, numbers: NDArray[np.int64]) -> pa.Table:
        """These rows of the piece, in the newest layout."""
        rows = pa.Table.from_batches([self.table.take(pa.array(numbers))])
        return read_through(rows, self.through) if self.through else rows


def layer_of(table: pa.RecordBatch, is_mapped: bool) -> Layer:
    """A piece with the columns that every lookup needs."""
    slots = table.column(SLOT).to_numpy()
    unique = bool(np.all(slots[1:] != slots[:-1]))
    shards, starts = shard_runs(slots)
    size = table.nbytes
    on_heap = shards.nbytes + starts.nbytes + (0 if is_mapped else size)
    return Layer(table, slots, shards, starts, unique, size if is_mapped else 0, on_heap)


def piece_ranges(
    found: NDArray[np.int64], starts: NDArray[np.int64], shards: int
) -> list[tuple[int, int, int, int]]:
    """Cut rows into pieces at shard boundaries: (first shard, last shard, first row, end row).

    `found` are the shards that have rows, which begin at `starts`. All pieces together cover all
    `shards`, unless there is no row.
    """
    pieces: list[tuple[int, int, int, int]] = []
    ends = starts[1:]
    first = run = 0
    while run < len(found):
        start = int(starts[run])
        until = int(np.searchsorted(ends, start + PIECE_ROWS))
        is_last = until >= len(found) - 1
        last, end = (
            (shards - 1, int(ends[-1])) if is_last else (int(found[until]), int(ends[until]))
        )
        pieces.append((first, last, start, end))
        first, run = last + 1, until + 1
    return pieces
