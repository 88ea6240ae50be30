"""A topology as a flow network: how much it can carry, where it is cut, where there is room.

Vertices are the tasks of operators, edges their links; an edge has a capacity c and carries a flow
f, both in rows per second (Flink-ER 2.2). The improving network says where more could be sent, its
paths how (eq. 2, 3), and the least cut that keeps the tasks of an operator on one side (eq. 4) is
what limits the whole. Selectivities are the caller's: give capacities in rows of the source, that
is, divided by the visit ratio, and flow is conserved at every vertex.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from tidegate.errors import AskedWrongly
from tidegate.models.flow.limiting import LIMITING

Vector = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_WHOLE = 2**30
"""Capacities become integers up to this, because the solver counts in 32 bits."""
_FINE = 4
"""Integers are fine enough when the flow found is at least 1/4 of the largest one."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowNetwork:
    """Edges as columns; one edge at most between two vertices in each direction."""

    tails: Places
    heads: Places
    capacities: Vector
    """Rows per second; infinite where nothing limits an edge."""
    source: int
    sink: int
    operators: Places
    """The operator of each vertex; the tasks of one operator share their number."""

    @classmethod
    def of(
        cls,
        edges: Sequence[tuple[int, int, float]],
        *,
        source: int,
        sink: int,
        operators: Sequence[int],
    ) -> "FlowNetwork":
        """From (tail, head, capacity); edges between the same two vertices add up."""
        size = len(operators)
        table: dict[tuple[int, int], float] = {}
        for tail, head, capacity in edges:
            if not (0 <= tail < size and 0 <= head < size) or not capacity >= 0.0:
                raise AskedWrongly(
                    f"an edge from {tail} to {head} with capacity {capacity:g} does not fit a flow"
                    f" network of {size} vertices; give a capacity of at least 0 between two of"
                    " them"
                )
            if tail != head:
                table[tail, head] = table.get((tail, head), 0.0) + capacity
        if source == sink or operators[source] == operators[sink]:
            raise AskedWrongly("the source and the sink of a flow network must be two operators")
        ends = np.array(list(table), dtype=np.int64).reshape(-1, 2)
        return cls(
            ends[:, 0],
            ends[:, 1],
            np.array(list(table.values()), dtype=np.float64),
            source,
            sink,
            np.asarray(operators, dtype=np.int64),
        )

    def together(self) -> "FlowNetwork":
        """One vertex per operator: its cuts are those that keep the tasks of an operator together.

        A partition that never divides an operator is a partition of the operators, and the
        capacities across it are the same sum (eq. 4), so the least one needs no search.
        """
        numbers, places = np.unique(self.operators, return_inverse=True)
        edges = zip(
            places[self.tails].tolist(),
            places[self.heads].tolist(),
            self.capacities.tolist(),
            strict=True,
        )
        return FlowNetwork.of(
            list(edges),
            source=int(places[self.source]),
            sink=int(places[self.sink]),
            operators=numbers.tolist(),
        )

    def maximum_flow(self) -> "Flow":
        """As much as the source can send, and one way to send it."""
        flow = _maximum(self)
        if flow.value > self.capacities[np.isfinite(self.capacities)].sum():
            raise AskedWrongly(
                "nothing limits this flow network; give a capacity to an edge on every path"
            )
        return flow


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """What each edge carries; never more than its capacity, and nothing stays on the way."""

    network: FlowNetwork
    carried: Vector
    """f of each edge, in the network's order."""

    @property
    def value(self) -> float:
        """|f|: what leaves the source (eq. 1), less what comes back to it."""
        network = self.network
        out = self.carried[network.tails == network.source].sum()
        return float(out - self.carried[network.heads == network.source].sum())

    def improving(self) -> sparse.csr_array:
        """The improving network: c - f along an edge, f against it."""
        network, size = self.network, len(self.network.operators)
        improve = np.maximum(network.capacities - self.carried, 0.0)
        return _matrix(
            np.concatenate([improve, self.carried]),
            np.concatenate([network.tails, network.heads]),
            np.concatenate([network.heads, network.tails]),
            size,
        )

    def augmenting_path(self, least: float = 0.0) -> tuple[list[int], float]:
        """A path from source to sink with the fewest edges, and what it can take more (eq. 2).

        Edges with room of at most `least` count as full. ([], 0.0) when there is no path: the flow
        is the maximum then. Nothing calls this yet: the Flink-ER policy will, to send backlog along
        augmenting paths (Alg. 2).
        """
        room = self.improving()
        room.data[room.data <= least] = 0.0
        room.eliminate_zeros()
        network = self.network
        _, before = csgraph.breadth_first_order(room, network.source, directed=True)
        if before[network.sink] < 0:
            return [], 0.0
        path = [network.sink]
        while path[-1] != network.source:
            path.append(int(before[path[-1]]))
        path.reverse()
        return path, min(float(room[a, b]) for a, b in pairwise(path))

    def augmented(self, path: Sequence[int], more: float) -> "Flow":
        """The flow with `more` sent along a path of the improving network (eq. 3).

        Nothing calls this yet: the Flink-ER policy will, with `augmenting_path` (Alg. 2).
        """
        network = self.network
        place = {
            (int(tail), int(head)): index
            for index, (tail, head) in enumerate(zip(network.tails, network.heads, strict=True))
        }
        carried = self.carried.copy()
        for tail, head in pairwise(path):
            left = more
            back = place.get((head, tail))
            if back is not None:  # what flows the other way is taken back first
                taken = min(left, float(carried[back]))
                carried[back] -= taken
                left -= taken
            if left > 0.0:
                carried[place[tail, head]] += left
        return Flow(network, carried)

    def least_cut(self) -> "Cut":
        """Of a maximum flow: the cut it fills (max flow = min cut)."""
        scale = max(self.value, 1e-300)
        room = self.improving()
        room.data[room.data <= 1e-6 * scale] = 0.0
        room.eliminate_zeros()
        return _cut(self.network, room)


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """D = (X, Y): the source in X, the sink in Y."""

    network: FlowNetwork
    behind: npt.NDArray[np.bool_]
    """Which vertices are in Y."""

    @property
    def crossing(self) -> npt.NDArray[np.bool_]:
        """Which edges lead from X to Y."""
        return np.asarray(~self.behind[self.network.tails] & self.behind[self.network.heads])

    @property
    def capacity(self) -> float:
        """c(X, Y), eq. 4."""
        return float(self.network.capacities[self.crossing].sum())

    def carries(self, flow: Flow) -> float:
        """f(X, Y), eq. 5: forward less backward, which is |f| for every cut."""
        network = self.network
        back = self.behind[network.tails] & ~self.behind[network.heads]
        return float(flow.carried[self.crossing].sum() - flow.carried[back].sum())

    @property
    def first_operators(self) -> tuple[int, ...]:
        """The operators right behind the cut: those to give more tasks."""
        heads = self.network.operators[self.network.heads[self.crossing]]
        return tuple(int(number) for number in np.unique(heads))


