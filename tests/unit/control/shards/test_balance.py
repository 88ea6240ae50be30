"""Shard balance: what Elasticutor 3.1 promises, and what it cannot mend."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.control.measurement import (
    BatchMeasurement,
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.control.shards.balance import THETA, ShardLoads, balance, imbalance
from tidegate.control.shards.balancer import Balancer
from tidegate.control.shards.route import even_route, rerouted, rescaled
from tidegate.errors import AskedWrongly


@st.composite
def routed_loads(draw: st.DrawFn) -> tuple[list[float], list[int], int]:
    tasks = draw(st.integers(1, 8))
    shards = draw(st.integers(1, 40))
    rows = draw(st.lists(st.integers(0, 1000), min_size=shards, max_size=shards))
    loads = [float(count) for count in rows]
    route = draw(st.lists(st.integers(0, tasks - 1), min_size=shards, max_size=shards))
    return loads, route, tasks


@settings(max_examples=60, deadline=None)
@given(routed_loads(), st.floats(1.0, 2.0))
def test_balance_never_worsens_and_ends(
    case: tuple[list[float], list[int], int], theta: float
) -> None:
    loads, route, tasks = case
    answer = balance(loads, route, tasks, theta)
    assert len(answer.moves) <= len(loads)
    new = rerouted(tuple(route), answer.moves, tasks)
    assert imbalance(loads, new, tasks) == pytest.approx(answer.after)
    assert answer.after <= answer.before + 1e-9
    assert all(route[shard] != task for shard, task in answer.moves.items())
    if answer.before <= theta:
        assert not answer.moves


@settings(max_examples=60, deadline=None)
@given(routed_loads())
@example(([1.0, 20.0, 20.0, 20.0, 20.0, 20.0], [0] * 6, 6))
def test_it_stops_only_at_theta_or_where_no_single_move_helps(
    case: tuple[list[float], list[int], int],
) -> None:
    loads, route, tasks = case
    answer = balance(loads, route, tasks)
    if answer.after <= THETA or answer.hot is not None:
        return
    new = np.array(rerouted(tuple(route), answer.moves, tasks))
    totals = np.bincount(new, loads, tasks)
    full, empty = int(totals.argmax()), int(totals.argmin())
    for shard in np.flatnonzero(new == full):
        assert totals[empty] + loads[shard] >= totals[full] * (1 - 1e-9) or loads[shard] == 0.0


def test_zipf_shards_reach_theta_with_few_moves() -> None:
    rng = np.random.default_rng(2)
    weights = np.arange(1, 10_001.0) ** -0.5
    loads = np.bincount(rng.integers(0, 1024, 10_000), weights, 1024)
    route = even_route(1024, 64)
    answer = balance(loads, route, 64)
    assert answer.before > THETA >= answer.after
    assert len(answer.moves) <= 32
    assert answer.hot is None


def test_a_shard_hotter_than_a_task_is_said_and_not_chased() -> None:
    loads = np.ones(64)
    loads[5] = 100.0
    route = even_route(64, 8)
    answer = balance(loads, route, 8)
    assert answer.hot is not None and answer.hot.shard == 5
    assert answer.hot.share == pytest.approx(100.0 * 8 / loads.sum())
    again = balance(loads, rerouted(route, answer.moves, 8), 8)
    assert again.moves == {}, "what cannot improve is left alone"


def test_bad_input_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="never below 1"):
        balance([1.0], [0], 1, 0.9)
    with pytest.raises(AskedWrongly, match="tasks are 0 to 1"):
        balance([1.0, 1.0], [0, 2], 2)
    with pytest.raises(AskedWrongly, match="for each of its shards"):
        balance([1.0], [0, 1], 2)


def test_loads_fade_by_half_lives() -> None:
    loads = ShardLoads(half_life_s=2.0)
    assert loads.loads is None
    loads.observe([8, 0], 10.0)
    loads.observe([4, 4], 14.0)
    assert loads.loads is not None and loads.loads.tolist() == [6.0, 4.0]
    assert not loads.changed, "so few rows may differ by chance"


def test_loads_are_forgotten_when_other_keys_become_hot() -> None:
    random = np.random.default_rng(1)
    shares = 1.0 / np.arange(1.0, 257.0) ** 0.8
    shares /= shares.sum()
    for rows in (300, 3_000, 30_000):
        loads = ShardLoads()
        for second in range(200):
            loads.observe(random.multinomial(rows, shares), float(second))
            assert not loads.changed, f"chance alone, with {rows} rows"
        if rows > 1_000:
            fresh = random.multinomial(rows, shares[::-1])
            loads.observe(fresh, 200.0)
            assert loads.changed and loads.loads is not None
            assert loads.loads.tolist() == fresh.tolist()


def test_a_change_of_the_hot_keys_does_not_wait_for_the_next_turn() -> None:
    balancer = Balancer(every_batches=10)
    route = even_route(8, 2)
    calm, hot = [100] * 8, [600, 600, 20, 20, 20, 20, 20, 20]
    first = measured(calm, route, 2, 1.0)
    balancer.observe(first)
    assert balancer.moves(first, {}) == ({}, [])
    leapt = measured(hot, route, 2, 2.0)
    balancer.observe(leapt)
    found, _ = balancer.moves(leapt, {})
    assert found["count"].after < found["count"].before


def measured(rows: list[int], route: tuple[int, ...], tasks: int, at_s: float) -> Measurement:
    batch = BatchMeasurement(
        batch_id=1, rows=sum(rows), tasks=tasks, imbalance=1.0, duration_s=1.0, ended_s=at_s
    )
    operator = OperatorMeasurement(
        name="count",
        arrival_rate=1.0,
        service_rate=1.0,
        tasks=tasks,
        route=route,
        shard_rows=tuple(rows),
    )
    segment = SegmentMeasurement(
        name="main", arrival_rate=1.0, backlog_rows=0.0, tasks=tasks, batches=(batch,)
    )
    return Measurement(
        at_s=at_s,
        interval_s=1.0,
        arrival_rate=1.0,
        processed_rate=1.0,
        backlog_rows=0.0,
        cores_asked=tasks,
        cores_granted=tasks,
        saturated=False,
        operators=(operator,),
        segments=(segment,),
    )


def test_balancer_waits_for_batches_and_plans_for_the_tasks_to_come() -> None:
    balancer = Balancer(every_batches=2)
    rows = [50, 50, 1, 1, 1, 1, 1, 1]
    route = even_route(8, 2)
    first = measured(rows, route, 2, 1.0)
    balancer.observe(first)
    assert balancer.moves(first, {}) == ({}, [])
    balancer.observe(first)
    found, _ = balancer.moves(first, {})
    assert found["count"].before > 1.5 and found["count"].after <= THETA
    balancer.observe(first)
    wider, _ = balancer.moves(first, {"count": 4}, now=True)
    new = rerouted(rescaled(route, 4), wider["count"].moves, 4)
    assert imbalance(rows, new, 4) == pytest.approx(wider["count"].after)


@st.composite
def housed_loads(draw: st.DrawFn) -> tuple[list[float], list[int], list[str]]:
    """As `routed_loads`, with tasks on a few nodes; the loads may be alike or very different."""
    loads, route, tasks = draw(routed_loads())
    power = draw(st.sampled_from([0.3, 1.0, 2.0]))
    nodes = draw(st.lists(st.sampled_from("abc"), min_size=tasks, max_size=tasks))
    return [load**power for load in loads], route, nodes


def leaving(route: list[int], moves: Mapping[int, int], nodes: list[str]) -> int:
    return sum(nodes[route[shard]] != nodes[task] for shard, task in moves.items())


@settings(max_examples=100, deadline=None)
@given(housed_loads(), st.floats(1.0, 1.5))
def test_knowing_nodes_costs_no_more_than_theta_allows(
    case: tuple[list[float], list[int], list[str]], theta: float
) -> None:
    loads, route, nodes = case
    tasks = len(nodes)
    plain = balance(loads, route, tasks, theta)
    near = balance(loads, route, tasks, theta, nodes)
    new = rerouted(tuple(route), near.moves, tasks)
    assert imbalance(loads, new, tasks) == pytest.approx(near.after)
    assert near.crossing == leaving(route, near.moves, nodes)
    assert near.crossing <= leaving(route, plain.moves, nodes)
    assert near.hot == plain.hot
    if near.hot is None:
        assert near.after <= max(theta, plain.after) * (1.0 + 1e-12)
    else:  # as near to the floor as is as good as there
        assert near.after <= max(1.05 * near.hot.share, plain.after) * (1.0 + 1e-12)


def test_far_fewer_shards_leave_their_node() -> None:
    rng = np.random.default_rng(4)
    plain_leaving = near_leaving = 0
    for _ in range(60):
        tasks = int(rng.integers(2, 9)) * 4
        shards = 16 * tasks
        loads = rng.exponential(1.0, shards) ** 1.5
        route = rng.permutation(even_route(shards, tasks)).tolist()
        nodes = [f"node{task // 4}" for task in range(tasks)]
        plain_leaving += leaving(route, balance(loads, route, tasks).moves, nodes)
        near_leaving += leaving(route, balance(loads, route, tasks, nodes=nodes).moves, nodes)
    assert 0 < near_leaving < 0.6 * plain_leaving


def test_a_move_inside_the_node_is_taken_when_it_is_enough() -> None:
    loads, route, nodes = [6.0, 3.0, 4.0, 2.0], [0, 0, 1, 2], ("a", "a", "b")
    far = balance(loads, route, 3, 1.2, nodes)
    assert far.moves == {1: 2} and far.crossing == 1, "the task beside it would be too full"
    near = balance(loads, route, 3, 1.45, nodes)
    assert near.moves == {1: 1} and near.crossing == 0
    assert balance(loads, route, 3, 1.45).moves == {1: 2}, "without nodes: the emptiest task"


def test_nodes_of_other_tasks_are_refused_and_one_node_changes_nothing() -> None:
    loads, route = [9.0, 1.0, 1.0, 1.0], [0, 0, 1, 1]
    with pytest.raises(AskedWrongly, match="the node of each"):
        balance(loads, route, 2, THETA, ("a",))
    alone = balance(loads, route, 2, THETA, ("a", "a"))
    assert alone.moves == balance(loads, route, 2).moves and alone.crossing == 0


def test_the_balancer_knows_the_nodes_of_the_tasks_there_are() -> None:
    first = measured([60, 30, 40, 20], (0, 0, 1, 2), 3, 1.0)
    operator = dataclasses.replace(first.operators[0], nodes=("a", "a", "b"))
    first = dataclasses.replace(first, operators=(operator,))
    balancer = Balancer(theta=1.45, every_batches=1)
    balancer.observe(first)
    found, _ = balancer.moves(first, {})
    assert found["count"].moves == {1: 1} and found["count"].crossing == 0


def test_where_tasks_to_come_will_run_is_not_known() -> None:
    balancer = Balancer()
    first = measured([50, 50, 1, 1, 1, 1, 1, 1], even_route(8, 2), 2, 1.0)
    operator = dataclasses.replace(first.operators[0], nodes=("a", "b"))
    first = dataclasses.replace(first, operators=(operator,))
    balancer.observe(first)
    now, _ = balancer.moves(first, {}, now=True)
    wider, _ = balancer.moves(first, {"count": 3}, now=True)
    assert now["count"].crossing == len(now["count"].moves) > 0
    assert wider["count"].moves and wider["count"].crossing is None
