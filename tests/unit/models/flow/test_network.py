"""The flow network against a reference library and against trying every cut."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.flow.cuts import least_cut, least_cut_together, limiting_cuts
from tidegate.models.flow.improving import AugmentingPath
from tidegate.models.flow.limiting import LIMITING
from tidegate.models.flow.network import Flow, FlowNetwork

CAPACITIES = st.one_of(
    st.just(0.0), st.floats(1e-3, 1e6), st.integers(1, 9).map(float), st.just(math.inf)
)


@st.composite
def networks(draw: st.DrawFn, most: int = 9, finite: bool = False) -> FlowNetwork:
    """Any edges between a few vertices, loops and edges in both directions too."""
    size = draw(st.integers(3, most))
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=24, unique=True))
    capacities = CAPACITIES.filter(math.isfinite) if finite else CAPACITIES
    edges = [(a, b, draw(capacities)) for a, b in chosen]
    inner = draw(st.lists(st.integers(2, 4), min_size=size - 2, max_size=size - 2))
    return FlowNetwork.of(edges, source=0, sink=size - 1, operators=[0, *inner, 1])


def reference(network: FlowNetwork) -> float:
    """The maximum flow of the reference library; infinite if nothing limits it."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(network.operators)))
    for tail, head, capacity in zip(network.tails, network.heads, network.capacities, strict=True):
        if math.isinf(capacity):
            graph.add_edge(int(tail), int(head))
        else:
            graph.add_edge(int(tail), int(head), capacity=float(capacity))
    try:
        return float(nx.maximum_flow_value(graph, network.source, network.sink))
    except nx.NetworkXUnbounded:
        return math.inf


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)


def assert_sound(flow: Flow) -> None:
    network = flow.network
    assert (flow.carried >= 0.0).all() and (flow.carried <= network.capacities).all()
    net = np.zeros(len(network.operators))
    np.add.at(net, network.heads, flow.carried)
    np.subtract.at(net, network.tails, flow.carried)
    inner = np.delete(net, [network.source, network.sink])
    assert np.allclose(inner, 0.0, atol=1e-9 * max(flow.value, 1.0))


@settings(max_examples=80, deadline=None)
@given(networks())
def test_the_maximum_flow_and_its_cut_are_the_reference_librarys(network: FlowNetwork) -> None:
    best = reference(network)
    if math.isinf(best):
        with pytest.raises(AskedWrongly, match="nothing limits"):
            network.maximum_flow()
        return
    flow = network.maximum_flow()
    assert_sound(flow)
    assert close(flow.value, best)
    cut = least_cut(flow)
    assert not cut.behind[network.source] and cut.behind[network.sink]
    assert close(cut.capacity, best)
    assert close(cut.carries(flow), best)


@settings(max_examples=50, deadline=None)
@given(networks(most=7, finite=True))
def test_augmenting_paths_alone_lead_to_the_same_flow(network: FlowNetwork) -> None:
    flow = Flow(network, np.zeros(len(network.capacities)))
    for _ in range(200):
        path = flow.improving().path(least=1e-9)
        if path is None:
            break
        grown = flow.augmented(path)
        assert_sound(grown)
        assert close(grown.value, flow.value + path.room) and path.room > 0.0
        flow = grown
    assert close(flow.value, reference(network))


@settings(max_examples=60, deadline=None)
@given(networks(), st.floats(0.1, 1e7))
def test_as_much_as_there_is_room_for_is_carried(network: FlowNetwork, rate: float) -> None:
    """Algorithm 2: all rows that arrive if a maximum flow takes them, else the maximum flow."""
    most = reference(network)
    flow = network.carrying(rate)
    assert_sound(flow)
    assert close(flow.value, min(rate, most))
    assert flow.value <= rate * (1 + 1e-9)
    if most <= rate * (1 - 1e-6):
        assert flow.improving().path(least=1e-6 * rate) is None
        assert close(least_cut(flow).capacity, most)


