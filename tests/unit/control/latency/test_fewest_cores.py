"""The fewest cores for a predicted mean or percentile, against all allocations tried in turn."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.allocation.allocate import LatencyOutOfReach, StationTooSmall, assign
from tidegate.control.latency.fewest_cores import (
    CorePath,
    PredictedOutOfReach,
    fewest_cores,
    predicted_s,
    until_flat,
)
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.station import MicroBatchStation

MOST = 12


def station(
    fixed_s: float, load: float, noise: float, per_task_s: float, least_s: float = 0.0
) -> MicroBatchStation:
    cost = BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=load / 100.0, least_s=least_s)
    return MicroBatchStation(cost=cost, arrival_rate=100.0, noise=noise)


STATION = st.builds(
    station,
    st.floats(0.05, 0.5),
    st.floats(0.1, 4.0),
    st.floats(0.0, 0.15),
    st.sampled_from([0.0, 0.01]),
    st.sampled_from([0.0, 0.0, 0.2]),
)


@settings(max_examples=60, deadline=None)
@given(one=STATION, goal_s=st.floats(0.3, 8.0), share=st.sampled_from([None, 0.5, 0.95, 0.99]))
def test_one_segment_gets_the_fewest_cores_that_are_predicted_to_do(
    one: MicroBatchStation, goal_s: float, share: float | None
) -> None:
    enough = [k for k in range(1, MOST + 1) if predicted_s([one], [k], share) <= goal_s]
    if not enough:
        with pytest.raises(LatencyOutOfReach) as error:
            fewest_cores([one], goal_s, share, least=[1], most=[MOST])
        lowest_s = min(predicted_s([one], [k], share) for k in range(1, MOST + 1))
        assert error.value.latency_reachable_s == pytest.approx(lowest_s, rel=0.05)
        return
    found = fewest_cores([one], goal_s, share, least=[1], most=[MOST])
    assert found.total == enough[0]
    assert found.latency_s == pytest.approx(predicted_s([one], [found.total], None))


@settings(max_examples=40, deadline=None)
@given(
    chain=st.lists(STATION, min_size=2, max_size=3),
    goal_s=st.floats(0.5, 10.0),
    share=st.sampled_from([None, 0.95]),
)
def test_segments_in_sequence_are_within_the_goal_with_few_cores(
    chain: list[MicroBatchStation], goal_s: float, share: float | None
) -> None:
    sizes = [range(one.stable_from, 7) for one in chain]
    latencies = {ks: predicted_s(chain, ks, share) for ks in itertools.product(*sizes)}
    best = min((sum(ks) for ks, one in latencies.items() if one <= goal_s), default=math.inf)
    path = CorePath(chain, share, least=[1] * len(chain), most=[6] * len(chain))
    try:
        found = path.fewest(goal_s)
    except PredictedOutOfReach as error:
        begin = sum(one.stable_from for one in chain)
        flat = [until_flat(one) for one in chain]
        greedy = [assign(flat, k, most=[6] * len(chain)) for k in range(begin, 6 * len(chain) + 1)]
        along = [predicted_s(chain, [int(k) for k in one.cores], share) for one in greedy]
        assert min(along) > goal_s
        assert error.latency_reachable_s == pytest.approx(min(along))
        # Of segments that are equally fast, each waits half a batch for the one before it. Beside
        # the greedy allocations there are some without such ties.
        assert 0.65 * error.latency_reachable_s <= min(latencies.values())
        cores = [int(k) for k in error.best.cores]
        assert predicted_s(chain, cores, share) == pytest.approx(error.latency_reachable_s)
        near = path.fewest(1.05 * error.latency_reachable_s)
        cores = [int(k) for k in near.cores]
        assert predicted_s(chain, cores, share) <= 1.05 * error.latency_reachable_s
        assert near.total <= error.best.total
        return
    cores = [int(k) for k in found.cores]
    assert predicted_s(chain, cores, share) <= goal_s
    assert found.total <= 2 * best, "close to the best split, which greedy does not always find"


def test_a_percentile_needs_more_cores_than_the_mean_and_noise_needs_more_still() -> None:
    def cores(noise: float, share: float | None) -> int:
        one = station(0.3, 12.0, noise, 0.0)
        return fewest_cores([one], 1.2, share, least=[1], most=[64]).total

    assert cores(0.0, None) < cores(0.0, 0.95) < cores(0.2, 0.95)


def test_a_station_that_cannot_keep_up_within_its_maximum_is_named() -> None:
    with pytest.raises(StationTooSmall):
        fewest_cores([station(0.1, 8.0, 0.0, 0.0)], 1.0, 0.95, least=[1], most=[4])


def test_a_segment_that_works_beside_its_tasks_does_not_take_the_cores_of_another() -> None:
    """A batch of the first one takes 0.4 s at least, so it has no use for more than 4 cores."""
    beside = [
        MicroBatchStation(
            cost=BatchCost(fixed_s=0.1, work_s=1e-3, least_s=least_s), arrival_rate=3000.0
        )
        for least_s in (0.3, 0.0)
    ]
    found = fewest_cores(beside, 0.9, None, least=[1, 1], most=[64, 64])
    cores = found.cores.tolist()
    assert cores == [4, 7]
    assert predicted_s(beside, cores, None) <= 0.9
    assert all(
        predicted_s(beside, split, None) > 0.9
        for split in itertools.product(range(4, 8), repeat=2)
        if sum(split) < sum(cores)
    )


def test_where_a_goal_is_out_of_reach_the_cores_near_the_floor_are_found() -> None:
    """The latency along the greedy path is not monotone, so a second search may miss its lowest."""
    chain = [
        MicroBatchStation(
            cost=BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=work_s),
            arrival_rate=100.0,
            noise=noise,
        )
        for fixed_s, per_task_s, work_s, noise in (
            (0.1896, 0.005, 0.0597, 0.0571),
            (0.3249, 0.002, 0.0215, 0.0215),
        )
    ]
    path = CorePath(chain, 0.95, least=[1, 1], most=[1 << 20, 1 << 20])
    with pytest.raises(PredictedOutOfReach) as error:
        path.fewest(1.285)
    lowest_s = error.value.latency_reachable_s
    found = path.fewest(1.05 * lowest_s)
    cores = [int(k) for k in found.cores]
    assert predicted_s(chain, cores, 0.95) <= 1.05 * lowest_s
    assert found.total < error.value.best.total
