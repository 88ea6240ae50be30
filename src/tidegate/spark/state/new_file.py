"""Writes sorted rows of state as one new file, in pieces of whole shards."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.spark.state.layer import piece_ranges
from tidegate.spark.state.layout import DEAD, NEVER_US, Slots, shard_runs
from tidegate.spark.state.lookup import due_us
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.piece_bytes import PieceBytes
from tidegate.spark.state.version import Piece, StateFile


def write_file(
    cache: NodeCache, name: str, rows: pa.Table, slots: Slots, schema: pa.Schema, due: str | None
) -> tuple[StateFile, NDArray[np.int64]]:
    """Write rows that are sorted by these slots; also returns the shards that they are of.

    `due` is the column that says when a row is due, if one does.
    """
    shards, starts = shard_runs(slots)
    table = rows.combine_chunks()
    ranges = piece_ranges(shards, starts, cache.shards)
    batches = [
        pa.RecordBatch.from_arrays(
            [column.combine_chunks() for column in table.slice(start, end - start).columns],
            schema=schema,
        )
        for _, _, start, end in ranges
    ] or [pa.RecordBatch.from_pylist([], schema=schema)]
    size, written = cache.write(name, batches)
    pieces = tuple(
        _piece(first, last, batch, its, due)
        for (first, last, _, _), batch, its in zip(ranges, batches, written, strict=False)
    )
    return StateFile(name, size, pieces), shards


def _piece(
    first_shard: int, last_shard: int, batch: pa.RecordBatch, its: PieceBytes, due: str | None
) -> Piece:
    span: tuple[int | None, int | None] = (None, None)
    if due is not None:
        at_us = due_us(batch.column(due), batch.column(DEAD).to_numpy(zero_copy_only=False))
        live = at_us[at_us < NEVER_US]
        span = (int(live.min()), int(live.max())) if len(live) else (NEVER_US, NEVER_US)
    return Piece(
        first_shard, last_shard, batch.num_rows, *span, its.offset, its.length, its.checksum
    )
