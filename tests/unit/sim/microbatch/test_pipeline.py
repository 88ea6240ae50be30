"""The simulated pipeline keeps its own laws, and the default policy keeps its promises in it."""

import dataclasses

import numpy as np
import pytest

from tests.helpers.pipeline_worlds import BOUNDS, MEASURED, TARGET_S, controller, world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.floors import floors_of
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.limits import Limits, excluded_periods
from tidegate.control.names import PIPELINE_POLICIES
from tidegate.control.shedding.classes import ClassWorth
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import constant, steps


def plain(rate: float, cores: int, *, seconds: float = 60.0, **changes: object) -> World:
    segment = SimulatedSegment(
        fixed_s=0.3, per_task_s=0.01, stages=(Stage(name="work", work_s=1e-3),), **changes
    )
    return World(
        segments=(segment,), profile=constant(rate), seconds=seconds, cores=cores, noise=0.0
    )


def static(world: World, cores: int) -> Outcome:
    bounds = Bounds(1, 64)
    assembly = Assembly(target=Target(1.0), bounds=bounds, policy="static", cores=cores)
    return simulate(world, new_controller(assembly))


@pytest.mark.parametrize(
    ("rate", "cores", "trigger_s"), [(500.0, 2, 0.0), (3000.0, 6, 0.0), (500.0, 4, 2.0)]
)
def test_it_has_the_latency_of_the_micro_batch_model(
    rate: float, cores: int, trigger_s: float
) -> None:
    outcome = static(plain(rate, cores, trigger_s=trigger_s), cores)
    cost = BatchCost(fixed_s=0.3, per_task_s=0.01, work_s=1e-3)
    station = MicroBatchStation(cost=cost, arrival_rate=rate, interval_s=trigger_s)
    means = [latency.mean_s for latency in outcome.sojourns[20:] if latency is not None]
    assert np.mean(means) == pytest.approx(station.latency(cores), rel=0.05)


def test_start_up_is_no_work_and_more_cores_do_not_shorten_it() -> None:
    """The first batch takes 5 s longer, and the first one on more cores 3 s."""
    for cores in (2, 8):
        cold = dataclasses.replace(plain(500.0, cores), cold_s=5.0, cold_executor_s=3.0)
        assembly = Assembly(
            target=Target(1.0), bounds=Bounds(1, 64), policy="static", cores=2 * cores
        )
        outcome = simulate(dataclasses.replace(cold, grant_s=10.0), new_controller(assembly))
        batches = [b for r in outcome.records for b in r.measurement.segments[0].batches]
        odd = {batch.outlier: batch for batch in batches if batch.outlier is not None}
        assert odd.keys() == {"first", "new executors"}
        for name, start_up_s in (("first", 5.0), ("new executors", 3.0)):
            one = odd[name]
            work_s = 0.3 + 0.01 * one.tasks + one.rows * 1e-3 / one.tasks
            assert one.duration_s == pytest.approx(work_s + start_up_s, rel=0.02)
            assert one.parts_s["slowest"] == pytest.approx(one.rows * 1e-3 / one.tasks, rel=0.02)
        assert outcome.rows + outcome.records[-1].measurement.backlog_rows == pytest.approx(3e4)


def test_rows_are_neither_lost_nor_made() -> None:
    outcome = static(plain(1000.0, 4), 4)
    last = outcome.records[-1].measurement
    assert outcome.rows + last.backlog_rows == pytest.approx(60_000.0)


def test_segments_in_a_row_add_their_latencies() -> None:
    first = SimulatedSegment(name="a", fixed_s=0.2, stages=(Stage(name="one", work_s=1e-3),))
    second = SimulatedSegment(
        name="b", fixed_s=0.3, stages=(Stage(name="two", work_s=1e-3),), after="a"
    )
    both = World(
        segments=(first, second), profile=constant(500.0), seconds=60.0, cores=4, noise=0.0
    )
    outcome = simulate(
        both,
        new_controller(Assembly(target=Target(1.0), bounds=Bounds(1, 8), policy="static")),
    )
    alone = static(plain(500.0, 4), 4)
    assert outcome.sojourns[-1] is not None and alone.sojourns[-1] is not None
    assert outcome.sojourns[-1].mean_s > alone.sojourns[-1].mean_s
    assert outcome.records[-1].measurement.segments[1].arrival_rate == pytest.approx(500, rel=0.8)
    assert outcome.rows > 28_000


