"""The default policy on a small cluster whose nodes fail, are slow, and come late or never."""

import dataclasses

import pytest
from benchmarks import scale

from tidegate.benching import Options
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.sim.microbatch.cluster import ClusterWorld
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import constant

NODES, HOURS = 40, 0.75


def test_the_target_is_held_on_a_cluster_on_which_things_go_wrong() -> None:
    load = scale.load_of(NODES, HOURS, 8.0)
    cluster = dataclasses.replace(
        scale.faulty(NODES, HOURS, speculation=1.5), failures_a_day=6.0, slow_a_day=12.0
    )
    day = scale.run_day(load, 3600.0 * HOURS, cluster, shards=256)
    assert day.counts.failed >= 1 and day.counts.slow >= 1
    assert (day.summary.within_target or 0.0) > 0.8
    assert day.summary.core_seconds < 3.0 * scale.least(load, 3600.0 * HOURS, 4 * NODES)
    assert len(day.decision_ms) == 270


def run(cluster: ClusterWorld, seconds: float = 1200.0):
    """A fixed number of cores, so that only the cluster makes a difference."""
    segment = SimulatedSegment(fixed_s=1.0, stages=(Stage(name="work", work_s=0.01),))
    world = World(
        segments=(segment,),
        profile=constant(600.0),
        seconds=seconds,
        cores=16,
        noise=0.0,
        cluster=cluster,
    )
    static = Assembly(target=Target(10.0), bounds=Bounds(16, 16), policy="static")
    body, controller = PipelineSimulation(world), new_controller(static)
    return body, body.run(controller.tick)


def test_a_batch_that_loses_a_node_begins_again_and_no_row_is_lost() -> None:
    quiet, usual = run(ClusterWorld(nodes=8))
    body, outcome = run(ClusterWorld(nodes=8, failures_a_day=200.0, grant_s=20.0))
    assert quiet.cluster is not None and body.cluster is not None
    assert quiet.cluster.counts.failed == 0 < body.cluster.counts.failed

    def longest_s(found) -> float:
        return max(
            batch.duration_s
            for record in found.records
            for segment in record.measurement.segments
            for batch in segment.batches
        )

    assert longest_s(outcome) > longest_s(usual) + 9.0, "ten seconds until the loss is noticed"
    arrived = 600.0 * 1200.0
    assert outcome.rows + outcome.records[-1].measurement.backlog_rows >= 0.999 * arrived
    assert outcome.core_seconds < usual.core_seconds


def test_a_slow_node_lengthens_every_batch_unless_tasks_are_run_again() -> None:
    slow = ClusterWorld(nodes=4, slow_a_day=100.0, slow_s=1e6, slow_times=10.0)
    _, without = run(slow, 600.0)
    _, within = run(dataclasses.replace(slow, speculation=1.5), 600.0)
    _, usual = run(ClusterWorld(nodes=4), 600.0)

    def mean_s(found) -> float:
        return found.records[-1].measurement.latency.mean_s

    last = [o for o in (usual, within, without) if o.records[-1].measurement.latency is not None]
    assert usual in last
    assert without.rows < within.rows <= usual.rows * 1.001
    if within in last:
        assert mean_s(within) > 1.1 * mean_s(usual)


def test_what_cannot_be_simulated_is_refused() -> None:
    for extra, said in (
        ({"node": "5"}, "no option '--node'; did you mean 'nodes'?"),
        ({"nodes": "1"}, "--nodes 1 is not possible; give 2 to 4000"),
        ({"hours": "x"}, "--hours x is not possible"),
        ({"faults": "some"}, "--faults some is not possible; give on or off or late or other"),
    ):
        with pytest.raises(AskedWrongly) as error:
            scale.asked_of(Options(extra=extra))
        assert said in str(error.value)


def test_faults_can_be_left_out_by_kind() -> None:
    def world(faults: str) -> ClusterWorld:
        return scale.asked_of(Options(extra={"faults": faults, "speculation": "off"})).cluster

    assert world("on").lost > 0.0 < world("on").failures_a_day and world("on").shortages
    assert world("late").lost > 0.0 == world("late").failures_a_day
    assert world("other").lost == 0.0 < world("other").slow_a_day
    assert world("off").lost == world("off").slow_a_day == 0.0
    assert world("on").speculation is None
