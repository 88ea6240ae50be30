"""The first minutes of an attachment: what is expected of a query that nobody has seen before.

Imitates Spark's structured_kafka_wordcount.py on three executors: 200 shuffle partitions cost far
more than the rows do, and the first batches run while executors load and compile code.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from tests.helpers.fake_query import FakeQuery, progress
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.learning.row_work import StageRun, rowless_s
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.spark.loop.negotiate import LocalBudget
from tidegate.spark.measure import attached_meter
from tidegate.spark.measure.attached_meter import AttachedMeter
from tidegate.spark.measure.stage_work import BatchWork

CORES, FIXED_S, TASK_S, ROW_S = 3, 0.8, 0.03, 4e-5
COLD = (6.0, 3.0, 2.0, 1.5, 1.3, 1.2, 1.1, 1.05)
"""How many times as long the first batches take."""
BEGUN_S = 1000.0


def arrived(at_s: float) -> float:
    """3,000 rows/s, then 20,000 from second 60 on, and 3,000 again from second 120 on."""
    return 3000.0 * at_s + 17_000.0 * (min(max(at_s - 60.0, 0.0), 60.0))


def batches(until_s: float) -> Iterator[tuple[int, float, float, int, float, BatchWork]]:
    """Number, start, duration, rows, span and work of each batch; one follows the other."""
    at_s, before_s, taken = 2.0, 0.0, 0
    for number in range(1000):
        if at_s >= until_s:
            return
        rows = int(arrived(at_s)) - taken
        taken += rows
        slow = COLD[number] if number < len(COLD) else 1.0
        stages = (
            StageRun(4, slow * (4 * TASK_S + 0.9 * rows * ROW_S), rows),
            StageRun(200, slow * (200 * TASK_S + 0.1 * rows * ROW_S), 0, 1000),
        )
        busy_s = sum(one.busy_s for one in stages)
        duration_s = slow * FIXED_S + busy_s / CORES
        work = BatchWork(busy_s, rowless_s(stages))
        yield number, at_s, duration_s, rows, at_s - before_s, work
        before_s, at_s = at_s, at_s + duration_s


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[Record]]:
    monkeypatch.setattr(attached_meter, "QueryMeter", lambda query: query.meter)
    clock = SimpleNamespace(time=lambda: BEGUN_S, perf_counter=lambda: 0.0)
    monkeypatch.setattr(attached_meter, "time", clock)

    def run(seconds: int) -> list[Record]:
        query, works = FakeQuery("words"), {}
        meter = AttachedMeter(lambda: [query], LocalBudget(CORES), lambda: 0.0, lambda _: works)
        controller = new_controller(Assembly(target=Target(6.0), bounds=Bounds(1, CORES)))
        coming = list(batches(float(seconds)))
        found = []
        for tick in range(1, seconds + 1):
            while coming and coming[0][1] + coming[0][2] <= tick:
                number, at_s, duration_s, rows, span_s, work = coming.pop(0)
                one = progress(number, BEGUN_S + at_s, duration_s, rows, span_s)
                query.meter.coming.append(one)
                works[number] = work
            found.append(controller.tick(meter.measure(BEGUN_S + tick)))
        return found

    return run


def test_the_model_expects_what_is_measured_after_the_first_warm_batches(ticks) -> None:
    """With 200 tasks taken for work on rows, it was ten times as much, or without end."""
    records = ticks(180)
    warm = [r for r in records if r.measurement.at_s - BEGUN_S > 45.0]
    for record in warm:
        latency = record.measurement.latency
        assert latency is not None
        off = record.beliefs["expected_s"] / latency.mean_s
        assert 1 / 1.5 < off < 1.5, (record.tick, off)
    beliefs = records[-1].beliefs
    assert beliefs["words.w_s"] == pytest.approx(ROW_S, rel=0.3)
    assert beliefs["words.rowless_s"] == pytest.approx(204 * TASK_S, rel=0.1)
    assert beliefs["words.a0_s"] == pytest.approx(FIXED_S, rel=0.2)


def test_cores_that_share_many_small_tasks_are_not_released(ticks) -> None:
    """On one core a batch would take 7 s, and the latency 11 s: as many tasks wait."""
    assert all(record.decision.cores is None for record in ticks(180))


def test_a_decision_needs_only_two_batches(ticks) -> None:
    known = [r.tick for r in ticks(60) if "words.w_s" in r.beliefs]
    ended_s = [at_s + lasts_s for _, at_s, lasts_s, *_ in batches(60.0)]
    assert known[0] <= ended_s[1] + 1.0


def test_history_is_learned_from_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The query ran before it was attached to, on the cores that it has now."""
    monkeypatch.setattr(attached_meter, "QueryMeter", lambda query: query.meter)
    for up_s, learned in ((80.0, 10), (94.5, 5), (float("inf"), 0)):
        query = FakeQuery("words")
        query.meter.coming = [progress(n, 90.0 + n, 1.0, 50) for n in range(10)]
        meter = AttachedMeter(
            lambda query=query: [query],
            LocalBudget(2),
            lambda: 0.0,
            up_since_s=lambda up_s=up_s: up_s,
        )
        found = meter.measure(101.0).segments[0]
        assert len(found.batches) == learned
        assert found.arrival_rate == pytest.approx(50.0)
