"""A world made from records: a run that is simulated again comes out as it was."""

import dataclasses

import numpy as np
import pytest

from tests.helpers.pipeline_worlds import BOUNDS, TARGET_S, controller, world
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.recorded import recorded_world
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import steps


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
    assert float(np.std(found.residuals)) < 0.05


@pytest.mark.parametrize("target_s", [1.5, 2.0, 3.0])
def test_a_run_simulated_again_holds_its_target_at_the_same_cost(
    surge: World, target_s: float
) -> None:
    pairs = []
    for seed in range(4):
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


def test_a_run_without_batches_is_refused(surge: World) -> None:
    short = dataclasses.replace(surge, seconds=3.0)
    with pytest.raises(AskedWrongly, match=r"too (short|few)"):
        recorded_world(simulate(short, controller()).records)
