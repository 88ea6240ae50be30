"""The driver's memory of a run stays small, however long it runs and however many tasks it has."""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from tests.helpers.synthetic_surge import surge
from tidegate.control.learning.sojourn import Stamps
from tidegate.control.measurement import OperatorMeasurement
from tidegate.control.record import Record
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.memory import (
    RECORD_BYTES,
    RESULT_BYTES,
    RESULTS,
    BoundedMemory,
    record_bytes,
    remembered_records,
    remembered_results,
)

TASKS, BATCHES, SLOTS, SHARDS = 200, 10_000, 200, 256
MOST_BYTES = 200 * 2**20


class FakeReport:
    """What counts of a `TaskReport`, and quicker to make."""

    __slots__ = (
        "born",
        "change",
        "left",
        "operator",
        "shard_bytes",
        "shard_rows",
        "shed",
        "stamps",
    )

    def __init__(self, slots: np.ndarray) -> None:
        self.operator = "count"
        self.stamps = Stamps(slots, slots, 0)
        self.born = self.left = self.shed = self.change = self.shard_rows = self.shard_bytes = None


def result(batch_id: int, tasks: int = TASKS, slots: int = SLOTS) -> BatchResult:
    stamps = np.full((tasks, slots), batch_id)
    return BatchResult(
        segment="main",
        plan=BatchPlan(batch_id, 0, {"count": OperatorPlan(tasks, (0,) * SHARDS)}),
        replayed=False,
        started_s=0.0,
        ended_s=float(batch_id),
        steps_s={},
        reports=tuple(FakeReport(row.copy()) for row in stamps),
        executors=1,
    )


def test_the_results_of_many_tasks_and_batches_stay_below_200_mb() -> None:
    memory = remembered_results()
    tracemalloc.start()
    try:
        for batch_id in range(BATCHES // 10):
            memory.append(result(batch_id))
        taken, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    last = memory[-1]
    for batch_id in range(BATCHES // 10, BATCHES):
        memory.append(replace(last, plan=replace(last.plan, batch_id=batch_id)))
        assert memory.bytes <= RESULT_BYTES
    assert taken <= most < MOST_BYTES
    assert taken < 2 * RESULT_BYTES, "the estimate is near enough to the truth"
    assert [one.plan.batch_id for one in memory] == list(range(BATCHES - RESULTS, BATCHES))
    assert len(memory[-8].reports) == TASKS, "the newest are whole, for the meter"
    assert memory[0].reports == ()


def test_small_results_are_kept_whole() -> None:
    memory = remembered_results()
    for batch_id in range(RESULTS + 10):
        memory.append(result(batch_id, tasks=2, slots=10))
    assert len(memory) == RESULTS
    assert all(len(one.reports) == 2 for one in memory)
    assert memory[0].plan.batch_id == 10
    assert [one.plan.batch_id for one in memory[-2:]] == [RESULTS + 8, RESULTS + 9]


def test_the_records_of_many_shards_stay_below_200_mb() -> None:
    memory = remembered_records()
    tick = surge(1)[0]

    def record(number: int) -> Record:
        operator = OperatorMeasurement(
            name="count",
            arrival_rate=1.0,
            service_rate=1.0,
            route=tuple(range(SHARDS)),
            shard_rows=tuple(range(1000 + number, 1000 + number + SHARDS)),
        )
        measurement = replace(tick.measurement, at_s=float(number), operators=(operator,) * 4)
        return replace(tick, tick=number, measurement=measurement)

    tracemalloc.start()
    try:
        some = [record(number) for number in range(50)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The estimate counts the same operator four times, and really there is one of it.
    assert sum(record_bytes(one) for one in some) > taken
    for number in range(8_000):
        memory.append(record(number))
    assert memory.bytes <= RECORD_BYTES < MOST_BYTES
    assert len(memory[-1].measurement.operators[0].shard_rows) == SHARDS
    assert memory[0].measurement.operators[0].shard_rows == ()
    assert memory[-1].tick == 7_999
    assert len(memory) > 3_600, "an hour is remembered"


def test_what_is_stripped_and_still_too_much_is_dropped() -> None:
    memory: BoundedMemory[SimpleNamespace] = BoundedMemory(
        most=1000,
        most_bytes=100,
        size=lambda one: one.size,
        strip=lambda one: SimpleNamespace(number=one.number, size=5),
    )
    assert not memory
    for number in range(40):
        memory.append(SimpleNamespace(number=number, size=10))
    assert [one.number for one in memory] == list(range(28, 40))
    assert [one.size for one in memory] == [5] * 4 + [10] * 8
    assert memory.bytes == 100
    memory.append(SimpleNamespace(number=40, size=10_000))
    assert memory[-1].number == 40
    assert len(memory) == 8, "the newest stay, whatever their size"
