"""A topology as a flow network: its maximum flow, its cuts, and where there is spare capacity.

Vertices are the tasks of operators, and edges their links. An edge has a capacity c and carries a
flow f, both in rows per second (Flink-ER 2.2). The improving network has the spare capacity, and
its paths show how to use it (eq. 2, 3). The minimum cut that keeps the tasks of each operator on
one side (eq. 4) limits the whole topology. Capacities are in rows of the source, that is, divided
by the visit ratio, so that flow is conserved at every vertex.
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
"""Capacities are scaled to integers up to this, because the solver uses 32 bits."""
_FINE = 4
"""The integers are fine enough when the flow is at least 1/4 of the largest integer."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowNetwork:
    """Edges as columns, with at most one edge between two vertices in each direction."""

    tails: Places
    heads: Places
    capacities: Vector
    """Rows per second; infinite for an edge without a limit."""
    source: int
    sink: int
    operators: Places
    """The operator of each vertex; the tasks of one operator have the same number."""

    @classmethod
    def of(
        cls,
        edges: Sequence[tuple[int, int, float]],
        *,
        source: int,
        sink: int,
        operators: Sequence[int],
    ) -> "FlowNetwork":
        """Build from (tail, head, capacity); the capacities of parallel edges add up."""
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
        """The network with one vertex per operator: its cuts never divide an operator's tasks.

        A partition that never divides an operator is a partition of the operators, and the
        capacities across it have the same sum (eq. 4), so the minimum cut needs no search.
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
        """A maximum flow from the source to the sink."""
        flow = _maximum(self)
        if flow.value > self.capacities[np.isfinite(self.capacities)].sum():
            raise AskedWrongly(
                "nothing limits this flow network; give a capacity to an edge on every path"
            )
        return flow


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """The flow of each edge: never above its capacity, and conserved at every vertex."""

    network: FlowNetwork
    carried: Vector
    """f of each edge, in the network's order."""

    @property
    def value(self) -> float:
        """|f|: the flow out of the source (eq. 1), minus the flow back into it."""
        network = self.network
        out = self.carried[network.tails == network.source].sum()
        return float(out - self.carried[network.heads == network.source].sum())

    def improving(self) -> sparse.csr_array:
        """The improving network: c - f along each edge, and f against it."""
        network, size = self.network, len(self.network.operators)
        improve = np.maximum(network.capacities - self.carried, 0.0)
        return _matrix(
            np.concatenate([improve, self.carried]),
            np.concatenate([network.tails, network.heads]),
            np.concatenate([network.heads, network.tails]),
            size,
        )

    def augmenting_path(self, least: float = 0.0) -> tuple[list[int], float]:
        """A path from source to sink with the fewest edges, and its spare capacity (eq. 2).

        Edges with spare capacity of at most `least` count as full. The result is ([], 0.0) if there
        is no path: the flow is then the maximum. Nothing calls this yet: the Flink-ER policy will,
        to send backlog along augmenting paths (Alg. 2).
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
            if back is not None:  # first reduce the flow in the opposite direction
                taken = min(left, float(carried[back]))
                carried[back] -= taken
                left -= taken
            if left > 0.0:
                carried[place[tail, head]] += left
        return Flow(network, carried)

    def least_cut(self) -> "Cut":
        """The cut that this flow fills, if it is a maximum flow (max flow = min cut)."""
        scale = max(self.value, 1e-300)
        room = self.improving()
        room.data[room.data <= 1e-6 * scale] = 0.0
        room.eliminate_zeros()
        return _cut(self.network, room)


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A cut D = (X, Y), with the source in X and the sink in Y."""

    network: FlowNetwork
    behind: npt.NDArray[np.bool_]
    """Which vertices are in Y."""

    @property
    def crossing(self) -> npt.NDArray[np.bool_]:
        """Which edges go from X to Y."""
        return np.asarray(~self.behind[self.network.tails] & self.behind[self.network.heads])

    @property
    def capacity(self) -> float:
        """c(X, Y) of eq. 4."""
        return float(self.network.capacities[self.crossing].sum())

    def carries(self, flow: Flow) -> float:
        """f(X, Y) of eq. 5: forward minus backward flow, which is |f| for every cut."""
        network = self.network
        back = self.behind[network.tails] & ~self.behind[network.heads]
        return float(flow.carried[self.crossing].sum() - flow.carried[back].sum())

    @property
    def first_operators(self) -> tuple[int, ...]:
        """The operators right behind the cut, which need more tasks."""
        heads = self.network.operators[self.network.heads[self.crossing]]
        return tuple(int(number) for number in np.unique(heads))


def least_cut_together(network: FlowNetwork) -> Cut:
    """The minimum cut that keeps every operator's tasks on one side, over the operators.

    Nothing calls this yet: the Flink-ER policy will, to name the one bottleneck of a pipeline
    whose tasks differ in capacity (eq. 4).
    """
    return network.together().maximum_flow().least_cut()


def limiting_cuts(network: FlowNetwork, value: float, share: float = LIMITING) -> tuple[Cut, ...]:
    """For every operator right behind a cut with f >= share c (eq. 11), its minimum such cut.

    A flow has the same value across every cut, so a cut is limiting if its capacity is at most
    value / share. There are too many cuts to try each. But a cut right before an operator crosses
    an edge to that operator, and the minimum cut across a given edge is a maximum flow with the
    edge's tail joined to the source and its head joined to the sink.
    """
    if not LIMITING <= share <= 1.0:
        raise AskedWrongly(f"the share is {share:g}, but must be from {LIMITING} to 1")
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
    """The shares of a flow that the tasks of an operator get, in the order of its vertices.

    For an operator without state any task may take any row, so the backlog can follow a maximum
    flow: each task gets rows in proportion to its flow. Equal tasks get equal shares.
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
    """A maximum flow by SciPy's solver, which works with integers.

    No edge carries more than the whole flow, so capacities are cut off at a bound on the flow and
    scaled to 2^30. Rounding down gives a feasible flow that is at most one unit per edge below the
    maximum. If the bound was too loose for enough precision, the flow found gives a better one.
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
