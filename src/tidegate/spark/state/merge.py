"""Keeps chains short: when it is a shard's turn, its newest files are merged into the new one.

Turns are staggered over the shards, so that every micro-batch does the same small part of the work.
A merge takes the newest files of a chain as long as the next older one is not much larger than all
that were taken. Files therefore grow geometrically, a row is rewritten a logarithmic number of
times, and a chain holds at most `TURN` small files and a handful of large ones.

Where there are many shards, a batch has rows for few of them, and a file would stay as long as one
of its shards is not touched again. So a file that most of its shards have left is emptied: the
others move to the new file. That happens once to a file, and copies a small part of it.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.spark.state.chains import Shards, ranges
from tidegate.spark.state.identity import distinct
from tidegate.spark.state.layout import SLOT, shard_of_slot
from tidegate.spark.state.lookup import Reach, alive, integers, newest_first
from tidegate.spark.state.version import Version

_NOT = np.iinfo(np.int64).max
"""In the place of a number of files: the shard is not merged."""

TURN = 8
"""A shard may be merged once in this many micro-batches."""
_GROWTH = 2.0
"""The next older file is merged too if it has at most this many times the rows taken so far."""
_LEFTOVER = 4
"""A file is emptied when at most one in so many of its shards, and of its rows, is left."""


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """The shards to merge in this batch."""

    shards: Shards
    kept: Shards
    """For each of them, how many of the oldest files of its chain stay as they are."""

    def __len__(self) -> int:
        return len(self.shards)


def turns(
    version: Version,
    shards: Shards,
    batch: int,
    delta_rows: NDArray[np.int64],
    reaches: list[Reach],
) -> Turns:
    """Which of these shards to merge in this batch, and how far back.

    `delta_rows` has the rows of every shard that the batch adds.
    """
    chains, own = version.chains, shards
    shards = shards[((batch + shards) % TURN == 0) & (chains.lengths[shards] >= 2)]
    rows = _rows_per_file(reaches, version, shards)
    begins = (chains.ends - chains.lengths)[shards]
    kept = chains.lengths[shards].astype(np.int64)
    taken = delta_rows[shards]
    # In each round, the next older file of every chain that is not finished.
    going = np.arange(len(shards))
    newest = True
    while len(going):
        more = rows[chains.numbers[begins[going] + kept[going] - 1], going]
        takes = newest | (more <= _GROWTH * np.maximum(taken[going], 1))
        going, more, newest = going[takes], more[takes], False
        kept[going] -= 1
        taken[going] += more
        going = going[kept[going] > 0]
    back = np.full(version.shards, _NOT)
    back[own] = _back_to_leftovers(version, batch, reaches)[own]
    back[shards] = np.minimum(back[shards], kept)
    merges = np.flatnonzero(back < _NOT)
    return Turns(merges, back[merges])


def _back_to_leftovers(version: Version, batch: int, reaches: list[Reach]) -> NDArray[np.int64]:
    """For each shard that is to leave a file, how many older files stay in its chain; else `_NOT`.

    Shards are counted over all tasks, so that a change of routes, after which each task has few
    shards of every file, does not empty those that most shards still need. Rows are counted over
    the task's own shards: it opens no others.
    """
    back = np.full(version.shards, _NOT)
    leftover = np.zeros(len(version.files), dtype=np.bool_)
    holders = version.holders_of_files()
    for reach in reaches:
        file, layer = version.files[reach.file], reach.layer
        if len(file.pieces) > 1 or file.batch_id > batch - TURN:
            continue  # a large file, or one that turns have not come to yet
        few = holders[reach.file] * _LEFTOVER <= len(layer.shards)
        left = int((reach.ends - reach.begins).sum())
        leftover[reach.file] = few and left * _LEFTOVER <= len(layer.slots)
    if leftover.any():
        chains = version.chains
        found, ends = np.flatnonzero(leftover[chains.numbers]), chains.ends
        owners = np.searchsorted(ends, found, side="right")
        place = found - (ends - chains.lengths)[owners]
        np.minimum.at(back, owners, place)
    return back


def _rows_per_file(reaches: list[Reach], version: Version, shards: Shards) -> NDArray[np.int64]:
    """The rows that each file has of each of these shards, if it is still in its chain."""
    column = np.full(version.shards, -1, dtype=np.int64)
    column[shards] = np.arange(len(shards))
    rows = np.zeros((len(version.files), len(shards)), dtype=np.int64)
    for reach in reaches:
        place = column[reach.shards]
        asked = place >= 0
        rows[reach.file, place[asked]] += (reach.ends - reach.begins)[asked]
    return rows


def merged(
    reaches: list[Reach],
    version: Version,
    delta: pa.Table,
    turns: Turns,
    key: list[str],
    within: str | None,
    at_us: int,
) -> pa.Table:
    """The newest rows of these shards from the merged files and the delta, not yet sorted.

    Dropped and expired rows are left out if no older file remains whose rows they would hide.
    """
    first_taken = np.full(version.shards, len(version.files), dtype=np.int64)
    bottom = np.zeros(version.shards, dtype=np.bool_)
    chains = version.chains
    begins = (chains.ends - chains.lengths)[turns.shards]
    first_taken[turns.shards] = chains.numbers[begins + turns.kept]
    bottom[turns.shards] = turns.kept == 0
    parts = [delta]
    for reach in reaches:
        take = reach.file >= first_taken[reach.shards]
        if take.any():
            parts.append(reach.layer.rows(ranges(reach.begins[take], reach.ends[take])))
    table = pa.concat_tables(parts)
    slots = table.column(SLOT).to_numpy()
    number, first = distinct(slots, table.select(key))
    newest = first if within is None else newest_first(number, integers(table, within))
    table = table.take(pa.array(newest))
    at_bottom = bottom[shard_of_slot(table.column(SLOT).to_numpy())]
    return table.filter(pa.array(~at_bottom | alive(table, at_us)))
