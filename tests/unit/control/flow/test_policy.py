"""The Flink-ER policy, on hand-made measurements and on simulated pipelines."""

import dataclasses

import pytest

from tests.helpers.deciding import plain
from tests.helpers.pipeline_worlds import BOUNDS, TARGET_S, measured, world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.flow.policy import FlowPolicy
from tidegate.control.measurement import Measurement
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import constant, steps


def test_the_flow_policy_meets_a_surge_and_lets_go() -> None:
    flow = Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy="flow")
    outcome = simulate(world(), new_controller(flow))
    asked = [record.measurement.cores_asked for record in outcome.records]
    assert asked[28] == 2 and max(asked[31:60]) >= 8 and asked[-1] <= 4
    assert outcome.within(TARGET_S, after_s=20.0) >= 0.85
    usable = [r.beliefs["usable"] for r in outcome.records if "usable" in r.beliefs]
    assert len(usable) > 60 and 0.3 <= min(usable) <= max(usable) <= 1.0


def test_cores_are_released_when_no_more_rows_arrive() -> None:
    flow = Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy="flow")
    dies = steps([(0, 3000.0), (40, 0.0)])
    outcome = simulate(world(dies, seconds=80.0, cores=6), new_controller(flow))
    assert outcome.cores[38] >= 4 and outcome.cores[-1] == BOUNDS.least
    released = [one for one in outcome.records if one.acted and one.tick > 45]
    assert released and all(one.decision.reason.startswith("no rows arrive") for one in released)


def test_no_core_is_released_while_rows_still_wait() -> None:
    policy = plain(FlowPolicy(1.0, scale_in_after_s=3.0), Bounds(1, 8))
    policy.decide(measured(0, rate=3000.0, cores=6, rows=1))
    for tick in range(1, 20):
        assert policy.decide(measured(tick, rate=0.0, cores=6, batches=False, backlog=500.0)).holds


def chain(*works: tuple[str, float]) -> World:
    """Segments of one stage each."""
    segments = tuple(
        SimulatedSegment(
            name=f"s{number}",
            fixed_s=0.1,
            stages=(Stage(name=name, work_s=work_s),),
            after=None if number == 0 else f"s{number - 1}",
        )
        for number, (name, work_s) in enumerate(works)
    )
    return World(
        segments=segments, profile=constant(1000.0), seconds=40.0, cores=1, noise=0.0, tick_s=1.0
    )


def test_only_the_operators_behind_cuts_get_more() -> None:
    bounds = Bounds(3, 16)
    outcome = simulate(
        chain(("parse", 1e-4), ("match", 4e-3), ("store", 2e-4)),
        new_controller(Assembly(target=Target(2.0), bounds=bounds, policy="flow")),
    )
    last = {one.name: one.tasks for one in outcome.records[-1].measurement.operators}
    assert last["match"] >= 5
    assert last["parse"] <= 2 and last["store"] <= 2
    grown = [name for r in outcome.records if r.acted for name in r.decision.tasks]
    assert "match" in grown


def test_a_latency_above_its_target_makes_the_capacity_smaller() -> None:
    """The tasks are half idle, but the target is missed: algorithm 1 takes capacity away."""
    policy = plain(FlowPolicy(1.0, settle_s=0.0), Bounds(1, 8))
    decision = None
    for number in range(8):
        late = measured(number, rate=1000.0, cores=2, backlog=500.0, latency_s=1.3, rows=1)
        decision = policy.decide(late)
    assert policy.beliefs["usable"] < 1.0
    assert decision is not None and (decision.cores or 0) > 2


def test_room_is_what_an_augmenting_path_has() -> None:
    """1 ms a row on two cores carry 2,000 rows/s; 1,000 arrive."""
    policy = plain(FlowPolicy(1.0), Bounds(1, 8))
    decision = policy.decide(measured(1, rate=1000.0, cores=2, rows=1, latency_s=0.8))
    assert decision.holds and "room for 1,000 rows/s more" in decision.reason
    assert policy.beliefs["room_rate"] == pytest.approx(1000.0)
    full = policy.decide(measured(2, rate=1990.0, cores=2, rows=1, latency_s=0.8))
    assert full.cores == 3 and full.tasks == {"work": 3}
    assert "the way to `work` is " in full.reason and "% full" in full.reason
    assert policy.beliefs["room_rate"] < 11.0


