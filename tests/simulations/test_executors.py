"""Cores that come as whole executors, some seconds after they are asked for."""

import itertools
import statistics

import pytest

from tests.helpers.pipeline_worlds import world
from tidegate.apps.surge import (
    KEYED_WAIT_S,
    MAP_WAIT_S,
    SHARDS,
    WARM_S,
    peak_cores,
    surge_keys,
    surge_profile,
)
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.sim.microbatch.cluster import ClusterWorld
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World, keyed_weights
from tidegate.workload.profile import constant, steps

PER_EXECUTOR = 4
TARGET_S, WORK_S = 2.0, 1e-3


def run(rate: float = 0.0, **changes: object) -> tuple[Record, ...]:
    made = Assembly(
        target=Target(TARGET_S), bounds=Bounds(PER_EXECUTOR, 24), cores_per_executor=PER_EXECUTOR
    )
    load = {"profile": constant(rate)} if rate else {}
    where = world(**{"seconds": 120.0, "cores": 24, "grant_s": 5.0, **load, **changes})
    return simulate(where, new_controller(made)).records


def tasks(record: Record) -> int:
    return sum(segment.tasks for segment in record.measurement.segments)


def test_a_part_of_an_executor_is_never_planned() -> None:
    """Five of eight cores would be enough: it neither idles on three nor goes back and forth."""
    for rate in (2500.0, 5500.0, 9000.0):
        found = run(rate)
        settled = [tasks(record) for record in found[40:]]
        changes = sum(one != other for one, other in itertools.pairwise(settled))
        assert all(count % PER_EXECUTOR == 0 for count in settled)
        assert changes <= 2


def test_no_task_is_started_before_its_core_has_come() -> None:
    """The load rises to what all cores carry, and no backlog outlasts the wait for them."""
    found = run(profile=steps([(0.0, 1500.0), (60.0, 3600.0)]), cores=4)
    assert max(record.measurement.cores_asked for record in found) > 4
    for record in found:
        assert tasks(record) <= record.measurement.cores_granted


def test_a_batch_of_a_long_backlog_has_tasks_for_the_cores_that_come_meanwhile() -> None:
    """Six times the load on 4 cores, and 20 more after 5 s: until then rows of 30 s pile up."""
    found = run(profile=steps([(0.0, 1500.0), (60.0, 9000.0)]), cores=4)
    before = [one for one in found if tasks(one) > one.measurement.cores_granted]
    assert before, "tasks for cores that are on their way"
    for record in before:
        waiting = record.measurement.backlog_rows
        assert waiting > 2.0 * TARGET_S * 4 / WORK_S, "only for a backlog of several targets"
    assert all(tasks(one) == one.measurement.cores_granted for one in found[-20:])


@pytest.mark.parametrize("grant_s", [8.0, 14.0])
def test_a_surge_on_executors_that_come_late(grant_s: float) -> None:
    """The surge of `tidegate bench kafka_surge`: five executors of two cores, four times the load.

    Its aim for core-seconds is met. The target is met but for the time that executors take.
    """
    within, cost = zip(*(surge(grant_s, seed) for seed in (1, 2, 3)), strict=True)
    assert statistics.mean(within) > 0.92
    assert max(cost) < 0.65


def surge(grant_s: float, seed: int) -> tuple[float, float]:
    """The share of seconds within the target, and the core-seconds over those of a static peak."""
    seconds, target_s = 300.0, 6.0
    weights = keyed_weights(surge_keys(seconds), SHARDS)
    stages = (
        Stage(name="enrich", work_s=MAP_WAIT_S),
        Stage(name="count", work_s=KEYED_WAIT_S, shards=SHARDS, weights=weights),
    )
    where = World(
        segments=(SimulatedSegment(fixed_s=0.35, per_task_s=0.01, stages=stages),),
        profile=surge_profile(seconds),
        seconds=seconds,
        cores=2,
        prompt=False,
        by_chance=True,
        noise=0.1,
        latency_window_s=3.0,
        cold_executor_s=3.0,
        cluster=ClusterWorld(nodes=5, cores_each=2, grant_s=grant_s, seed=seed),
        seed=seed,
    )
    made = Assembly(
        target=Target(target_s),
        bounds=Bounds(2, 10),
        cores_per_executor=2,
        latency=LatencyOptions(scale_in_after_s=5.0),
    )
    outcome = simulate(where, new_controller(made))
    static = -(-peak_cores(target_s=target_s) // 2) * 2 * seconds
    return outcome.within(target_s, after_s=WARM_S), outcome.core_seconds / static
