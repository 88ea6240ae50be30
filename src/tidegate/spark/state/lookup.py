"""Finds the newest state rows of keys in the chains of files of their shards."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.spark.state.chains import Shards
from tidegate.spark.state.identity import same_keys
from tidegate.spark.state.layer import Layer
from tidegate.spark.state.layout import (
    DEAD,
    EXPIRES,
    NEVER_US,
    Slots,
    shard_of_slot,
)
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.version import Piece, Version

Numbers = NDArray[np.int64]
NULL = np.iinfo(np.int64).min
"""Stands for null in a `within` column; as a value it is refused."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A mapped piece, and the shards whose chains still contain its file."""

    layer: Layer
    file: int
    piece: Piece
    valid: NDArray[np.bool_]
    """For every shard, whether its chain contains the file."""
    places: Numbers
    """Which of the layer's shards these are."""

    @property
    def shards(self) -> Shards:
        """The shards that have rows in the piece and still contain its file."""
        return self.layer.shards[self.places]

    @property
    def begins(self) -> Numbers:
        """The row at which each of them begins."""
        return self.layer.starts[self.places]

    @property
    def ends(self) -> Numbers:
        """The row behind the last one of each."""
        return self.layer.starts[self.places + 1]


@dataclass(slots=True)
class Reads:
    """Which shards were read from the node and which from durable files, in one micro-batch."""

    own: Shards = field(default_factory=lambda: np.empty(0, np.int64))
    durable: Shards = field(default_factory=lambda: np.empty(0, np.int64))
    durable_bytes: int = 0
    """Bytes of the fetched pieces; each piece counts once, however many shards it has."""
    due_rows: int = 0
    """State rows that were read because their time had come."""
    ordered_rows: int = 0
    """State rows that were sorted by their time, once for a piece and process."""


def open_chains(
    cache: NodeCache,
    version: Version,
    shards: Shards,
    reads: Reads,
    schema: pa.Schema,
) -> list[Reach]:
    """Map all pieces in the chains of these shards, newest first."""
    chains = version.chains
    if int(chains.lengths[shards].sum()) < len(chains.numbers):  # it has those of other tasks too
        mine = np.zeros(version.shards, dtype=np.bool_)
        mine[shards] = True
        chains = chains.of_shards(mine)
    used = chains.used(len(version.files))
    wanted = np.zeros((len(version.files), version.shards), dtype=np.bool_)
    wanted[chains.numbers, chains.owners()] = True
    own_shards, durable = np.zeros((2, version.shards), dtype=np.bool_)
    reaches: list[Reach] = []
    for number in np.flatnonzero(used)[::-1].tolist():
        file, valid = version.files[number], wanted[number]
        for index, piece in enumerate(file.pieces):
            alone = len(file.pieces) == 1
            if not (alone or valid[piece.first_shard : piece.last_shard + 1].any()):
                continue
            layer, own = cache.layer(file, index, schema)
            if not own:
                reads.durable_bytes += layer.table.nbytes
            reach = Reach(layer, number, piece, valid, np.flatnonzero(valid[layer.shards]))
            (own_shards if own else durable)[reach.shards] = True
            reaches.append(reach)
    reads.own = np.flatnonzero(own_shards & ~durable)
    reads.durable = np.flatnonzero(durable)
    return reaches


def candidates(layer: Layer, slots: Slots) -> tuple[Numbers, Numbers]:
    """Rows of the layer with one of these slots, as (position in `slots`, row in the layer)."""
    low = np.searchsorted(layer.slots, slots)
    if layer.unique:
        inside = low < len(layer.slots)
        hit = np.flatnonzero(inside)
        hit = hit[layer.slots[low[hit]] == slots[hit]]
        return hit, low[hit]
    counts = np.searchsorted(layer.slots, slots, side="right") - low
    position = np.repeat(np.arange(len(slots)), counts)
    offset = np.arange(len(position)) - np.repeat(np.cumsum(counts) - counts, counts)
    return position, low[position] + offset


def find(
    reaches: list[Reach],
    slots: Slots,
    keys: pa.Table,
    within: str | None,
    at_us: int,
    schema: pa.Schema,
) -> tuple[pa.Table, Numbers]:
    """The live state rows of these distinct keys, and the number of each row's key.

    The keys are given in the order of their slots.
    """
    if within is None:
        parts = _newest_of_each_key(reaches, slots, keys)
    else:
        parts = _newest_of_each_within(reaches, slots, keys, within)
    if not parts:
        return schema.empty_table(), np.empty(0, dtype=np.int64)
    table = pa.concat_tables([rows for rows, _ in parts])
    number = np.concatenate([number for _, number in parts])
    live = alive(table, at_us)
    if not live.all():
        table, number = table.filter(pa.array(live)), number[live]
    return table, number