def test_more_tasks_than_cores_are_divided_first() -> None:
    """Every segment began with all the cores; no capacity is right before they have their own."""
    bounds = Bounds(1, 8)
    outcome = simulate(
        dataclasses.replace(chain(("parse", 1e-4), ("match", 2e-3)), cores=4, seconds=6.0),
        new_controller(Assembly(target=Target(2.0), bounds=bounds, policy="flow")),
    )
    first = next(record for record in outcome.records if record.acted)
    assert first.decision.reason.startswith("8 tasks at a time have 4 cores")
    assert first.decision.tasks == {"parse": 1, "match": 3} and first.decision.cores is None


def fixed_tasks(tick: int, *, rate: float, cores: int, tasks: int = 8) -> Measurement:
    """A map whose tasks the user fixed, on fewer cores."""
    seen = measured(tick, rate=rate, cores=cores, rows=1, latency_s=0.2, backlog=0.0)
    (work,) = seen.operators
    fixed = dataclasses.replace(work, tasks=tasks, least_tasks=tasks, most_tasks=tasks)
    return dataclasses.replace(seen, operators=(fixed,))


def test_fixed_tasks_do_not_ask_for_cores_that_the_load_does_not_need() -> None:
    policy = plain(FlowPolicy(1.0), Bounds(1, 4))
    for number in range(20):
        decision = policy.decide(fixed_tasks(number, rate=10.0, cores=1))
        assert decision.holds and "there is room for" in decision.reason
    busy = policy.decide(fixed_tasks(20, rate=7990.0, cores=1))
    assert busy.cores == 4 and "the way to `work` is 100% full" in busy.reason


def test_more_segments_than_cores_are_no_reason_to_divide_them_for_ever() -> None:
    """Three segments of one task on two cores: a load that they cannot carry is told as such."""
    policy = plain(FlowPolicy(1.0), Bounds(1, 2))
    seen = measured(0, rate=990.0, cores=2, rows=1, latency_s=0.8)
    (work,), (main,) = seen.operators, seen.segments
    names = ("one", "two", "three")
    three = dataclasses.replace(
        seen,
        operators=tuple(dataclasses.replace(work, name=n, segment=n, tasks=1) for n in names),
        segments=tuple(dataclasses.replace(main, name=n, tasks=1) for n in names),
    )
    decision = policy.decide(three)
    assert decision.holds and "no operator behind it may have more tasks" in decision.reason


def test_cores_that_must_stay_keep_their_tasks() -> None:
    """Nothing would be saved by fewer tasks than the fewest cores."""
    policy = plain(FlowPolicy(1.0, scale_in_after_s=3.0), Bounds(4, 8))
    for number in range(10):
        quiet = measured(number, rate=100.0, cores=4, rows=1, latency_s=0.2, backlog=0.0)
        assert policy.decide(quiet).holds
    free = plain(FlowPolicy(1.0, scale_in_after_s=3.0), Bounds(1, 8))
    decisions = [
        free.decide(measured(n, rate=100.0, cores=4, rows=1, latency_s=0.2, backlog=0.0))
        for n in range(10)
    ]
    assert any(one.cores == 1 for one in decisions)


def test_nothing_is_decided_on_nothing() -> None:
    policy = plain(FlowPolicy(1.0), Bounds(1, 8))
    empty = dataclasses.replace(measured(1), operators=(), segments=())
    assert policy.decide(empty).holds
    with pytest.raises(AskedWrongly, match="above 0"):
        FlowPolicy(0.0)


@pytest.mark.parametrize("latency_s", [0.0, -3.0])
def test_stamps_ahead_of_the_clock_are_no_reason_to_fail(latency_s: float) -> None:
    """Their latencies are negative: as short as any, but no rate can be computed from them."""
    policy = plain(FlowPolicy(1.0, settle_s=0.0), Bounds(1, 8))
    for number in range(8):
        seen = measured(number, rate=1000.0, cores=2, rows=1, latency_s=latency_s)
        (main,) = seen.segments
        apart = dataclasses.replace(main, name="other", latency=seen.latency)
        policy.decide(seen)
        (work,) = seen.operators
        two = dataclasses.replace(
            seen,
            operators=(work, dataclasses.replace(work, name="second", segment="other")),
            segments=(dataclasses.replace(main, latency=seen.latency), apart),
        )
        policy.decide(two)
    assert policy.beliefs["usable"] == 1.0
