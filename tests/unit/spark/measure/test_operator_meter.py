"""What tasks reported, as a measurement of their operator."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.helpers.fake_query import progress
from tidegate.control.learning.sojourn import BatchStamps, Stamps
from tidegate.pipelines.functions import count
from tidegate.pipelines.graph import Keyed, Map, Segment, Source, TaskBounds
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import TaskReport, combining
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.busy_cores import BusyCores
from tidegate.spark.measure.operator_meter import OperatorMeter
from tidegate.spark.measure.segment_batches import FinishedBatch

ROWS = pa.schema([("k", pa.string())])
BOUND = count().bind(ROWS, ("k",))
SEGMENT = Segment(
    "main",
    (
        Map(name="m", inputs=("in",), schema=ROWS, function=lambda table: table),
        Keyed(
            name="n",
            inputs=("m",),
            schema=BOUND.output,
            key=("k",),
            rows=ROWS,
            bound=BOUND,
            shards=4,
            tasks=TaskBounds(1, 4),
        ),
    ),
    (Source(name="in", inputs=(), schema=ROWS, frame=None),),
    (),
)
PLAN = {"n": OperatorPlan(2, (0, 1, 0, 1))}


def report(operator: str, task: int, rows: int, busy_s: float) -> TaskReport:
    shards = (np.array([task, task + 2]), np.array([rows - 1, 1]))
    return TaskReport(
        batch_id=0,
        operator=operator,
        task=task,
        rows_in=rows,
        rows_out=rows,
        busy_s=busy_s,
        function_s=busy_s,
        executor="here",
        started_s=0.0,
        shard_rows=shards if operator == "n" else None,
        shard_bytes=(np.array([task]), np.array([100])) if operator == "n" else None,
        durable_bytes=5,
        late_rows=2,
        node="a",
    )


def result(*reports: TaskReport) -> BatchResult:
    return BatchResult(
        segment="main",
        plan=BatchPlan(0, 0, PLAN),
        replayed=False,
        started_s=0.0,
        ended_s=1.0,
        steps_s={},
        reports=reports,
        executors=1,
    )


BATCH = result(
    report("m", 0, 20, 0.5), report("m", 1, 20, 0.5), report("n", 0, 30, 1.0), report("n", 1, 10, 1)
)


NO_STAMPS = BatchStamps(Stamps.of(np.empty(0, np.int64)), 0)


def finished(number: int, begun_s: float, length_s: float, since_s: float | None) -> FinishedBatch:
    """A batch of 40 rows."""
    return FinishedBatch(BATCH, progress(number, begun_s, length_s, 40), NO_STAMPS, None, since_s)


def test_rows_work_and_shards_of_a_tick() -> None:
    both = [finished(0, 10.0, 1.0, 9.0), finished(1, 11.0, 1.0, 10.0)]
    mapped, keyed = OperatorMeter(SEGMENT).measure(both, PLAN, interval_s=2.0)
    assert (keyed.rows, keyed.arrival_rate, keyed.service_rate) == (80, 40.0, 20.0)
    assert keyed.imbalance == pytest.approx(1.5)
    assert keyed.shard_rows == (58, 18, 2, 2)
    assert keyed.route == (0, 1, 0, 1)
    assert (keyed.state_bytes, keyed.durable_bytes) == (200, 20)
    assert keyed.late_rows == 8
    assert keyed.nodes == ("a", "a")
    assert (keyed.least_tasks, keyed.most_tasks) == (1, 4)
    assert (mapped.tasks, mapped.least_tasks, mapped.most_tasks) == (2, 2, 2), "where its rows are"
    assert mapped.shard_rows == mapped.route == ()


def test_without_a_batch_the_last_tasks_and_nodes_are_known() -> None:
    meter = OperatorMeter(SEGMENT)
    first, _ = meter.measure([], PLAN, interval_s=1.0)
    assert (first.tasks, first.rows, first.imbalance) == (1, 0, 1.0)
    meter.measure([finished(0, 10.0, 1.0, 9.0)], PLAN, interval_s=1.0)
    mapped, keyed = meter.measure([], PLAN, interval_s=1.0)
    assert mapped.tasks == 2
    assert keyed.nodes == ("a", "a")
    _, rescaled = meter.measure([], {"n": OperatorPlan(3, (0, 1, 2, 0))}, interval_s=1.0)
    assert rescaled.nodes == (), "nobody knows yet where three tasks will run"


@pytest.mark.parametrize("length_s", [0.5, 2.0, 3.0])
def test_an_arrival_rate_does_not_depend_on_how_long_batches_take(length_s: float) -> None:
    """40 rows a batch, batch after batch: the rate is that of the time they arrived over."""
    meter, rates, number = OperatorMeter(SEGMENT), [], 0
    for second in range(1, 31):
        ended = []
        while (number + 1) * length_s <= second:
            begun_s = number * length_s
            ended.append(finished(number, begun_s, length_s, begun_s - length_s))
            number += 1
        rates.append(meter.measure(ended, PLAN, interval_s=1.0)[1].arrival_rate)
    settled = rates[round(2 * length_s) + 1 :]
    assert settled == [pytest.approx(40 / length_s, rel=0.02)] * len(settled)


def test_an_early_tick_tells_the_same_rate_and_an_idle_segment_has_none() -> None:
    meter = OperatorMeter(SEGMENT)
    batches = [finished(number, 1.0 + number, 1.0, float(number)) for number in range(4)]
    told = 0.0
    for batch in batches:
        for interval_s in (0.2, 0.8):
            found = meter.measure([batch] if interval_s == 0.2 else [], PLAN, interval_s)[1]
            assert found.arrival_rate == pytest.approx(40.0)
            told += found.arrival_rate * interval_s
    for second in range(5, 15):
        found = meter.measure([], PLAN, 1.0, idle_s=float(second))[1]
        told += found.arrival_rate
    assert found.arrival_rate == 0.0
    assert told == pytest.approx(160.0), "every row once"


def test_variability_is_measured_from_stamps_batches_and_blocks() -> None:
    """Rows every 50 ms exactly; a function that takes 1 ms or 3 ms a row, by the toss of a coin."""
    random = np.random.default_rng(1)
    source = Source(name="in", inputs=(), schema=ROWS, frame=None, arrival="at")
    segment = Segment("main", SEGMENT.nodes, (source,), ())
    meter, found = OperatorMeter(segment), []
    for number in range(200):
        stamps = Stamps.of(np.arange(number * 1_000_000, (number + 1) * 1_000_000, 50_000))
        times_s = random.choice([0.001, 0.003], 20)
        told = [replace(report("m", 0, 20, float(times_s.sum())), stamps=stamps)]
        told += [report("n", task, 10, float(times_s[10 * task :][:10].sum())) for task in (0, 1)]
        ran = FinishedBatch(
            result(*told), progress(number, number + 1.0, 1.0, 20), NO_STAMPS, None, float(number)
        )
        found = meter.measure([ran], PLAN, interval_s=1.0)
    mapped, keyed = found
    assert mapped.arrival_scv == pytest.approx(0.0, abs=0.01)
    assert keyed.arrival_scv == pytest.approx(0.0, abs=0.01), "20 rows a second, every second"
    for operator in found:
        assert operator.service_scv == pytest.approx(0.25, abs=4 * operator.service_scv_error)
        assert 0.0 < operator.service_scv_error < 0.3, "even blocks: an upper bound"


def test_rows_from_before_the_run_are_no_rate() -> None:
    meter = OperatorMeter(SEGMENT)
    old = FinishedBatch(BATCH, progress(0, 1.0, 5.0, 40), NO_STAMPS, None, 0.0, fresh=0.0)
    found = meter.measure([old], PLAN, interval_s=1.0)[1]
    assert (found.rows, found.arrival_rate) == (40, 0.0)


def test_busy_cores_of_segments_add_up_and_an_idle_one_has_none() -> None:
    batch = finished(0, 10.0, 2.0, None)
    busy = BusyCores()
    assert busy.measure({"main": [], "second": []}, idle=()) is None
    assert busy.measure({"main": [batch], "second": []}, idle=()) == pytest.approx(1.5)
    assert busy.measure({"main": [], "second": [batch]}, idle=()) == pytest.approx(3.0)
    assert busy.measure({"main": [], "second": []}, idle=("main",)) == pytest.approx(1.5)


def test_what_tasks_received_and_waited_for() -> None:
    told = [
        replace(report("n", task, rows, 1.0), bytes_in=100 * rows, waited_s=wait_s)
        for task, rows, wait_s in ((0, 30, 0.3), (1, 10, 0.1))
    ]
    hosted = replace(report("m", 0, 40, 1.0), bytes_in=2000)
    batch = replace(finished(0, 10.0, 1.0, 9.0), result=result(hosted, *told))
    mapped, keyed = OperatorMeter(SEGMENT).measure([batch], PLAN, interval_s=1.0)
    assert (keyed.row_bytes, keyed.task_bytes) == (100.0, 2000.0)
    assert keyed.task_wait_s == pytest.approx(0.2)
    assert (mapped.row_bytes, mapped.task_wait_s) == (50.0, None), "it waits for its host"
    assert (mapped.inputs, keyed.inputs) == (("in",), ("m",))
    assert (mapped.rows_out, keyed.rows_out) == (40, 40)
    (_, silent) = OperatorMeter(SEGMENT).measure([], PLAN, interval_s=1.0)
    assert (silent.row_bytes, silent.task_bytes, silent.task_wait_s) == (0.0, 0.0, None)


def test_combined_rows_are_told_beside_the_rows_that_they_stand_for():
    """Rates and service times are of rows; the load of a task is what it was given."""
    plan = {"n": OperatorPlan(2, (0, 1, 0, 1), combine=True)}
    reports = (
        report(combining("n"), 0, 20, 0.5),
        report(combining("n"), 1, 20, 0.3),
        replace(report("n", 0, 30, 1.0), combined_rows=4),
        replace(report("n", 1, 10, 1.2), combined_rows=4),
    )
    done = replace(result(*reports), plan=BatchPlan(0, 0, plan))
    meter = OperatorMeter(SEGMENT)
    *_, found = meter.measure(
        [FinishedBatch(done, progress(0, 10.0, 1.0, 40), NO_STAMPS, None, 9.0)], plan, 2.0
    )
    assert (found.rows, found.combined_rows) == (40, 8)
    assert found.service_rate == pytest.approx(40 / 3.0)
    assert found.busy_s == pytest.approx(3.0)
    assert found.imbalance == 1.0, "both tasks were given as much"
    *_, plain = OperatorMeter(SEGMENT).measure([finished(0, 10.0, 1.0, 9.0)], PLAN, 2.0)
    assert plain.combined_rows is None and plain.imbalance == 1.5
