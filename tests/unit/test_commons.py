"""Pipelines of one application ask Spark for the sum of their cores, and share what there is."""

from contextlib import contextmanager

from fake_cluster import FakeCluster
from test_sharing import tick

from tidegate.spark.commons import Commons, Part


def joined(commons: Commons, cluster: FakeCluster, name: str, cores: int, *, boundary=None) -> Part:
    return commons.join(
        name,
        cluster,
        local=False,
        cores=cores,
        target_s=2.0,
        boundary=boundary or cluster.boundary,
    )


def test_spark_is_asked_for_the_sum() -> None:
    cluster = FakeCluster(executors=2)
    commons = Commons(None, 2)
    one = joined(commons, cluster, "one", 3)
    assert (one.asked, one.granted(), cluster.asked) == (4, 4, [])
    two = joined(commons, cluster, "two", 2)
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
    commons = Commons(None, 1)
    running = [True]

    @contextmanager
    def busy():
        yield not running[0]

    one = joined(commons, cluster, "one", 2)
    two = joined(commons, cluster, "two", 1, boundary=busy)
    one.ask(1)
    one.let_go()
    assert cluster.killed == []
    running[0] = False
    two.let_go()
    assert cluster.killed == ["2"]
    assert one.released == two.released == ["2"]


def test_whoever_leaves_gives_its_executors_back() -> None:
    cluster = FakeCluster(executors=4)
    commons = Commons(None, 1)
    one, two = joined(commons, cluster, "one", 2), joined(commons, cluster, "two", 2)
    assert (one.granted(), two.granted()) == (2, 2)
    two.leave()
    assert cluster.asked[-1] == 2
    one.let_go()
    assert cluster.killed == ["3", "2"]
    assert not commons.empty
    one.leave()
    assert commons.empty
    assert cluster.asked[-1] == 2  # the last one's executors are the session's


def test_an_executor_that_is_lost_is_missed_by_the_last_who_joined() -> None:
    cluster = FakeCluster(executors=4)
    commons = Commons(None, 1)
    one, two = joined(commons, cluster, "one", 2), joined(commons, cluster, "two", 2)
    assert (one.granted(), two.granted()) == (2, 2)
    cluster.up.remove("0")
    assert (one.granted(), two.granted()) == (2, 1)


def test_what_is_allowed_comes_with_the_measurement() -> None:
    commons = Commons(8, 1)
    parts = [
        commons.join(name, None, local=True, cores=2, target_s=2.0, boundary=lambda: None)
        for name in ("one", "two")
    ]
    assert parts[0].shared(tick(2, None)).cores_allowed is None
    assert parts[1].shared(tick(2, None)).cores_allowed == 6
    parts[1].ask(3)
    assert (parts[1].granted(), parts[1].grant_s) == (3, 0.0)
    assert parts[0].shared(tick(2, None)).cores_allowed == 5
    parts[1].leave()
    assert parts[0].shared(tick(2, None)).cores_allowed is None
    assert parts[1].shared(tick(2, None)).cores_allowed is None
