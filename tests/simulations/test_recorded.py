"""A world made from records: a run that is simulated again comes out as it was."""

import dataclasses

import numpy as np
import pytest

from tests.helpers.pipeline_worlds import BOUNDS, TARGET_S, controller, world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.recorded import recorded_world
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import Profile, steps


@pytest.fixture(scope="module")
def surge() -> World:
    return world(prompt=False, latency_window_s=3.0)


@pytest.fixture(scope="module")
def records(surge: World) -> tuple[Record, ...]:
    return simulate(surge, controller()).records


def test_the_load_is_the_recorded_one(surge: World, records: tuple[Record, ...]) -> None:
    found = recorded_world(records).world
    for at_s in (20, 40, 60, 90, 110):
        true = float(surge.profile.cumulative(at_s * 1000))
        assert float(found.profile.cumulative(at_s * 1000)) == pytest.approx(true, rel=0.03)


def test_costs_work_and_shards_are_found(surge: World, records: tuple[Record, ...]) -> None:
    found = recorded_world(records).world.segments[0]
    wanted = surge.segments[0]
    assert found.fixed_s + 6 * found.per_task_s == pytest.approx(
        wanted.fixed_s + 6 * wanted.per_task_s, rel=0.15
    )
    work = {stage.name: stage.work_s for stage in found.stages}
    assert sum(work.values()) == pytest.approx(1e-3, rel=0.1)
    assert work["parse"] / sum(work.values()) == pytest.approx(0.2, rel=0.1)
    assert [stage.shards for stage in found.stages] == [0, 256]
    keyed, before = found.stages[1].weights, wanted.stages[1].weights
    assert keyed is not None and before is not None
    for at_s in (20.0, 100.0):  # before and after the hot keys changed
        assert np.abs(keyed(at_s) - before(at_s)).sum() < 0.1


def test_a_machine_that_was_slow_for_a_while_is_slow_again(surge: World) -> None:
    slow = dataclasses.replace(surge, paces=((0.0, 1.0), (75.0, 1.4), (95.0, 1.0)), noise=0.02)
    found = recorded_world(simulate(slow, controller()).records).world
    usual = found.pace(110.0)
    assert found.pace(85.0) / usual == pytest.approx(1.4, rel=0.12)
    assert found.pace(25.0) / usual == pytest.approx(1.0, rel=0.12)
    assert float(np.std(found.residuals)) < 0.07


@pytest.mark.parametrize("target_s", [1.5, 2.0, 3.0])
def test_a_run_simulated_again_holds_its_target_at_the_same_cost(
    surge: World, target_s: float
) -> None:
    pairs = []
    for seed in range(3):
        first = simulate(dataclasses.replace(surge, seed=seed), controller(target_s))
        world_again = recorded_world(first.records).changed(seed=100 + seed).world
        pairs.append((first, simulate(world_again, controller(target_s))))
    within = [[run.within(target_s, after_s=20.0) for run in pair] for pair in pairs]
    cost = [[run.core_seconds for run in pair] for pair in pairs]
    real, again = np.mean(within, axis=0)
    assert again == pytest.approx(real, abs=0.03)
    real, again = np.mean(cost, axis=0)
    assert again == pytest.approx(real, rel=0.07)


def test_more_load_needs_more_cores(records: tuple[Record, ...]) -> None:
    recorded = recorded_world(records)
    more = recorded.changed(load=1.5)
    usual = recorded.oracle(Target(TARGET_S), BOUNDS)
    assert more.oracle(Target(TARGET_S), BOUNDS).core_seconds > 1.2 * usual.core_seconds
    assert (
        simulate(more.world, controller()).core_seconds
        > 1.05 * simulate(recorded.world, controller()).core_seconds
    )


def test_the_oracle_uses_no_more_than_the_run(records: tuple[Record, ...]) -> None:
    found = recorded_world(records).oracle(Target(TARGET_S), BOUNDS)
    used = sum(r.measurement.cores_granted * r.measurement.interval_s for r in records)
    assert found.within > 0.98
    assert found.core_seconds < used


def test_segments_in_a_row_are_one_after_another() -> None:
    segments = (
        SimulatedSegment(name="main", fixed_s=0.2, stages=(Stage(name="a", work_s=5e-4),)),
        SimulatedSegment(
            name="cut", fixed_s=0.1, stages=(Stage(name="b", work_s=1e-3),), after="main"
        ),
    )
    both = World(
        segments=segments,
        profile=steps([(0, 500.0), (30, 1500.0)]),
        seconds=60.0,
        cores=4,
        prompt=False,
    )
    found = recorded_world(simulate(both, controller(3.0)).records)
    assert [one.after for one in found.world.segments] == [None, "main"]
    assert found.segments[1].visits == pytest.approx(1.0, rel=0.1)
    assert found.world.segments[1].stages[0].work_s == pytest.approx(1e-3, rel=0.25)


