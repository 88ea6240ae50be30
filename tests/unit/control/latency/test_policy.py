"""The default policy on a pipeline: what it learns, when it scales, and when it must not."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.deciding import Deciding, latency_policy
from tests.helpers.pipeline_worlds import BOUNDS, TARGET_S, controller, measured, world
from tidegate.control.allocation.allocate import provision
from tidegate.control.bounds import Bounds
from tidegate.control.decision import Decision
from tidegate.control.lag import Lag
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.latency.surge_reserve import Reserve, surge_latency_s, with_reserve
from tidegate.control.measurement import Measurement, Overdue, SegmentMeasurement
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.workload.profile import constant, ramp, steps

COST = BatchCost(fixed_s=0.3, per_task_s=0.01, work_s=1e-3)


def steady(tick: int, rate: float, cores: int, **changes: object) -> Measurement:
    """A tick of a pipeline with this cost in its steady state."""
    station = MicroBatchStation(cost=COST, arrival_rate=rate)
    duration_s = min(station.duration_s(cores), 30.0)
    settings = {
        "rate": rate,
        "cores": cores,
        "duration_s": duration_s,
        "latency_s": 1.5 * duration_s,
        "backlog": 1.5 * rate * duration_s,
        **changes,
    }
    return measured(tick, **settings)


def taught(policy: Deciding, *, until: int = 30) -> Deciding:
    """Shows several loads and numbers of cores, so that the model is known."""
    for tick in range(until):
        rate = 600.0 if tick % 6 < 3 else 1300.0
        policy.decide(steady(tick, rate, 2 if tick < until // 2 else 3))
    return policy


def after(policy: Deciding, rate: float, cores: int, ticks: int, begin: int = 30) -> Decision:
    for tick in range(begin, begin + ticks):
        decision = policy.decide(steady(tick, rate, cores))
    return decision


def test_it_learns_what_a_batch_costs() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS))
    assert policy.beliefs["main.w_s"] == pytest.approx(COST.work_s, rel=0.15)
    fixed_s = policy.beliefs["main.a0_s"] + 2 * policy.beliefs["main.a1_s"]
    assert fixed_s == pytest.approx(COST.overhead_s(2), rel=0.15)


def test_scale_out_is_not_capped_by_a_factor() -> None:
    policy = taught(latency_policy(TARGET_S, Bounds(1, 100)))
    decision = policy.decide(measured(31, rate=6000.0, cores=3, backlog=2000.0, batches=False))
    assert decision.cores is not None and decision.cores >= 12
    assert decision.tasks == {"work": decision.cores}
    assert decision.expected_latency_s is not None and decision.expected_latency_s < TARGET_S


def test_scale_in_waits_and_then_goes_in_one_step() -> None:
    options = LatencyOptions(scale_in_after_s=8.0)
    policy = taught(latency_policy(TARGET_S, BOUNDS, options))
    decisions = [policy.decide(steady(30 + n, 1150.0, 10)) for n in range(12)]
    lets_go = [index for index, one in enumerate(decisions) if one.cores is not None]
    assert lets_go[0] >= 7
    assert decisions[lets_go[0]].cores is not None and decisions[lets_go[0]].cores <= 3
    assert "would do" in decisions[4].reason


def test_a_slow_grant_makes_scale_in_wait_longer_and_tasks_wait_for_cores() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS, LatencyOptions(scale_in_after_s=4.0)))
    slow = [policy.decide(steady(30 + n, 1000.0, 10, grant_s=6.0)) for n in range(16)]
    assert all(decision.holds for decision in slow)
    more = policy.decide(steady(50, 3500.0, 4, grant_s=6.0, backlog=4000.0))
    assert more.cores is not None and more.cores > 4 and not more.tasks
    asked = dataclasses.replace(steady(51, 3500.0, 4, grant_s=6.0), cores_asked=12)
    assert "on their way" in policy.decide(asked).reason
    come = dataclasses.replace(asked, at_s=asked.at_s + 6.0, cores_granted=12)
    assert policy.decide(come).tasks == {"work": 12}


def waits(tick: int, tasks: int, granted: int, backlog: float) -> Measurement:
    """A tick in which twelve cores are asked for, and a batch of the backlog runs."""
    one = steady(tick, 6000.0, tasks, grant_s=20.0, backlog=backlog, batches=False)
    return dataclasses.replace(one, cores_asked=12, cores_granted=granted)


def test_cores_that_have_come_are_used_though_they_do_not_keep_up() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS))
    policy.decide(waits(31, 3, 3, 8000.0))
    assert policy.decide(waits(32, 3, 5, 8000.0)).tasks == {"work": 5}


def test_a_backlog_that_outlasts_the_wait_gets_tasks_for_all_cores() -> None:
    """With 3 tasks 90,000 rows take half a minute, and the other cores come within twenty seconds.

    A batch of 9,000 rows is over before they come.
    """
    policy = taught(latency_policy(TARGET_S, BOUNDS))
    policy.decide(waits(31, 3, 3, 9000.0))
    assert policy.decide(waits(32, 3, 3, 9000.0)).holds
    ahead = policy.decide(waits(33, 3, 3, 90_000.0))
    assert ahead.tasks == {"work": 12} and ahead.cores is None
    assert "tasks for all 12" in ahead.reason


def test_tasks_do_not_wait_for_cores_that_are_overdue() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS))
    policy.decide(waits(31, 12, 3, 90_000.0))
    assert policy.decide(waits(32, 12, 3, 90_000.0)).holds, "they may still come"
    overdue = Overdue(missing=9, requested=12, waited_s=61.0, usual_s=20.0)
    fewer = policy.decide(dataclasses.replace(waits(33, 12, 3, 90_000.0), overdue=overdue))
    assert fewer.tasks == {"work": 3} and fewer.cores is None
    assert "overdue" in fewer.reason
    assert policy.decide(dataclasses.replace(waits(34, 3, 3, 90_000.0), overdue=overdue)).holds
    come = policy.decide(dataclasses.replace(waits(35, 3, 5, 90_000.0), overdue=overdue))
    assert come.tasks == {"work": 5}


def test_behind_a_read_limit_no_batch_outlasts_the_wait() -> None:
    """Batches of a second follow each other, so each can have the tasks of the cores there are."""
    policy = taught(latency_policy(TARGET_S, BOUNDS))
    limited = []
    for tick in (31, 32):
        one = waits(tick, 3, 3, 90_000.0)
        lag = dataclasses.replace(one.segments[0], lag=Lag(limit_rows=3000))
        limited.append(policy.decide(dataclasses.replace(one, segments=(lag,))))
    assert limited[-1].holds and "on their way" in limited[-1].reason


def released_after_s(fallen_to: float) -> int | None:
    """How long after a fall the first cores are released; None: not within 16 s."""
    policy = taught(latency_policy(TARGET_S, BOUNDS, LatencyOptions(scale_in_after_s=4.0)))
    for tick in range(30, 60):
        assert policy.decide(steady(tick, 7000.0, 12, grant_s=6.0)).cores is None
    for waited in range(16):
        if policy.decide(steady(60 + waited, fallen_to, 12, grant_s=6.0)).cores is not None:
            return waited
    return None


def test_after_a_deep_fall_slow_cores_are_kept_for_as_long_as_a_grant_takes() -> None:
    """Not three times as long, as after a small one: most of them are not needed."""
    assert released_after_s(1000.0) in range(6, 10)
    assert released_after_s(5000.0) is None


def test_idle_cores_are_released_though_others_that_were_asked_for_never_come() -> None:
    """A full queue grants 10 of 12 cores and no more; after a while 2 or 3 are enough."""
    policy = taught(latency_policy(TARGET_S, BOUNDS, LatencyOptions(scale_in_after_s=8.0)))
    ticks = [steady(30 + n, 1150.0, 10) for n in range(12)]
    decisions = [policy.decide(dataclasses.replace(one, cores_asked=12)) for one in ticks]
    lets_go = [index for index, one in enumerate(decisions) if one.cores is not None]
    assert lets_go and lets_go[0] >= 7
    assert (decisions[lets_go[0]].cores or 0) <= 3


def wishes_of_six_ticks(cores: int, rate: float, **changes: float) -> list[int]:
    policy = taught(latency_policy(TARGET_S, BOUNDS, LatencyOptions(scale_in_after_s=2.0)), until=9)
    decisions = [policy.decide(steady(tick, rate, cores, **changes)) for tick in range(40, 46)]
    return [decision.cores for decision in decisions if decision.cores is not None]


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 12), st.floats(200.0, 3000.0), st.floats(1.5, 30.0))
def test_no_scale_in_while_a_backlog_is_caught_up(cores: int, rate: float, waits: float) -> None:
    wishes = wishes_of_six_ticks(cores, rate, backlog=1.5 * waits * TARGET_S * rate)
    assert min(wishes, default=cores) >= cores


def test_the_same_without_a_backlog_scales_in() -> None:
    assert min(wishes_of_six_ticks(12, 200.0)) < 12


def test_a_shorter_catch_up_takes_more_cores() -> None:
    wishes = []
    for catch_up_s in (3.0, 6.0, 30.0):
        options = LatencyOptions(catch_up_s=catch_up_s)
        policy = taught(latency_policy(TARGET_S, Bounds(1, 60), options))
        decision = policy.decide(steady(31, 2000.0, 2, backlog=20_000.0))
        assert decision.cores is not None
        wishes.append(decision.cores)
    assert wishes == sorted(wishes, reverse=True) and wishes[0] > wishes[-1]


def test_a_target_below_the_floor_is_said_with_the_floor() -> None:
    policy = taught(latency_policy(0.3, BOUNDS))
    decision = after(policy, 1000.0, 3, 8)
    notes = [note for note in decision.notes if "floor" in note]
    assert notes and "0.3" not in notes[0].split("is")[-1]
    assert "300 ms" in notes[0] and "runs at its best" in notes[0]


def test_a_target_beyond_the_maximum_is_said() -> None:
    policy = taught(latency_policy(TARGET_S, Bounds(1, 3)))
    decision = policy.decide(steady(31, 6000.0, 3, backlog=9000.0))
    assert any("the maximum is 3" in note for note in decision.notes)
    assert decision.cores is None


def test_a_percentile_takes_more_cores_than_the_mean() -> None:
    cores = []
    for percentile in (None, 95):
        policy = taught(latency_policy(TARGET_S, Bounds(1, 60), percentile=percentile))
        decision = policy.decide(steady(31, 4000.0, 2, backlog=6000.0))
        assert decision.cores is not None
        cores.append(decision.cores)
    assert cores[1] > cores[0]
    assert policy.beliefs["percentile_ratio"] == pytest.approx(1.3, abs=0.05)


def test_before_the_model_is_known_saturated_throughput_sizes_the_step() -> None:
    policy = latency_policy(TARGET_S, Bounds(1, 60))
    quiet = policy.decide(measured(0, batches=False, rate=3000.0))
    assert quiet.holds and "learning" in quiet.reason
    stuck = dataclasses.replace(
        measured(1, batches=False, latency_s=4.0, saturated=True, backlog=5000.0, rate=3000.0),
        processed_rate=500.0,
    )
    decision = policy.decide(stuck)
    # 250 rows/s a core; 3000 rows/s to come and 5000 rows to catch up in 5 s
    assert decision.cores == pytest.approx(16, abs=1)


def test_a_wrong_scale_in_makes_the_next_one_more_patient() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS, LatencyOptions(scale_in_after_s=4.0)))
    after(policy, 1000.0, 6, 10, begin=30)
    after(policy, 1000.0, 2, 2, begin=40)
    after(policy, 1000.0, 6, 1, begin=42)
    impatient = [after(policy, 1000.0, 6, 1, begin=43 + n) for n in range(6)]
    assert all(decision.holds for decision in impatient)
    assert after(policy, 1000.0, 6, 4, begin=49).cores is not None


def test_segments_share_the_cores_by_need() -> None:
    policy = latency_policy(3.0, Bounds(2, 30))

    def two(tick: int, rate: float, cores: int) -> Measurement:
        one = steady(tick, rate, cores, backlog=min(rate, 2000.0))
        light = dataclasses.replace(
            one.segments[0],
            name="light",
            batches=tuple(
                dataclasses.replace(batch, duration_s=0.1 + batch.rows * 1e-4 / batch.tasks)
                for batch in one.segments[0].batches
            ),
        )
        operators = (
            *one.operators,
            dataclasses.replace(
                one.operators[0],
                name="sum",
                segment="light",
                busy_s=1e-4 * one.operators[0].rows,
            ),
        )
        both: tuple[SegmentMeasurement, ...] = (one.segments[0], light)
        return dataclasses.replace(
            one, segments=both, operators=operators, cores_asked=2 * cores, cores_granted=2 * cores
        )

    for tick in range(24):
        policy.decide(two(tick, 600.0 if tick % 6 < 3 else 1300.0, 2 if tick < 12 else 3))
    decision = policy.decide(two(25, 3500.0, 3))
    assert decision.tasks.keys() == {"work", "sum"}
    assert decision.cores == sum(decision.tasks.values())
    assert decision.tasks["work"] > 3 * decision.tasks["sum"]


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="50, 95 or 99"):
        latency_policy(TARGET_S, BOUNDS, percentile=90)
    with pytest.raises(AskedWrongly, match="catch_up_s"):
        LatencyOptions(catch_up_s=0.0)
    with pytest.raises(AskedWrongly, match="positive duration"):
        latency_policy(0.0, BOUNDS)


def test_a_ramp_is_met_before_it_breaks_the_target() -> None:
    profile = steps([(float(second), 800.0 + 50.0 * second) for second in range(60)])
    outcome = simulate(world(profile, seconds=60.0, grant_s=3.0), controller())
    assert outcome.within(TARGET_S, after_s=10) >= 0.9
    assert outcome.reversals() <= 1


def test_a_flat_load_has_few_changes() -> None:
    calm = world(constant(2500.0), seconds=150.0, poisson=True, noise=0.08)
    outcome = simulate(calm, controller())
    assert outcome.reversals() <= 2
    assert len(outcome.changes()) <= 8


def test_it_keeps_enough_cores_for_a_load_that_doubles_at_once() -> None:
    """1,150 rows/s fit well on 2 cores; twice as many would be lost before they are seen."""
    station = MicroBatchStation(cost=COST, arrival_rate=1150.0)
    assert station.latency(2) < 0.8 * TARGET_S < TARGET_S < station.surge_latency(2, 2.0)
    planned = {}
    for surge in (1.0, 2.0):
        options = LatencyOptions(scale_in_after_s=5.0, surge_factor=surge)
        policy = taught(latency_policy(TARGET_S, BOUNDS, options))
        decisions = [policy.decide(steady(30 + n, 1150.0, 8)) for n in range(40)]
        planned[surge] = [d.cores for d in decisions if d.cores is not None][-1]
    assert planned[1.0] == 2
    assert planned[2.0] is not None and planned[2.0] >= 3
    assert station.surge_latency(planned[2.0], 2.0) < 1.1 * TARGET_S


def test_a_quiet_stream_needs_no_reserve_in_the_end() -> None:
    """A load may double at once while nothing is known of it, but not after quiet minutes."""
    policy = taught(latency_policy(TARGET_S, BOUNDS), until=9)
    needed = []
    for tick in range(30, 400):
        policy.decide(steady(tick, 1150.0, 8))
        needed.append(policy.beliefs["needed_cores"])
    assert max(needed[5:15]) == 3.0
    assert needed[-1] == 2.0 and policy.beliefs["surge"] < 2.0


def test_no_surge_is_planned_to_a_load_that_all_cores_could_not_carry() -> None:
    stations = [MicroBatchStation(cost=COST, arrival_rate=1150.0)]
    plain = provision(stations, 0.8 * TARGET_S)
    assert plain.total == 2

    def ready(budget: int) -> Reserve:
        return with_reserve(stations, plain, goal_s=TARGET_S, surge=2.0, most=[64], budget=budget)

    roomy, tight, none = ready(12), ready(3), ready(2)
    assert roomy.surge == 2.0 and roomy.allocation.total == 3
    assert 1.0 < tight.surge < 2.0, "three cores carry 2,010 rows/s on target, not 2,300"
    assert none.surge == pytest.approx(1.0, abs=0.2) and none.allocation.total == 2
    assert surge_latency_s(stations, roomy.allocation.cores.tolist(), roomy.surge) <= TARGET_S


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(50.0, 3000.0), min_size=1, max_size=4), st.integers(4, 60))
def test_what_is_ready_for_a_surge_is_so_within_the_budget(rates: list[float], budget: int) -> None:
    stations = [MicroBatchStation(cost=COST, arrival_rate=rate) for rate in rates]
    goal_s = 1.2 * len(rates)
    plain = provision(stations, 0.8 * goal_s)
    most = [budget] * len(rates)
    found = with_reserve(stations, plain, goal_s=goal_s, surge=2.0, most=most, budget=budget)
    if found.surge > 1.0:
        cores = found.allocation.cores.tolist()
        assert surge_latency_s(stations, cores, found.surge) <= goal_s * (1 + 1e-9)
        assert found.allocation.total <= max(budget, plain.total)
    else:
        assert found.allocation is plain


def test_a_surge_below_one_is_refused() -> None:
    with pytest.raises(AskedWrongly, match=r"surge factor cannot be 0\.5"):
        LatencyOptions(surge_factor=0.5)


def test_cores_that_were_asked_for_stay_for_a_minute() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS, LatencyOptions(scale_in_after_s=5.0)))
    cores, changes = 6, []
    for tick in range(30, 200):
        slow = 90 <= tick < 94  # something else on the machine: the same load takes twice as long
        now = steady(tick, 1000.0, cores)
        if slow:
            now = steady(tick, 1000.0, cores, latency_s=4.0, backlog=6000.0, duration_s=2.5)
        decision = policy.decide(now)
        if decision.cores is not None:
            changes.append((tick, decision.cores - cores))
            cores = decision.cores
    (taken,) = [tick for tick, grown in changes if grown > 0]
    assert 90 <= taken < 94 and changes[0][1] < 0
    later = [tick for tick, _ in changes if tick > taken]
    assert later and min(later) >= taken + 60
    assert policy.decide(steady(201, 1000.0, cores + 4)).holds, "asked for, whoever did it"
    fallen = [policy.decide(steady(202 + n, 500.0, cores + 4)).cores for n in range(10)]
    assert any(fallen), "the load has fallen"


def test_no_core_is_let_go_while_the_load_rises() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS, LatencyOptions(scale_in_after_s=8.0)))
    rising = [policy.decide(steady(30 + n, 800.0 + 15.0 * n, 10)) for n in range(20)]
    assert all(decision.holds for decision in rising)
    assert "the load is rising" in rising[-1].reason
    assert any(policy.decide(steady(50 + n, 1100.0, 10)).cores for n in range(12))


def test_an_operator_that_makes_many_rows_of_one_is_not_taken_for_cheap() -> None:
    """Work is per row of the segment: a flat map's thousand rows are not a thousand times less."""
    policy = latency_policy(TARGET_S, BOUNDS)
    for tick in range(6):
        one = steady(tick, 1000.0, 2)
        (segment,) = one.segments
        rows = sum(batch.rows for batch in segment.batches)
        work = dataclasses.replace(one.operators[0], rows=1000 * rows, busy_s=rows * COST.work_s)
        policy.decide(dataclasses.replace(one, operators=(work,)))
    assert policy.beliefs["main.w_s"] == pytest.approx(COST.work_s, rel=0.3)


