"""Shard balance: what Elasticutor 3.1 promises, and what it cannot mend."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.control.balance import THETA, Balancer, ShardLoads, balance, imbalance
from tidegate.control.measurement import (
    BatchMeasurement,
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.control.route import even_route, rerouted, rescaled
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
    with pytest.raises(AskedWrongly, match="not among the 2"):
        balance([1.0, 1.0], [0, 2], 2)
    with pytest.raises(AskedWrongly, match="as many loads"):
        balance([1.0], [0, 1], 2)


def test_loads_fade_by_half_lives() -> None:
    loads = ShardLoads(half_life_s=2.0)
    assert loads.loads is None
    loads.observe([8, 0], 10.0)
    loads.observe([0, 8], 14.0)
    assert loads.loads is not None and loads.loads.tolist() == [2.0, 8.0]


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