def sources(*loads: Profile) -> World:
    """Queries beside each other, each with its own source, on cores enough for all of them."""
    return World(
        segments=tuple(
            SimulatedSegment(
                name=f"query{number}",
                fixed_s=0.4,
                stages=(Stage(name=f"work{number}", work_s=1e-3),),
                profile=load,
            )
            for number, load in enumerate(loads)
        ),
        profile=loads[0],
        seconds=80.0,
        cores=12,
        prompt=False,
        latency_window_s=3.0,
    )


def mean_s(run: Outcome) -> float:
    return float(np.mean([one.mean_s for one in run.sojourns[20:] if one is not None]))


def still(cores: int) -> Controller:
    return new_controller(Assembly(target=Target(3.0), bounds=Bounds(1, cores), policy="static"))


def test_queries_beside_each_other_have_loads_of_their_own_and_do_not_wait_for_each_other() -> None:
    low, high = steps([(0, 200.0)]), steps([(0, 300.0), (40, 900.0)])
    first = simulate(sources(low, high), still(12))
    found = recorded_world(first.records)
    assert [one.after for one in found.world.segments] == [None, None]
    for load, one in zip((low, high), (found.world, found.world.segments[1]), strict=True):
        assert one.profile is not None
        for at_s in (30, 75):
            true = float(load.cumulative(at_s * 1000))
            assert float(one.profile.cumulative(at_s * 1000)) == pytest.approx(true, rel=0.05)
    again = simulate(found.world, still(12))
    assert mean_s(again) == pytest.approx(mean_s(first), rel=0.1)
    assert again.rows == pytest.approx(first.rows, rel=0.03)
    assert found.oracle(Target(3.0), BOUNDS).estimated
    more = found.changed(load=2.0)
    assert simulate(more.world, still(12)).rows == pytest.approx(2.0 * again.rows, rel=0.03)


def test_a_loop_is_refused_in_a_sentence(records: tuple[Record, ...]) -> None:
    last = records[-1].measurement
    looped = tuple(dataclasses.replace(one, loops=True) for one in last.segments)
    changed = dataclasses.replace(
        records[-1], measurement=dataclasses.replace(last, segments=looped)
    )
    with pytest.raises(AskedWrongly, match="through a loop"):
        recorded_world([*records[:-1], changed])


def test_a_run_that_began_with_a_backlog_begins_with_it_again(surge: World) -> None:
    behind = dataclasses.replace(surge, backlog_rows=100_000.0, cores=12)
    first = simulate(behind, controller())
    found = recorded_world(first.records)
    assert found.world.backlog_rows == pytest.approx(100_000.0, rel=0.01)
    again = simulate(found.world, controller())
    assert max(one.measurement.arrival_rate for one in again.records) < 6000.0
    assert again.rows == pytest.approx(first.rows, rel=0.03)
    least = found.oracle(Target(TARGET_S), BOUNDS)
    bare = dataclasses.replace(
        found, world=dataclasses.replace(found.world, backlog_rows=0.0)
    ).oracle(Target(TARGET_S), BOUNDS)
    assert least.core_seconds > bare.core_seconds + 60.0
    assert found.changed(load=0.5).world.backlog_rows == 0.5 * found.world.backlog_rows


def test_a_run_that_idles_at_its_end_has_no_more_rows_than_it_had(surge: World) -> None:
    ended = dataclasses.replace(surge, profile=steps([(0, 1000.0), (40, 0.0)]), seconds=100.0)
    found = recorded_world(simulate(ended, controller()).records).world
    assert float(found.profile.cumulative(100_000)) == pytest.approx(40_000.0, rel=0.01)


def test_a_keyed_operator_that_never_got_a_row_has_no_weights(surge: World) -> None:
    """As behind a filter that lets nothing through."""
    first = simulate(surge, controller()).records
    bare = []
    for record in first:
        operators = record.measurement.operators
        unused = dataclasses.replace(operators[-1], name="unused", shard_rows=(), busy_s=0.0)
        measurement = dataclasses.replace(record.measurement, operators=(*operators, unused))
        bare.append(dataclasses.replace(record, measurement=measurement))
    found = recorded_world(bare).world
    assert found.segments[0].stages[-1].weights is None
    assert simulate(found, controller()).rows > 0.0


def test_a_map_whose_rows_are_dealt_has_no_shards_even_before_its_speeds_are_known(
    surge: World,
) -> None:
    """The tick after a deal has a route of slots, and no speeds yet."""
    records = list(simulate(surge, controller()).records)
    last = records[-1].measurement
    dealt = dataclasses.replace(last.operators[0], route=(0, 1) * 32, dealt=True)
    measurement = dataclasses.replace(last, operators=(dealt, *last.operators[1:]))
    records[-1] = dataclasses.replace(records[-1], measurement=measurement)
    first = recorded_world(records).world.segments[0].stages[0]
    assert (first.name, first.shards) == (dealt.name, 0)
    older = records[-1].to_json().replace(',"dealt":true', "").replace(',"dealt":false', "")
    assert not Record.from_json(older).measurement.operators[0].dealt


def test_a_run_without_batches_is_refused(surge: World) -> None:
    short = dataclasses.replace(surge, seconds=3.0)
    with pytest.raises(AskedWrongly, match=r"too (short|few)"):
        recorded_world(simulate(short, controller()).records)
