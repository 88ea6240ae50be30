"""The layout of state rows in a file: sorted by slot, so that a lookup is a binary search.

A *slot* is an unsigned number for each key: the shard in the upper 16 bits, then the upper 48 bits
of the key's hash, which do not choose the shard. The rows of a shard are therefore contiguous, and
so are the rows of a key. Two keys may share a slot, so all code that uses slots compares keys too.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.pipelines.keyed import BoundKeyed

SLOT = "__slot"
DEAD = "__dead"
"""Marks a tombstone: the row of this key was dropped."""
EXPIRES = "__expires"
"""Microseconds since the epoch after which the row counts as absent (time-to-live)."""
SYSTEM = (SLOT, DEAD, EXPIRES)
NEVER_US = np.iinfo(np.int64).max
_SHARD_SHIFT = np.uint64(48)
_HASH_SHIFT = np.uint64(16)

Slots = NDArray[np.uint64]


def shard_of(hashes: NDArray[np.int64], shards: int) -> NDArray[np.int64]:
    """The shard of each hash: Spark's `pmod(hash, shards)`."""
    if shards & (shards - 1) == 0:  # the lowest bits, of negative numbers as well: no division
        return hashes & (shards - 1)
    return hashes % shards


def slot_of(hashes: NDArray[np.int64], shards: int) -> Slots:
    """The slot of each hash."""
    shard = shard_of(hashes, shards).astype(np.uint64)
    return (shard << _SHARD_SHIFT) | (hashes.view(np.uint64) >> _HASH_SHIFT)


def shard_of_slot(slots: Slots) -> NDArray[np.int64]:
    """The shard that a slot lies in."""
    return (slots >> _SHARD_SHIFT).astype(np.int64)


def shard_runs(slots: Slots) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The shards that a sorted column of slots has rows of, and where the rows of each begin.

    The second has one more entry, for the end. A file has rows of few shards where there are many.
    """
    shard = shard_of_slot(slots)
    begins = np.ones(len(slots), dtype=np.bool_)
    np.not_equal(shard[1:], shard[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    return shard[starts], np.append(starts, len(slots))


def file_schema(key: pa.Schema, bound: BoundKeyed) -> pa.Schema:
    """The columns of a state file: Tidegate's own, the key's, the state's."""
    return with_system(pa.schema([*key, *bound.state]))


def with_system(schema: pa.Schema) -> pa.Schema:
    """The columns of a state file whose key and state have these columns."""
    ours = [
        pa.field(SLOT, pa.uint64(), nullable=False),
        pa.field(DEAD, pa.bool_(), nullable=False),
        pa.field(EXPIRES, pa.int64(), nullable=False),
    ]
    return pa.schema([*ours, *(column for column in schema if column.name not in SYSTEM)])
