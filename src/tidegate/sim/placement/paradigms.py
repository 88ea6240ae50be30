"""The paradigms of Elasticutor (2.2, 5): what each may change, and what a change interrupts.

In all of them, groups of shards own cores. Static: an operator is a group, and nothing changes.
Resource-centric: an operator is a group, its shards are balanced over its cores, and each change
stops all upstream executors. Executor-centric: each executor is a group, its shards are balanced
over its cores, and a change stops only the shards that move. Naive executor-centric is the same
without placement: each change assigns all cores anew.
"""

import time
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from tidegate.control.allocation.allocate import TooFewCores, assign
from tidegate.control.placement.changes import transition
from tidegate.control.placement.place import Executors, place
from tidegate.control.shards.balance import THETA, balance
from tidegate.control.shards.route import Route, even_route, rerouted, rescaled
from tidegate.models.queueing.stations import Queues
from tidegate.sim.placement.nodes import Nodes

Paradigm = Literal["static", "resource-centric", "executor-centric", "naive-ec"]
PARADIGMS: tuple[Paradigm, ...] = ("static", "resource-centric", "executor-centric", "naive-ec")

Counts = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float64]

_WORTH_IT = 1.05
"""Cores are reassigned if the model predicts that latency falls by more than this factor."""


@dataclass(slots=True, eq=False)
class ShardGroups:
    """Groups of shards and the cores that each owns, with the decisions that change both."""

    nodes: Nodes
    group_of: Counts
    """The group of each shard."""
    work_s: Vector
    """Work of one tuple, per group."""
    tuple_bytes: Vector
    """Bytes in and out per tuple, per group."""
    shard_bytes: float
    naive: bool = False
    operator_of: Counts = field(default_factory=lambda: np.zeros(0, np.int64))
    """The operator of each group; by default all belong to one operator."""
    owned: list[list[int]] = field(default_factory=list)
    """The cores of each group; the position of a core is the number of its task."""
    home: Counts = field(default_factory=lambda: np.zeros(0, np.int64))
    scheduling_s: list[float] = field(default_factory=list)
    """How long each decision took."""
    members: list[Counts] = field(default_factory=list)
    """The shards of each group."""

    def __post_init__(self) -> None:
        count = len(self.work_s)
        if not len(self.operator_of):
            self.operator_of = np.zeros(count, np.int64)
        order = np.argsort(self.group_of, kind="stable")
        self.members = np.split(order, np.cumsum(np.bincount(self.group_of, minlength=count))[:-1])
        self.home = np.arange(count) * self.nodes.count // count
        if count > self.nodes.count:
            self.home = np.arange(count) % self.nodes.count

    def begin(self, load: Vector) -> Counts:
        """Assign cores by each group's load, on its own node if possible; return the route."""
        cores = self._cores(load / self.work_s)
        room = np.full(self.nodes.count, self.nodes.cores_each)
        held = np.zeros((self.nodes.count, len(cores)), np.int64)
        asked = Executors.of(cores, np.zeros(len(cores)), np.zeros(len(cores)), self.home)
        self.owned = [[] for _ in cores]
        self._own(place(room, held, asked).cores)
        route = np.zeros(len(self.group_of), np.int64)
        for group, shards in enumerate(self.members):
            tasks = even_route(len(shards), min(len(self.owned[group]), len(shards)))
            route[shards] = np.array(self.owned[group])[list(tasks)]
        return route

    def rescale(self, route: Counts, rates: Vector, loads: Vector) -> Counts:
        """Reassign cores if it pays, balance each group, and return the new route."""
        begin_s = time.perf_counter()
        self._reassign(rates)
        self.scheduling_s.append(time.perf_counter() - begin_s)
        new = route.copy()
        for group, shards in enumerate(self.members):
            new[shards] = self._balanced(group, route[shards], loads[shards])
        return new

    def far(self, route: Counts) -> npt.NDArray[np.bool_]:
        """Which shards are served by a core on another node than their executor's."""
        return np.asarray(route // self.nodes.cores_each != self.home[self.group_of])

    def _cores(self, rates: Vector) -> Counts:
        """The cores of each group by the queueing model, using all cores of the cluster."""
        rates = np.maximum(rates, 1e-6)
        while True:
            try:
                found = assign(Queues.of(rates, 1.0 / self.work_s), self.nodes.cores)
                return found.cores
            except TooFewCores:
                rates = rates * 0.98

    def _reassign(self, rates: Vector) -> None:
        wanted = self._cores(rates)
        queues = Queues.of(np.maximum(rates, 1e-6), 1.0 / self.work_s)
        have = np.array([len(cores) for cores in self.owned])
        now_s, then_s = queues.network_latency(have), queues.network_latency(wanted)
        if np.isfinite(now_s) and not now_s > _WORTH_IT * then_s:
            return
        if self.naive:
            self._own(self._anywhere(wanted))
            return
        state = self.shard_bytes * np.array([len(shards) for shards in self.members], float)
        asked = Executors.of(wanted, state, rates * self.tuple_bytes, self.home)
        room = np.full(self.nodes.count, self.nodes.cores_each)
        self._own(place(room, self._held(), asked).cores)

    def _held(self) -> Counts:
        """Cores of each group on each node, a row per node."""
        held = np.zeros((self.nodes.count, len(self.owned)), np.int64)
        for group, cores in enumerate(self.owned):
            np.add.at(held[:, group], np.array(cores, np.int64) // self.nodes.cores_each, 1)
        return held

    def _anywhere(self, wanted: Counts) -> Counts:
        """The naive placement: assign cores in the order of the nodes, ignoring present owners."""
        ends = np.cumsum(wanted)
        dealt = np.repeat(np.arange(len(wanted)), wanted)
        cores = np.zeros((self.nodes.count, len(wanted)), np.int64)
        np.add.at(cores, (np.arange(ends[-1]) // self.nodes.cores_each, dealt), 1)
        return cores

    def _own(self, cores: Counts) -> None:
        """Turn core counts into core numbers: release, then take. Kept cores stay the same."""
        each = self.nodes.cores_each
        groups = [str(group) for group in range(len(self.owned))]
        nodes = [str(node) for node in range(self.nodes.count)]
        free = np.ones(self.nodes.cores, bool)
        free[[core for owned in self.owned for core in owned]] = False
        for change in transition(self._held(), cores, groups, nodes, nodes).changes:
            node, owned = int(change.node), self.owned[int(change.executor)]
            if change.cores < 0:
                given = [core for core in owned if core // each == node][change.cores :]
                free[given] = True
                owned[:] = [core for core in owned if not free[core]]
            else:
                spare = node * each + np.flatnonzero(free[node * each : (node + 1) * each])
                taken = spare[: change.cores]
                free[taken] = False
                owned.extend(taken.tolist())

    def _balanced(self, group: int, route: Counts, loads: Vector) -> Counts:
        """Reassign the shards of released cores, then balance until delta is at most theta."""
        owned = self.owned[group]
        tasks = min(len(owned), len(route))
        numbers = {core: task for task, core in enumerate(owned[:tasks])}
        local: Route = tuple(numbers.get(core, tasks) for core in route.tolist())
        if max(local) >= tasks or len(set(local)) < tasks:
            local = rescaled(local, tasks)
        answer = balance(loads, local, tasks, THETA)
        if answer.moves:
            local = rerouted(local, answer.moves, tasks)
        return np.array(owned, np.int64)[np.array(local, np.int64)]
