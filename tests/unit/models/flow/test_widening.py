"""The next task goes where the flow gains most: against trying every task and every allocation."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.models.flow.test_stages import flows
from tidegate.models.flow.stages import WORTH, StageFlow, Vector
from tidegate.models.flow.widening import (
    TaskLimits,
    behind_least_cut,
    next_task,
    widened,
    with_tasks,
)

RATE = 1000.0


def most_carried(flow: StageFlow) -> float:
    return RATE / float(flow.loads.max())


def limits(flow: StageFlow, cores: float, most: float = np.inf) -> TaskLimits:
    count = len(flow.tasks)
    return TaskLimits(np.ones(count), np.full(count, most), cores)


def all_widened(flow: StageFlow, cores: float, *, load: float, most: float = np.inf) -> Vector:
    segments = len(flow.loads)
    return widened(
        flow,
        RATE,
        np.ones(segments),
        segments=range(segments),
        loads=np.full(segments, load),
        limits=limits(flow, cores, most),
    )


@settings(max_examples=80, deadline=None)
@given(flows())
def test_a_task_gives_the_room_that_is_said(flow: StageFlow) -> None:
    """The augmenting path's room is how much more the widened network carries."""
    usable = np.ones(len(flow.loads))
    segment, carried = behind_least_cut(flow, RATE, usable)
    assert carried.value == pytest.approx(most_carried(flow), rel=1e-6)
    assert flow.loads[segment] == pytest.approx(flow.loads.max(), rel=1e-5)
    one = next_task(flow, RATE, usable, np.full(len(flow.tasks), np.inf), segment, carried)
    assert one is not None and flow.segments[one.operator] == segment
    gained = {
        place: most_carried(with_tasks(flow, place, flow.tasks[place] + 1.0)) - carried.value
        for place in range(len(flow.tasks))
    }
    assert one.room == pytest.approx(gained[one.operator], rel=1e-5, abs=1e-6 * carried.value)
    assert one.core == (flow.tasks[one.operator] == flow.widths[segment])
    if one.core:
        equals = {p for p in gained if flow.tasks[p] == flow.widths[flow.segments[p]]}
        best = max(gained[place] for place in equals)
        assert one.room == pytest.approx(best, rel=1e-5, abs=1e-5 * carried.value)


