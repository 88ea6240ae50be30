"""The one formula: floor, throughput, cores and the share of rows kept, against brute force."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost, reachable_s
from tidegate.models.microbatch.station import MicroBatchStation

costs = st.builds(
    BatchCost,
    fixed_s=st.floats(0.01, 0.5),
    per_task_s=st.sampled_from([0.0, 0.001, 0.01]),
    work_s=st.floats(1e-5, 1e-2),
    least_s=st.sampled_from([0.0, 0.0, 0.05, 0.3]),
)


def latency_s(cost: BatchCost, rate: float, cores: int) -> float:
    return MicroBatchStation(cost=cost, arrival_rate=rate).latency(cores)


def test_the_floor_is_the_latency_of_empty_batches() -> None:
    cost = BatchCost(fixed_s=0.8, work_s=0.0)
    assert cost.floor_s(1) == pytest.approx(1.2)
    assert cost.floor_s(1, 1.0) == pytest.approx(1.3)
    assert cost.floor_s(1, 0.5) == pytest.approx(1.2)


@given(costs, st.floats(1.0, 20_000.0), st.integers(1, 64), st.floats(0.1, 10.0))
def test_what_is_kept_just_meets_the_latency_aimed_at(
    cost: BatchCost, rate: float, cores: int, target_s: float
) -> None:
    aim_s = reachable_s(target_s, cost.floor_s(cores))
    kept = cost.kept(rate, cores, target_s)
    assert 0.0 < kept <= 1.0
    found_s = latency_s(cost, kept * rate, cores)
    if kept < 1.0 and cost.least_s == 0.0:
        assert found_s == pytest.approx(aim_s, rel=1e-6)
    else:
        assert found_s <= aim_s * (1.0 + 1e-6)


@given(costs, st.floats(1.0, 20_000.0), st.floats(0.1, 10.0), st.sampled_from([1.0, 1.3]))
def test_cores_are_the_fewest_that_hold_the_target(
    cost: BatchCost, rate: float, target_s: float, imbalance: float
) -> None:
    def holds(cores: int) -> bool:
        return cost.throughput(cores, target_s, imbalance=imbalance) >= rate * (1.0 - 1e-9)

    most = 2000
    try:
        cores = cost.cores_for(rate, target_s, imbalance=imbalance)
    except AskedWrongly:
        assert not any(holds(cores) for cores in range(1, most))
        return
    if cores < most and cost.per_task_s == 0.0:
        assert holds(cores)
    assert cores == 1 or not holds(cores - 1)


@settings(max_examples=300, deadline=None)
@given(costs, st.integers(1, 200), st.floats(0.1, 10.0), st.sampled_from([0.0, 0.0, 0.3, 1.0, 4.0]))
def test_the_most_throughput_is_the_largest_of_all_numbers_of_tasks(
    cost: BatchCost, most: int, target_s: float, interval_s: float
) -> None:
    best = max(
        cost.throughput(tasks, target_s, interval_s=interval_s) for tasks in range(1, most + 1)
    )
    assert cost.most_throughput(most, target_s, interval_s=interval_s) == pytest.approx(best)


def test_the_best_number_of_tasks_may_be_the_last_within_the_latency() -> None:
    """Up to five tasks an empty batch is within the latency; with more it never is."""
    cost = BatchCost(fixed_s=0.1, per_task_s=0.01, work_s=1e-3, least_s=0.3)
    assert cost.most_throughput(32, 0.675001) == pytest.approx(3333.3, rel=1e-3)
    assert cost.cores_for(3000.0, 0.675001) == 5
    with pytest.raises(AskedWrongly, match="no number of cores"):
        cost.cores_for(3500.0, 0.675001)


def test_a_target_out_of_reach_is_replaced_by_twice_the_floor() -> None:
    assert reachable_s(2.0, 1.0) == 2.0
    assert reachable_s(1.0, 1.0) == 2.0
    assert reachable_s(0.5, 1.0) == 2.0
    hopeless = BatchCost(fixed_s=1.0, work_s=1e-3)
    assert hopeless.kept(1e6, 4, 0.5) == pytest.approx(hopeless.kept(1e6, 4, 3.0))
