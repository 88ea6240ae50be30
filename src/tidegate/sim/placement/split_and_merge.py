"""Splits and merges executors in a running simulation.

`control/placement/split_and_merge.py` decides when.
"""

from dataclasses import dataclass, field

import numpy as np

from tidegate.control.placement.split_and_merge import Regrouper, Split
from tidegate.sim.placement.paradigms import ShardGroups, Vector


@dataclass(slots=True, eq=False)
class SimulatedRegrouping:
    """Regroups the executors of each operator at a coarse interval, within the operator."""

    groups: ShardGroups
    every_s: float
    _regroupers: dict[int, Regrouper] = field(default_factory=dict)
    _seen: Vector = field(default_factory=lambda: np.zeros(0))
    _looks: int = 0
    _since_s: float | None = None

    def look(self, at_s: float, busy: Vector) -> None:
        """Observe `busy`, the load of each shard in cores since the last call, and regroup if due.

        The decision uses the mean over the interval: a second in which everything stood still does
        not make an executor idle. Shards move with the next rescale.
        """
        if self._since_s is None:
            self._since_s = at_s
        self._seen = busy if self._looks == 0 else self._seen + busy
        self._looks += 1
        self._regroup(at_s, self._seen / self._looks)
        if at_s - self._since_s >= self.every_s:
            self._since_s = at_s
            self._looks = 0

    def _regroup(self, at_s: float, busy: Vector) -> None:
        groups = self.groups
        merged: list[tuple[int, ...]] = []
        for operator in np.unique(groups.operator_of).tolist():
            mine = np.flatnonzero(groups.operator_of == operator).tolist()
            regrouper = self._regroupers.setdefault(
                operator, Regrouper(groups.nodes.cores_each, self.every_s)
            )
            found = regrouper.regroup(
                at_s,
                [len(groups.owned[group]) for group in mine],
                [busy[groups.members[group]] for group in mine],
                groups.home[mine].tolist(),
            )
            merged += [tuple(mine[one] for one in merge) for merge in found.merges]
            for split in found.splits:
                _split(groups, Split(mine[split.executor], split.shards))
        if merged:
            _merge(groups, merged)


def _split(groups: ShardGroups, split: Split) -> None:
    """Give the new executor half of the cores; its home is the node with most of them."""
    old, new = split.executor, len(groups.members)
    each = groups.nodes.cores_each
    shards = groups.members[old]
    goes = np.zeros(len(shards), bool)
    goes[list(split.shards)] = True
    groups.members[old] = shards[~goes]
    groups.members.append(shards[goes])
    groups.group_of[shards[goes]] = new
    cores = np.array(groups.owned[old])
    remote = np.bincount(cores // each, minlength=groups.nodes.count)
    remote[groups.home[old]] = 0
    home = int(np.argmax(remote))
    nearest_new = np.lexsort((cores // each == groups.home[old], cores // each != home))
    taken = nearest_new[: len(cores) // 2]
    groups.owned.append(cores[taken].tolist())
    groups.owned[old] = np.delete(cores, taken).tolist()
    groups.home = np.append(groups.home, home)
    groups.work_s = np.append(groups.work_s, groups.work_s[old])
    groups.tuple_bytes = np.append(groups.tuple_bytes, groups.tuple_bytes[old])
    groups.operator_of = np.append(groups.operator_of, groups.operator_of[old])


def _merge(groups: ShardGroups, merges: list[tuple[int, ...]]) -> None:
    """Give the first executor of each merge the others' shards and cores; renumber the rest."""
    into = np.arange(len(groups.members))
    for first, *others in merges:
        for other in others:
            into[other] = first
            groups.owned[first] += groups.owned[other]
            both = np.concatenate([groups.members[first], groups.members[other]])
            groups.members[first] = np.sort(both)
    stays = np.flatnonzero(into == np.arange(len(into)))
    number = np.searchsorted(stays, into)
    groups.group_of[:] = number[groups.group_of]
    groups.owned = [groups.owned[group] for group in stays.tolist()]
    groups.members = [groups.members[group] for group in stays.tolist()]
    groups.home = groups.home[stays]
    groups.work_s = groups.work_s[stays]
    groups.tuple_bytes = groups.tuple_bytes[stays]
    groups.operator_of = groups.operator_of[stays]
