"""Simulated executors with a limited memory: none becomes full, and the reasons say why."""

import dataclasses

import numpy as np

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.sim.microbatch.cluster import ClusterWorld
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.view.changes import words_of
from tidegate.workload.profile import constant, steps

STAGE = Stage(
    name="count",
    work_s=1e-5,
    shards=256,
    weights=lambda _: np.full(256, 1 / 256),
    row_bytes=100_000.0,
)


def run(world: World, most: int = 16) -> Outcome:
    assembly = Assembly(target=Target(10.0), bounds=Bounds(4, most), cores_per_executor=2)
    return simulate(world, new_controller(assembly))


def world(profile, **changes) -> World:
    """Nodes of two cores with 1 GB for their workers. Two of them hold about 16,000 rows."""
    settings = {
        "segments": (SimulatedSegment(fixed_s=2.0, stages=(STAGE,)),),
        "profile": profile,
        "seconds": 120.0,
        "cores": 4,
        "cluster": ClusterWorld(nodes=8, cores_each=2, grant_s=5.0, memory_bytes=10**9),
    }
    return World(**{**settings, **changes})


def fullness(outcome: Outcome) -> list[float]:
    return [one.fullness for record in outcome.records for one in record.measurement.executors]


def test_nodes_are_added_for_memory_that_latency_would_not_ask_for() -> None:
    """The load rises in steps; each batch takes a fifth of the cores' time."""
    load = steps([(0.0, 2500.0), (30.0, 5500.0), (70.0, 9500.0)])
    outcome = run(world(load))
    assert 0.5 < max(fullness(outcome)) < 1.0
    grown = [one for one in outcome.records if one.acted and one.decision.cores]
    assert grown and all(one.decision.reason.startswith("memory: node ") for one in grown[:1])
    assert max(outcome.cores) > 4
    free = dataclasses.replace(world(load).cluster, memory_bytes=None)
    alone = run(world(load, cluster=free))
    assert max(alone.cores) == 4, "for the latency four cores are enough"


def test_a_backlog_is_worked_off_in_parts() -> None:
    """After a standstill of the measurements there are six times the usual rows in one batch."""
    load = steps([(0.0, 2500.0), (40.0, 25_000.0), (44.0, 2500.0)])
    outcome = run(world(load), most=4)
    assert max(fullness(outcome)) < 1.0
    parted = [one for one in outcome.records if one.acted and one.decision.parts]
    assert parted[0].decision.parts["count"] > 1 and parted[-1].decision.parts["count"] == 1
    assert "rows at once would take" in parted[0].decision.reason
    assert "process the rows of count in" in words_of(parted[0])
    assert "at once again" in words_of(parted[-1])
    assert outcome.rows > 0.95 * (2500.0 * 116 + 4 * 25_000.0)


def test_executors_with_room_change_nothing() -> None:
    load = constant(500.0)
    limited, free = run(world(load)), run(world(load, cluster=None, grant_s=5.0))
    assert max(fullness(limited)) < 0.5
    assert limited.cores == free.cores
    assert not any(one.decision.parts for one in limited.records)