def test_two_cuts_that_are_equally_full_get_a_task_each() -> None:
    """One task alone opens no path; the one nearer to the source comes first."""
    flow = StageFlow(np.array([0, 1]), np.array([2.0, 2.0]), np.array([2.0, 2.0]))
    usable = np.ones(2)
    segment, carried = behind_least_cut(flow, RATE, usable)
    one = next_task(flow, RATE, usable, np.full(2, 9.0), segment, carried)
    assert one is not None and (one.operator, one.room) == (0, 0.0)
    flow = with_tasks(flow, 0, 3.0)
    segment, carried = behind_least_cut(flow, RATE, usable)
    one = next_task(flow, RATE, usable, np.full(2, 9.0), segment, carried)
    assert one is not None and one.operator == 1
    assert one.room == pytest.approx(500.0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.05, 6.0), min_size=1, max_size=3),
    st.integers(0, 5),
    st.integers(1, 6),
)
def test_spare_cores_carry_as_much_as_any_division_of_them(
    demand: list[float], spare: int, most: int
) -> None:
    """Segments of one stage each, in a row: no other allocation of the cores carries more."""
    count = len(demand)
    flow = StageFlow(np.arange(count), np.array(demand), np.ones(count))
    cores = count + spare
    tasks = all_widened(flow, cores, load=1e-9, most=float(most))
    assert tasks.sum() <= cores and (tasks <= most).all()
    best = max(
        min(k / d for k, d in zip(some, demand, strict=True))
        for some in itertools.product(range(1, most + 1), repeat=count)
        if sum(some) <= cores
    )
    got = 1.0 / float(dataclasses.replace(flow, tasks=tasks).loads.max())
    assert got == pytest.approx(best, rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(flows(), st.floats(0.4, 1.0))
def test_a_load_is_reached_on_the_fewest_cores(flow: StageFlow, load: float) -> None:
    """From one task each. With w cores no stage has more than w tasks: sum d / w is the least."""
    flow = dataclasses.replace(flow, tasks=np.ones(len(flow.tasks)))
    reached = dataclasses.replace(flow, tasks=all_widened(flow, np.inf, load=load))
    assert (reached.loads <= load * (1.0 + 1e-9)).all()
    for segment, width in enumerate(reached.widths):
        part = flow.segments == segment
        slack = 1.0 + part.sum() * WORTH  # stages do without tasks that are not worth it
        assert width <= max(np.ceil(flow.demand[part].sum() * slack / load), 1.0)


def test_a_stage_narrower_than_its_segment_costs_no_core() -> None:
    flow = StageFlow(np.array([0, 0]), np.array([2.0, 2.0]), np.array([1.0, 4.0]))
    tasks = all_widened(flow, 4.0, load=0.1)
    assert tasks.tolist() == [4.0, 4.0]
    light = StageFlow(np.array([0, 0]), np.array([0.005, 3.0]), np.array([1.0, 4.0]))
    assert all_widened(light, 4.0, load=0.1).tolist() == [1.0, 4.0], "not worth being started"


def test_a_segment_with_room_gives_a_core_up() -> None:
    """All cores are taken; the emptiest segment gives, and none below its own load."""
    flow = StageFlow(np.array([0, 1, 2]), np.array([0.4, 3.0, 1.9]), np.array([4.0, 3.0, 3.0]))
    tasks = widened(
        flow,
        RATE,
        np.ones(3),
        segments=[1],
        loads=np.full(3, 0.7),
        limits=limits(flow, 10.0),
    )
    assert tasks.tolist() == [2.0, 5.0, 3.0]


def test_what_may_not_grow_is_left_and_the_others_go_on() -> None:
    flow = StageFlow(np.array([0, 1]), np.array([4.0, 3.0]), np.array([2.0, 2.0]))
    most = TaskLimits(np.ones(2), np.array([2.0, 9.0]), 12.0)
    tasks = widened(flow, RATE, np.ones(2), segments=[0, 1], loads=np.full(2, 0.7), limits=most)
    assert tasks.tolist() == [2.0, 5.0]


@settings(max_examples=60, deadline=None)
@given(flows(), st.integers(1, 30), st.floats(0.2, 1.0))
def test_no_limit_is_broken(flow: StageFlow, spare: int, load: float) -> None:
    cores = float(flow.widths.sum()) + spare
    assume(cores <= 60)
    before = float(flow.loads.max())
    after = dataclasses.replace(flow, tasks=all_widened(flow, cores, load=load, most=16.0))
    assert after.widths.sum() <= cores and (after.tasks <= np.maximum(flow.tasks, 16.0)).all()
    assert (after.tasks >= 1.0).all()
    assert after.loads.max() <= max(before, load) * (1 + 1e-9)


def test_a_segment_gives_up_a_core_although_a_map_in_it_has_no_tasks_of_its_own() -> None:
    flow = StageFlow(
        np.array([0, 0, 1]),
        np.array([0.01, 0.4, 3.0]),
        np.array([4.0, 4.0, 3.0]),
        np.array([True, False, False]),
    )
    fixed = TaskLimits(np.array([4.0, 1.0, 1.0]), np.array([4.0, 9.0, 9.0]), 7.0)
    tasks = widened(flow, RATE, np.ones(2), segments=[1], loads=np.full(2, 0.7), limits=fixed)
    assert tasks.tolist() == [4.0, 2.0, 5.0]


def test_a_segment_that_is_hardly_used_does_not_hide_the_least_cut() -> None:
    """Its capacity is ten billion times that of the other."""
    flow = StageFlow(np.array([0, 1]), np.array([3.0, 3e-10]), np.ones(2))
    segment, carried = behind_least_cut(flow, RATE, np.ones(2))
    assert segment == 0 and carried.value == pytest.approx(RATE / 3.0)