def test_an_input_is_done_when_the_slowest_branch_is_done_with_it() -> None:
    def segment(name: str, fixed_s: float, after: str | None) -> SimulatedSegment:
        stages = (Stage(name=name, work_s=1e-5, most_tasks=1),)
        return SimulatedSegment(name=name, fixed_s=fixed_s, stages=stages, after=after)

    def outcome(*segments: SimulatedSegment) -> Outcome:
        world = World(segments=segments, profile=constant(500.0), seconds=60.0, cores=4, noise=0.0)
        return static(world, 4)

    first, slow = segment("a", 0.3, None), segment("slow", 1.0, "a")
    alone = outcome(first, slow)
    both = outcome(first, slow, segment("quick", 0.2, "a"))
    assert both.rows == pytest.approx(alone.rows), "an input of two branches is one input"
    assert [one.mean_s for one in both.sojourns[20:] if one] == pytest.approx(
        [one.mean_s for one in alone.sojourns[20:] if one], rel=1e-6
    )
    last = both.records[-1].measurement
    parts = {one.name: one.latency for one in last.segments}
    assert parts["a"].mean_s == pytest.approx(0.45, rel=0.1)
    assert parts["quick"].mean_s == pytest.approx(0.2, rel=0.1), "rows are handed over at once"
    total = parts["a"].mean_s + parts["slow"].mean_s
    assert total == pytest.approx(last.latency.mean_s, rel=0.1)


def test_the_same_seed_gives_the_same_run() -> None:
    once = simulate(world(seconds=20.0, poisson=True), controller())
    again = simulate(world(seconds=20.0, poisson=True), controller())
    assert once.records == again.records


@pytest.mark.parametrize("seed", [1, 2])
def test_a_surge_with_changing_hot_keys_stays_within_target_on_few_cores(seed: int) -> None:
    surge = world(poisson=True, seed=seed)
    outcome = simulate(surge, controller())
    peak = next(
        static(surge, cores)
        for cores in range(8, 16)
        if static(surge, cores).within(TARGET_S, after_s=20) >= 0.99
    )
    assert outcome.within(TARGET_S, after_s=20) >= 0.95
    assert outcome.core_seconds <= 0.6 * peak.core_seconds
    assert outcome.reversals() <= 3
    assert outcome.moves > 0
    peak_cores = max(outcome.cores)
    assert 6 <= peak_cores <= BOUNDS.most and outcome.cores[-1] <= 4


def test_stale_ticks_hold() -> None:
    stalled = world(seconds=50.0, stalls=((28.0, 40.0),))
    outcome = simulate(stalled, controller())
    silent = [one for one in outcome.records if one.measurement.stale is not None]
    assert len(silent) == 12
    assert not any(record.acted for record in silent)
    assert all("nothing is scaled on old numbers" in one.decision.reason for one in silent)
    assert any(record.acted for record in outcome.records)


def test_excluded_periods_hold() -> None:
    midnight = 1_700_006_400.0
    limits = Limits(excluded=excluded_periods(["00:00-00:01"]))
    outcome = simulate(
        world(steps([(0, 1000.0), (10, 4000.0)]), seconds=80.0, starts_s=midnight),
        controller(limits=limits),
    )
    inside = [one for one in outcome.records if one.measurement.at_s - midnight < 60.0]
    assert not any(record.acted for record in inside)
    assert any(record.held_back for record in inside)
    assert any(record.acted for record in outcome.records[59:])


def test_a_floor_of_the_schedule_is_there_in_its_time_and_gone_after_it() -> None:
    midnight = 1_700_006_400.0
    limits = Limits(floors=floors_of(["00:00-00:01 cores>=9"]))
    outcome = simulate(
        world(constant(1000.0), seconds=120.0, starts_s=midnight), controller(limits=limits)
    )
    asked = [one.measurement.cores_asked for one in outcome.records]
    assert set(asked[5:59]) == {9}
    assert min(asked[90:]) < 9


def test_a_target_below_the_floor_is_said_and_the_loop_runs_at_its_best() -> None:
    outcome = simulate(world(constant(2000.0), seconds=30.0), controller(0.3))
    assert any("floor" in note for record in outcome.records for note in record.decision.notes)
    last = outcome.sojourns[-1]
    assert last is not None and last.mean_s < 0.9


def test_cores_come_after_their_time_and_the_horizon_knows() -> None:
    outcome = simulate(world(seconds=60.0, grant_s=4.0), controller())
    asked = [one.measurement.cores_asked for one in outcome.records]
    first = next(n for n, cores in enumerate(asked) if cores > 4)
    granted = next(n for n, cores in enumerate(outcome.cores) if cores > 4)
    assert granted - first in (3, 4)
    assert outcome.records[-1].beliefs["horizon_s"] > 4.0


@pytest.mark.parametrize("name", PIPELINE_POLICIES)
def test_every_policy_runs_a_pipeline(name: str) -> None:
    outcome = simulate(
        world(steps([(0, 1000.0), (8, 3000.0)]), seconds=40.0),
        new_controller(
            Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy=name, capacity=MEASURED)
        ),
    )
    assert {record.policy for record in outcome.records} == {name}
    assert all(BOUNDS.least <= cores <= BOUNDS.most for cores in outcome.cores)
    assert len(outcome.records) == 40


def test_unknown_policies_and_empty_worlds_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="did you mean 'latency'"):
        new_controller(Assembly(target=Target(1.0), bounds=BOUNDS, policy="latenzy"))
    with pytest.raises(AskedWrongly, match="at least one tick"):
        static(plain(10.0, 1, seconds=0.1), 1)


