"""Read a committed version from outside: the state of an operator as one Arrow table."""

import tempfile

import numpy as np
import pyarrow as pa

from tidegate.spark.state.files import Durable
from tidegate.spark.state.identity import distinct
from tidegate.spark.state.layer import NodeCache
from tidegate.spark.state.layout import SLOT, SYSTEM
from tidegate.spark.state.lookup import Reads, alive, integers, newest_first, open_chains
from tidegate.spark.state.merge import ranges
from tidegate.spark.state.version import Version


def read_version(
    folder: Durable,
    version: Version,
    key: list[str],
    within: str | None,
    at_us: int,
    schema: pa.Schema,
) -> pa.Table:
    """All live rows of a version, without our own columns."""
    if not version.files:
        return schema.empty_table()
    with tempfile.TemporaryDirectory(prefix="tidegate-read-") as scratch:
        cache = NodeCache(folder.path("") if folder.local else scratch, folder, version.shards)
        parts = []
        for reach in open_chains(cache, version, range(version.shards), Reads()):
            bounds = reach.layer.bounds
            rows = ranges(bounds[:-1][reach.valid], bounds[1:][reach.valid])
            parts.append(pa.Table.from_batches([reach.layer.table.take(pa.array(rows))]))
    table = pa.concat_tables(parts)
    number, _ = distinct(table.column(SLOT).to_numpy(), table.select(key))
    sub = np.zeros(len(number), dtype=np.int64) if within is None else integers(table, within)
    table = table.take(pa.array(newest_first(number, sub)))
    return table.filter(pa.array(alive(table, at_us))).drop_columns(list(SYSTEM))
