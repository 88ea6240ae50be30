"""A micro-batch pipeline as a flow network, against its definition and against trying all tasks."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.models.flow.cuts import least_cut_together, limiting_cuts
from tidegate.models.flow.stages import FIRST, WORTH, StageFlow, Vector


def flow_with(flow: StageFlow, tasks: Vector) -> StageFlow:
    return dataclasses.replace(flow, tasks=tasks)


@st.composite
def flows(draw: st.DrawFn) -> StageFlow:
    count = draw(st.integers(1, 5))
    segments = [draw(st.integers(0, 2)) for _ in range(count)]
    _, segments = np.unique(segments, return_inverse=True)
    demand = np.array([draw(st.floats(0.01, 20.0)) for _ in range(count)])
    tasks = np.array([float(draw(st.integers(1, 8))) for _ in range(count)])
    return StageFlow(segments.astype(np.int64), demand, tasks)


@settings(max_examples=60, deadline=None)
@given(flows(), st.floats(1.0, 1e5))
def test_it_is_the_least_cut_of_the_flow_network(flow: StageFlow, rate: float) -> None:
    """What is said by turns is what the network's cuts say."""
    network = flow.network(rate)
    cut = least_cut_together(network)
    worst = float(flow.loads.max())
    assert cut.capacity == pytest.approx(rate / worst, rel=1e-5)
    full = {int(s) for s in np.flatnonzero(flow.loads >= 0.85 * (1 + 1e-5))}
    near = {int(s) for s in np.flatnonzero(flow.loads >= 0.85 * (1 - 1e-5))}
    behind = {n - FIRST for one in limiting_cuts(network, rate) for n in one.first_operators}
    assert full <= behind <= near


@settings(max_examples=60, deadline=None)
@given(flows())
def test_a_gain_is_what_one_more_task_gives(flow: StageFlow) -> None:
    gains = flow.gains()
    for place in range(len(flow.tasks)):
        more = flow.tasks.copy()
        more[place] += 1.0
        real = flow.loads.max() / dataclasses.replace(flow, tasks=more).loads.max() - 1.0
        assert gains[place] == pytest.approx(real, abs=1e-9)
    worst = int(np.argmax(flow.loads))
    inside = flow.segments == worst
    assert gains[flow.first_behind(worst)] == pytest.approx(gains[inside].max())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.05, 3.0), min_size=1, max_size=3),
    st.floats(0.5, 1.0),
    st.integers(1, 7),
)
def test_the_fewest_tasks_are_on_the_fewest_cores(
    demand: list[float], load: float, most: int
) -> None:
    """On the fewest cores of all, and without tasks that save less than `WORTH` of the load."""
    count = len(demand)
    flow = StageFlow(np.zeros(count, np.int64), np.array(demand), np.ones(count))
    limit = np.full(count, float(most))
    tasks = flow.fewest_tasks(np.array([load]), np.ones(count), limit)
    assert ((tasks >= 1) & (tasks <= most)).all()
    every = itertools.product(range(1, most + 1), repeat=count)
    good = [c for c in every if sum(d / k for d, k in zip(demand, c, strict=True)) <= load]
    reached = dataclasses.replace(flow, tasks=tasks).loads[0]
    if good:
        assert reached <= load * (1.0 + count * WORTH + 1e-6)
        full = min(max(one) for one in good)
        for mine, needed in zip(tasks, demand, strict=True):
            spared = needed / full + WORTH * load + 1e-6
            assert mine == min(k for k in range(1, full + 1) if needed / k <= spared)
    else:
        assert reached <= flow_with(flow, limit).loads[0] + count * WORTH * load, "all there is"


def test_the_share_that_may_be_filled_and_what_does_not_limit() -> None:
    flow = StageFlow(np.array([0, 0, 1]), np.array([1.0, 1.0, 2.0]), np.array([4.0, 4.0, 4.0]))
    assert flow.widths.tolist() == [4.0, 4.0]
    assert flow.network(100.0).maximum_flow().value == pytest.approx(200.0)
    half = np.array([0.5, 1.0])
    assert flow.network(100.0, half).maximum_flow().value == pytest.approx(100.0)
    only = np.array([np.inf, 0.8])
    cut = least_cut_together(flow.network(100.0, only))
    assert cut.capacity == pytest.approx(160.0)
    assert cut.first_operators == (FIRST + 1,)


def test_hosted_operators_take_no_cores_beside_others() -> None:
    hosted = np.array([True, False, True])
    flow = StageFlow(
        np.array([0, 0, 1]), np.array([1.0, 1.0, 2.0]), np.array([12.0, 4.0, 3.0]), hosted
    )
    assert flow.widths.tolist() == [4.0, 3.0]
    assert flow.turns.tolist() == pytest.approx([1 / 4, 1 / 4, 2 / 3])
    wider = flow_with(flow, np.array([12.0, 6.0, 3.0]))
    assert wider.turns.tolist() == pytest.approx([1 / 6, 1 / 6, 2 / 3])