def _newest_of_each_key(
    reaches: list[Reach], slots: Slots, keys: pa.Table
) -> list[tuple[pa.Table, Numbers]]:
    """Search from the newest file to the oldest; a key that was found is not searched again.

    Keys are in the order of their slots, so those of a piece's shards lie together.
    """
    shard = shard_of_slot(slots)
    starts = np.searchsorted(shard, [reach.piece.first_shard for reach in reaches])
    ends = np.searchsorted(shard, [reach.piece.last_shard for reach in reaches], side="right")
    missing = np.ones(len(slots), dtype=np.bool_)
    parts: list[tuple[pa.Table, Numbers]] = []
    for reach, start, end in zip(reaches, starts.tolist(), ends.tolist(), strict=True):
        asked = start + np.flatnonzero(missing[start:end] & reach.valid[shard[start:end]])
        if not len(asked):
            continue
        position, row = candidates(reach.layer, slots[asked])
        if not len(position):
            continue
        number = asked[position]
        rows = _rows(reach, row)
        same = same_keys(rows.select(keys.column_names), keys.take(pa.array(number)))
        if not same.all():
            rows, number = rows.filter(pa.array(same)), number[same]
        parts.append((rows, number))
        missing[number] = False
    return parts


def _newest_of_each_within(
    reaches: list[Reach], slots: Slots, keys: pa.Table, within: str
) -> list[tuple[pa.Table, Numbers]]:
    """Search all rows of a key, and keep the newest for each value of `within`.

    Slots and `within` alone decide which rows these are; only those are copied, and their keys
    compared. If one turns out to be another key with the same slot, it may have hidden the right
    row. Then all keys are compared first, and the newest rows are chosen again.
    """
    shard = shard_of_slot(slots)
    everyone = np.arange(len(slots))
    found: list[tuple[int, Numbers, Numbers, Numbers]] = []
    for place, reach in enumerate(reaches):
        asked = everyone[reach.valid[shard]]
        position, row = candidates(reach.layer, slots[asked])
        if len(position):
            sub = _integers(reach.layer.table.column(within))
            found.append((place, asked[position], row, sub[row]))
    if not found:
        return []
    parts = _survivors(reaches, found)
    if all(
        same_keys(rows.select(keys.column_names), keys.take(pa.array(number))).all()
        for rows, number in parts
    ):
        return parts
    checked = []
    for place, number, row, sub in found:
        asked_keys = _rows(reaches[place], row).select(keys.column_names)
        same = same_keys(asked_keys, keys.take(pa.array(number)))
        checked.append((place, number[same], row[same], sub[same]))
    return _survivors(reaches, checked)


def _survivors(
    reaches: list[Reach], found: list[tuple[int, Numbers, Numbers, Numbers]]
) -> list[tuple[pa.Table, Numbers]]:
    """The rows that are not hidden by a newer row of the same (key, within)."""
    number = np.concatenate([part[1] for part in found])
    newest = newest_first(number, np.concatenate([part[3] for part in found]))
    chosen = np.zeros(len(number), dtype=np.bool_)
    chosen[newest] = True
    parts = []
    start = 0
    for place, numbers, row, _ in found:
        mine = chosen[start : start + len(numbers)]
        start += len(numbers)
        parts.append((_rows(reaches[place], row[mine]), numbers[mine]))
    return parts


def _rows(reach: Reach, row: Numbers) -> pa.Table:
    return reach.layer.rows(row)


def newest_first(number: Numbers, sub: Numbers) -> Numbers:
    """The first row of each (key, within), sorted by both; the input has the newest rows first."""
    if not len(number):
        return np.empty(0, dtype=np.int64)
    low = int(sub.min())
    width = int(sub.max()) - low + 1
    if (
        width * (int(number.max()) + 1) < 2**63
    ):  # one sort instead of two, and it need not be stable
        code = number * width + (sub - low)
        order = np.argsort(code)
        starts = _where_it_changes(code[order])
        return np.minimum.reduceat(order, np.flatnonzero(starts))
    order = np.lexsort((sub, number))  # stable: the newest of equal rows stays in front
    return order[_where_it_changes(number[order]) | _where_it_changes(sub[order])]


def _where_it_changes(numbers: Numbers) -> NDArray[np.bool_]:
    """Whether each number differs from the one before it; the first one does."""
    starts = np.ones(len(numbers), dtype=np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=starts[1:])
    return starts


def integers(table: pa.Table, name: str) -> Numbers:
    """An integer or timestamp column as 64-bit integers; null is `NULL`."""
    return _integers(table.column(name).combine_chunks())


def _integers(column: pa.Array) -> Numbers:
    """Exact whole numbers: with a null among them, Arrow would return floats."""
    whole = _whole(column)
    numbers: Numbers = (whole.fill_null(NULL) if whole.null_count else whole).to_numpy()
    return numbers


def _whole(column: pa.Array) -> pa.Array:
    """Timestamps as microseconds, integers as they are."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
    return column.cast(pa.int64())


def alive(table: pa.Table, at_us: int) -> NDArray[np.bool_]:
    """Rows that are neither dropped nor past their time-to-live."""
    dead = table.column(DEAD).to_numpy()
    live: NDArray[np.bool_] = ~dead & (table.column(EXPIRES).to_numpy() > at_us)
    return live


def due_us(column: pa.Array, dead: NDArray[np.bool_]) -> Numbers:
    """When each row is due; rows without a due time, and dropped rows, never are."""
    due: Numbers = _whole(column).fill_null(NEVER_US).to_numpy()
    return np.where(dead, NEVER_US, due)
