"""Shards are balanced by time where the tasks' executors differ in speed."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.control.shards.test_balance import measured
from tidegate.control.decision import hold
from tidegate.control.shards.balance import THETA, balance, imbalance
from tidegate.control.shards.balancer import Balancer
from tidegate.control.shards.route import even_route, rerouted
from tidegate.errors import AskedWrongly


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[float], list[int], list[float]]:
    tasks = draw(st.integers(1, 6))
    shards = draw(st.integers(1, 40))
    loads = [float(n) for n in draw(st.lists(st.integers(0, 99), min_size=shards, max_size=shards))]
    route = draw(st.lists(st.integers(0, tasks - 1), min_size=shards, max_size=shards))
    speeds = draw(st.lists(st.floats(0.1, 4.0), min_size=tasks, max_size=tasks))
    return loads, route, speeds


@settings(max_examples=80, deadline=None)
@given(cases())
def test_it_stops_only_at_theta_or_where_no_single_move_helps(
    case: tuple[list[float], list[int], list[float]],
) -> None:
    loads, route, speeds = case
    tasks = len(speeds)
    answer = balance(loads, route, tasks, THETA, (), speeds)
    new = np.array(rerouted(tuple(route), answer.moves, tasks))
    times = np.array([sum(np.array(loads)[new == t]) / speeds[t] for t in range(tasks)])
    if sum(loads):
        best = sum(loads) / sum(speeds)
        assert answer.after == pytest.approx(times.max() / best)
    assert answer.after <= answer.before + 1e-9
    if answer.after <= THETA or answer.hot is not None:
        return
    full, empty = int(times.argmax()), int(times.argmin())
    for shard in np.flatnonzero(new == full):
        there = times[empty] + loads[shard] / speeds[empty]
        assert there >= times[full] * (1 - 1e-9) or loads[shard] == 0.0


@settings(max_examples=60, deadline=None)
@given(cases())
def test_speeds_that_are_alike_change_nothing(
    case: tuple[list[float], list[int], list[float]],
) -> None:
    loads, route, speeds = case
    plain = balance(loads, route, len(speeds))
    alike = balance(loads, route, len(speeds), THETA, (), [1.0] * len(speeds))
    assert dataclasses.replace(alike, by_speed=False) == plain


def test_a_task_ten_times_as_slow_has_a_tenth_of_the_shards() -> None:
    route, speeds = even_route(256, 4), (1.0, 1.0, 1.0, 0.1)
    answer = balance(np.ones(256), route, 4, THETA, (), speeds)
    new = rerouted(route, answer.moves, 4)
    assert answer.before == pytest.approx(64 / 0.1 / (256 / 3.1))
    assert answer.after <= THETA
    assert 5 <= new.count(3) <= 10
    assert imbalance(np.ones(256), new, 4, speeds) == pytest.approx(answer.after)


def test_speeds_of_other_tasks_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="2 speeds for 3 tasks"):
        balance([1.0], [0], 3, THETA, (), [1.0, 1.0])
    with pytest.raises(AskedWrongly, match="above 0"):
        balance([1.0], [0], 2, THETA, (), [1.0, 0.0])


def slow(executors: tuple[str, ...] = ("a:/w/0", "b:/w/1", "c:/w/2", "d:/w/3"), route=None):
    base = measured([10] * 64, route or even_route(64, 4), 4, 1.0)
    told = {"task_rates": (100.0, 100.0, 100.0, 20.0) if executors else (), "executors": executors}
    operator = dataclasses.replace(base.operators[0], rows=640, **told)
    return dataclasses.replace(base, operators=(operator,))


def test_the_balancer_moves_shards_off_the_slow_executor_and_names_it() -> None:
    balancer = Balancer(every_batches=1)
    decisions = [balancer.balanced(hold("enough"), slow()) for _ in range(8)]
    first = next(one for one in decisions if one.moves)
    assert set(first.moves["count"].values()) <= {0, 1, 2}
    assert "its slowest task then takes" in first.reason
    assert first.reason.endswith("executor 3 on d is about 5 times as slow as the others")
    route = rerouted(even_route(64, 4), first.moves["count"], 4)
    assert not balancer.balanced(hold("enough"), slow(route=route)).moves, "they stay there"


def test_shards_stay_while_places_are_not_known_but_not_for_ever() -> None:
    balancer = Balancer(every_batches=1)
    for _ in range(8):
        decision = balancer.balanced(hold("enough"), slow())
        if decision.moves:
            break
    route = rerouted(even_route(64, 4), decision.moves["count"], 4)
    blind = [bool(balancer.balanced(hold("x"), slow((), route)).moves) for _ in range(12)]
    assert blind[:9] == [False] * 9 and any(blind[9:])
