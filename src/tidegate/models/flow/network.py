"""A topology as a flow network: its flows, its maximum flow, and how a flow is improved.

Vertices are the tasks of operators, and edges their links. An edge has a capacity c and carries a
flow f, both in rows per second (Flink-ER 2.2). Capacities are in rows of the source, that is,
divided by the visit ratio, so that flow is conserved at every vertex. `models/flow/improving.py`
has the room that a flow leaves, and `models/flow/cuts.py` what limits it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from tidegate.errors import AskedWrongly
from tidegate.models.flow.improving import AugmentingPath, ImprovingNetwork

Vector = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_UNLIMITED = "nothing limits this flow network; give a capacity to an edge on every path"
_WHOLE = 2**30
"""Capacities are scaled to integers up to this, because the solver uses 32 bits."""
_TRACE = 1e-9
"""An edge with room for at most this share of the flow counts as full."""
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
        """A maximum flow from the source to the sink, by SciPy's solver."""
        flow = largest_flow(self)
        if flow.value > self.capacities[np.isfinite(self.capacities)].sum():
            raise AskedWrongly(_UNLIMITED)
        return flow

    def carrying(self, rate: float = math.inf) -> "Flow":
        """A flow of this value, or a maximum flow if that is less, by augmenting paths alone."""
        return Flow(self, np.zeros(len(self.capacities))).raised(rate)


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

    def improving(self) -> ImprovingNetwork:
        """The improving network: c - f along each edge, and f against it."""
        network = self.network
        edges = zip(
            network.tails.tolist(),
            network.heads.tolist(),
            network.capacities.tolist(),
            self.carried.tolist(),
            strict=True,
        )
        return ImprovingNetwork.of(edges, source=network.source, sink=network.sink)

    def raised(self, more: float = math.inf) -> "Flow":
        """The flow with so many more rows per second, or as many as there is room for.

        This is the loop of algorithm 2: as long as rows are left over and there is an augmenting
        path, send along it what it has room for (eq. 3).
        """
        flow = self
        # What counts as full is a share of the flow, not of a capacity: one edge may be so wide
        # that all the others together are but a trace of it.
        while more > (least := _TRACE * flow.value):
            path = flow.improving().path(least)
            if path is None:
                break
            sent = min(path.room, more)
            if math.isinf(sent):
                raise AskedWrongly(_UNLIMITED)
            flow = flow.augmented(path, sent)
            more -= sent
        return flow

    def augmented(self, path: AugmentingPath, more: float | None = None) -> "Flow":
        """The flow with `more` sent along a path of the improving network (eq. 3).

        Without `more` it is all that the path has room for.
        """
        network = self.network
        more = path.room if more is None else more
        place = {
            (int(tail), int(head)): index
            for index, (tail, head) in enumerate(zip(network.tails, network.heads, strict=True))
        }
        carried = self.carried.copy()
        for tail, head in pairwise(path.vertices):
            left = more
            back = place.get((head, tail))
            if back is not None:  # first reduce the flow in the opposite direction
                taken = min(left, float(carried[back]))
                carried[back] -= taken
                left -= taken
            if left > 0.0:
                carried[place[tail, head]] += left
        return Flow(network, np.minimum(carried, network.capacities))


def largest_flow(network: FlowNetwork) -> Flow:
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
    nothing = Flow(network, np.zeros(len(capacities)))
    if bound <= 0.0 or nothing.improving().path() is None:
        return nothing
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
