"""Executors asked for and let go, on a driver that is only imitated."""

from contextlib import contextmanager

import pytest
from fake_cluster import FakeCluster

from tidegate.errors import AskedWrongly
from tidegate.spark.negotiate import GRANT_PATIENCE_S, QUIET_TRIES, ExecutorNegotiator


def negotiator(cluster: FakeCluster, cores: int, per_executor: int = 1) -> ExecutorNegotiator:
    return ExecutorNegotiator(
        cluster, per_executor, cores, clock=cluster.clock, pause=cluster.pause
    )


def test_it_takes_what_is_there_without_a_request() -> None:
    cluster = FakeCluster(executors=2)
    found = negotiator(cluster, 4, per_executor=2)
    assert (found.asked, found.granted(), cluster.asked) == (4, 4, [])


def test_cores_are_asked_for_in_whole_executors_and_the_time_is_learned() -> None:
    cluster = FakeCluster(executors=1)
    found = negotiator(cluster, 4, per_executor=4)
    found.ask(9)
    assert cluster.asked == [3]
    assert (found.asked, found.granted(), found.grant_s) == (12, 4, None)
    cluster.now_s = 6.0
    cluster.arrive(1)
    assert (found.granted(), found.grant_s) == (8, None)
    cluster.now_s = 8.0
    cluster.arrive(1)
    assert (found.granted(), found.grant_s) == (12, 8.0)
    found.ask(16)
    cluster.now_s = 12.0
    cluster.arrive(1)
    found.granted()
    assert found.grant_s == 6.0, "halfway from 8 s to the newest 4 s"


def test_a_request_that_is_taken_back_teaches_no_time() -> None:
    cluster = FakeCluster(executors=2)
    found = negotiator(cluster, 2)
    found.ask(4)
    cluster.now_s = 30.0
    found.ask(2)
    assert found.granted() == 2
    assert (found.grant_s, found.overdue()) == (None, None)


def test_what_does_not_come_in_time_is_said() -> None:
    cluster = FakeCluster(executors=1)
    found = negotiator(cluster, 1)
    found.ask(4)
    cluster.arrive(1)
    cluster.now_s = GRANT_PATIENCE_S
    found.granted()
    assert found.overdue() is None
    cluster.now_s = GRANT_PATIENCE_S + 1.0
    said = found.overdue()
    assert said is not None and said.startswith("2 of 4 executors asked for 61 s ago")


def test_in_a_quiet_moment_all_that_are_too_many_go_the_newest_first() -> None:
    cluster = FakeCluster(executors=12)
    found = negotiator(cluster, 12)
    found.ask(9)
    assert cluster.asked == [9], "the target first, so that none comes back"
    assert cluster.killed == ["11", "10", "9"] == found.released
    assert found.granted() == 9, "those that go count no more, though Spark still lists them"
    cluster.leave()
    assert found.granted() == 9
    assert cluster.killed == ["11", "10", "9"]


def test_while_tasks_run_nobody_goes_and_then_only_the_idle() -> None:
    cluster = FakeCluster(executors=4)
    cluster.busy = {"0", "3"}
    found = negotiator(cluster, 4)
    found.ask(1)
    for _ in range(QUIET_TRIES - 1):
        assert found.granted() == 4
        assert cluster.killed == []
    assert found.granted() == 2, "no quiet moment came: those that are idle go"
    assert cluster.killed == ["2", "1"]
    assert found.granted() == 2, "the busy one stays"
    cluster.busy = {"0"}
    assert found.granted() == 1
    assert cluster.killed == ["2", "1", "3"]
    assert cluster.forced == []


def test_a_moment_without_tasks_is_waited_for() -> None:
    cluster = FakeCluster(executors=3)
    cluster.busy = {"0", "1", "2"}
    found = negotiator(cluster, 3)
    waits = []

    def pause(seconds: float) -> None:
        cluster.pause(seconds)
        waits.append(seconds)
        if len(waits) == 4:
            cluster.busy = set()

    found._pause = pause
    found.ask(2)
    assert cluster.killed == ["2"]
    assert len(waits) == 4


def test_one_that_comes_late_after_all_goes_again() -> None:
    cluster = FakeCluster(executors=2)
    found = negotiator(cluster, 2)
    found.ask(3)
    found.ask(2)
    cluster.arrive(1)
    assert found.granted() == 2
    assert cluster.killed == ["2"]


def test_with_a_boundary_executors_go_while_it_is_held() -> None:
    cluster = FakeCluster(executors=3)
    held = []

    @contextmanager
    def boundary():
        held.append("in")
        yield
        held.append(f"out after {cluster.forced}")

    found = ExecutorNegotiator(cluster, 1, 3, boundary=boundary, clock=cluster.clock)
    found.ask(1)
    assert held == ["in", "out after ['2', '1']"]
    assert cluster.killed == []
    assert found.granted() == 1


def test_dynamic_allocation_is_refused() -> None:
    cluster = FakeCluster(executors=1, **{"spark.dynamicAllocation.enabled": "true"})
    with pytest.raises(AskedWrongly, match="dynamicAllocation"):
        negotiator(cluster, 1)
