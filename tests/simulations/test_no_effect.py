"""Pipelines that more cores do not make faster: scale-outs stop, and the likely cause is named."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.pipeline_worlds import BOUNDS, MEASURED, SURGE, TARGET_S, world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.effect.likely_cause import HOT_KEY, PARTITIONS, SINK
from tidegate.control.limits import Limits
from tidegate.control.names import PIPELINE_POLICIES
from tidegate.control.no_effect import NoEffect
from tidegate.control.record import Record
from tidegate.control.replay import replay
from tidegate.control.target import Target
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import ShardWeights, SimulatedSegment, Stage, World
from tidegate.workload.profile import Profile, steps

RISE = steps([(0, 300.0), (30, 900.0)])
BETWEEN_S = 10.0
"""Time between two changes, so that batches use the cores of one before the next."""


def one_hot_key(share: float = 0.95) -> ShardWeights:
    weights = np.full(64, (1.0 - share) / 63)
    weights[7] = share
    return lambda at_s: weights


def segment(stage: Stage, **changes: object) -> SimulatedSegment:
    return SimulatedSegment(fixed_s=0.3, per_task_s=0.01, stages=(stage,), **changes)  # type: ignore[arg-type]


HOT = segment(Stage(name="count", work_s=1.2e-3, shards=64, weights=one_hot_key()))
FEW = segment(Stage(name="read", work_s=2.2e-3), partitions=2)
SHARED = segment(Stage(name="write", work_s=2e-3, speedup=lambda tasks: min(tasks, 2)))
"""Two tasks keep the sink busy. With more of them, each waits longer."""


def assembled(policy: str = "latency", shed: str | None = None) -> Controller:
    return new_controller(
        Assembly(
            target=Target(2.0),
            bounds=Bounds(1, 24),
            policy=policy,
            shed=shed,
            limits=Limits(t_ra_s=BETWEEN_S),
        )
    )


def run(
    one: SimulatedSegment,
    controller: Controller,
    *,
    profile: Profile = RISE,
    seconds: float = 200.0,
    foreign: bool = False,
) -> Outcome:
    there = World(
        segments=(one,), profile=profile, seconds=seconds, cores=2, seed=1, foreign=foreign
    )
    return simulate(there, controller)


def first_found(outcome: Outcome) -> tuple[int, NoEffect]:
    for number, record in enumerate(outcome.records):
        if record.no_effect is not None:
            return number, record.no_effect
    raise AssertionError("it was never noticed")


@pytest.mark.parametrize(
    ("one", "foreign", "policy", "cause", "said"),
    [
        (HOT, False, "flow", HOT_KEY, "shard 7 of 'count' has 9"),
        (HOT, True, "latency", HOT_KEY, "one task does nearly all of the work"),
        (FEW, False, "latency", PARTITIONS, "2 tasks read the source for"),
        (FEW, True, "latency", PARTITIONS, "2 tasks read the source for"),
        (SHARED, False, "latency", SINK, "something that all tasks wait for"),
    ],
    ids=["hot key", "foreign hot key", "partitions", "foreign partitions", "shared sink"],
)
def test_scale_outs_stop_after_three_and_the_cause_is_named(
    one: SimulatedSegment, foreign: bool, policy: str, cause: str, said: str
) -> None:
    outcome = run(one, assembled(policy), foreign=foreign)
    number, found = first_found(outcome)
    assert found.times == 3
    assert found.cause == cause
    assert said in found.why
    assert found.duration_ratio > 0.95
    before, after = outcome.records[:number], outcome.records[number:]
    grown = [b.measurement.cores_asked > a.measurement.cores_asked for a, b in pairs(before)]
    assert sum(grown) >= 3
    assert all(record.no_effect == found for record in after), "the load stays as it is"
    assert max(record.measurement.cores_asked for record in after) == found.to_cores
    assert not any(record.decision.cores for record in after)
    assert all(found.words in record.decision.notes for record in after)
    assert after[0].measurement.latency is None or after[0].measurement.latency.mean_s > 2.0


def pairs(records: tuple[Record, ...]) -> list[tuple[Record, Record]]:
    return list(itertools.pairwise(records))


def test_without_the_watch_the_same_pipeline_goes_on_growing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = run(SHARED, assembled())
    monkeypatch.setattr("tidegate.control.effect.scale_outs.TIMES", 1000)
    unwatched = run(SHARED, assembled())
    assert max(unwatched.cores) > max(watched.cores)
    assert unwatched.core_seconds > watched.core_seconds


def test_a_replay_stops_where_the_run_did() -> None:
    outcome = run(HOT, assembled(), foreign=True)
    lines = [Record.from_json(record.to_json()) for record in outcome.records]
    assert lines == list(outcome.records)
    decisions = replay(lines, assembled())
    assert decisions == [record.decision for record in outcome.records]


def test_another_load_is_let_try_again() -> None:
    falls = steps([(0, 300.0), (30, 900.0), (150, 300.0)])
    outcome = run(SHARED, assembled(), profile=falls, seconds=220.0)
    number, found = first_found(outcome)
    assert number < 150
    calm = outcome.records[-1]
    assert calm.no_effect is None
    assert calm.measurement.cores_asked < found.to_cores


def test_after_some_time_one_more_is_tried_and_the_next_time_is_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidegate.control.effect.scale_outs.AGAIN_S", 40.0)
    outcome = run(SHARED, assembled(), seconds=400.0)
    found = list(
        dict.fromkeys(one.no_effect for one in outcome.records if one.no_effect is not None)
    )
    assert [one.again_s for one in found[:3]] == [40.0, 80.0, 160.0]
    first, second, _ = found[:3]
    assert second.to_cores > first.to_cores, "one more was tried"
    assert second.since_s - first.since_s > first.again_s
    assert {one.cause for one in found} == {SINK}, "it is still the same cause"
    tried = sum(step > 0 for step in outcome.changes())
    assert tried <= 4 + 2 * len(found), "two steps of one core each can be told from noise"


def test_who_sheds_knows_that_no_more_cores_come() -> None:
    outcome = run(SHARED, assembled(shed="model"), seconds=240.0)
    number, found = first_found(outcome)
    late = outcome.records[number + 20 :]
    assert all(record.no_effect == found for record in late)
    assert not any("more cores have come" in record.decision.reason for record in late)
    assert outcome.shed > 0.0
    means = [one.measurement.latency.mean_s for one in late if one.measurement.latency is not None]
    unshed = [one.measurement.latency for one in run(SHARED, assembled()).records[-60:]]
    worse = [one.mean_s for one in unshed if one is not None]
    assert float(np.median(means)) < 0.7 * float(np.median(worse))


@pytest.mark.parametrize("policy", PIPELINE_POLICIES)
def test_a_usual_surge_is_never_taken_for_it(policy: str) -> None:
    there = dataclasses.replace(world(SURGE, seconds=120.0, seed=3), odd_batches=0.02)
    controller = new_controller(
        Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy=policy, capacity=MEASURED)
    )
    outcome = simulate(there, controller)
    assert not any(record.no_effect for record in outcome.records)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "change",
    [
        lambda one: one,
        lambda one: dataclasses.replace(one, foreign=True),
        lambda one: dataclasses.replace(one, grant_s=8.0, prompt=False),
        lambda one: dataclasses.replace(one, by_chance=True, poisson=True, odd_batches=0.05),
    ],
    ids=["plain", "foreign", "slow cluster", "by chance"],
)
def test_no_surge_of_the_default_policy_is(seed: int, change: Callable[[World], World]) -> None:
    load = steps([(0, 600.0), (25, 1500.0), (40, 4000.0), (75, 6000.0), (100, 900.0)])
    there = change(world(load, seconds=130.0, seed=seed, noise=0.1))
    controller = new_controller(Assembly(target=Target(TARGET_S), bounds=Bounds(1, 24)))
    outcome = simulate(there, controller)
    assert sum(step > 0 for step in outcome.changes()) >= 3, "it has to scale out"
    assert not any(record.no_effect for record in outcome.records)
