"""Cuts of a flow network: the smallest one, and all that limit a flow (Flink-ER 2.3, eq. 11).

A cut D = (X, Y) divides the vertices, with the source in X and the sink in Y. The smallest one that
keeps the tasks of each operator on one side (eq. 4) limits the whole topology, and the operators
right behind it need more tasks. From 85 % on a cut counts as limiting.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly
from tidegate.models.flow.limiting import LIMITING
from tidegate.models.flow.network import Flow, FlowNetwork, largest_flow

_FULL = 1e-6
"""An edge with room for at most this share of the flow counts as full."""


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


def least_cut(flow: Flow) -> Cut:
    """The cut that this flow fills, if it is a maximum flow (max flow = min cut).

    Of several such cuts it is the one nearest to the source.
    """
    network = flow.network
    reached = flow.improving().reached(_FULL * flow.value)
    behind = np.ones(len(network.operators), dtype=np.bool_)
    behind[list(reached)] = False
    return Cut(network, behind)


def least_cut_together(network: FlowNetwork) -> Cut:
    """The minimum cut that keeps every operator's tasks on one side (eq. 4), over the operators."""
    return least_cut(network.together().maximum_flow())


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
    return Cut(network, least_cut(largest_flow(joined)).behind)
