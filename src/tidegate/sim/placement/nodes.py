"""Nodes with cores and a network, and the cost of a change of placement.

The figures are those of Elasticutor's section 5: 8 cores per node, 1 Gbit/s, 2 ms to synchronise
with one party. Synchronising with all upstream executors takes one such handshake with each.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly

Counts = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Identical nodes; core c is on node c // cores_each."""

    count: int = 32
    cores_each: int = 8
    bandwidth_bytes_per_s: float = 125e6
    handshake_s: float = 0.002
    """A synchronisation with one party (5.1: around 2 ms)."""
    together: bool = False
    """Whether one synchronisation moves all shards of a decision, as the boundary between two
    micro-batches does. In the paper an executor synchronises for one shard after the other."""

    def __post_init__(self) -> None:
        if self.count < 1 or self.cores_each < 1 or not self.bandwidth_bytes_per_s > 0.0:
            raise AskedWrongly(
                "a cluster needs nodes, cores and a bandwidth; give more than 0 of each"
            )

    @property
    def cores(self) -> int:
        """Cores of all nodes."""
        return self.count * self.cores_each

    @property
    def node_of(self) -> Counts:
        """The node of each core."""
        return np.arange(self.cores) // self.cores_each

    def transfer_s(self, source: Counts, state_bytes: Vector) -> Vector:
        """When each state has left its node; states that leave the same node go one by one."""
        order = np.argsort(source, kind="stable")
        sent = np.cumsum(state_bytes[order])
        ends = np.flatnonzero(np.diff(source[order], prepend=-1))
        before = np.repeat(sent[ends] - state_bytes[order][ends], np.diff(ends, append=len(order)))
        taken = np.empty(len(order))
        taken[order] = (sent - before) / self.bandwidth_bytes_per_s
        return taken