@settings(max_examples=60, deadline=None)
@given(networks(finite=True), st.floats(0.1, 1e4))
def test_the_improving_network_has_the_room_of_both_directions(
    network: FlowNetwork, rate: float
) -> None:
    """c - f along an edge and f against it: together always what the edges can carry."""
    flow = network.carrying(rate)
    room = flow.improving().room
    table: dict[tuple[int, int], float] = {}
    for tail, head, capacity in zip(network.tails, network.heads, network.capacities, strict=True):
        table[int(tail), int(head)] = float(capacity)
    for one, other in table:
        there = room.get(one, {}).get(other, 0.0)
        back = room.get(other, {}).get(one, 0.0)
        assert there >= 0.0 and back >= 0.0
        assert close(there + back, table[one, other] + table.get((other, one), 0.0))


def cuts(network: FlowNetwork) -> list[tuple[frozenset[int], float, set[int]]]:
    """Every partition of the operators: those in Y, the capacity, the first ones behind it."""
    source, sink = (int(network.operators[end]) for end in (network.source, network.sink))
    inner = sorted({int(number) for number in network.operators} - {source, sink})
    found = []
    for count in range(len(inner) + 1):
        for some in itertools.combinations(inner, count):
            behind = {*some, sink}
            capacity, first = 0.0, set()
            for tail, head, one in zip(
                network.tails, network.heads, network.capacities, strict=True
            ):
                a, b = int(network.operators[tail]), int(network.operators[head])
                if a not in behind and b in behind:
                    capacity += one
                    first.add(b)
            found.append((frozenset(behind), capacity, first))
    return found


@settings(max_examples=80, deadline=None)
@given(networks())
def test_with_tasks_kept_together_it_is_the_least_of_all_cuts(network: FlowNetwork) -> None:
    least = min(capacity for _, capacity, _ in cuts(network))
    if math.isinf(least):
        return
    cut = least_cut_together(network)
    assert close(cut.capacity, least)
    assert least >= reference(network) * (1 - 1e-6)


@settings(max_examples=80, deadline=None)
@given(networks(finite=True), st.floats(LIMITING, 1.0), st.floats(0.5, 1.0))
def test_all_limiting_cuts_are_found(network: FlowNetwork, share: float, part: float) -> None:
    value = part * min(capacity for _, capacity, _ in cuts(network))
    if value <= 0.0:
        assert not limiting_cuts(network, value, share)
        return
    # Cuts on the very edge of the criterion may fall on either side.
    surely = {
        name for _, c, first in cuts(network) for name in first if value >= share * c * (1 + 1e-5)
    }
    perhaps = {
        name for _, c, first in cuts(network) for name in first if value >= share * c * (1 - 1e-5)
    }
    found = limiting_cuts(network, value, share)
    named = {name for cut in found for name in cut.first_operators}
    assert surely <= named <= perhaps | surely


def test_a_flow_that_must_turn_back() -> None:
    """The way s-a-b-t is found first and must be taken back for the best flow."""
    edges = [(0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)]
    network = FlowNetwork.of(edges, source=0, sink=3, operators=[0, 2, 3, 1])
    crooked = Flow(network, np.array([1.0, 0.0, 1.0, 0.0, 1.0]))
    path = crooked.improving().path()
    assert path == AugmentingPath((0, 2, 1, 3), 1.0)
    assert crooked.augmented(path).carried.tolist() == [1.0, 1.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("small", [1e-6, 1.0, 1e9])
def test_a_narrow_edge_in_a_wide_network_is_exact(small: float) -> None:
    edges = [(0, 1, 1e15), (1, 2, small), (2, 3, 1e15)]
    network = FlowNetwork.of(edges, source=0, sink=3, operators=[0, 2, 3, 1])
    assert network.maximum_flow().value == pytest.approx(small, rel=1e-8)


def test_wrong_networks_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="does not fit"):
        FlowNetwork.of([(0, 5, 1.0)], source=0, sink=1, operators=[0, 1])
    with pytest.raises(AskedWrongly, match="at least 0"):
        FlowNetwork.of([(0, 1, -1.0)], source=0, sink=1, operators=[0, 1])
    with pytest.raises(AskedWrongly, match="two operators"):
        FlowNetwork.of([(0, 1, 1.0)], source=0, sink=1, operators=[0, 0])
    network = FlowNetwork.of([(0, 1, 1.0)], source=0, sink=1, operators=[0, 1])
    with pytest.raises(AskedWrongly, match=r"0\.85 to 1"):
        limiting_cuts(network, 1.0, 0.5)
