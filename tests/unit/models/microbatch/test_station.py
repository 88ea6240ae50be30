"""The micro-batch station, by its formulas and by playing batches one after another."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
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
    st.floats(0.0, 1.0),
)
def test_latency_is_that_of_batches_played_one_by_one(
    fixed_s: float,
    per_task_s: float,
    rho: float,
    tasks: int,
    interval_s: float,
    delta: float,
    least_s: float,
) -> None:
    cost = BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=0.01, least_s=least_s)
    station = MicroBatchStation(
        cost=cost,
        arrival_rate=rho * tasks / (0.01 * delta),
        imbalance=delta,
        interval_s=interval_s,
    )
    assert station.load == pytest.approx(rho * tasks)
    assert station.latency(tasks) == pytest.approx(play(station, tasks), rel=1e-6)


def played_with_noise(station: MicroBatchStation, batches: int = 40_000) -> tuple[float, ...]:
    """p50, p95 and p99 of rows on one task, whose batches vary by the station's noise."""
    random = np.random.default_rng(3)
    noise = np.exp(station.noise * random.standard_normal(batches) - station.noise**2 / 2.0)
    duration_s = np.empty(batches)
    last_s = station.duration_s(1)
    for number in range(batches):
        last_s = station.cost.duration_s(station.arrival_rate * last_s, 1) * float(noise[number])
        duration_s[number] = last_s
    span_s = duration_s[:-1]
    sojourn_s = random.random((4, len(span_s))) * span_s + duration_s[1:]
    order = np.argsort(sojourn_s, axis=None)
    rows = np.cumsum(np.tile(span_s, 4)[order])
    places = np.searchsorted(rows / rows[-1], (0.5, 0.95, 0.99))
    return tuple(sojourn_s.ravel()[order][places].tolist())


@pytest.mark.parametrize("load", [0.2, 0.4, 0.6, 0.7])
@pytest.mark.parametrize("noise", [0.03, 0.08])
def test_rows_do_not_make_batches_vary_that_other_work_makes_last(
    load: float, noise: float
) -> None:
    """With a = 0.1 s and L = 0.3 s the rows take longer than L from a load of 0.75 on."""
    cost = BatchCost(fixed_s=0.1, work_s=load / 1000.0, least_s=0.3)
    station = MicroBatchStation(cost=cost, arrival_rate=1000.0, noise=noise)
    for share, played_s in zip((0.5, 0.95, 0.99), played_with_noise(station), strict=True):
        assert station.percentile(1, share) == pytest.approx(played_s, rel=0.015)


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


def test_no_leap_is_met_by_a_station_that_cannot_keep_up() -> None:
    station = MicroBatchStation(cost=SPARK, arrival_rate=500.0)
    assert math.isinf(station.surge_latency(4, 2.0))
