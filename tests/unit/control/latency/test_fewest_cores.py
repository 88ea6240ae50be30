"""The fewest cores for a predicted mean or percentile, against all allocations tried in turn."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.allocation.allocate import LatencyOutOfReach, StationTooSmall
from tidegate.control.latency.fewest_cores import fewest_cores, predicted_s
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.station import MicroBatchStation

MOST = 12


def station(fixed_s: float, load: float, noise: float, per_task_s: float) -> MicroBatchStation:
    cost = BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=load / 100.0)
    return MicroBatchStation(cost=cost, arrival_rate=100.0, noise=noise)


STATION = st.builds(
    station,
    st.floats(0.05, 0.5),
    st.floats(0.1, 4.0),
    st.floats(0.0, 0.15),
    st.sampled_from([0.0, 0.01]),
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
        assert error.value.latency_reachable_s == pytest.approx(lowest_s, rel=0.02)
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
    best = min(
        (sum(ks) for ks in itertools.product(*sizes) if predicted_s(chain, ks, share) <= goal_s),
        default=math.inf,
    )
    try:
        found = fewest_cores(chain, goal_s, share, least=[1] * len(chain), most=[6] * len(chain))
    except LatencyOutOfReach:
        # The latency through a sequence can rise with more cores, so a corner may be overlooked.
        assert best == math.inf or best > sum(one.stable_from for one in chain)
        return
    cores = [int(k) for k in found.cores]
    assert predicted_s(chain, cores, share) <= goal_s
    assert found.total <= best + len(chain)


def test_a_percentile_needs_more_cores_than_the_mean_and_noise_needs_more_still() -> None:
    def cores(noise: float, share: float | None) -> int:
        one = station(0.3, 12.0, noise, 0.0)
        return fewest_cores([one], 1.2, share, least=[1], most=[64]).total

    assert cores(0.0, None) < cores(0.0, 0.95) < cores(0.2, 0.95)


def test_a_station_that_cannot_keep_up_within_its_maximum_is_named() -> None:
    with pytest.raises(StationTooSmall):
        fewest_cores([station(0.1, 8.0, 0.0, 0.0)], 1.0, 0.95, least=[1], most=[4])
