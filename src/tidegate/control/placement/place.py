"""Places cores on nodes so that little state moves and data stay local (Elasticutor 4.2).

Eq. 2 minimises the state moved, subject to three constraints: every executor j has the cores k_j
that the allocator gave it, no node gives more than it has, and data-intensive executors have all
their cores on the node of their main process. An executor is data-intensive from phi bytes per
second and core: 512 KB/s, doubled until the problem is feasible.

Algorithm 1, corrected: free cores are taken first and cost nothing, the most data-intensive
executor chooses first, and giver and taker are two executors. It sometimes fails where a solution
exists. Feasibility only takes a sum per node and one over all nodes, so phi is fixed before
anything is placed. Exchanges of single cores by their exact cost then improve the greedy result
(`place_compiled`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.control.placement import place_compiled as placing
from tidegate.errors import AskedWrongly

PHI = 512.0 * 1024
"""Executors with fewer bytes per second and core gain little from locality (as in the paper)."""
_ROUNDS = 30
"""The most rounds of improvement; each lowers the cost, and few are ever needed."""

Counts = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Executors:
    """Executors as columns."""

    cores: Counts
    """The cores from the allocator (k_j), at least one."""
    state_bytes: Vector
    """The state of all its shards (s_j)."""
    bytes_per_s: Vector
    """Data in and out; divided by k_j it is the data intensity."""
    home: Counts
    """The node of the main process (I(j)); -1 if it has none yet."""

    @classmethod
    def of(
        cls,
        cores: Sequence[int] | npt.ArrayLike,
        state_bytes: npt.ArrayLike,
        bytes_per_s: npt.ArrayLike,
        home: npt.ArrayLike,
    ) -> "Executors":
        """Build from anything that converts to an array."""
        return cls(
            np.asarray(cores, np.int64),
            np.asarray(state_bytes, np.float64),
            np.asarray(bytes_per_s, np.float64),
            np.asarray(home, np.int64),
        )

    def __len__(self) -> int:
        return len(self.cores)

    @property
    def intensity(self) -> Vector:
        """Data intensity: bytes per second and core."""
        return self.bytes_per_s / self.cores


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Cores per node (rows) and executor (columns), and the cost of the change."""

    cores: Counts
    home: Counts
    """The nodes of the main processes, including new ones."""
    moved_bytes: float
    """C: the state that leaves its node."""
    phi_bytes_per_s: float
    """Executors with at least this data intensity have all cores on their own node."""
    local: npt.NDArray[np.bool_]
    """Which executors these are."""


def transition_bytes(held: Counts, cores: Counts, state_bytes: Vector) -> float:
    """C(X | X~) of eq. 2, with the old total in the first denominator.

    An executor that held no core has no state to move; one that loses all its cores moves all.
    """
    before = held / np.maximum(held.sum(axis=0), 1)
    after = cores / np.maximum(cores.sum(axis=0), 1)
    return float((np.maximum(0.0, before - after) * state_bytes).sum())


def place(room: npt.ArrayLike, held: npt.ArrayLike, executors: Executors) -> Placement:
    """Choose the cores of every executor on every node.

    `room` is the number of usable cores of each node, 0 for a node that is gone. `held` is the
    present assignment, with a row per node and a column per executor.
    """
    capacity = np.array(room, np.int64)
    old = np.ascontiguousarray(held, np.int64)
    _check(capacity, old, executors)
    home = _homes(capacity, old, executors)
    phi = feasible_phi(capacity, executors, home)
    local = executors.intensity >= phi
    cores = np.zeros_like(old)
    cores[home[local], np.flatnonzero(local)] = executors.cores[local]
    if not local.all():
        others = np.flatnonzero(~local)
        cores[:, others] = _spread(
            capacity - cores.sum(axis=1), old[:, others], executors, home, others
        )
    moved = transition_bytes(old, cores, executors.state_bytes)
    return Placement(cores, home, moved, phi, local)


