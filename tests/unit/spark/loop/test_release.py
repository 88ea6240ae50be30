"""Surplus executors are released in the background, once a boundary is reached."""

import logging
import threading

import pytest

from tests.helpers.fake_cluster import FakeCluster, Sequence, at_once
from tidegate.spark.loop import release
from tidegate.spark.loop.patience import Answered
from tidegate.spark.loop.release import ExecutorRelease

PATIENCE_S = 30.0


def releasing(cluster: FakeCluster, **options) -> ExecutorRelease:
    given = {"clock": cluster.clock, "background": at_once, **options}
    return ExecutorRelease(cluster, cluster.boundary, **given)


def test_a_tick_does_not_wait_for_the_boundary() -> None:
    cluster = FakeCluster(executors=3)
    work = []
    found = releasing(cluster, background=work.append)
    found.let_go(lambda: ["2"])
    found.let_go(lambda: ["2"])
    assert (cluster.boundaries, len(work)) == (0, 1), "one try at a time"
    work.pop()()
    assert (cluster.killed, found.released) == (["2"], ["2"])
    found.let_go(lambda: ["1"])
    assert len(work) == 1


def test_a_try_that_failed_is_logged_and_comes_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = FakeCluster(executors=3)
    cluster.running = True
    found = releasing(cluster)
    for _ in range(5):
        found.let_go(lambda: ["2"])
    assert (cluster.boundaries, cluster.patience_s) == (1, 2.0)
    cluster.now_s = 8.0
    found.let_go(lambda: ["2"])
    assert (cluster.boundaries, cluster.patience_s) == (2, 6.0)
    assert "no batch boundary was reached within 2 s" in caplog.messages[0]
    found.let_go(list)
    cluster.running = False
    found.let_go(lambda: ["2"])
    assert cluster.killed == ["2"], "after a time without surplus it begins anew"


def test_a_call_without_an_answer_does_not_hold_the_batches(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = FakeCluster(executors=3)
    free = threading.Event()
    backend = cluster.schedulerBackend()
    backend.killExecutors = lambda *_: free.wait() and Sequence(["2"])
    monkeypatch.setattr(cluster, "schedulerBackend", lambda: backend)
    monkeypatch.setattr(release, "Answered", lambda what: Answered(what, patience_s=0.01))
    found = releasing(cluster)
    found.let_go(lambda: ["2"])
    assert not cluster._held
    assert "the release of executors has had no answer" in caplog.messages[0]
    assert caplog.records[0].levelno == logging.WARNING
    free.set()


def test_close_ends_a_try_that_waits() -> None:
    cluster = FakeCluster(executors=3)
    waits = threading.Event()

    class Never:
        """A boundary that is never reached: it waits until nobody needs it."""

        def __init__(self, patience_s, needed) -> None:
            self._needed = needed

        def __enter__(self) -> bool:
            waits.set()
            while self._needed():
                pass
            return False

        def __exit__(self, *error) -> None:
            pass

    found = ExecutorRelease(cluster, Never)
    found.let_go(lambda: ["2"])
    assert waits.wait(PATIENCE_S)
    found.close()
    assert found._idle.is_set()
    found.let_go(lambda: ["2"])
    assert (found._idle.is_set(), cluster.killed) == (True, []), "no further try"


def test_executors_are_decommissioned_where_spark_does_that() -> None:
    cluster = FakeCluster(executors=4, **{"spark.decommission.enabled": "True"})
    cluster.busy = {"3"}
    found = releasing(cluster)
    found.let_go(lambda: ["3", "2"])
    assert (cluster.boundaries, cluster.decommissioned) == (1, ["2"])
    assert found.released == ["2"], "what is busy has files that are not moved"


def test_where_files_are_moved_no_boundary_is_needed() -> None:
    conf = {"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "true"}
    cluster = FakeCluster(executors=4, **conf)
    cluster.busy, cluster.running = {"3"}, True
    found = releasing(cluster)
    found.let_go(lambda: ["3", "2"])
    assert (cluster.boundaries, cluster.decommissioned) == (0, ["3", "2"])
    kept = {**conf, "spark.storage.decommission.shuffleBlocks.enabled": "false"}
    other = FakeCluster(executors=4, **kept)
    releasing(other).let_go(lambda: ["3"])
    assert other.boundaries == 1
