"""The micro-batch station, by its formulas and by playing batches one after another."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost, chance_imbalance
from tidegate.models.microbatch.station import MicroBatchStation

SPARK = BatchCost(fixed_s=0.325, per_task_s=0.0, work_s=0.01)


def play(station: MicroBatchStation, tasks: int, batches: int = 400) -> float:
    """Mean latency of a fluid of rows over batches that each take what came during the last."""
    begin_s, ready_s = 0.0, 0.0  # rows that arrived in [begin, ready) form the next batch
    latency_s = rows = 0.0
    for batch in range(batches):
        duration_s = station.cost.duration_s(
            station.arrival_rate * (ready_s - begin_s), tasks, station.imbalance
        )
        done_s = ready_s + duration_s
        if batch > batches // 2:
            count = station.arrival_rate * (ready_s - begin_s)
            latency_s += count * (done_s - (begin_s + ready_s) / 2.0)
            rows += count
        begin_s = ready_s
        ready_s = max(done_s, begin_s + station.interval_s)
    return latency_s / rows


@pytest.mark.parametrize(("rho", "measured_s"), [(0.25, 0.59), (0.50, 0.86), (0.75, 1.71)])
def test_formula_is_near_what_spark_was_measured_to_do(rho: float, measured_s: float) -> None:
    station = MicroBatchStation(cost=SPARK, arrival_rate=rho * 4 / 0.01)
    assert station.latency(4) == pytest.approx(measured_s, rel=0.2)


@settings(max_examples=100, deadline=None)
@given(
    st.floats(0.01, 1.0),
    st.floats(0.0, 0.05),
    st.floats(0.05, 0.9),
    st.integers(1, 12),
    st.floats(0.0, 3.0),
    st.floats(1.0, 2.0),
)
def test_latency_is_that_of_batches_played_one_by_one(
    fixed_s: float, per_task_s: float, rho: float, tasks: int, interval_s: float, delta: float
) -> None:
    cost = BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=0.01)
    station = MicroBatchStation(
        cost=cost,
        arrival_rate=rho * tasks / (0.01 * delta),
        imbalance=delta,
        interval_s=interval_s,
    )
    assert station.load == pytest.approx(rho * tasks)
    assert station.latency(tasks) == pytest.approx(play(station, tasks), rel=1e-6)


def test_it_is_stable_from_the_first_task_beyond_its_load() -> None:
    station = MicroBatchStation(cost=SPARK, arrival_rate=400.0)
    assert station.stable_from == 5
    assert station.latency(4) == math.inf
    assert station.latency(5) == pytest.approx(1.5 * 0.325 / (1 - 0.8))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 50), st.floats(0.05, 20.0), st.sampled_from([0.0, 0.5, 2.0]))
def test_throughput_is_where_the_latency_meets_its_bound(
    tasks: int, latency_s: float, interval_s: float
) -> None:
    cost = BatchCost(fixed_s=0.1, per_task_s=0.004, work_s=0.002)
    rate = cost.throughput(tasks, latency_s, imbalance=1.2, interval_s=interval_s)

    def at(rate: float) -> float:
        return MicroBatchStation(
            cost=cost, arrival_rate=rate, imbalance=1.2, interval_s=interval_s
        ).latency(tasks)

    if rate > 0.0:
        assert at(rate) == pytest.approx(latency_s, rel=1e-9)
    else:
        assert at(0.0) >= latency_s * (1 - 1e-12)


def test_throughput_without_work_has_no_bound() -> None:
    assert BatchCost(fixed_s=0.1, work_s=0.0).throughput(4, 1.0) == math.inf


def test_senseless_costs_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="negative"):
        BatchCost(fixed_s=-0.1, work_s=1.0)
    with pytest.raises(AskedWrongly, match="imbalance"):
        MicroBatchStation(cost=SPARK, arrival_rate=1.0, imbalance=0.5)


@pytest.mark.parametrize(("rows", "tasks"), [(100, 4), (150, 16), (2000, 16), (60, 3)])
def test_rows_that_fall_by_chance_are_as_uneven_as_drawn(rows: int, tasks: int) -> None:
    drawn = np.random.default_rng(1).multinomial(rows, [1 / tasks] * tasks, size=4000)
    found = float(np.mean(drawn.max(axis=1))) * tasks / rows
    assert chance_imbalance(rows, tasks) == pytest.approx(found, rel=0.04)
    assert chance_imbalance(rows, 1) == 1.0


@settings(max_examples=100, deadline=None)
@given(
    st.floats(0.01, 1.0),
    st.floats(0.05, 0.9),
    st.integers(1, 12),
    st.floats(0.0, 3.0),
    st.floats(1.0, 4.0),
)
def test_the_first_batch_of_a_leap_is_the_one_that_is_played(
    fixed_s: float, rho: float, tasks: int, interval_s: float, factor: float
) -> None:
    cost = BatchCost(fixed_s=fixed_s, per_task_s=0.01, work_s=0.01)
    rate = rho * tasks / 0.01
    station = MicroBatchStation(cost=cost, arrival_rate=rate, interval_s=interval_s)
    period_s = max(station.duration_s(tasks), interval_s)
    rows = factor * rate * period_s  # came during a steady batch, `factor` times as fast
    waited_s = period_s / 2.0
    expected_s = waited_s + cost.duration_s(rows, tasks)
    assert station.surge_latency(tasks, factor) == pytest.approx(expected_s, rel=1e-6)
    assert station.surge_latency(tasks, 1.0) == pytest.approx(station.latency(tasks), rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(
    st.floats(0.01, 0.5),
    st.sampled_from([0.0, 0.003, 0.05]),
    st.integers(1, 200),
    st.floats(0.1, 4.0),
    st.sampled_from([0.0, 0.3, 2.0]),
)
def test_the_most_throughput_is_that_of_the_best_number_of_tasks(
    fixed_s: float, per_task_s: float, most: int, target_s: float, interval_s: float
) -> None:
    cost = BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=0.01)
    tried = [cost.throughput(k, target_s, interval_s=interval_s) for k in range(1, most + 1)]
    found = cost.most_throughput(most, target_s, interval_s=interval_s)
    assert found <= max(tried) * (1 + 1e-9)
    assert found >= 0.97 * max(tried)


def test_no_leap_is_met_by_a_station_that_cannot_keep_up() -> None:
    station = MicroBatchStation(cost=SPARK, arrival_rate=500.0)
    assert math.isinf(station.surge_latency(4, 2.0))
