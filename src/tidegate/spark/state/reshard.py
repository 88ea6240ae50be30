"""The state of an operator with another number of shards, written aside.

A slot has only 48 bits of a key's hash beside its shard. With more shards, bits decide that it does
not have, so all keys are hashed again. The hashes must give the slots that the rows have now:
otherwise nothing is written that anybody would read.

Files are rewritten one after the other, with all that they have: rows that hide older ones, rows
that were dropped, and the batch in their names. So a key's newest row stays its newest, and what
falls due does so once. Files of one batch have no key in common, and are put together.
"""

import uuid
from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.spark.state.chains import Chains, ranges
from tidegate.spark.state.identity import by_slot
from tidegate.spark.state.layout import SLOT, slot_of
from tidegate.spark.state.new_file import write_file
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.version import StateFile, Version

MOST_ROWS = 1 << 21
"""Rows of a new file, unless a single piece of an old one has more. They are in memory."""

Hashes = Callable[[pa.Table], NDArray[np.int64]]
"""The hash of each key, as Spark computes it."""
Told = Callable[[int], None]
"""Told how many rows were rewritten, again and again."""


def resharded(
    version: Version,
    old: NodeCache,
    new: NodeCache,
    schema: pa.Schema,
    key: list[str],
    due: str | None,
    hashes: Hashes,
    told: Told = lambda rows: None,
) -> Version:
    """The same state in the files and the shards of another cache."""
    chains: list[list[int]] = [[] for _ in range(new.shards)]
    files: list[StateFile] = []
    numbers = range(len(version.files))
    for batch_id, group in groupby(numbers, lambda number: version.files[number].batch_id):
        for part in _parts(version, old, list(group), schema):
            rows, slots = _in_new_slots(part, key, version.shards, new.shards, hashes)
            name = f"{batch_id:010d}-{len(files):05d}-{uuid.uuid4().hex[:8]}.arrow"
            file, touched = write_file(new, name, rows, slots, schema, due)
            for shard in touched.tolist():
                chains[shard].append(len(files))
            files.append(file)
            told(rows.num_rows)
    return Version(
        new.shards,
        tuple(files),
        Chains.of(chains),
        version.event_times,
        version.handed_us,
        version.at_us,
    )


def rows_of(version: Version) -> int:
    """How many rows its files have, at most: some may be those of shards that were merged since."""
    return sum(piece.rows for file in version.files for piece in file.pieces)


def _parts(
    version: Version, cache: NodeCache, numbers: list[int], schema: pa.Schema
) -> Iterator[pa.Table]:
    """The rows of these files that are still in the chains of their shards, some files at a time.

    Oldest shards first: with a multiple of the shards, a new shard then has rows of few files.
    """
    parts: list[pa.Table] = []
    count = 0
    owners = version.chains.owners()
    for number in numbers:
        valid = np.zeros(version.shards, dtype=np.bool_)
        valid[owners[version.chains.numbers == number]] = True
        file = version.files[number]
        for index in range(len(file.pieces)):
            layer, _ = cache.layer(file, index, schema)
            here = valid[layer.shards]
            rows = ranges(layer.starts[:-1][here], layer.starts[1:][here])
            if not len(rows):
                continue
            if count and count + len(rows) > MOST_ROWS:
                yield pa.concat_tables(parts)
                parts, count = [], 0
            parts.append(layer.rows(rows))
            count += len(rows)
    if parts:
        yield pa.concat_tables(parts)


def _in_new_slots(
    rows: pa.Table, key: list[str], before: int, after: int, hashes: Hashes
) -> tuple[pa.Table, NDArray[np.uint64]]:
    """The rows, sorted by the slots that they have with the new number of shards."""
    found = hashes(rows.select(key))
    if not np.array_equal(slot_of(found, before), rows.column(SLOT).to_numpy()):
        raise TidegateError(
            "the keys have other hashes than when their state was written; nothing was changed; "
            "use the release of Spark that wrote the checkpoint"
        )
    slots = slot_of(found, after)
    order = by_slot(slots)
    place = rows.schema.get_field_index(SLOT)
    rows = rows.set_column(place, rows.schema.field(SLOT), pa.array(slots))
    return rows.take(pa.array(order)), slots[order]
