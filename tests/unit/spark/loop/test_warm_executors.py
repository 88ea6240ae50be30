"""Which executors count: those that are warm, failed to warm up, or took too long for it."""

from collections.abc import Callable, Sequence

import pytest

from tests.helpers.fake_cluster import FakeCluster, at_once
from tidegate.spark.loop.negotiate import ExecutorNegotiator
from tidegate.spark.loop.warm_executors import HANGS_S, PATIENCE_S, WarmExecutors


class Later:
    """Runs what would run in a thread when the test says so."""

    def __init__(self) -> None:
        self.works: list[Callable[[], None]] = []

    def __call__(self, work: Callable[[], None]) -> None:
        self.works.append(work)

    def go_on(self) -> None:
        while self.works:
            self.works.pop(0)()


class Cold:
    """Executors that need to be warmed up, and a clock."""

    def __init__(self, **changes: object) -> None:
        self.warmed: list[tuple[str, ...]] = []
        self.cancelled = 0
        self.now_s = 0.0
        self.later = Later()
        options = {"background": self.later, "clock": lambda: self.now_s, **changes}
        self.executors = WarmExecutors(self._warm, give_up=self._cancel, **options)

    def _warm(self, executors: Sequence[str]) -> None:
        self.warmed.append(tuple(executors))

    def _cancel(self) -> None:
        self.cancelled += 1


def test_an_executor_counts_once_it_is_warm() -> None:
    cold = Cold()
    assert cold.executors.count(["1", "2"]) == []
    assert cold.executors.busy
    cold.later.go_on()
    assert cold.warmed == [("1", "2")]
    assert cold.executors.count(["1", "2", "3"]) == ["1", "2"]
    cold.later.go_on()
    assert cold.warmed == [("1", "2"), ("3",)]
    assert cold.executors.count(["1", "2", "3"]) == ["1", "2", "3"]
    assert not cold.executors.busy


def test_it_is_warmed_up_once_however_often_it_is_looked_at() -> None:
    cold = Cold()
    for _ in range(3):
        cold.executors.count(["1"])
        cold.executors.counted(frozenset({"executor_host_1"}))
        cold.executors.counted(frozenset())  # Spark's list of executors may lag behind
    cold.later.go_on()
    assert cold.warmed == [("1",)]


def test_those_that_the_start_has_warmed_up_count_at_once() -> None:
    cold = Cold()
    cold.executors.note_warm(frozenset({"executor_host_name_1"}))
    assert cold.executors.count(["1", "2"]) == ["1"]
    cold.later.go_on()
    assert cold.warmed == [("2",)]


def test_without_anything_to_warm_up_with_all_count() -> None:
    cold = Cold(wanted=lambda: False)
    assert cold.executors.count(["1", "2"]) == ["1", "2"]
    assert cold.later.works == [] and not cold.executors.busy


def test_a_failed_warm_up_leaves_the_executor_as_it_is() -> None:
    def fails(executors: Sequence[str]) -> None:
        raise RuntimeError("the executor has gone")

    executors = WarmExecutors(fails, background=at_once)
    assert executors.count(["1"]) == ["1"]
    assert not executors.busy


def test_an_executor_that_takes_too_long_counts_and_is_given_up_later() -> None:
    cold = Cold()
    cold.executors.count(["1"])
    cold.now_s = PATIENCE_S
    assert cold.executors.count(["1"]) == ["1"]
    assert cold.executors.busy, "its job still runs"
    assert cold.cancelled == 0
    cold.now_s = HANGS_S
    cold.executors.count(["1"])
    cold.executors.count(["1"])
    assert cold.cancelled == 1
    cold.later.go_on()
    assert not cold.executors.busy


def test_an_executor_that_has_gone_meanwhile_does_not_count() -> None:
    cold = Cold()
    cold.executors.count(["1"])
    assert cold.executors.count([]) == []
    cold.later.go_on()
    assert not cold.executors.busy
    assert cold.executors.count([]) == []


def test_tasks_stay_on_warm_executors_unless_there_is_none() -> None:
    cold = Cold()
    both = frozenset({"executor_host_1", "executor_host_2"})
    assert cold.executors.counted(both) == both
    cold.later.go_on()
    three = both | {"executor_host_3"}
    assert cold.executors.counted(three) == both


@pytest.mark.parametrize("warms", [True, False])
def test_cores_are_granted_when_they_are_warm(warms: bool) -> None:
    cluster = FakeCluster(executors=1)
    later = Later()
    warm = WarmExecutors(lambda _: None, lambda: warms, background=later, clock=cluster.clock)
    warm.note_warm(frozenset({"executor_host_0"}))
    negotiator = ExecutorNegotiator(
        cluster, 2, 2, boundary=cluster.boundary, warm=warm, clock=cluster.clock, background=at_once
    )
    assert negotiator.granted() == 2
    negotiator.ask(4)
    cluster.arrive(1)
    cluster.now_s = 3.0
    assert negotiator.granted() == (2 if warms else 4)
    cluster.now_s = 5.0
    later.go_on()
    assert negotiator.granted() == 4
    assert negotiator.grant_s == (5.0 if warms else 3.0), "the time to warm up is part of it"


def test_no_executor_is_released_while_one_is_warmed_up() -> None:
    """Its job may have its files on any executor."""
    cluster = FakeCluster(executors=2)
    later = Later()
    warm = WarmExecutors(lambda _: None, background=later, clock=cluster.clock)
    negotiator = ExecutorNegotiator(
        cluster, 1, 1, boundary=cluster.boundary, warm=warm, clock=cluster.clock, background=at_once
    )
    negotiator.granted()
    negotiator.let_go()
    assert cluster.killed == []
    later.go_on()
    negotiator.let_go()
    assert cluster.killed == ["1"]
