"""Splits executors that outgrow a node, and merges idle ones (Elasticutor 4.2, future work).

An executor with more cores than its node keeps sending data to remote cores; two of half the size
need not. Executors that together use less than a core occupy several cores for nothing. Both
changes move keys between executors, so they are rare: every ten minutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.control.shards.balance import balance
from tidegate.errors import AskedWrongly

EVERY_S = 600.0
"""The paper's example of a coarse interval."""
IDLE_LOAD = 0.25
"""An executor that keeps at most this many cores busy may be merged."""
MERGED_LOAD = 0.5
"""The largest load of a merged executor: half of the core that it will run on."""


@dataclass(frozen=True, slots=True)
class Split:
    """An executor, and its shards that go to a new executor."""

    executor: int
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Regrouping:
    """Executors to split, and groups of executors to merge."""

    splits: tuple[Split, ...] = ()
    merges: tuple[tuple[int, ...], ...] = ()


def regroup(
    cores: Sequence[int],
    shard_loads: Sequence[npt.ArrayLike],
    home: Sequence[int],
    node_cores: int,
) -> Regrouping:
    """Find splits and merges for executors with these cores, shard loads (in cores) and homes."""
    if not len(cores) == len(shard_loads) == len(home) or node_cores < 1:
        raise AskedWrongly(
            "regrouping needs cores, shard loads and a home for each executor, and nodes of at"
            " least 1 core; give columns of equal length"
        )
    splits = []
    for executor in np.flatnonzero(np.asarray(cores) > node_cores).tolist():
        loads = np.asarray(shard_loads[executor], np.float64)
        half = balance(loads, np.zeros(len(loads), np.int64), 2, 1.0) if len(loads) > 1 else None
        if half is not None and half.moves:  # a single hot shard, or no load, cannot be split
            splits.append(Split(executor, tuple(sorted(half.moves))))
    return Regrouping(tuple(splits), tuple(_merges(shard_loads, home)))


def _merges(shard_loads: Sequence[npt.ArrayLike], home: Sequence[int]) -> list[tuple[int, ...]]:
    """Group idle executors of the same home, the idlest first, up to `MERGED_LOAD` each."""
    load = np.array([float(np.sum(loads)) for loads in shard_loads])
    merges = []
    for node in sorted(set(home)):
        idle = [one for one in range(len(load)) if home[one] == node and load[one] <= IDLE_LOAD]
        group: list[int] = []
        for executor in sorted(idle, key=lambda one: (load[one], one)):
            if group and load[group].sum() + load[executor] > MERGED_LOAD:
                merges.append(tuple(group))
                group = []
            group.append(executor)
        merges.append(tuple(group))
    return [tuple(sorted(group)) for group in merges if len(group) > 1]


@dataclass(slots=True)
class Regrouper:
    """Regroups at a coarse interval."""

    node_cores: int
    every_s: float = EVERY_S
    _last_s: float | None = None

    def regroup(
        self,
        at_s: float,
        cores: Sequence[int],
        shard_loads: Sequence[npt.ArrayLike],
        home: Sequence[int],
    ) -> Regrouping:
        """The splits and merges due now: none until an interval after the first or last time."""
        if self._last_s is None:
            self._last_s = at_s
        if at_s - self._last_s < self.every_s:
            return Regrouping()
        self._last_s = at_s
        return regroup(cores, shard_loads, home, self.node_cores)
