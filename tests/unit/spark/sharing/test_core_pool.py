"""Pipelines of one application ask Spark for the sum of their cores, and share what there is."""

from types import SimpleNamespace

import pytest

from tests.helpers.fake_cluster import FakeCluster, at_once
from tidegate.control.bounds import Bounds
from tidegate.control.claim import Claim
from tidegate.errors import AskedWrongly
from tidegate.spark.loop import patience
from tidegate.spark.sharing.core_pool import CorePool, Part


class Busy:
    """The lock of a segment: free between two batches."""

    def __init__(self, cluster: FakeCluster | None) -> None:
        self.cluster = cluster
        self.runs = False

    def acquire(self, timeout: float) -> bool:
        if self.cluster is not None and not self.runs:
            self.cluster._held = True
        return not self.runs

    def release(self) -> None:
        if self.cluster is not None:
            self.cluster._held = False


def running(cluster: FakeCluster | None = None) -> SimpleNamespace:
    """A run with one segment."""
    segment = SimpleNamespace(busy=Busy(cluster), results=[], stopping=False, rehearsal=None)
    return SimpleNamespace(ended=False, segments={"main": segment}, queries={}, warmed=None)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A boundary that is not reached is given up at once, and tried again at once."""
    monkeypatch.setattr(patience, "FIRST_PATIENCE_S", 0.0)


def pool_of(cores: int | None, per_executor: int) -> CorePool:
    return CorePool(cores, per_executor, background=at_once)


def joined(
    pool: CorePool, cluster: FakeCluster, name: str, cores: int = 1, run=None, *, bounds=None
) -> Part:
    run = run or running(cluster)
    return pool.join(cluster, name, run, local=False, bounds=bounds or Bounds(cores, cores))


def test_spark_is_asked_for_the_sum() -> None:
    cluster = FakeCluster(executors=2)
    pool = pool_of(None, 2)
    one = joined(pool, cluster, "one", 3)
    assert (one.asked, one.granted(), cluster.asked) == (4, 4, [])
    two = joined(pool, cluster, "two", 2)
    assert cluster.asked == [3]
    # What one has stays its own; what has not come yet is the other's to wait for.
    assert (one.granted(), two.granted()) == (4, 0)
    cluster.arrive(1)
    assert (one.granted(), two.granted()) == (4, 2)
    two.ask(6)
    assert cluster.asked == [3, 5]
    assert (one.granted(), two.granted()) == (4, 2)
    one.ask(2)
    assert (one.granted(), two.granted()) == (2, 4)
    cluster.arrive(1)
    assert (one.granted(), two.granted()) == (2, 6)


def test_executors_go_only_between_batches_of_all_pipelines() -> None:
    cluster = FakeCluster(executors=3)
    pool = pool_of(None, 1)
    other = running(cluster)
    other.segments["main"].busy.runs = True
    one = joined(pool, cluster, "one", 2)
    two = joined(pool, cluster, "two", 1, other)
    one.ask(1)
    one.let_go()
    assert cluster.killed == []
    other.segments["main"].busy.runs = False
    two.let_go()
    assert cluster.killed == ["2"]
    assert one.released == two.released == ["2"]


def test_whoever_leaves_gives_its_executors_back() -> None:
    cluster = FakeCluster(executors=4)
    pool = pool_of(None, 1)
    one, two = joined(pool, cluster, "one", 2), joined(pool, cluster, "two", 2)
    assert (one.granted(), two.granted()) == (2, 2)
    two.leave()
    assert cluster.asked[-1] == 2
    one.let_go()
    assert cluster.killed == ["3", "2"]
    assert not pool.empty
    one.leave()
    assert pool.empty
    assert cluster.asked[-1] == 2  # the last one's executors are the session's


def test_an_executor_that_is_lost_is_missed_by_the_last_who_joined() -> None:
    cluster = FakeCluster(executors=4)
    pool = pool_of(None, 1)
    one, two = joined(pool, cluster, "one", 2), joined(pool, cluster, "two", 2)
    assert (one.granted(), two.granted()) == (2, 2)
    cluster.up.remove("0")
    assert (one.granted(), two.granted()) == (2, 1)


def test_each_claim_is_answered_with_a_share() -> None:
    pool = pool_of(8, 1)
    parts = [
        pool.join(None, name, running(), local=True, bounds=Bounds(2, 8)) for name in ("one", "two")
    ]
    assert parts[0].share_of(Claim(cores=2)) is None
    assert parts[1].share_of(Claim(cores=2)) == 6
    parts[1].ask(3)
    assert (parts[1].granted(), parts[1].grant_s) == (3, 0.0)
    assert parts[0].share_of(Claim(cores=2)) == 5
    parts[1].leave()
    assert parts[0].share_of(Claim(cores=2)) is None
    assert parts[1].share_of(Claim(cores=2)) is None


def test_a_pipeline_that_was_started_anew_is_not_taken_out_by_the_old_one() -> None:
    cluster = FakeCluster(executors=3)
    pool = pool_of(8, 1)
    old = joined(pool, cluster, "same", 2)
    old.run.ended = True
    new = joined(pool, cluster, "same", 3)
    old.leave()
    assert not pool.empty
    assert new.granted() == 3
    old.ask(7)
    assert cluster.asked == [2, 3], "who has left asks for nothing"


def test_one_that_has_failed_unseen_holds_nothing() -> None:
    pool = pool_of(8, 1)
    parts = [
        pool.join(None, name, running(), local=True, bounds=Bounds(4, 8)) for name in ("one", "two")
    ]
    for part in parts:
        part.share_of(Claim(cores=4))
    assert parts[0].share_of(Claim(cores=4)) == 4
    parts[1].run.ended = True
    assert parts[0].share_of(Claim(cores=4)) is None


def test_a_part_that_cannot_be_had_is_not_counted() -> None:
    cluster = FakeCluster(1, **{"spark.dynamicAllocation.enabled": "true"})
    pool = pool_of(8, 1)
    with pytest.raises(AskedWrongly, match="dynamicAllocation"):
        joined(pool, cluster, "one", 2)
    assert pool.empty


def test_a_start_begins_with_what_is_up_within_its_bounds() -> None:
    cluster = FakeCluster(executors=10)
    one = joined(pool_of(None, 1), cluster, "one", bounds=Bounds(1, 40))
    one.let_go()
    assert (one.asked, one.granted(), cluster.asked, cluster.killed) == (10, 10, [], [])
    fewer = FakeCluster(executors=10)
    two = joined(pool_of(None, 1), fewer, "two", bounds=Bounds(1, 4))
    two.let_go()
    assert (two.asked, fewer.asked, len(fewer.killed)) == (4, [4], 6)
    more = FakeCluster(executors=1)
    three = joined(pool_of(None, 1), more, "three", bounds=Bounds(3, 4))
    assert (three.asked, more.asked) == (3, [3])


def test_a_second_pipeline_takes_nothing_from_the_first() -> None:
    cluster = FakeCluster(executors=6)
    pool = pool_of(None, 1)
    one = joined(pool, cluster, "one", bounds=Bounds(1, 4))
    assert (one.asked, cluster.asked) == (4, [4])
    two = joined(pool, cluster, "two", bounds=Bounds(1, 9))
    assert (one.asked, two.asked, cluster.asked[-1]) == (4, 2, 6), "what the first one left"
    three = joined(pool, cluster, "three", bounds=Bounds(2, 9))
    three.let_go()
    assert (one.asked, two.asked, three.asked, cluster.asked[-1]) == (4, 2, 2, 8)
    assert cluster.killed == []


def test_executors_that_come_after_the_start_by_themselves_stay() -> None:
    cluster = FakeCluster(1, master="spark://host:7077", **{"spark.executor.cores": "1"})
    pool = pool_of(None, 1)
    one = joined(pool, cluster, "one", bounds=Bounds(1, 8))
    cluster.arrive(2)
    one.let_go()
    assert (one.granted(), one.asked, cluster.asked, cluster.killed) == (3, 3, [], [])
    cluster.arrive(1)
    two = joined(pool, cluster, "two", bounds=Bounds(1, 8))
    assert (one.asked, two.asked, cluster.asked) == (4, 1, [5])


def test_who_leaves_is_not_kept_by_a_master_that_does_not_answer(caplog) -> None:
    cluster = FakeCluster(executors=4)
    pool = pool_of(None, 1)
    one, two = joined(pool, cluster, "one", 2), joined(pool, cluster, "two", 2)
    cluster.requestTotalExecutors = None  # calling it raises
    two.leave()
    assert "two: executors could not be given back" in caplog.messages[0]
    assert (one.granted(), pool.empty) == (4, False)


def test_a_request_that_fails_changes_nothing() -> None:
    cluster = FakeCluster(executors=2)
    pool = pool_of(8, 1)
    one = joined(pool, cluster, "one", bounds=Bounds(1, 8))
    cluster.requestTotalExecutors = None  # calling it raises
    with pytest.raises(TypeError):
        one.ask(5)
    assert (one.asked, pool.executors.asked) == (2, 2)


def test_a_query_that_is_not_of_the_pool_keeps_executors_too() -> None:
    cluster = FakeCluster(executors=3)
    pool = pool_of(None, 1)
    one = joined(pool, cluster, "one", bounds=Bounds(1, 3))
    one.run.queries["main"] = SimpleNamespace(runId="own")
    lock = SimpleNamespace(tryLock=lambda *_: False)

    def execution(name: str) -> SimpleNamespace:
        return SimpleNamespace(
            runId=lambda: SimpleNamespace(toString=lambda: name),
            lastProgress=lambda: None,
            awaitProgressLock=lambda: lock,
        )

    units = SimpleNamespace(concurrent=SimpleNamespace(TimeUnit=SimpleNamespace(MILLISECONDS="ms")))
    cluster.sparkContext._jvm.java.util.concurrent = units.concurrent
    cluster.executions = [execution("own"), execution("of another session")]
    one.ask(1)
    one.let_go()
    assert cluster.killed == [], "its shuffle files would be lost in mid-batch"
    cluster.executions = [execution("own")]
    one.let_go()
    assert cluster.killed == ["2", "1"]
