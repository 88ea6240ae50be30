"""Combining: what a task tells of it, how it is turned on, and what stays as it was."""

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.spark.batch.test_next_allocation import keyed
from tidegate.pipelines import functions as tg
from tidegate.spark.batch.combining import Combining
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan, Plans
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.rows_left import FEWEST_ROWS, rows_left
from tidegate.spark.batch.worker import HASH, ORDER
from tidegate.spark.state.files import Durable

ROWS = pa.schema([("k", pa.int64()), ("timestamp", pa.timestamp("us", "UTC"))])


def shuffled(keys: np.ndarray, parts: int, seconds: np.ndarray) -> pa.Table:
    """Rows as they come from a shuffle, numbered by the partitions that they were read in."""
    count = len(keys)
    part, place = np.arange(count) % parts, np.arange(count) // parts
    mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return pa.table(
        {
            "k": keys,
            "timestamp": pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC")),
            HASH: mixed.view(np.int64),
            ORDER: (part << 33) + place,
        }
    )


@pytest.mark.parametrize("keys", [3, 2_000, 60_000, 10**9])
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("windows", [False, True])
def test_a_task_tells_about_how_many_rows_would_be_left(keys, parts, windows):
    """Whatever share of the keys it looks at."""
    chance = np.random.default_rng(keys)
    count = 200_000
    drawn = chance.integers(0, keys, count)
    drawn[chance.random(count) < 0.4] = 0
    seconds = np.sort(chance.integers(0, 60, count))
    function = tg.window(tg.count(), every="20 seconds") if windows else tg.count()
    combiner = function.bind(ROWS, ("k",)).combiner
    assert combiner is not None
    pane = seconds // 20 if windows else np.zeros(count, dtype=np.int64)
    exact = len(
        set(zip(drawn.tolist(), (np.arange(count) % parts).tolist(), pane.tolist(), strict=True))
    )
    told = rows_left(shuffled(drawn, parts, seconds), combiner)
    assert told == pytest.approx(exact, rel=0.15, abs=100)


def test_few_rows_are_not_looked_at():
    combiner = tg.count().bind(ROWS, ("k",)).combiner
    rows = shuffled(np.zeros(FEWEST_ROWS - 1, dtype=np.int64), 1, np.zeros(FEWEST_ROWS - 1, int))
    assert rows_left(rows, combiner) == FEWEST_ROWS - 1


def report(task: int, rows: int, combined: int | None) -> TaskReport:
    return TaskReport(
        batch_id=0,
        operator="n",
        task=task,
        rows_in=rows,
        rows_out=1,
        busy_s=1.0,
        function_s=1.0,
        executor="here",
        started_s=0.0,
        combined_rows=combined,
    )


def test_a_hot_key_turns_it_on_for_the_next_batch_and_its_plan_keeps_it(tmp_path):
    allocation = NextAllocation((keyed(),), tasks=2)
    watched = Combining.of("p", allocation, ["n"])
    hot = [report(0, 900_000, 2_000), report(1, 100_000, 2_000)]
    plan = BatchPlan(0, 0, allocation.snapshot())
    watched.look(plan, hot)
    assert not allocation.snapshot()["n"].combine
    watched.look(plan, hot)
    assert allocation.snapshot()["n"].combine
    allocation.rescale("n", 4)
    allocation.reroute("n", {0: 3})
    entry = allocation.snapshot()["n"]
    assert (entry.tasks, entry.route[0], entry.combine) == (4, 3, True)
    routed = allocation.routed("n", entry, {1: 0})
    assert routed.combine
    allocation.relabel("n", 4, (0, 1, 2, 3), (1, 0, 2, 3))
    assert allocation.snapshot()["n"].combine

    plans = Plans(Durable(str(tmp_path / "plans")))
    plans.directory.make()
    plans.write(BatchPlan(7, 1, {"n": OperatorPlan(2, (0, 1), combine=True)}))
    again = plans.read(7)
    assert again is not None and again.operators["n"] == OperatorPlan(2, (0, 1), combine=True)
    restarted = NextAllocation((keyed(2),), tasks=1)
    restarted.adopt(again)
    assert Combining.of("p", restarted, ["n"]).choices["n"].combines


def test_a_plan_of_an_earlier_version_combines_nothing(tmp_path):
    plans = Plans(Durable(str(tmp_path / "plans")))
    plans.directory.make()
    old = {"batch": 4, "at_us": 1, "operators": {"n": {"tasks": 2, "route": [0, 1]}}}
    plans.directory.write_json("0000000004.json", old)
    again = plans.read(4)
    assert again is not None and again.operators["n"] == OperatorPlan(2, (0, 1))


def test_a_batch_that_tells_nothing_changes_nothing():
    allocation = NextAllocation((keyed(),), tasks=2)
    watched = Combining.of("p", allocation, ["n"])
    for _ in range(5):
        watched.look(BatchPlan(0, 0, allocation.snapshot()), [report(0, 900_000, None)])
    assert not allocation.snapshot()["n"].combine
