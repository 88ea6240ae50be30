"""The speeds of executors as tasks report them, and only where they are of use."""

from dataclasses import replace

import pyarrow as pa
import pytest

import tidegate as tg
from tests.unit.spark.measure.test_operator_meter import report, result
from tidegate.pipelines.graph import Keyed, Map, TaskBounds
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.executor_rates import ExecutorRates

ROWS = pa.schema([("k", pa.string())])
ENTRY = OperatorPlan(2)
KEPT = OperatorPlan(2, (0, 1, 0))


def own_map() -> Map:
    bounds = TaskBounds(1, 4)
    return Map(name="m", inputs=("in",), schema=ROWS, function=lambda t: t, tasks=bounds)


def batch(*told: tuple[int, str, int, float], entry: OperatorPlan = ENTRY) -> BatchResult:
    """Reports of (task, executor, rows, busy seconds)."""
    reports = [
        replace(report("m", task, rows, busy_s), executor=executor)
        for task, executor, rows, busy_s in told
    ]
    return replace(result(*reports), plan=BatchPlan(0, 0, {"m": entry}))


def test_a_task_is_as_fast_as_its_executor() -> None:
    speeds = ExecutorRates(own_map())
    first = batch((0, "a", 100, 1.0), (1, "b", 100, 2.0))
    assert speeds.task_rates([first], ENTRY) == (100.0, 50.0)
    swapped = batch((0, "b", 100, 2.0), (1, "a", 100, 1.0))
    assert speeds.task_rates([swapped], ENTRY) == (50.0, 100.0), "it ran elsewhere"
    assert speeds.task_rates([], ENTRY) == (50.0, 100.0), "no batch ended meanwhile"
    quick = batch((0, "b", 100, 1.0), (1, "a", 100, 1.0))
    assert speeds.task_rates([quick], ENTRY) == pytest.approx((75.0, 100.0))


def test_speeds_belong_to_the_tasks_and_places_they_were_measured_with() -> None:
    speeds = ExecutorRates(own_map())
    first = batch((0, "a", 100, 1.0), (1, "b", 100, 2.0))
    assert speeds.task_rates([first], KEPT) == (), "not in these places yet"
    kept = batch((0, "b", 100, 2.0), (1, "a", 100, 1.0), entry=KEPT)
    assert speeds.task_rates([kept], KEPT) == (50.0, 100.0)
    assert speeds.task_rates([], OperatorPlan(3)) == ()


def test_speeds_are_forgotten_when_one_executor_runs_all() -> None:
    speeds = ExecutorRates(own_map())
    both = batch((0, "a", 100, 1.0), (1, "b", 100, 2.0), entry=KEPT)
    assert speeds.task_rates([both], KEPT) == (100.0, 50.0)
    empty = batch((0, "a", 0, 0.0), (1, "a", 0, 0.0), entry=KEPT)
    assert speeds.task_rates([empty], KEPT) == (100.0, 50.0), "a batch without rows tells nothing"
    alone = batch((0, "a", 100, 1.0), (1, "a", 100, 1.0), entry=KEPT)
    assert speeds.task_rates([alone], KEPT) == ()
    assert speeds.task_rates([], KEPT) == ()
    assert speeds.task_rates([both], KEPT) == (100.0, 50.0), "there are two again"


def test_executors_that_are_long_gone_are_forgotten() -> None:
    speeds = ExecutorRates(own_map())
    for number in range(600):
        told = batch((0, f"a{number}", 100, 1.0), (1, f"b{number}", 100, 2.0))
        assert speeds.task_rates([told], ENTRY) == (100.0, 50.0)
    assert len(speeds._rates) <= 256


def test_nothing_is_told_where_nothing_differs_or_is_known() -> None:
    same = batch((0, "a", 100, 1.0), (1, "a", 100, 2.0))
    assert ExecutorRates(own_map()).task_rates([same], ENTRY) == (), "one executor"
    partial = batch((0, "a", 100, 1.0), (1, "b", 0, 0.0))
    assert ExecutorRates(own_map()).task_rates([partial], ENTRY) == (), "a task had no rows"
    both = batch((0, "a", 100, 1.0), (1, "b", 100, 2.0))
    hosted = replace(own_map(), tasks=None)
    assert ExecutorRates(hosted).task_rates([both], None) == (), "no tasks of its own"


def keyed() -> Keyed:
    bound = tg.count().bind(ROWS, ("k",))
    return Keyed(
        name="m",
        inputs=("in",),
        schema=bound.output,
        key=("k",),
        rows=ROWS,
        bound=bound,
        shards=3,
        tasks=TaskBounds(1),
    )


def test_tasks_of_a_keyed_operator_are_told_by_executor_even_without_rows() -> None:
    speeds = ExecutorRates(keyed())
    first = batch((0, "a", 100, 1.0), (1, "b", 0, 0.1), entry=KEPT)
    assert speeds.task_rates([first], KEPT) == (100.0, 0.0), "b has had no rows"
    assert speeds.executors(KEPT) == ("a", "b")
    both = batch((0, "a", 100, 1.0), (1, "b", 10, 1.0), entry=KEPT)
    assert speeds.task_rates([both], KEPT) == (100.0, 10.0)
    moved = OperatorPlan(2, (0, 0, 0))
    assert speeds.executors(moved) == (), "not with this route yet"
    alone = batch((0, "a", 10, 1.0), (1, "a", 10, 1.0), entry=KEPT)
    assert speeds.task_rates([alone], KEPT) == () == speeds.executors(KEPT)
