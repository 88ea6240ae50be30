"""The flow network against a reference library and against trying every cut."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.flow.network import (
    LIMITING,
    Flow,
    FlowNetwork,
    least_cut_together,
    limiting_cuts,
    route_weights,
)
from tidegate.models.flow.regulation import (
    data_bandwidth,
    feedback_step,
    latency_capacity,
    link_capacity,
    regulated,
    task_capacity,
)

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
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(network.operators)))
    for tail, head, capacity in zip(network.tails, network.heads, network.capacities, strict=True):
        if math.isinf(capacity):
            graph.add_edge(int(tail), int(head))
        else:
            graph.add_edge(int(tail), int(head), capacity=float(capacity))
    return float(nx.maximum_flow_value(graph, network.source, network.sink))


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
    try:
        best = reference(network)
    except nx.NetworkXUnbounded:
        with pytest.raises(AskedWrongly, match="nothing limits"):
            network.maximum_flow()
        return
    flow = network.maximum_flow()
    assert_sound(flow)
    assert close(flow.value, best)
    cut = flow.least_cut()
    assert not cut.behind[network.source] and cut.behind[network.sink]
    assert close(cut.capacity, best)
    assert close(cut.carries(flow), best)


@settings(max_examples=50, deadline=None)
@given(networks(most=7, finite=True))
def test_augmenting_paths_alone_lead_to_the_same_flow(network: FlowNetwork) -> None:
    flow = Flow(network, np.zeros(len(network.capacities)))
    for _ in range(200):
        path, more = flow.augmenting_path(least=1e-9)
        if not path:
            break
        grown = flow.augmented(path, more)
        assert_sound(grown)
        assert close(grown.value, flow.value + more) and more > 0.0
        flow = grown
    assert close(flow.value, reference(network))


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
    path, more = crooked.augmenting_path()
    assert (path, more) == ([0, 2, 1, 3], 1.0)
    assert crooked.augmented(path, more).carried.tolist() == [1.0, 1.0, 0.0, 1.0, 1.0]


def test_rows_without_state_follow_the_room_of_tasks() -> None:
    """A map of three tasks, one of them half as fast, before a keyed operator of two."""
    edges = [(0, task, rate) for task, rate in ((1, 100.0), (2, 100.0), (3, 50.0))]
    edges += [(task, keyed, 1e9) for task in (1, 2, 3) for keyed in (4, 5)]
    edges += [(4, 6, 200.0), (5, 6, 200.0)]
    network = FlowNetwork.of(edges, source=0, sink=6, operators=[0, 2, 2, 2, 3, 3, 1])
    flow = network.maximum_flow()
    assert flow.value == pytest.approx(250.0)
    assert route_weights(flow, 2) == pytest.approx([0.4, 0.4, 0.2])
    assert least_cut_together(network).first_operators == (2,)
    none = Flow(network, np.zeros(len(network.capacities)))
    assert route_weights(none, 2) == pytest.approx([1 / 3] * 3)


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


def test_the_papers_first_capacity() -> None:
    """A hundred-megabit network is 12.5 MB/s (eq. 9); four links share it (eq. 10)."""
    data = data_bandwidth(12.5e6, 0.3e6, 0.1e6, 2.0e6, 0.1e6)
    assert data == pytest.approx(10e6)
    assert link_capacity(data, row_bytes=100.0, links=4) == pytest.approx(25_000.0)
    assert data_bandwidth(1.0, 2.0) == 0.0
    assert task_capacity(900.0, 25_000.0) == 900.0
    with pytest.raises(AskedWrongly, match="at least 1 link"):
        link_capacity(data, row_bytes=0.0)


def test_feedback_follows_the_latency() -> None:
    assert latency_capacity(0.004) == pytest.approx(250.0)
    assert feedback_step(0.004, 0.005) == pytest.approx(50.0)
    slow = regulated(1000.0, 900.0, latency_s=0.005, constraint_s=0.004)
    assert slow == pytest.approx(950.0)
    quick = regulated(1000.0, 990.0, latency_s=0.001, constraint_s=0.004)
    assert quick == pytest.approx(1750.0)
    assert regulated(1000.0, 100.0, latency_s=0.001, constraint_s=0.004) == 1000.0
    assert regulated(1000.0, 990.0, latency_s=0.003, constraint_s=0.004) == 1000.0
    with pytest.raises(AskedWrongly, match="above 0"):
        latency_capacity(0.0)


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6), st.floats(1e-4, 1e3), st.floats(1e-4, 1e3))
def test_no_step_of_the_feedback_leads_below_zero(
    capacity: float, flow: float, latency_s: float, constraint_s: float
) -> None:
    stepped = regulated(
        capacity, flow, latency_s=latency_s, constraint_s=constraint_s, at_once=flow * latency_s
    )
    assert stepped >= 0.0
