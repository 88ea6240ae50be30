"""The arrival rate by the rows' own stamps, running batches included."""

from collections import deque
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.learning.sojourn import Stamps, merged
from tidegate.control.learning.traces import ARRIVAL_SHIFT
from tidegate.pipelines.graph import Channel, Graph, Map, Merge, Segment, Source, TaskBounds
from tidegate.pipelines.traces import traced_nodes
from tidegate.pipelines.walks import mixed_readers
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import ShedCounts, TaskReport
from tidegate.spark.measure.arrivals import Arrivals, decayed
from tidegate.spark.measure.running_batch import offered_stamps, running_arrivals, until

ROWS = pa.schema([("k", pa.string())])
SOURCE = Source(name="in", inputs=(), schema=ROWS, frame=None, arrival="at")
READER = Map(
    name="m", inputs=("in",), schema=ROWS, function=lambda table: table, tasks=TaskBounds(1, 4)
)


def evenly(from_s: float, to_s: float, rows: int) -> Stamps:
    return Stamps.of(np.linspace(from_s * 1e6, to_s * 1e6, rows, endpoint=False).astype(np.int64))


def told(batch_id: int, task: int, stamps: Stamps, **more) -> TaskReport:
    return TaskReport(
        batch_id=batch_id,
        operator="m",
        task=task,
        rows_in=stamps.rows,
        rows_out=stamps.rows,
        busy_s=0.1,
        function_s=0.1,
        executor="here",
        started_s=0.0,
        stamps=stamps,
        **more,
    )


def segment_run(tasks: int = 2) -> SimpleNamespace:
    """A segment whose batch 5 runs, with so many tasks of its map."""
    reports: list[TaskReport] = []
    return SimpleNamespace(
        segment=Segment("main", (SOURCE, READER), (SOURCE,), ()),
        running=BatchPlan(5, 60_000_000, {"m": OperatorPlan(tasks)}),
        results=deque(),
        told=reports,
        reports=SimpleNamespace(so_far=lambda batch_id: list(reports)),
    )


def test_a_rate_is_of_the_newest_second_and_not_of_the_time_before_the_first_row() -> None:
    arrivals = Arrivals()
    assert arrivals.rate() is None
    assert arrivals.silent_s(99.0) == 0.0
    arrivals.add(evenly(10.0, 10.5, 50))
    assert arrivals.rate() == pytest.approx(100.0, rel=0.05)
    arrivals.add(evenly(10.5, 14.5, 1200))
    assert arrivals.rate() == pytest.approx(300.0, rel=0.01)
    assert arrivals.silent_s(16.5) == pytest.approx(2.0, abs=0.01)


def test_a_running_batch_counts_once_all_its_readers_have_told() -> None:
    arrivals, part = Arrivals(), segment_run(tasks=2)
    arrivals.add(evenly(10.0, 12.0, 200))
    part.told.append(told(5, 0, evenly(12.0, 13.0, 400)))
    arrivals.look_ahead(part, newest=4)
    assert arrivals.rate() == pytest.approx(100.0, rel=0.02)
    assert arrivals.running_rows == 0
    part.told.append(told(5, 1, evenly(12.0, 13.0, 400)))
    arrivals.look_ahead(part, newest=4)
    assert arrivals.rate() == pytest.approx(800.0, rel=0.02)
    assert arrivals.running_rows == 800
    part.running = None
    arrivals.look_ahead(part, newest=4)
    assert arrivals.running_rows == 800, "what was told stays until the batch is finished"
    arrivals.look_ahead(part, newest=5)
    assert arrivals.running_rows == 0


def test_rows_that_were_shed_have_arrived_too_and_a_sample_stands_for_all() -> None:
    kept, offered = evenly(1.0, 2.0, 10), evenly(1.0, 2.0, 40)
    shed = told(5, 0, kept, shed=ShedCounts(classes=((40, 10),), stamps=offered))
    found = offered_stamps([shed])
    assert found is not None and found.rows == 40
    sampled = offered_stamps([told(5, 0, kept, sampled=10)])
    assert sampled is not None and sampled.rows == 100
    assert offered_stamps([]) is None


