"""Split executors that outgrow a node, merge idle ones (Elasticutor 4.2, its future work).

An executor with more cores than its node has sends data to remote cores for ever; two of half the
size need not. Executors that together fill less than a core hold cores and nodes for nothing. Both
change which keys are whose, so it is done seldom: every ten minutes.
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
"""Cores kept busy below which an executor may be merged."""
MERGED_LOAD = 0.5
"""What a merged executor may have at most: half of the core that it will run on."""


@dataclass(frozen=True, slots=True)
class Split:
    """An executor and those of its shards that become another."""

    executor: int
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Regrouping:
    """What to split, and which executors become one."""

    splits: tuple[Split, ...] = ()
    merges: tuple[tuple[int, ...], ...] = ()


def regroup(
    cores: Sequence[int],
    shard_loads: Sequence[npt.ArrayLike],
    home: Sequence[int],
    node_cores: int,
) -> Regrouping:
    """Splits and merges for executors with these cores, loads per shard (in cores) and homes."""
    if not len(cores) == len(shard_loads) == len(home) or node_cores < 1:
        raise AskedWrongly("regrouping needs cores, shard loads and home, one of each per executor")
    splits = []
    for executor in np.flatnonzero(np.asarray(cores) > node_cores).tolist():
        loads = np.asarray(shard_loads[executor], np.float64)
        half = balance(loads, np.zeros(len(loads), np.int64), 2, 1.0) if len(loads) > 1 else None
        if half is not None and half.moves:  # one hot shard, or no load at all, has no halves
            splits.append(Split(executor, tuple(sorted(half.moves))))
    return Regrouping(tuple(splits), tuple(_merges(shard_loads, home)))


def _merges(shard_loads: Sequence[npt.ArrayLike], home: Sequence[int]) -> list[tuple[int, ...]]:
    """Idle executors of the same home, the idlest first, while they leave a core half empty."""
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
        """What to do now; nothing until an interval has passed since the first call or the last."""
        if self._last_s is None:
            self._last_s = at_s
        if at_s - self._last_s < self.every_s:
            return Regrouping()
        self._last_s = at_s
        return regroup(cores, shard_loads, home, self.node_cores)
