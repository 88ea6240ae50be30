"""Held between two batches, on queries that are imitated."""

from types import SimpleNamespace

import pytest
from py4j.clientserver import ClientServer

from tidegate.errors import AskedWrongly
from tidegate.spark.loop.boundary import PATIENCE_S, QueryBoundary


class FakeQuery:
    """Its thread comes to its lock when the batch that runs is over, by the fake clock."""

    def __init__(self, world: "World", name: str, ends_s: float, batch_ms: float | None) -> None:
        self.lastProgress = batch_ms and {"durationMs": {"triggerExecution": batch_ms}}
        self.isActive = True
        self.trigger_active = True
        self.locked_by_spark = False
        self._world, self._name, self._ends_s = world, name, ends_s
        self._jsq = SimpleNamespace(
            status=lambda: SimpleNamespace(isTriggerActive=lambda: self.trigger_active),
            streamingQuery=lambda: SimpleNamespace(
                awaitProgressLock=lambda: self, queryExecutionThread=lambda: name
            ),
        )

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
        self.queries: list[FakeQuery] = []
        units = SimpleNamespace(TimeUnit=SimpleNamespace(MILLISECONDS="ms"))
        jvm = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(concurrent=units)))
        gateway = object.__new__(ClientServer)
        session = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway, _jvm=jvm))
        self.boundary = QueryBoundary(
            session, lambda: self.queries, clock=lambda: self.now_s, pause=self._pause
        )

    def query(self, name: str, ends_s: float, batch_ms: float | None = 100.0) -> FakeQuery:
        self.queries.append(FakeQuery(self, name, ends_s, batch_ms))
        return self.queries[-1]

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
    world.query("over", ends_s=3600.0).isActive = False
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
    session = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=object(), _jvm=None))
    with pytest.raises(AskedWrongly, match="PYSPARK_PIN_THREAD"):
        QueryBoundary(session, list)