def least_cut_together(network: FlowNetwork) -> Cut:
    """The least cut that keeps every operator's tasks on one side, over the operators.

    Nothing calls this yet: the Flink-ER policy will, to name the one bottleneck of a pipeline
    whose tasks differ in capacity (eq. 4).
    """
    return network.together().maximum_flow().least_cut()


def limiting_cuts(network: FlowNetwork, value: float, share: float = LIMITING) -> tuple[Cut, ...]:
    """Every operator that is first behind a cut with f >= share c (eq. 11): its least such cut.

    A flow of this value carries the same across every cut, so a cut limits when its capacity is at
    most value / share. There are too many cuts to look at each; but one that has an operator first
    behind it crosses an edge to that operator, and the least cut across a given edge is a maximum
    flow with its tail joined to the source and its head to the sink.
    """
    if not LIMITING <= share <= 1.0:
        raise AskedWrongly(f"a share of {share:g} limits no cut; give {LIMITING} to 1")
    if value <= 0.0:
        return ()
    whole = network.together()
    most = value / share * (1.0 + 1e-9)
    found: dict[int, Cut] = {}
    for tail, head, capacity in zip(whole.tails, whole.heads, whole.capacities, strict=True):
        if capacity > most or tail == whole.sink or head == whole.source:
            continue
        cut = _cut_across(whole, int(tail), int(head))
        name = int(whole.operators[head])
        if cut.capacity <= most and (name not in found or cut.capacity < found[name].capacity):
            found[name] = cut
    return tuple(found[name] for name in sorted(found))