def two_alike(tick: int, rate: float, first: int, second: int) -> Measurement:
    """Two segments of the same cost in sequence, with cores of their own."""
    one, other = steady(tick, rate, first), steady(tick, rate, second)
    segments = (one.segments[0], dataclasses.replace(other.segments[0], name="later"))
    operators = (
        one.operators[0],
        dataclasses.replace(other.operators[0], name="sum", segment="later"),
    )
    total = first + second
    latency = one.latency and dataclasses.replace(one.latency, mean_s=9.0)
    return dataclasses.replace(
        one,
        segments=segments,
        operators=operators,
        cores_asked=total,
        cores_granted=total,
        latency=latency,
    )


def test_the_same_cores_are_split_again_only_for_a_gain() -> None:
    """The target is out of reach, so any split is short of it. Three cores hardly matter."""
    policy = latency_policy(0.4, Bounds(20, 20))
    for tick in range(20):
        policy.decide(two_alike(tick, 900.0 if tick % 2 else 1500.0, 10, 10))
    decision = policy.decide(two_alike(20, 1500.0, 17, 3))
    assert "divided differently" in decision.reason
    best = decision.tasks["work"], decision.tasks["sum"]
    assert sum(best) == 20 and best[1] > 3
    for tick in range(21, 27):
        near = two_alike(tick, 1500.0, best[0] - 3, best[1] + 3)
        assert not policy.decide(near).tasks