def test_arrivals_can_be_told_as_late_as_spark_tells_them() -> None:
    """The rows of a batch are known once its first stage is over, so a step is seen late."""
    at_once, later = (
        simulate(
            dataclasses.replace(
                plain(500.0, 4), profile=steps([(0, 500), (20, 1500)]), prompt=told
            ),
            controller(bounds=Bounds(4, 4)),
        )
        for told in (True, False)
    )

    def seen(outcome: Outcome) -> int:
        rates = [record.measurement.arrival_rate for record in outcome.records]
        return next(tick for tick, rate in enumerate(rates) if rate > 1000.0)

    assert seen(at_once) < seen(later) <= seen(at_once) + 2
    steady = [record.measurement.arrival_rate for record in later.records[10:18]]
    assert steady == pytest.approx([500.0] * 8, rel=0.05)


def test_a_surge_that_is_seen_late_is_held() -> None:
    """200 to 800 rows/s within 6 s, told as Spark tells it, on the demo's costs."""
    ramp = [(0, 200.0), *((30 + n, 200.0 + 100.0 * (n + 1)) for n in range(6)), (54, 200.0)]
    stages = (Stage(name="enrich", work_s=0.003), Stage(name="count", work_s=0.004))
    segment = SimulatedSegment(fixed_s=0.27, per_task_s=0.014, stages=stages)
    for seed in range(1, 4):
        scene = World(
            segments=(segment,),
            profile=steps(ramp),
            seconds=90.0,
            cores=2,
            noise=0.07,
            seed=seed,
            prompt=False,
        )
        options = LatencyOptions(scale_in_after_s=5.0)
        outcome = simulate(scene, controller(2.0, bounds=Bounds(2, 16), options=options))
        assert outcome.within(2.0, after_s=20.0) >= 0.95
        assert outcome.core_seconds < 0.65 * 10 * 90


def test_classes_are_shed_by_their_worth_as_on_spark() -> None:
    """The decision says what to keep of each class, and the simulated batches do it, row by row."""
    worths = {
        "gold": ClassWorth(priority=1, weight=1.0, floor=0.0),
        "rest": ClassWorth(priority=0, weight=1.0, floor=0.05),
    }
    scene = dataclasses.replace(
        plain(8000.0, 4),
        poisson=True,
        class_shares={"gold": 0.2, "rest": 0.8},
        worths=worths,
    )
    assembly = Assembly(target=Target(2.0), bounds=Bounds(4, 4), shed="model", classes=worths)
    outcome = simulate(scene, new_controller(assembly))
    assert any(record.decision.keep_by_class for record in outcome.records)
    counts = [source for r in outcome.records[20:] for source in r.measurement.sources]
    classes = {
        name: [part for source in counts for part in source.classes if part.name == name]
        for name in worths
    }
    kept = {
        name: sum(part.kept for part in parts) / sum(part.offered for part in parts)
        for name, parts in classes.items()
    }
    assert kept["gold"] > 0.95
    assert 0.05 <= kept["rest"] < 0.6
    assert all(
        source.offered == sum(part.offered for part in source.classes)
        and source.kept == sum(part.kept for part in source.classes)
        for source in counts
    )
    late = [latency.mean_s for latency in outcome.sojourns[20:] if latency is not None]
    assert sum(late) / len(late) == pytest.approx(2.0, rel=0.1)


def test_classes_must_have_all_the_rows() -> None:
    with pytest.raises(AskedWrongly, match="they must add up to 1"):
        dataclasses.replace(plain(10.0, 1), class_shares={"gold": 0.5})


def test_a_batch_that_outlasts_its_interval_is_followed_at_once() -> None:
    """As on Spark: batches of 1.2 s on a trigger of 1 s do not wait for the next full second."""
    trigger = plain(3000.0, 4, trigger_s=1.0)  # 0.34 s and 3/4 of the batch before: 1.36 s
    free = plain(3000.0, 4)
    slow, fast = (
        [latency.mean_s for latency in static(one, 4).sojourns[20:] if latency is not None]
        for one in (trigger, free)
    )
    assert np.mean(slow) == pytest.approx(np.mean(fast), rel=0.03)


def test_a_backlog_at_the_start_is_caught_up_and_is_no_rate() -> None:
    """20,000 rows wait, 20 core seconds of work, and 500 rows/s arrive."""
    outcome = simulate(
        world(steps([(0, 500.0)]), seconds=60.0, cores=4, backlog_rows=20_000.0), controller()
    )
    assert outcome.rows == pytest.approx(20_000 + 60 * 500, rel=0.03), "nothing is lost"
    seen = [record.measurement for record in outcome.records]
    assert seen[0].backlog_rows > 19_000.0
    assert all(one.arrival_rate == pytest.approx(500.0, rel=0.02) for one in seen)
    believed = [record.beliefs.get("forecast_rate", 500.0) for record in outcome.records]
    assert all(rate == pytest.approx(500.0, rel=0.05) for rate in believed)
    first_done = next(one.at_s for one in seen if one.segments[0].batches)
    late = [one for one in seen if one.latency is not None and one.latency.mean_s > TARGET_S]
    assert late, "the backlog was late"
    catch_up_s = LatencyOptions().catch_up_s
    assert late[-1].at_s - first_done <= catch_up_s + 2.0, "then it took catch_up and a batch"