def route_weights(flow: Flow, operator: int) -> Vector:
    """Shares in which a flow is dealt to the tasks of an operator, in the order of its vertices.

    For an operator without state any task may take any row, so the accumulated rows can follow a
    maximum flow: to every task in proportion to what its paths carry. Equal tasks get equal shares.
    Nothing calls this yet: the routes of map stages will, once tasks differ in capacity (Alg. 2).
    """
    network = flow.network
    tasks = np.flatnonzero(network.operators == operator)
    taken = np.zeros(len(network.operators))
    np.add.at(taken, network.heads, flow.carried)
    total = taken[tasks].sum()
    if total <= 0.0:
        return np.full(len(tasks), 1.0 / max(len(tasks), 1))
    return np.asarray(taken[tasks] / total, dtype=np.float64)


def _cut_across(network: FlowNetwork, tail: int, head: int) -> Cut:
    size = len(network.operators)
    ends = [(network.source, tail), (head, network.sink)]
    extra = [(a, b) for a, b in ends if a != b]
    joined = FlowNetwork.of(
        [
            *zip(
                network.tails.tolist(),
                network.heads.tolist(),
                network.capacities.tolist(),
                strict=True,
            ),
            *((a, b, np.inf) for a, b in extra),
        ],
        source=network.source,
        sink=network.sink,
        operators=range(size),
    )
    return Cut(network, _maximum(joined).least_cut().behind)


def _maximum(network: FlowNetwork) -> Flow:
    """SciPy's solver over integers, as fine as 30 bits give.

    No edge carries more than the whole flow, so capacities are cut off at a bound of it and scaled
    to 2^30. Rounded down, they give a flow that is feasible and at most one unit per edge below the
    best. Where the bound was too generous for that to be exact enough, the flow found gives a
    better one.
    """
    capacities, size = network.capacities, len(network.operators)
    if np.isinf(capacities).any():
        capacities = np.where(
            np.isinf(capacities), 1.0 + capacities[np.isfinite(capacities)].sum(), capacities
        )
    bound = min(
        float(capacities[network.tails == network.source].sum()),
        float(capacities[network.heads == network.sink].sum()),
    )
    if bound <= 0.0 or not _reaches(network, capacities):
        return Flow(network, np.zeros(len(capacities)))
    while True:
        unit = bound / _WHOLE
        whole = np.floor(np.minimum(capacities, bound) / unit).astype(np.int32)
        answer = csgraph.maximum_flow(
            sparse.csr_array((whole, (network.tails, network.heads)), shape=(size, size)),
            network.source,
            network.sink,
        )
        if answer.flow_value >= _WHOLE // _FINE:
            break
        bound = (answer.flow_value + len(capacities) + 1) * unit
    net = answer.flow.tocsr()
    carried = np.maximum(np.asarray(net[network.tails, network.heads]).ravel(), 0)
    return Flow(network, np.minimum(carried * unit, network.capacities))


def _reaches(network: FlowNetwork, capacities: Vector) -> bool:
    open_edges = capacities > 0.0
    links = _matrix(
        np.ones(int(open_edges.sum())),
        network.tails[open_edges],
        network.heads[open_edges],
        len(network.operators),
    )
    order = csgraph.breadth_first_order(
        links, network.source, directed=True, return_predecessors=False
    )
    return bool((order == network.sink).any())


def _cut(network: FlowNetwork, room: sparse.csr_array) -> Cut:
    reached = csgraph.breadth_first_order(
        room, network.source, directed=True, return_predecessors=False
    )
    behind = np.ones(len(network.operators), dtype=np.bool_)
    behind[reached] = False
    return Cut(network, behind)


def _matrix(values: Vector, tails: Places, heads: Places, size: int) -> sparse.csr_array:
    return sparse.csr_array((values, (tails, heads)), shape=(size, size))