def test_cores_that_have_come_are_used_while_more_are_on_their_way() -> None:
    """A load that rises for long, on a cluster that is slow: some cores are always on their way."""
    rise = ramp(500.0, 6000.0, 400.0)
    outcome = simulate(world(rise, seconds=400.0, grant_s=25.0, cores=2), controller())
    idle = 0
    for record in outcome.records[60:]:
        tick = record.measurement
        (segment,) = tick.segments
        used = max(record.decision.tasks.values(), default=segment.tasks)
        idle += used < min(tick.cores_granted, tick.cores_asked)
    assert idle == 0
    assert sum("on their way" in record.decision.reason for record in outcome.records) > 20


def on_new_cores(policy: Deciding, rate: float, *, since: int) -> Decision:
    """Cores have come from two to four; no batch has ended for `since` seconds after that."""
    policy.decide(steady(30, 1000.0, 2))
    for tick in range(31, 31 + since):
        now = dataclasses.replace(
            measured(tick, rate=rate, cores=4, backlog=rate * (tick - 30), batches=False),
            cores_asked=4,
        )
        decision = policy.decide(now)
    return decision


def test_rows_that_wait_for_new_workers_to_start_are_no_reason_for_more() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS))
    decision = on_new_cores(policy, 1000.0, since=18)
    assert decision.holds and decision.reason == "the first batch on new cores still runs"


def test_a_load_that_rises_meanwhile_is_one() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS))
    decision = on_new_cores(policy, 4500.0, since=3)
    assert decision.cores is not None and decision.cores > 4


def test_without_new_workers_rows_that_wait_are_a_reason() -> None:
    policy = taught(latency_policy(TARGET_S, BOUNDS))
    for tick in range(30, 33):
        policy.decide(steady(tick, 1000.0, 4))
    late = [
        policy.decide(measured(33 + n, rate=1000.0, cores=4, backlog=1e4 + 1e3 * n, batches=False))
        for n in range(6)
    ]
    assert any(one.cores is not None and one.cores > 4 for one in late)
