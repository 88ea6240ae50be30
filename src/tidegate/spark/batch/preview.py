"""Previews: the rows of a micro-batch are counted by shard before its route is fixed.

The rows up to the operator are computed once and kept, so that the batch does not compute them
again. The plan, with the route that suits them, is written after that and before any other work. So
a replay reads the route, and does not count again (`control/shards/preview.py` says when it pays).
"""

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from tidegate.pipelines.graph import Channel, Keyed, Map, Node, Segment, Source

MOST_ROWS = 1 << 16
"""About so many rows of a batch are counted; of more, every n-th."""
_PARTITION = 1 << 33
"""Spark numbers the rows of each partition from a multiple of this on."""


def way_to(segment: Segment, keyed: Keyed) -> tuple[Node, ...] | None:
    """The nodes from a source or channel up to this operator; None if it cannot be previewed.

    There may be maps in between that run where their rows are. Behind a shuffle or a merge, a
    preview would be most of the batch.
    """
    nodes = {node.name: node for node in (*segment.reads, *segment.nodes)}
    way: list[Node] = []
    node: Node = keyed
    while not isinstance(node, Source | Channel):
        if len(node.inputs) != 1:
            return None
        node = nodes[node.inputs[0]]
        if not isinstance(node, Source | Channel) and not (
            isinstance(node, Map) and node.tasks is None
        ):
            return None
        way.append(node)
    return tuple(reversed(way))


def previewable(segment: Segment) -> frozenset[str]:
    """The operators of a segment that can be previewed."""
    return frozenset(one.name for one in segment.keyed if way_to(segment, one) is not None)


def shard_of(key: tuple[str, ...], shards: int) -> str:
    """The shard of a row as an SQL expression."""
    keys = ", ".join(f"`{name}`" for name in key)
    return f"cast(pmod(xxhash64({keys}), {shards}) as int)"


def counted(rows: DataFrame, keyed: Keyed, expected: int) -> NDArray[np.int64]:
    """Rows of each shard, of about `MOST_ROWS` rows; `expected` is how many there may be.

    A batch may have far more, after a standstill. So no partition gives more than `MOST_ROWS`.
    """
    shard = shard_of(keyed.key, keyed.shards)
    every = max(-(-expected // MOST_ROWS), 1)
    numbered = rows.selectExpr(f"{shard} as shard", "monotonically_increasing_id() as place")
    first = f"place % {_PARTITION} < {every * MOST_ROWS}"
    chosen = numbered.where(f"place % {every} = 0 and {first}").select("shard")
    found = chosen.toArrow()["shard"].to_numpy()
    return np.bincount(found, minlength=keyed.shards)