def test_rows_that_come_back_through_a_loop_do_not_arrive_from_outside() -> None:
    """A map reads the source and a loop: 30 of its 50 rows are inputs, told by their traces."""
    loop = Channel(name="back", inputs=("m",), schema=ROWS, loop=True)
    merge = Merge(name="both", inputs=("in", "back"), schema=ROWS)
    reader = replace(READER, inputs=("both",))
    segment = Segment("main", (SOURCE, loop, merge, reader), (SOURCE, loop), ())
    assert mixed_readers(segment) == {"m"}
    graph = Graph("p", {node.name: node for node in (SOURCE, loop, merge, reader)})
    assert traced_nodes(graph) >= {"in", "both", "m"}
    born = np.array([round((10.0 + n / 30) * 1e6) << ARRIVAL_SHIFT for n in range(30)])
    report = replace(told(5, 0, evenly(0.0, 1.0, 50)), stamps=None, born=born)
    part = segment_run(tasks=1)
    part.segment, part.told[:] = segment, [report]
    arrivals = Arrivals()
    arrivals.look_ahead(part, 4)
    assert arrivals.running_rows == 30
    offered = offered_stamps([report], mixed_readers(segment))
    assert offered is not None and offered.rows == 30
    tenth = offered_stamps([replace(report, sampled=10)], mixed_readers(segment))
    assert tenth is not None and tenth.rows == 300


def test_a_rate_decays_while_nothing_arrives() -> None:
    assert decayed(100.0, 0.0) == 100.0
    assert decayed(100.0, 1.0) == 50.0
    assert decayed(100.0, 9.0) == pytest.approx(10.0)


def test_rows_from_before_the_run_are_a_backlog_and_no_rate() -> None:
    arrivals, part = Arrivals(since_s=100.0), segment_run(tasks=1)
    arrivals.add(evenly(10.0, 11.0, 90_000))
    assert arrivals.rate() is None
    part.told.append(told(5, 0, evenly(11.0, 12.0, 50_000)))
    arrivals.look_ahead(part, newest=4)
    assert arrivals.rate() is None
    assert arrivals.running_rows == 50_000, "they are not done yet"
    arrivals.add(evenly(99.0, 101.0, 2000))
    assert arrivals.rate() == pytest.approx(1000.0, rel=0.01)


def test_once_it_has_caught_up_rows_count_whatever_times_they_carry() -> None:
    arrivals = Arrivals(since_s=100.0)
    arrivals.caught_up()
    arrivals.add(evenly(10.0, 12.0, 200))
    assert arrivals.rate() == pytest.approx(100.0, rel=0.02)


def test_a_row_of_the_future_changes_neither_rate_nor_newest_arrival() -> None:
    arrivals, part = Arrivals(), segment_run(tasks=1)
    tomorrow = Stamps(np.array([86_400_000]), np.array([1]), 0)
    stamps = merged([evenly(59.0, 60.0, 400), tomorrow])
    part.told.append(told(5, 0, stamps))
    seen = running_arrivals(part)
    assert seen is not None and seen.newest_us == 60_000_000, "when the batch was planned"
    assert seen.offered.rows == 401
    arrivals.add(seen.offered)
    assert arrivals.rate() == pytest.approx(400.0, rel=0.02)
    assert arrivals.silent_s(61.0) == pytest.approx(1.0)


@given(st.lists(st.integers(0, 50_000), min_size=1), st.integers(0, 60_000))
def test_clamped_stamps_keep_all_rows_and_end_with_the_plan(us: list[int], at_us: int) -> None:
    stamps = Stamps.of(np.array(us))
    found = until(stamps, at_us)
    assert found.rows == len(us)
    assert np.all(np.diff(found.slots) > 0) and found.slots[-1] <= at_us // 1000
    expected = np.minimum(np.array(us) // 1000, at_us // 1000)
    assert np.repeat(found.slots, found.counts).tolist() == sorted(expected.tolist())
