"""Executors asked for and let go, on a driver that is only imitated."""

import threading

import pytest

from tests.helpers.fake_cluster import FakeCluster, at_once
from tidegate.control.assemble import new_controller
from tidegate.control.bounds import Bounds
from tidegate.control.effect.only_with_effect import OnlyWithEffect
from tidegate.control.executors.slow_first import SlowFirst
from tidegate.control.executors.with_memory import WithMemory
from tidegate.control.flow.with_deals import WithDeals
from tidegate.control.measurement import Overdue
from tidegate.control.sharing.within_share import WithinShare
from tidegate.control.whole_executors import WholeExecutors
from tidegate.errors import AskedWrongly
from tidegate.spark.loop.assembly import assembly_of
from tidegate.spark.loop.negotiate import (
    GRANT_PATIENCE_S,
    ExecutorNegotiator,
    UntouchedExecutors,
    executors_expected,
    spark_number,
)
from tidegate.spark.loop.patience import Answered
from tidegate.spark.options import StartOptions, filled


def negotiator(cluster: FakeCluster, cores: int, per_executor: int = 1) -> ExecutorNegotiator:
    return ExecutorNegotiator(
        cluster,
        per_executor,
        cores,
        boundary=cluster.boundary,
        clock=cluster.clock,
        background=at_once,
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
    assert said == Overdue(missing=2, requested=4, waited_s=61.0)
    assert said.words == "2 of 4 executors requested 61 s ago have not started"


def test_what_is_too_many_goes_at_a_batch_boundary_the_newest_first() -> None:
    cluster = FakeCluster(executors=12)
    found = negotiator(cluster, 12)
    found.let_go()
    assert cluster.boundaries == 0, "nothing to let go: no batch is held up"
    found.ask(9)
    assert cluster.asked == [9], "the target first, so that none comes back"
    assert cluster.killed == []
    found.let_go()
    assert cluster.killed == ["11", "10", "9"] == found.released
    assert found.granted() == 9, "those that go count no more, though Spark still lists them"
    cluster.leave()
    assert found.granted() == 9
    found.let_go()
    assert (cluster.killed, cluster.boundaries) == (["11", "10", "9"], 1)


def test_while_a_batch_runs_nobody_goes() -> None:
    cluster = FakeCluster(executors=4)
    cluster.running = True
    found = negotiator(cluster, 4)
    found.ask(1)
    for _ in range(3):
        found.let_go()
        assert (found.granted(), found.asked) == (4, 1)
    cluster.running = False
    cluster.now_s += 1000.0
    found.let_go()
    assert found.granted() == 1


def test_one_that_somebody_else_keeps_busy_goes_later() -> None:
    cluster = FakeCluster(executors=4)
    cluster.busy = {"2"}
    found = negotiator(cluster, 4)
    found.ask(1)
    found.let_go()
    assert cluster.killed == ["3", "1"]
    assert found.granted() == 2
    cluster.busy = set()
    found.let_go()
    assert cluster.killed == ["3", "1", "2"] == found.released


def test_what_is_wanted_again_before_the_boundary_stays() -> None:
    cluster = FakeCluster(executors=3)
    cluster.running = True
    found = negotiator(cluster, 3)
    found.ask(1)
    found.let_go()
    found.ask(3)
    cluster.running = False
    found.let_go()
    assert (cluster.killed, found.granted(), found.grant_s) == ([], 3, None)


def test_one_that_comes_late_after_all_goes_again() -> None:
    cluster = FakeCluster(executors=2)
    found = negotiator(cluster, 2)
    found.ask(3)
    found.ask(2)
    cluster.arrive(1)
    found.let_go()
    assert found.granted() == 2
    assert cluster.killed == ["2"]


def taking_over(cluster: FakeCluster, cores: int, most: int) -> ExecutorNegotiator:
    return ExecutorNegotiator(
        cluster,
        1,
        cores,
        boundary=cluster.boundary,
        most=most,
        clock=cluster.clock,
        background=at_once,
    )


def test_executors_that_spark_is_still_starting_are_not_cancelled() -> None:
    cluster = FakeCluster(executors=1, **{"spark.executor.instances": "5"})
    assert executors_expected(cluster) == 5
    found = taking_over(cluster, 5, most=8)
    assert (cluster.asked, found.asked, found.granted()) == ([], 5, 1)
    cluster.arrive(4)
    found.let_go()
    assert (found.granted(), cluster.asked, cluster.killed) == (5, [], [])


def test_where_nobody_tells_how_many_will_come_they_are_taken_over_as_they_come() -> None:
    conf = {"spark.executor.cores": "1"}
    cluster = FakeCluster(executors=1, master="spark://host:7077", **conf)
    found = taking_over(cluster, executors_expected(cluster), most=3)
    cluster.arrive(1)
    found.let_go()
    assert (found.asked, found.granted(), cluster.asked, cluster.killed) == (2, 2, [], [])
    cluster.arrive(2)
    found.let_go()
    assert (found.asked, cluster.killed) == (3, ["3"]), "no more than the bounds allow"
    found.ask(2)
    found.let_go()
    cluster.arrive(1)
    found.let_go()
    assert (found.granted(), cluster.asked) == (2, [2]), "after a request, the request holds"


def test_a_second_start_counts_what_the_first_one_requested() -> None:
    cluster = FakeCluster(executors=4)
    first = negotiator(cluster, 4)
    first.ask(1)
    first.let_go()
    assert executors_expected(cluster) == 1, "those that are on their way out do not count"
    first.ask(6)
    assert executors_expected(cluster) == 6


def test_a_request_that_fails_is_not_taken_for_made() -> None:
    cluster = FakeCluster(executors=2)
    found = negotiator(cluster, 2)
    cluster.requestTotalExecutors = None  # calling it raises
    with pytest.raises(TypeError):
        found.ask(4)
    assert (found.asked, found.overdue()) == (2, None)


def test_a_start_goes_on_without_an_answer(monkeypatch, caplog) -> None:
    cluster, free = FakeCluster(executors=2), threading.Event()
    cluster.requestTotalExecutors = lambda *_: free.wait()
    monkeypatch.setattr(
        "tidegate.spark.loop.negotiate.Answered", lambda what: Answered(what, patience_s=0.01)
    )
    found = negotiator(cluster, 5)
    assert (found.asked, found.granted()) == (2, 2)
    assert "begins with the executors that are up: NoAnswer" in caplog.messages[0]
    free.set()


def test_a_dry_run_counts_and_touches_nothing() -> None:
    cluster = FakeCluster(executors=10)
    found = UntouchedExecutors(cluster, 2)
    found.let_go()
    assert (found.asked, found.granted(), cluster.asked, cluster.killed) == (20, 20, [], [])


@pytest.mark.parametrize("spelled", ["true", "True", " TRUE "])
def test_dynamic_allocation_is_refused(spelled: str) -> None:
    cluster = FakeCluster(executors=1, **{"spark.dynamicAllocation.enabled": spelled})
    with pytest.raises(AskedWrongly, match="dynamicAllocation"):
        negotiator(cluster, 1)


def assembled(cluster: FakeCluster, cores: tuple[int, int] | None, executors=None):
    given = {"target": "2 seconds", "cores": cores, "executors": executors}
    return assembly_of(cluster, filled(StartOptions, given))


@pytest.mark.parametrize(
    ("master", "conf", "cores", "said"),
    [
        ("local-cluster[4,2,1024]", {}, (1, 9), "the master has 8"),
        ("local-cluster[4,2,1024]", {}, (4, 3), "minimum from 1 up to the maximum"),
        ("local-cluster[4,2,1024]", {}, (1, 1), "one executor has 2"),
        ("spark://host:7077", {"spark.cores.max": "6"}, (1, 8), "the master has 6"),
        ("spark://host:7077", {}, None, "a cluster does not tell how many it has"),
        ("yarn", {"spark.dynamicAllocation.enabled": "true"}, (1, 8), "dynamicAllocation"),
    ],
)
def test_a_pipeline_on_a_cluster_is_refused_what_cannot_be(master, conf, cores, said) -> None:
    given = {"spark.executor.cores": "1", **conf}
    with pytest.raises(AskedWrongly, match=said):
        assembled(FakeCluster(1, master=master, **given), cores)


def test_slow_executors_are_released_before_newer_ones() -> None:
    cluster = FakeCluster(executors=6)
    found = negotiator(cluster, 6)
    found.release_first(("b:/work/app-1/2", "c:/work/container_01_000009", "d:/work/app-1/77"))
    found.ask(4)
    found.let_go()
    assert cluster.killed == ["2", "5"], "executor 77 is not there, and YARN's has no number"


def test_the_number_of_an_executor() -> None:
    assert spark_number("host:/spark/work/app-20/17") == "17"
    assert spark_number("ads-5f-exec-3:/opt/spark/work-dir") == "3"
    assert spark_number("host:/yarn/container_01_000002") is None
    assert spark_number("node 4") is None


def test_a_pipeline_asks_for_whole_executors() -> None:
    assembly = assembled(FakeCluster(1, master="local-cluster[4,2,1024]"), (2, 8))
    assert assembly.cores_per_executor == 2
    policy = new_controller(assembly).policy
    assert policy.name == "latency"
    assert isinstance(policy, WithMemory) and isinstance(policy.inner, SlowFirst)
    assert isinstance(policy.inner.inner, WithDeals)
    effect = policy.inner.inner.inner
    assert isinstance(effect, OnlyWithEffect) and isinstance(effect.inner, WithinShare)
    assert isinstance(effect.inner.inner, WholeExecutors)


def test_a_core_is_the_place_of_one_task() -> None:
    conf = {"spark.executor.cores": "4", "spark.task.cpus": "2", "spark.cores.max": "8"}
    cluster = FakeCluster(2, master="spark://host:7077", **conf)
    assembly = assembled(cluster, (3, 8))
    assert assembly.bounds == Bounds(2, 4), "eight cores run four tasks"
    assert assembly.cores_per_executor == 2
    assert executors_expected(cluster) == 2
    assert assembled(cluster, None, executors=(1, 2)).bounds == Bounds(2, 4)
    assert assembled(cluster, None).bounds == Bounds(1, 4)
    with pytest.raises(AskedWrongly, match="the master has 8"):
        assembled(cluster, (1, 9))
    with pytest.raises(AskedWrongly, match="one executor has 4"):
        assembled(cluster, (1, 3))


def test_executors_are_cores_of_whole_executors() -> None:
    cluster = FakeCluster(1, master="local-cluster[4,2,1024]")
    assert assembled(cluster, None, executors=(1, 4)).bounds == Bounds(2, 8)
    assert assembled(cluster, None, executors=3).bounds == Bounds(6, 6)
    with pytest.raises(AskedWrongly, match=r"executors=\(1, 5\), but the master has 4"):
        assembled(cluster, None, executors=(1, 5))
    with pytest.raises(AskedWrongly, match="both set the same bounds"):
        assembled(cluster, (2, 8), executors=(1, 4))
