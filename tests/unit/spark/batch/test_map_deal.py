"""A map whose rows are dealt by shares: a task has its rows in their order, wherever it runs."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.spark.batch.test_traces import Told
from tidegate.errors import AskedWrongly
from tidegate.models.flow.deal import SLOTS, slot_route
from tidegate.pipelines.graph import Map, Source, TaskBounds
from tidegate.spark.batch.map_task import MapStage, MapTask
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.worker import ORDER, TASK, packed

ROWS = pa.schema([("n", pa.int64())])


def own_map(least: int = 1, most: int | None = 4) -> Map:
    bounds = TaskBounds(least, most)
    return Map(name="m", inputs=("in",), schema=ROWS, function=lambda t: t, tasks=bounds)


def seen(table: pa.Table) -> pa.Table:
    assert table.column_names == ["n"], "the function sees none of our columns"
    return table


def task(told: Told, route: tuple[int, ...] = (0, 1, 1)) -> MapTask:
    return MapTask(packed(MapStage("m", seen, ROWS)), 7, told, None, 2, route)


def dealt(orders: list[int]) -> pa.Table:
    columns = {"n": [10 * one for one in orders], ORDER: orders, TASK: [1] * len(orders)}
    return pa.table(columns)


def test_a_task_in_its_place_takes_all_its_rows_in_their_order() -> None:
    told = Told()
    anchor = pa.table({TASK: pa.array([1], pa.int32())})
    answer = task(told).anchored(anchor, dealt([5, 1, 4, 2]), ROWS)
    assert answer.column("n").to_pylist() == [10, 20, 40, 50]
    (report,) = told.reports
    assert (report.task, report.part, report.rows_in, report.rows_out) == (1, 0, 4, 4)
    assert report.bytes_in > 0 and report.waited_s is None


@pytest.mark.parametrize("block_rows", [4, None])
def test_a_replay_has_the_same_blocks_however_the_shuffle_delivered_the_rows(
    block_rows: int | None,
) -> None:
    """In order or not, in one piece or in many: what the function returns shows its blocks."""
    anchor = pa.table({TASK: pa.array([1], pa.int32())})
    whole = dealt(list(range(10)))
    pieces = pa.concat_tables(whole.slice(begin, 3) for begin in (0, 3, 6, 9))
    mixed = pa.concat_tables(whole.slice(begin, 3) for begin in (6, 0, 9, 3))
    one = replace(task(Told()), block_rows=block_rows)
    for delivered in (whole, pieces, mixed):
        answer = one.anchored(anchor, delivered, ROWS).column("n")
        assert answer.to_pylist() == [10 * number for number in range(10)]
        assert [len(chunk) for chunk in answer.chunks] == ([4, 4, 2] if block_rows else [10])


def test_a_task_without_rows_tells_its_number() -> None:
    told = Told()
    anchor = pa.table({TASK: pa.array([0], pa.int32())})
    answer = task(told).anchored(anchor, dealt([]).cast(dealt([1]).schema), ROWS)
    assert answer.num_rows == 0 and answer.schema == ROWS
    assert (told.reports[0].task, told.reports[0].part) == (0, 0)


def test_without_a_place_a_task_is_named_by_the_slots_of_its_rows() -> None:
    told = Told()
    list(task(told)(iter(dealt([4, 7]).to_batches())))
    list(task(told, ())(iter(dealt([4, 6]).to_batches())))
    assert [report.task for report in told.reports] == [1, 0]
    assert told.reports[0].waited_s is not None


def test_shares_become_slots_and_a_rescale_ends_them() -> None:
    allocation = NextAllocation((own_map(),), tasks=3)
    allocation.deal("m", (0.5, 0.25, 0.25))
    entry = allocation.snapshot()["m"]
    assert entry == OperatorPlan(3, slot_route((0.5, 0.25, 0.25), 3 * SLOTS))
    assert len(entry.shards_of(0)) == 48
    swapped = tuple(2 - one for one in entry.route)
    assert allocation.followed(lambda name, entry: swapped)["m"].route == swapped
    assert allocation.snapshot()["m"].route == swapped, "tasks are numbered by their places"
    allocation.rescale("m", 2)
    assert allocation.snapshot()["m"] == OperatorPlan(2)
    allocation.deal("m", (0.9, 0.1))
    allocation.deal("m", ())
    assert allocation.snapshot()["m"] == OperatorPlan(2)


def test_a_restart_goes_on_with_the_tasks_and_not_with_the_deal() -> None:
    """The executors are others, and a policy that deals nothing could not undo it."""
    allocation = NextAllocation((own_map(),), tasks=3)
    allocation.deal("m", (0.5, 0.25, 0.25))
    earlier = BatchPlan(4, 1, allocation.snapshot())
    again = NextAllocation((own_map(),), tasks=2)
    again.adopt(earlier)
    assert again.snapshot() == {"m": OperatorPlan(3)}
    assert again.completed(earlier) == earlier, "the batch that is replayed is dealt as before"


def test_shares_may_be_an_array() -> None:
    allocation = NextAllocation((own_map(),), tasks=2)
    allocation.deal("m", np.array([0.75, 0.25]))
    assert len(allocation.snapshot()["m"].shards_of(0)) == 48
    allocation.deal("m", np.array([]))
    assert allocation.snapshot()["m"] == OperatorPlan(2)


def test_what_cannot_be_dealt_is_refused() -> None:
    hosted = Map(name="h", inputs=("in",), schema=ROWS, function=lambda t: t)
    source = Source(name="in", inputs=(), schema=ROWS, frame=None)
    allocation = NextAllocation((source, own_map(), hosted), tasks=2)
    with pytest.raises(AskedWrongly, match="3 shares for the 2 tasks"):
        allocation.deal("m", (0.3, 0.3, 0.4))
    with pytest.raises(AskedWrongly, match="no operator 'h' with tasks of its own"):
        allocation.deal("h", (0.5, 0.5))
