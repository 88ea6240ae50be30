"""A slow node of a cluster does not set the length of every batch."""

import dataclasses

import numpy as np
import pytest

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.learning.executor_speeds import ExecutorSpeeds
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.sim.microbatch.cluster import ClusterWorld
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.view.explain import explain
from tidegate.workload.profile import constant, steps


class Blind(ExecutorSpeeds):
    """To it all executors are alike, as they were before their speeds were learned."""

    def observe(self, measurement: Measurement) -> None:
        pass


def run(
    stage: Stage, *, blind: bool = False, most: int = 8, rate: float = 200.0, seconds: float = 120.0
) -> Outcome:
    """Four nodes of two cores, of which the last is a fifth as fast."""
    world = World(
        segments=(SimulatedSegment(fixed_s=0.3, stages=(stage,)),),
        profile=constant(rate),
        seconds=seconds,
        cores=8,
        cluster=ClusterWorld(nodes=8, cores_each=2, grant_s=5.0, speeds=(1.0, 1.0, 1.0, 0.2)),
    )
    assembly = Assembly(target=Target(3.0), bounds=Bounds(8, most), cores_per_executor=2)
    controller = new_controller(assembly)
    if blind:
        controller = blinded(controller)
    return simulate(world, controller)


def blinded(controller: Controller) -> Controller:
    controller._balancer.speeds = Blind()  # type: ignore[union-attr]
    return controller


def latency_s(outcome: Outcome) -> float:
    """The mean of the last minute."""
    last = [one.mean_s for one in outcome.sojourns[-60:] if one is not None]
    return float(np.mean(last)) if last else np.inf


KEYED = Stage(name="count", work_s=0.01, shards=256, weights=lambda _: np.full(256, 1 / 256))


def test_shards_leave_the_slow_node_and_the_target_is_held() -> None:
    """Four nodes sum up to 6.4 cores; with even shards the slow node leaves 1.6 cores' worth."""
    dealt, even = run(KEYED), run(KEYED, blind=True)
    assert latency_s(dealt) < 3.0
    assert latency_s(even) > 2.0 * latency_s(dealt)
    said = {note for record in dealt.records for note in record.decision.notes}
    assert any(note.startswith("node 4 is about 5 times as slow") for note in said)
    assert not any("as slow" in n for record in even.records for n in record.decision.notes)
    told = explain(dealt.records).executors
    assert len(told) == 1 and told[0][0].startswith("node 4 is") and told[0][1] > 60.0
    seen = explain(even.records).executors
    assert seen[0][0] == told[0][0], "it is found again from what was measured"
    moved = [record for record in dealt.records if record.decision.moves]
    assert any("node 4 is about 5 times as slow" in one.decision.reason for one in moved)
    assert len(moved) < 10, "and then it rests"


def test_fewer_cores_are_asked_for_than_where_all_nodes_count_as_alike() -> None:
    dealt, even = run(KEYED, most=16, seconds=180.0), run(KEYED, most=16, blind=True, seconds=180.0)
    assert latency_s(dealt) < 3.0
    assert dealt.core_seconds < 0.8 * even.core_seconds


def test_the_slow_node_goes_first_when_cores_are_released() -> None:
    """After a surge fewer nodes are enough, and the slow ones are among the oldest."""
    load = steps([(0.0, 300.0), (60.0, 60.0)])
    world = World(
        segments=(SimulatedSegment(fixed_s=0.3, stages=(KEYED,)),),
        profile=load,
        seconds=180.0,
        cores=12,
        cluster=ClusterWorld(nodes=8, cores_each=2, grant_s=5.0, speeds=(1.0, 0.2, 1.0, 1.0)),
    )
    assembly = Assembly(target=Target(3.0), bounds=Bounds(2, 16), cores_per_executor=2)
    outcome = simulate(world, new_controller(assembly))
    fewer = [one for one in outcome.records if one.acted and one.decision.release_first]
    assert fewer and "which is the slowest, goes first" in fewer[0].decision.reason
    assert set(fewer[0].decision.release_first) <= {"node 2", "node 6"}
    left = {
        name for one in outcome.records[-60:] for name in one.measurement.operators[0].executors
    }
    assert left and not left & {"node 2", "node 6"}
    assert Record.from_json(fewer[0].to_json()).decision == fewer[0].decision


def test_rows_of_a_map_are_dealt_by_the_default_policy_too() -> None:
    stage = dataclasses.replace(KEYED, shards=0, weights=None, most_tasks=8)
    outcome = run(stage)
    deals = [one.decision.deal["count"] for one in outcome.records if one.decision.deal]
    assert deals and deals[-1][6:] == pytest.approx((0.031, 0.031), abs=0.01)
    assert latency_s(outcome) < 3.0
