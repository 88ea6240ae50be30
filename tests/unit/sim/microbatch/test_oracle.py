"""The oracle against exhaustive search, closed forms and the cheapest static allocation."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.sequence import total_latency
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.sim.microbatch.oracle import Oracle, OracleSegment, oracle
from tidegate.workload.profile import Profile, constant, steps

BALANCED = np.ones(32)


def segment(fixed_s: float, work_s: float, per_task_s: float = 0.0) -> OracleSegment:
    """A balanced segment."""
    cost = BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=work_s)
    return OracleSegment(cost=cost, imbalances=BALANCED)


def exhaustive(
    load: Profile, seconds: float, one: OracleSegment, target_s: float, cores: list[int]
) -> tuple[float, float]:
    """The least (late seconds, core-seconds) over every chain of batches, without a grid."""
    best = (math.inf, math.inf)

    def go(at_s: float, before_s: float, late_s: float, cost: float) -> None:
        nonlocal best
        if (late_s, cost) >= best:
            return
        if at_s >= seconds - 1e-9:
            best = (late_s, cost)
            return
        times_s = np.linspace(before_s, at_s, 201)
        arrived = load.cumulative(np.rint(times_s * 1000).astype(np.int64))
        rows = float(arrived[-1] - arrived[0])
        if rows <= 1e-9:
            go(at_s + 0.01, before_s, late_s, cost + 0.01 * cores[0])
            return
        waits_s = float(np.trapezoid(arrived - arrived[0], times_s)) / rows
        for k in cores:
            lasts_s = one.cost.duration_s(rows, k)
            until_s = min(at_s + lasts_s, seconds) - at_s
            late = until_s if waits_s + lasts_s > target_s else 0.0
            go(at_s + lasts_s, at_s, late_s + late, cost + k * until_s)

    go(0.0, 0.0, 0.0, 0.0)
    return best


@settings(max_examples=10, deadline=None)
@given(
    st.floats(0.3, 0.8),
    st.floats(0.002, 0.01),
    st.lists(st.floats(50.0, 400.0), min_size=3, max_size=3),
)
def test_it_is_the_best_of_all_chains_of_batches(
    fixed_s: float, work_s: float, rates: list[float]
) -> None:
    load = steps([(1.4 * n, rate) for n, rate in enumerate(rates)])
    one, cores = segment(fixed_s, work_s), [1, 2, 4]
    found = oracle(load, 4.0, [one], Target(2.5), cores)
    # Batches end on a grid of time, so a target that is just held or missed may go either way.
    loose_late_s, loose_cost = exhaustive(load, 4.0, one, 2.6, cores)
    late_s, cost = exhaustive(load, 4.0, one, 2.4, cores)
    assert 1.0 - late_s / 4.0 - 0.03 <= found.within <= 1.0 - loose_late_s / 4.0 + 0.03
    if late_s == 0.0:
        assert 0.9 * loose_cost <= found.core_seconds <= 1.1 * cost


@settings(max_examples=15, deadline=None)
@given(st.floats(20.0, 2000.0), st.floats(0.05, 0.4), st.floats(1.0, 4.0))
def test_a_steady_load_costs_what_the_fewest_cores_cost(
    rate: float, fixed_s: float, target_s: float
) -> None:
    one = segment(fixed_s, 0.004)
    station = MicroBatchStation(cost=one.cost, arrival_rate=rate)
    found = oracle(constant(rate), 30.0, [one], Target(target_s), range(1, 33))
    needed = next((k for k in range(1, 33) if station.latency(k) <= target_s), None)
    if needed is None:
        assert found.within < 1.0
    else:
        assert found.within == 1.0
        # Alternating between two numbers of cores may cost less than the larger of them.
        # At both ends a shorter time is enough: nothing waits yet, and the last rows may wait.
        assert (needed - 1) * (30.0 - 2.0 * target_s) <= found.core_seconds
        assert found.core_seconds <= needed * 30.0 * 1.01


def test_it_never_costs_more_than_a_static_allocation_that_holds_the_target() -> None:
    load = steps([(0.0, 200.0), (20.0, 800.0), (40.0, 200.0)])
    one = segment(0.4, 0.007)
    station = MicroBatchStation(cost=one.cost, arrival_rate=800.0)
    peak = next(k for k in range(1, 33) if station.latency(k) <= 2.0)
    found = oracle(load, 60.0, [one], Target(2.0), range(1, 33))
    assert found.within == 1.0
    assert found.core_seconds < 0.7 * peak * 60.0
    assert len(found.cores) == 60
    assert found.cores[30] > 3 * found.cores[10]


def test_cores_of_the_schedule_add_up_to_its_cost() -> None:
    load = steps([(0.0, 200.0), (30.0, 600.0)])
    found = oracle(load, 60.0, [segment(0.3, 0.005)], Target(1.5), range(2, 17))
    assert found.cores.mean() * 60.0 == pytest.approx(found.core_seconds, rel=0.05)


def test_a_looser_target_never_costs_more() -> None:
    load = steps([(0.0, 100.0), (10.0, 700.0), (20.0, 300.0)])
    one = segment(0.3, 0.006)
    costs = [
        oracle(load, 30.0, [one], Target(target_s), range(1, 17)).core_seconds
        for target_s in (1.5, 2.0, 3.0, 5.0)
    ]
    assert all(b <= a * 1.02 for a, b in itertools.pairwise(costs))


def test_a_target_on_a_percentile_costs_more_than_one_on_the_mean() -> None:
    one, load = segment(0.3, 0.006), constant(500.0)
    mean = oracle(load, 30.0, [one], Target(1.5), range(1, 33))
    high = oracle(load, 30.0, [one], Target(1.5, 95), range(1, 33))
    assert mean.within == high.within == 1.0
    assert high.core_seconds > mean.core_seconds


def test_where_no_cores_hold_the_target_it_says_how_much_of_the_time_they_do() -> None:
    load = steps([(0.0, 100.0), (30.0, 5000.0)])
    found = oracle(load, 60.0, [segment(0.3, 0.01)], Target(2.0), range(1, 5))
    assert 0.3 < found.within < 0.7


def test_without_rows_the_fewest_cores_wait() -> None:
    found = oracle(constant(0.0), 30.0, [segment(0.3, 0.01)], Target(2.0), range(2, 9))
    assert (found.core_seconds, found.within) == (pytest.approx(60.0), 1.0)


def test_a_correction_of_the_model_makes_the_target_harder_to_hold() -> None:
    one, load = segment(0.3, 0.006), constant(500.0)
    plain = oracle(load, 30.0, [one], Target(1.5), range(1, 33))
    slower = oracle(load, 30.0, [one], Target(1.5), range(1, 33), reach=1.3)
    assert slower.core_seconds > plain.core_seconds


def test_several_segments_need_what_their_sequence_needs_in_the_steady_state() -> None:
    load = steps([(0.0, 100.0), (10.0, 400.0)])
    both = [segment(0.2, 0.004), segment(0.2, 0.002)]
    found: Oracle = oracle(load, 20.0, both, Target(0.8), range(2, 33))
    assert found.within == 1.0
    assert found.estimated
    stations = [MicroBatchStation(cost=one.cost, arrival_rate=400.0) for one in both]
    fewest = {
        sum(split)
        for split in itertools.product(range(1, 17), repeat=2)
        if total_latency(stations, split) <= 0.8
    }
    by_sums = {
        sum(split)
        for split in itertools.product(range(1, 17), repeat=2)
        if sum(one.latency(k) for one, k in zip(stations, split, strict=True)) <= 0.8
    }
    assert int(found.cores[-1]) == min(fewest) < min(by_sums)
    assert found.cores[0] < found.cores[-1]
    assert len(found.cores) == 20


def test_the_estimate_does_not_pay_for_spikes_that_a_batch_evens_out() -> None:
    spikes = [(0.5 * n, 900.0 if n % 4 == 0 else 100.0) for n in range(40)]
    both = [segment(0.2, 0.004), segment(0.2, 0.001)]
    even = oracle(constant(300.0), 20.0, both, Target(3.0), range(2, 33))
    spiky = oracle(steps(spikes), 20.0, both, Target(3.0), range(2, 33))
    assert spiky.core_seconds == pytest.approx(even.core_seconds, rel=0.05)


def test_segments_with_loads_of_their_own_do_not_follow_each_other() -> None:
    one = segment(0.4, 0.004)
    beside = dataclasses.replace(one, load=constant(200.0))
    chained = oracle(constant(200.0), 20.0, [one, one], Target(1.0), range(2, 33))
    apart = oracle(constant(200.0), 20.0, [one, beside], Target(1.0), range(2, 33))
    assert apart.within == 1.0
    assert chained.within == 0.0
    alone = oracle(constant(200.0), 20.0, [one], Target(1.0), range(1, 33))
    assert 2.0 * alone.core_seconds <= apart.core_seconds < 3.0 * alone.core_seconds


@pytest.mark.parametrize("count", [1, 2])
def test_rows_that_are_there_at_the_start_cost_cores(count: int) -> None:
    parts, load = [segment(0.3, 0.004)] * count, constant(100.0)
    plain = oracle(load, 30.0, parts, Target(3.0), range(2, 9))
    behind = oracle(load, 30.0, parts, Target(3.0), range(2, 9), backlog_rows=10_000.0)
    assert plain.within == 1.0 > behind.within
    assert behind.core_seconds > plain.core_seconds + 5.0


def test_it_refuses_what_has_no_cores_or_no_time() -> None:
    with pytest.raises(AskedWrongly, match="at least one core"):
        oracle(constant(1.0), 10.0, [segment(0.1, 0.1)], Target(1.0), [])
    with pytest.raises(AskedWrongly, match="seconds of load"):
        oracle(constant(1.0), 0.0, [segment(0.1, 0.1)], Target(1.0), [1])
