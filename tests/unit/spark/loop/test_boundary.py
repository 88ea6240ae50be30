"""Held between two batches, on queries that are imitated."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from types import SimpleNamespace

import pytest

from tests.helpers.fake_cluster import FakeCluster
from tidegate.errors import AskedWrongly
from tidegate.spark.loop.boundary import (
    BatchBoundary,
    QueryHold,
    SegmentHold,
    queries_of_all_sessions,
    refuse_unpinned_threads,
)
from tidegate.spark.loop.patience import Patience

PATIENCE_S = 2.0


class FakeExecution:
    """Its thread comes to its lock when the batch that runs is over, by the fake clock."""

    def __init__(self, world: "World", name: str, ends_s: float, batch_ms: float | None) -> None:
        self.active = True
        self.trigger_active = True
        self.locked_by_spark = False
        self._world, self._name, self._ends_s, self._batch_ms = world, name, ends_s, batch_ms

    # What Spark's `StreamExecution` has, by its names.

    def lastProgress(self) -> SimpleNamespace | None:  # noqa: N802
        times = {"triggerExecution": self._batch_ms}
        return None if self._batch_ms is None else SimpleNamespace(durationMs=lambda: times)

    def status(self) -> SimpleNamespace:
        return SimpleNamespace(isTriggerActive=lambda: self.trigger_active)

    def isActive(self) -> bool:  # noqa: N802
        return self.active

    def runId(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(toString=lambda: self._name)

    def awaitProgressLock(self) -> "FakeExecution":  # noqa: N802
        return self

    def queryExecutionThread(self) -> str:  # noqa: N802
        return self._name

    # Its lock, by Java's names.

    def tryLock(self, left_ms: int, unit: str) -> bool:  # noqa: N802
        assert unit == "ms"
        if self.locked_by_spark:
            self._world.now_s += left_ms / 1000
            return False
        self._world.log.append(f"{self._world.now_s:.1f} lock {self._name}")
        return True

    def hasQueuedThread(self, thread: str) -> bool:  # noqa: N802
        assert thread == self._name
        return self._world.now_s >= self._ends_s

    def unlock(self) -> None:
        self._world.log.append(f"{self._world.now_s:.1f} unlock {self._name}")


class World:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.log: list[str] = []
        self.running: list[QueryHold | SegmentHold] = []
        units = SimpleNamespace(TimeUnit=SimpleNamespace(MILLISECONDS="ms"))
        self._jvm = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(concurrent=units)))
        self._boundary = BatchBoundary(
            lambda: self.running, clock=lambda: self.now_s, pause=self._pause
        )

    def boundary(
        self, patience_s: float = PATIENCE_S, needed: Callable[[], bool] = lambda: True
    ) -> AbstractContextManager[bool]:
        return self._boundary(patience_s, needed)

    def query(self, name: str, ends_s: float, batch_ms: float | None = 100.0) -> FakeExecution:
        execution = FakeExecution(self, name, ends_s, batch_ms)
        self.running.append(QueryHold(execution, self._jvm))
        return execution

    def _pause(self, seconds: float) -> None:
        self.now_s += seconds


def test_the_batch_that_runs_is_waited_for_and_the_next_one_is_held() -> None:
    world = World()
    world.query("one", ends_s=1.0)
    with world.boundary() as reached:
        assert reached
        assert world.now_s == pytest.approx(1.0, abs=0.01)
        assert world.log == ["0.0 lock one"]
    assert world.log[1:] == ["1.0 unlock one"]


def test_a_batch_that_takes_longer_is_not_waited_for_here() -> None:
    world = World()
    world.query("one", ends_s=PATIENCE_S + 1.0)
    with world.boundary() as reached:
        assert not reached
    assert world.log[-1].endswith("unlock one")
    assert world.now_s == pytest.approx(PATIENCE_S, abs=0.01)


def test_the_slowest_is_waited_for_before_another_is_held() -> None:
    world = World()
    world.query("quick", ends_s=0.0, batch_ms=50.0)
    world.query("slow", ends_s=1.0, batch_ms=900.0)
    world.query("new", ends_s=0.5, batch_ms=None)
    with world.boundary() as reached:
        assert reached
    assert world.log[:3] == ["0.0 lock new", "0.5 lock slow", "1.0 lock quick"]
    assert sorted(world.log[3:]) == ["1.0 unlock new", "1.0 unlock quick", "1.0 unlock slow"]


def test_one_that_waits_for_its_trigger_or_has_ended_runs_no_batch() -> None:
    world = World()
    world.query("hourly", ends_s=3600.0).trigger_active = False
    world.query("over", ends_s=3600.0).active = False
    with world.boundary() as reached:
        assert reached
    assert world.now_s == 0.0


def test_one_that_is_planning_a_batch_has_its_lock() -> None:
    world = World()
    world.query("planning", ends_s=0.0).locked_by_spark = True
    with world.boundary() as reached:
        assert not reached
    assert world.log == []


def test_an_error_within_lets_the_queries_go_on() -> None:
    world = World()
    world.query("one", ends_s=0.0)
    with pytest.raises(ZeroDivisionError), world.boundary():
        raise ZeroDivisionError
    assert world.log == ["0.0 lock one", "0.0 unlock one"]


def test_threads_that_are_not_pinned_are_refused() -> None:
    cluster = FakeCluster(1)
    refuse_unpinned_threads(cluster)
    cluster.executions = [FakeExecution(World(), "one", 0.0, None)]
    assert queries_of_all_sessions(cluster)[0].pinned
    cluster.sparkContext._gateway = object()
    with pytest.raises(AskedWrongly, match="PYSPARK_PIN_THREAD"):
        refuse_unpinned_threads(cluster)
    world = World()
    world.running = queries_of_all_sessions(cluster)
    with world.boundary() as reached:
        assert not reached, "a lock that the wrong thread would release is not taken"
    assert world.log == []


def test_queries_of_other_sessions_count() -> None:
    cluster = FakeCluster(1)
    cluster.executions = [FakeExecution(World(), name, 0.0, None) for name in ("own", "other")]
    found = queries_of_all_sessions(cluster, {"own"})
    assert [one.execution._name for one in found] == ["other"]


def test_what_nobody_needs_any_more_is_given_up() -> None:
    world = World()
    world.query("one", ends_s=100.0)
    with world.boundary(50.0, lambda: world.now_s < 3.0) as reached:
        assert not reached
    assert world.now_s == pytest.approx(3.0, abs=0.01)
    assert world.log[-1] == "3.0 unlock one"


def test_a_pipeline_that_is_stopped_gets_its_lock_back_while_others_are_waited_for() -> None:
    world = World()
    world.query("slow", ends_s=100.0, batch_ms=50.0)
    segment = SimpleNamespace(busy=Lock(), results=[], stopping=False)
    world.running.append(SegmentHold(segment))

    def needed() -> bool:
        segment.stopping = world.now_s >= 1.0
        return True

    with world.boundary(50.0, needed) as reached:
        assert not reached and segment.busy.locked()
    assert world.now_s == pytest.approx(1.0, abs=0.01)
    assert not segment.busy.locked()


def test_two_queries_with_batches_of_a_minute_meet_in_the_end() -> None:
    """Their batches end half a minute apart, and a held one goes on when it is let go."""
    world = World()
    patience = Patience(lambda: world.now_s)
    lost_s = 0.0
    for _ in range(20):
        phase_s = world.now_s % 60.0
        world.running = []
        world.query("one", ends_s=world.now_s + 60.0 - phase_s, batch_ms=60_000.0)
        world.query("two", ends_s=world.now_s + (90.0 - phase_s) % 60.0 + 1.0, batch_ms=59_000.0)
        begun_s = world.now_s
        with world.boundary(patience.patience_s) as reached:
            if reached:
                break
        lost_s += world.now_s - begun_s
        patience.failed()
        while not patience.due:
            world.now_s += 1.0
    assert reached
    assert world.now_s < 900.0
    assert lost_s <= 0.25 * world.now_s
