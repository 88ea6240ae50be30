"""A simulated cluster: nodes that come late, partly or never, fail, and are slow."""

import numpy as np
import pytest

from tidegate.errors import AskedWrongly
from tidegate.sim.microbatch.cluster import ClusterWorld, NodeCores, Shortage, SimulatedCluster


def let_pass(cluster: SimulatedCluster, until_s: float) -> int:
    """Let time pass; how many nodes were lost."""
    lost = 0
    while cluster.next_s <= until_s:
        lost += cluster.step()
    return lost


def test_nodes_come_after_their_time_and_the_time_is_observed() -> None:
    cluster = SimulatedCluster(ClusterWorld(nodes=10, spread=0.0, grant_s=60.0), cores=8)
    assert (cluster.cores, cluster.observed_grant_s) == (8, None)
    cluster.ask(18, 0.0)
    let_pass(cluster, 59.0)
    assert (cluster.cores, cluster.asked) == (8, 20), "whole nodes are asked for"
    let_pass(cluster, 60.0)
    assert (cluster.cores, cluster.observed_grant_s) == (20, 60.0)


def test_cores_that_are_too_many_go_at_once_and_requests_are_taken_back() -> None:
    cluster = SimulatedCluster(ClusterWorld(nodes=10, spread=0.0), cores=20)
    cluster.ask(40, 0.0)
    cluster.ask(8, 1.0)
    let_pass(cluster, 1e4)
    assert (cluster.cores, cluster.names) == (8, ("node 1",) * 4 + ("node 2",) * 4)


def test_late_nodes_take_longer() -> None:
    world = ClusterWorld(nodes=400, spread=0.0, grant_s=10.0, late=0.5, late_times=5.0)
    cluster = SimulatedCluster(world, cores=4)
    cluster.ask(1600, 0.0)
    let_pass(cluster, 10.0)
    assert 400 < cluster.cores < 1200
    let_pass(cluster, 50.0)
    assert (cluster.cores, cluster.observed_grant_s) == (1600, 50.0)


def test_for_nodes_that_never_come_others_are_started() -> None:
    world = ClusterWorld(nodes=100, spread=0.0, grant_s=10.0, lost=0.5, retry_s=100.0)
    cluster = SimulatedCluster(world, cores=4)
    cluster.ask(400, 0.0)
    let_pass(cluster, 99.0)
    assert cluster.cores < 300
    let_pass(cluster, 5_000.0)
    assert cluster.cores == 400


def test_in_a_shortage_a_request_is_granted_in_part_and_later_in_full() -> None:
    world = ClusterWorld(
        nodes=10,
        spread=0.0,
        grant_s=10.0,
        shortages=(Shortage(begin_s=0.0, end_s=500.0, nodes=4),),
    )
    cluster = SimulatedCluster(world, cores=8)
    cluster.ask(40, 5.0)
    let_pass(cluster, 499.0)
    assert cluster.cores == 16
    let_pass(cluster, 510.0)
    assert cluster.cores == 40


def test_nodes_fail_and_are_replaced() -> None:
    world = ClusterWorld(nodes=60, spread=0.0, grant_s=30.0, failures_a_day=50.0, repair_s=600.0)
    cluster = SimulatedCluster(world, cores=200)
    lost, fewest = 0, 200
    for _ in range(500):
        lost += cluster.step()
        fewest = min(fewest, cluster.cores)
    assert lost == cluster.counts.failed > 50
    assert fewest < 200 and cluster.counts.granted > 50


def test_slow_nodes_are_slow_for_their_time() -> None:
    world = ClusterWorld(nodes=3, slow_a_day=20.0, slow_s=50.0, slow_times=10.0)
    cluster = SimulatedCluster(world, cores=12)
    begin_s = cluster.next_s
    cluster.step()
    assert sorted(cluster.speeds) == [0.1] * 4 + [1.0] * 8
    let_pass(cluster, begin_s + 50.0)
    assert cluster.counts.slow >= 1
    assert cluster.speeds.max() == 1.0


def test_the_seed_decides_everything() -> None:
    def life(seed: int) -> list[int]:
        world = ClusterWorld(nodes=50, late=0.2, lost=0.1, failures_a_day=20.0, seed=seed)
        cluster = SimulatedCluster(world, cores=100)
        cluster.ask(180, 0.0)
        return [cluster.cores for _ in range(100) if cluster.step() or True]

    assert life(1) == life(1) != life(2)


def test_a_slow_core_takes_longer_and_speculation_bounds_it() -> None:
    loads = np.full(4, 0.25)
    speeds = np.array([1.0, 1.0, 1.0, 0.1])
    assert NodeCores(speeds).times(loads).tolist() == [0.25, 0.25, 0.25, 2.5]
    assert NodeCores(speeds, 1.5).times(loads).tolist() == [0.25, 0.25, 0.25, 0.625]


def test_speculation_does_not_shorten_a_task_that_has_more_to_do() -> None:
    loads = np.array([0.1, 0.1, 0.1, 0.7])
    assert NodeCores(np.ones(4), 1.5).times(loads).tolist() == loads.tolist()


@pytest.mark.parametrize(
    "wrong", [{"nodes": 0}, {"cores_each": 0}, {"grant_s": 0.0}, {"late": 0.6, "lost": 0.4}]
)
def test_clusters_that_cannot_be_are_refused(wrong) -> None:
    with pytest.raises(AskedWrongly):
        ClusterWorld(**wrong)
