"""Keeps chains short: when it is a shard's turn, its newest files are merged into the new one.

Turns are staggered over the shards, so that every micro-batch does the same small part of the work.
A merge takes the newest files of a chain as long as the next older one is not much larger than all
that were taken. Files therefore grow geometrically, a row is rewritten a logarithmic number of
times, and a chain holds at most `TURN` small files and a handful of large ones.
"""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.spark.state.identity import distinct
from tidegate.spark.state.layout import SLOT, shard_of_slot
from tidegate.spark.state.lookup import Reach, alive, integers, newest_first
from tidegate.spark.state.version import Version

TURN = 8
"""A shard may be merged once in this many micro-batches."""
_GROWTH = 2.0
"""The next older file is merged too if it has at most this many times the rows taken so far."""


def rows_per_file(reaches: list[Reach], version: Version) -> NDArray[np.int64]:
    """The rows of each (file, shard) whose file is still in the shard's chain."""
    rows = np.zeros((len(version.files), version.shards), dtype=np.int64)
    for reach in reaches:
        rows[reach.file] += np.where(reach.valid, np.diff(reach.layer.bounds), 0)
    return rows


def files_to_keep(
    version: Version,
    shards: Collection[int],
    batch: int,
    delta_rows: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> dict[int, int]:
    """For each shard to merge in this batch, how many of its oldest files stay as they are."""
    kept: dict[int, int] = {}
    for shard in shards:
        chain = version.chains[shard]
        if (batch + shard) % TURN or len(chain) < 2:
            continue
        taken = int(delta_rows[shard])
        keep = len(chain)
        newest = True
        while keep and (newest or rows[chain[keep - 1], shard] <= _GROWTH * max(taken, 1)):
            keep -= 1
            taken += int(rows[chain[keep], shard])
            newest = False
        if keep < len(chain):
            kept[shard] = keep
    return kept


def merged(
    reaches: list[Reach],
    version: Version,
    delta: pa.Table,
    kept: dict[int, int],
    key: list[str],
    within: str | None,
    at_us: int,
) -> pa.Table:
    """The newest rows of these shards from the merged files and the delta, not yet sorted.

    Dropped and expired rows are left out if no older file remains whose rows they would hide.
    """
    first_taken = np.full(version.shards, len(version.files), dtype=np.int64)
    bottom = np.zeros(version.shards, dtype=np.bool_)
    for shard, keep in kept.items():
        first_taken[shard] = version.chains[shard][keep]
        bottom[shard] = keep == 0
    parts = [delta]
    for reach in reaches:
        take = reach.valid & (reach.file >= first_taken)
        starts, ends = reach.layer.bounds[:-1][take], reach.layer.bounds[1:][take]
        rows = ranges(starts, ends)
        if len(rows):
            parts.append(reach.layer.rows(rows))
    table = pa.concat_tables(parts)
    slots = table.column(SLOT).to_numpy()
    number, first = distinct(slots, table.select(key))
    newest = first if within is None else newest_first(number, integers(table, within))
    table = table.take(pa.array(newest))
    at_bottom = bottom[shard_of_slot(table.column(SLOT).to_numpy())]
    return table.filter(pa.array(~at_bottom | alive(table, at_us)))


def ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers in all ranges [start, end)."""
    counts = ends - starts
    total = int(counts.sum())
    offsets = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    rows: NDArray[np.int64] = np.repeat(starts, counts) + offsets
    return rows
