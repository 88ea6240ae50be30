"""The reserve is earned: surges are counted with their sizes, over the time that was watched."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.latency.surge_reserve import absorbed, surge_latency_s
from tidegate.control.latency.surges import MOST, PRIOR_S, SurgeHistory
from tidegate.control.target import Target
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import steps


def watched(rates: list[float], planned: float = 100.0) -> SurgeHistory:
    surges = SurgeHistory()
    for second, rate in enumerate(rates):
        surges.observe(rate, float(second), 2.0)
        surges.plan_for(planned, float(second))
    return surges


def test_quiet_time_lowers_the_expected_rate_of_surges() -> None:
    rates = [watched([100.0] * seconds).rate(1.5) for seconds in (1, 30, 300, 3000)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(1.5**-2 / PRIOR_S)
    assert rates[-1] < 0.01 * rates[0]


def test_a_surge_raises_it_at_once_up_to_its_own_size() -> None:
    quiet, leapt = watched([100.0] * 301), watched([100.0] * 300 + [220.0])
    assert leapt.rate(2.0) > 3.0 * quiet.rate(2.0)
    assert leapt.rate(2.5) == pytest.approx(quiet.rate(2.5), rel=0.01)


def test_a_surge_that_goes_on_is_one_surge_of_its_highest_size() -> None:
    once = watched([100.0] * 60 + [150.0] + [90.0] * 20)
    lasting = watched([100.0] * 60 + [120.0, 130.0, *([150.0] * 18)])
    assert lasting.rate(1.4) == pytest.approx(once.rate(1.4), rel=0.02)
    twice = watched([100.0] * 60 + [150.0] + [90.0] * 10 + [150.0] + [90.0] * 9)
    assert twice.rate(1.4) > 1.5 * once.rate(1.4)


def test_what_was_planned_for_is_no_surge() -> None:
    planned = watched([100.0] * 50 + [300.0] * 5, planned=300.0)
    assert planned.rate(1.2) == pytest.approx(watched([100.0] * 55).rate(1.2))


def test_nothing_is_learned_of_a_silence() -> None:
    surges = watched([100.0] * 60)
    before = surges.rate(1.2)
    surges.observe(900.0, 7200.0, 2.0)
    assert surges.rate(1.2) == pytest.approx(before)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(10.0, 900.0), min_size=3, max_size=80), st.floats(1.0, 4.0))
def test_larger_surges_are_never_more_frequent(rates: list[float], factor: float) -> None:
    surges = watched(rates)
    assert 0.0 < surges.rate(1.2 * factor) <= surges.rate(factor) < math.inf


@settings(max_examples=60, deadline=None)
@given(st.floats(10.0, 700.0), st.integers(1, 16), st.floats(0.5, 8.0))
def test_what_is_absorbed_is_just_within_the_goal(rate: float, cores: int, goal_s: float) -> None:
    cost = BatchCost(fixed_s=0.2, per_task_s=0.01, work_s=0.01)
    stations = [MicroBatchStation(cost=cost, arrival_rate=rate)]
    factor = absorbed(stations, [cores], goal_s)
    assume(abs(cores - stations[0].load) > 1e-9)  # there the latency has no finite value
    if cores <= stations[0].load:
        assert factor == 0.0
    else:
        assert surge_latency_s(stations, [cores], factor) == pytest.approx(goal_s)


def reserves(leaps: bool) -> list[float]:
    """The surge that the plan of each minute has a reserve for, in eight minutes of load."""
    changes = [(0.0, 1500.0)]
    if leaps:
        for begin_s in range(60, 480, 60):
            changes += [(float(begin_s), 3000.0), (begin_s + 20.0, 1500.0)]
    segment = SimulatedSegment(
        fixed_s=0.5, per_task_s=0.002, stages=(Stage(name="work", work_s=0.007),)
    )
    world = World(
        segments=(segment,), profile=steps(changes), seconds=480.0, cores=16, prompt=False
    )
    assembly = Assembly(target=Target(2.0), bounds=Bounds(1, 64))
    records = simulate(world, new_controller(assembly)).records
    return [record.beliefs.get("surge", 1.0) for record in records[55::60]]


def test_a_stream_that_never_leaps_ends_without_a_reserve_and_one_that_leaps_keeps_it() -> None:
    calm, leaping = reserves(leaps=False), reserves(leaps=True)
    assert calm[0] > 1.5, "while nothing is known, a surge of twice the load is planned for"
    assert max(calm[5:]) == 1.0
    assert max(leaping[5:]) > 1.5, "where the plan without a reserve does not absorb it anyway"


def test_how_far_a_stream_leaps_is_what_came_twice_until_it_has_faded() -> None:
    assert watched([100.0] * 30).repeated() == 1.0
    once, again = [100.0] * 30 + [320.0], [90.0] * 10 + [350.0]
    assert watched(once).repeated() == 1.0, "it may have changed for good"
    surges = watched(once + again)
    assert surges.repeated() == pytest.approx(3.2, rel=1e-3)
    assert watched([100.0, 90.0, 900.0] * 9).repeated() == pytest.approx(MOST)
    after = SurgeHistory()
    after.recall(surges.learned(), 3 * 86_400.0)
    assert after.repeated() == 1.0


def planned_for(leap: float, seconds: int) -> float:
    """The surge that is planned for in the end, in a stream that leaps so far every half minute."""
    changes = [(0.0, 1000.0)]
    for begin_s in range(30, seconds - 20, 30):
        changes += [(float(begin_s), 1000.0 * leap), (begin_s + 4.0, 1000.0)]
    segment = SimulatedSegment(
        fixed_s=0.5, per_task_s=0.002, stages=(Stage(name="work", work_s=0.004),)
    )
    world = World(segments=(segment,), profile=steps(changes), seconds=seconds, cores=16)
    assembly = Assembly(target=Target(2.0), bounds=Bounds(1, 64))
    records = simulate(world, new_controller(assembly)).records
    return records[-1].beliefs["surge"]


def test_the_reserve_reaches_as_far_as_this_stream_has_leapt() -> None:
    assert planned_for(3.0, 290) > 2.5
    assert planned_for(1.8, 290) <= 2.0
