"""Rows are dealt as a maximum flow through the tasks would have it, and slots keep to that."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.flow.cuts import least_cut_together
from tidegate.models.flow.deal import redealt, route_weights, slot_route
from tidegate.models.flow.network import Flow, FlowNetwork

RATES = st.lists(st.floats(1.0, 1e4), min_size=1, max_size=6)


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


@st.composite
def deals(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    rates = draw(RATES)
    shares = [draw(st.floats(0.0, 1.0)) for _ in rates]
    return (shares if sum(shares) > 0.01 else [1.0] * len(rates)), rates


@settings(max_examples=80, deadline=None)
@given(deals())
def test_augmenting_paths_lead_from_any_deal_to_the_best(
    deal: tuple[list[float], list[float]],
) -> None:
    """A stage is done when its slowest task is: no shares are done before rows over all rates."""
    shares, rates = deal
    better, gain = redealt(shares, rates)
    assert better.sum() == pytest.approx(1.0)
    assert better == pytest.approx(np.array(rates) / sum(rates), rel=1e-6)
    before = max(s / sum(shares) / r for s, r in zip(shares, rates, strict=True))
    after = max(s / r for s, r in zip(better, rates, strict=True))
    assert gain == pytest.approx(before / after - 1.0, rel=1e-6, abs=1e-6)
    assert redealt(better.tolist(), rates)[1] == pytest.approx(0.0, abs=1e-6)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(0.05, 1.0), min_size=1, max_size=3), st.integers(1, 9))
def test_no_other_slots_are_done_earlier(shares: list[float], slots: int) -> None:
    route = slot_route(shares, slots)
    assert len(route) == slots
    counts = np.bincount(np.array(route), minlength=len(shares))
    every = itertools.product(range(slots + 1), repeat=len(shares))
    best = min(
        max(n / s for n, s in zip(some, shares, strict=True))
        for some in every
        if sum(some) == slots
    )
    assert max(n / s for n, s in zip(counts, shares, strict=True)) == pytest.approx(best)


def test_equal_tasks_take_turns() -> None:
    assert slot_route([0.25] * 4, 8) == (0, 1, 2, 3, 0, 1, 2, 3)
    fast = slot_route([0.4, 0.4, 0.2], 10)
    assert [fast.count(task) for task in range(3)] == [4, 4, 2]
    assert 2 not in (fast[0], fast[1]) and fast[:5].count(2) == 1, "a task's slots lie apart"
    assert slot_route([0.0, 1.0], 3) == (1, 1, 1)


def test_what_is_no_deal_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="for each task"):
        redealt([0.5, 0.5], [1.0])
    with pytest.raises(AskedWrongly, match="above 0"):
        redealt([1.0], [0.0])
    with pytest.raises(AskedWrongly, match="one above 0"):
        slot_route([0.0, 0.0], 4)