def feasible_phi(room: Counts, executors: Executors, home: Counts) -> float:
    """The first phi for which all executors at or above it fit on their own nodes.

    The others may run anywhere, so with enough cores in total this is all that feasibility takes.
    """
    phi = PHI
    intensity = executors.intensity
    while True:
        local = intensity >= phi
        taken = np.bincount(home[local], executors.cores[local], len(room))
        if np.all(taken <= room):
            return phi
        phi *= 2.0


def _spread(
    room: Counts, held: Counts, executors: Executors, home: Counts, chosen: Counts
) -> Counts:
    """The cores of the executors that may run anywhere: the best of up to three starts, improved.

    The first start is the present assignment, as in Algorithm 1. In clusters that are not too large
    there are two more: the smallest whole multiple of each executor's shares, which moves nothing
    if it fits, and an empty one, with the executors of the most state per core choosing first.
    """
    need = executors.cores[chosen]
    state = executors.state_bytes[chosen]
    order = np.argsort(-executors.intensity[chosen], kind="stable")
    totals = held.sum(axis=0)
    owner, nodes = np.nonzero(held.T)
    begins = np.searchsorted(owner, np.arange(len(chosen) + 1))
    shares = held[nodes, owner] / totals[owner]
    shape = (begins, nodes, shares, state, home[chosen])
    best: Counts | None = None
    best_cost = np.inf
    starts = [(held, order)]
    if held.size <= placing.DEEP_UP_TO:
        heavy = np.argsort(-state / need, kind="stable")
        starts += [(_proportional(held, totals, need), order), (np.zeros_like(held), heavy)]
    for start, order in starts:
        cores = start.copy()
        sums = cores.sum(axis=0)
        free = room - cores.sum(axis=1)
        placing.evict(cores, sums, free, need, state)
        placing.provide(cores, sums, free, need, *shape, order)
        cost = placing.polish(cores, sums, free, need, *shape, _ROUNDS)
        if cost < best_cost:
            best, best_cost = cores, cost
        if best_cost <= 0.0:
            break
    assert best is not None
    return best


def _proportional(held: Counts, totals: Counts, need: Counts) -> Counts:
    """The smallest whole multiple of each executor's shares that has enough cores."""
    unit = np.gcd.reduce(held, axis=0)
    shape = held // np.maximum(unit, 1)
    each = totals // np.maximum(unit, 1)
    return np.asarray(shape * -(-need // np.maximum(each, 1)))


def _homes(room: Counts, held: Counts, executors: Executors) -> Counts:
    """The executors' homes; if the node is gone, the one with most of the executor's cores."""
    home = executors.home.copy()
    lost = (home < 0) | (room[home] <= 0)
    if lost.any():
        most = np.where((room > 0)[:, None], held[:, lost], -1)
        home[lost] = np.where(most.max(axis=0) > 0, most.argmax(axis=0), int(np.argmax(room)))
    return home


def _check(room: Counts, held: Counts, executors: Executors) -> None:
    count = len(executors)
    columns = (executors.state_bytes, executors.bytes_per_s, executors.home)
    if count == 0 or any(len(column) != count for column in columns):
        raise AskedWrongly(
            "each executor needs cores, state, a data rate and a home; give columns of equal length"
        )
    if room.ndim != 1 or held.shape != (len(room), count):
        raise AskedWrongly(
            f"the assignment is {held.shape}, but there are {len(room)} nodes and {count}"
            " executors; give a row per node and a column per executor"
        )
    if np.any(held < 0) or np.any(room < 0) or not np.all(executors.state_bytes >= 0.0):
        raise AskedWrongly("cores and state cannot be negative; give 0 or more")
    if int(executors.cores.min()) < 1:
        raise AskedWrongly("every executor needs at least one core; leave out those with none")
    if int(executors.home.max()) >= len(room):
        raise AskedWrongly(f"a home is not among the {len(room)} nodes; number them from 0")
    if (needed := int(executors.cores.sum())) > (there := int(room.sum())):
        raise AskedWrongly(
            f"the executors need {needed} cores, but the nodes have {there}; ask the allocator"
            f" for at most {there}"
        )
