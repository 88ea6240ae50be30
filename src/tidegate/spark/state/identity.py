"""Finds rows with the same key: by slot first, and by the key itself where slots collide."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.spark.state.layout import Slots

Numbers = NDArray[np.int64]


def same_keys(left: pa.Table, right: pa.Table) -> NDArray[np.bool_]:
    """Row by row, whether the keys are equal; null equals null."""
    same = np.ones(left.num_rows, dtype=np.bool_)
    for name in left.column_names:
        a, b = left.column(name), right.column(name)
        equal = pc.equal(a, b)
        if equal.null_count:
            both_null = pc.and_(pc.is_null(a), pc.is_null(b))
            equal = pc.or_(pc.fill_null(equal, False), both_null)
        same &= equal.combine_chunks().to_numpy(zero_copy_only=False)
    return same


def by_slot(slots: Slots) -> Numbers:
    """The stable order of the slots.

    Sorting numbers is several times as fast as an argsort, so each slot's position is packed into
    its low bits. Slots that differ only in those bits are rare; then an argsort is used.
    """
    low = np.uint64((1 << len(slots).bit_length()) - 1)
    packed = (slots & ~low) | np.arange(len(slots), dtype=np.uint64)
    packed.sort()
    order: Numbers = (packed & low).view(np.int64)
    ordered = slots[order]
    if np.any(ordered[1:] < ordered[:-1]):
        return np.argsort(slots, kind="stable")
    return order


def distinct(slots: Slots, keys: pa.Table) -> tuple[Numbers, Numbers]:
    """Number the distinct keys in the order of their slots.

    Returns the number of each row's key, and for each number the first row with that key.
    """
    count = len(slots)
    if count == 0:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty
    order = by_slot(slots)
    ordered = slots[order]
    starts = np.empty(count, dtype=np.bool_)
    starts[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    number = np.empty(count, dtype=np.int64)
    number[order] = np.cumsum(starts) - 1
    first = order[starts]
    if len(first) == count:
        return number, first
    same = same_keys(keys, keys.take(pa.array(first[number])))
    if same.all():
        return number, first
    return _split_collisions(slots, keys, number, same)


def _split_collisions(
    slots: Slots, keys: pa.Table, number: Numbers, same: NDArray[np.bool_]
) -> tuple[Numbers, Numbers]:
    """The rare case that two keys share a slot: compare the keys one by one in those slots."""
    collided = np.isin(number, np.unique(number[~same]))
    part = np.zeros(len(slots), dtype=np.int64)
    seen: dict[int, dict[tuple[object, ...], int]] = {}
    where = np.flatnonzero(collided)
    columns = [keys.column(name).take(pa.array(where)).to_pylist() for name in keys.column_names]
    for position, key in zip(where, zip(*columns, strict=True), strict=True):
        ranks = seen.setdefault(int(slots[position]), {})
        part[position] = ranks.setdefault(key, len(ranks))
    order = np.lexsort((part, slots))
    starts = np.ones(len(slots), dtype=np.bool_)
    starts[1:] = (slots[order][1:] != slots[order][:-1]) | (part[order][1:] != part[order][:-1])
    exact = np.empty(len(slots), dtype=np.int64)
    exact[order] = np.cumsum(starts) - 1
    return exact, order[starts]
