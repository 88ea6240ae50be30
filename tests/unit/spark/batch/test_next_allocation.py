"""What is wished for, and the plan that the next micro-batch makes of it."""

import pyarrow as pa
import pytest

from tidegate.control.shards.route import even_route
from tidegate.control.shedding.keep import Keep
from tidegate.pipelines.functions import count
from tidegate.pipelines.graph import Keyed, Source, TaskBounds
from tidegate.pipelines.shedding import ShedClass, Shedding
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan

ROWS = pa.schema([("k", pa.string())])


def keyed(shards: int = 8) -> Keyed:
    bound = count().bind(ROWS, ("k",))
    return Keyed(
        name="n",
        inputs=("source",),
        schema=bound.output,
        key=("k",),
        rows=ROWS,
        bound=bound,
        shards=shards,
        tasks=TaskBounds(1, shards),
    )


def test_new_numbers_of_tasks_leave_a_rescale_that_came_meanwhile_alone():
    allocation = NextAllocation((keyed(),), tasks=4)
    old = allocation.snapshot()["n"].route
    assert old == even_route(8, 4)
    swapped = tuple({0: 3, 1: 2, 2: 1, 3: 0}[task] for task in old)
    allocation.relabel("n", 4, old, swapped)
    assert allocation.snapshot()["n"].route == swapped
    allocation.rescale("n", 2)
    wished = allocation.snapshot()["n"]
    allocation.relabel("n", 4, old, swapped)
    assert allocation.snapshot()["n"] == wished
    assert set(wished.route) == {0, 1}


def test_tasks_are_renumbered_where_a_route_follows_its_state() -> None:
    allocation = NextAllocation((keyed(),), tasks=2)
    route = allocation.snapshot()["n"].route
    swapped = tuple(1 - task for task in route)
    found = allocation.followed(lambda name, entry: swapped)
    assert found == {"n": OperatorPlan(2, swapped)} == allocation.snapshot()
    assert allocation.followed(lambda name, entry: entry.route) == found


def test_a_plan_of_an_earlier_try_gets_the_operators_that_joined_since() -> None:
    allocation = NextAllocation((keyed(),), tasks=2)
    earlier = BatchPlan(3, 1, {"gone": OperatorPlan(5)})
    completed = allocation.completed(earlier)
    assert completed.operators == {"gone": OperatorPlan(5), **allocation.snapshot()}
    assert allocation.completed(completed) is completed


def test_an_allocation_knows_no_classes_that_were_not_declared() -> None:
    allocation = NextAllocation((), 2)
    allocation.shed(Keep(0.5, {"gold": 1.0}))
    assert allocation.keep() == Keep(0.5)


def test_a_batch_that_was_held_up_keeps_as_many_rows_and_the_least_important_go() -> None:
    classes = {"gold": ShedClass(priority=1, floor=0.5), "other": ShedClass()}
    shed = Shedding(by="tier", classes=classes)
    schema = pa.schema([("tier", pa.string())])
    allocation = NextAllocation(
        (Source(name="in", inputs=(), schema=schema, frame=None, shedding=shed),), 2
    )
    meant = Keep(0.9, {"gold": 1.0, "other": 0.5}, span_s=1.0)
    allocation.shed(meant)
    offered = {"gold": 800.0, "other": 200.0}

    def planned(gathered_s: float, offered: dict[str, float]) -> Keep:
        plan = allocation.plan(7, 1, {}, gathered_s=gathered_s, offered=offered, unique={})
        return plan.keep

    assert planned(1.0, offered) == Keep(0.9, meant.by_class)
    twice = {name: 2 * rows for name, rows in offered.items()}
    held_up = planned(2.0, twice)
    assert held_up.fraction == pytest.approx(0.45)
    kept = sum(rows * held_up.by_class[name] for name, rows in twice.items())
    assert kept == pytest.approx(900.0) and held_up.by_class["other"] == 0.0
    promised = planned(100.0, offered)
    assert promised.by_class["gold"] == 0.5, "what was promised is kept"
    allocation.shed(Keep(0.9, meant.by_class))
    assert planned(100.0, offered) == Keep(0.9, meant.by_class)
