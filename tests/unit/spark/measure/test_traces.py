"""The sojourns of a pipeline from imitated batches."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from tests.helpers.fake_query import progress
from tidegate.control.learning.sojourn import BatchStamps, Stamps, merged
from tidegate.control.learning.traces import ARRIVAL_SHIFT
from tidegate.pipelines.graph import Channel, Graph, Map, Sink, Source
from tidegate.pipelines.traces import traced_nodes
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.segment_batches import FinishedBatch
from tidegate.spark.measure.traces import SojournMeter

SCHEMA = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
START_S = 1_700_000_000.0
NOW_US = round((START_S + 100.0) * 1e6)


def source(name: str) -> Source:
    return Source(name=name, inputs=(), schema=SCHEMA, frame=None, arrival="at")


def step(name: str, above: str) -> Map:
    return Map(name=name, inputs=(above,), schema=SCHEMA, function=lambda rows: rows)


def cut(name: str, above: str) -> Channel:
    return Channel(name=name, inputs=(above,), schema=SCHEMA)


def sink(name: str, above: str) -> Sink:
    return Sink(name=name, inputs=(above,), schema=SCHEMA)


def meter(*nodes) -> SojournMeter:
    graph = Graph("p", {node.name: node for node in nodes})
    segments = {segment.name: segment for segment in graph.segments()}
    return SojournMeter(segments, traced_nodes(graph), window_s=1000.0)


def us(second: float) -> int:
    return round((START_S + second) * 1e6)


def ids(*seconds: float) -> np.ndarray:
    return np.array([us(second) << ARRIVAL_SHIFT for second in seconds], dtype=np.int64)


def report(operator: str, *arrived_s: float, born: np.ndarray | None = None) -> TaskReport:
    stamps = Stamps.of(np.array([us(second) for second in arrived_s], dtype=np.int64))
    return TaskReport(
        batch_id=0,
        operator=operator,
        task=0,
        rows_in=len(arrived_s),
        rows_out=len(arrived_s),
        busy_s=0.1,
        function_s=0.1,
        executor="here",
        started_s=START_S,
        stamps=stamps if arrived_s else None,
        born=born,
    )


def finished(
    segment: str, number: int, end_s: float, *reports: TaskReport, took=(), wrote=None
) -> FinishedBatch:
    wrote = wrote or {}
    result = BatchResult(
        segment=segment,
        plan=SimpleNamespace(batch_id=number, operators={}),
        replayed=False,
        started_s=START_S,
        ended_s=START_S + end_s,
        steps_s={},
        reports=reports,
        executors=1,
        written={channel: rows for channel, (rows, _) in wrote.items()},
        traces={channel: traces for channel, (_, traces) in wrote.items()},
    )
    told = replace(progress(number, START_S + end_s - 1.0, 1.0, rows=1), channel_offsets=took)
    stamps = merged([one.stamps for one in reports if one.stamps is not None])
    return FinishedBatch(result, told, BatchStamps(stamps, told.end_us), None)


def test_one_segment_is_measured_by_its_stamps_alone() -> None:
    one = meter(source("s"), step("m", "s"), sink("out", "m"))
    assert one.followed is None
    one.add({"main": [finished("main", 0, 3.0, report("m", 1.0, 2.0))]}, NOW_US)
    whole = one.latency(NOW_US)
    assert whole is not None and whole.mean_s == pytest.approx(1.5)
    assert one.of_segment("main", whole, NOW_US) is whole


def test_inputs_that_go_through_a_cut_are_done_behind_it() -> None:
    """Two inputs, one of which ends in the first segment."""
    one = meter(source("s"), step("m", "s"), cut("c", "m"), sink("out", "c"))
    wrote = {"c": (5, ids(1.0))}
    first = finished("main", 0, 3.0, report("m", 1.0, 2.0, born=ids(1.0, 2.0)), wrote=wrote)
    one.add({"main": [first], "c": []}, NOW_US)
    half = one.latency(NOW_US)
    assert half is not None and (half.mean_s, half.p99_s) == pytest.approx((1.0, 1.0))
    one.add({"main": [], "c": [finished("c", 0, 7.0, took=((0, 1),))]}, NOW_US)
    whole = one.latency(NOW_US)
    assert whole is not None and (whole.p50_s, whole.p99_s) == pytest.approx((1.0, 6.0))
    main, behind = (one.of_segment(name, whole, NOW_US) for name in ("main", "c"))
    assert main is not None and main.mean_s == pytest.approx(1.5)
    assert behind is not None and behind.mean_s == pytest.approx(4.0)


def test_a_source_whose_rows_reach_no_channel_is_measured_by_its_stamps() -> None:
    """Both sources are read by one segment, because their rows are shown together."""
    one = meter(
        source("s"),
        source("t"),
        step("m", "s"),
        step("n", "t"),
        replace(sink("both", "m"), inputs=("m", "n")),
        cut("c", "m"),
        sink("out", "c"),
    )
    reports = (report("m", 1.0, born=ids(1.0)), report("n", 2.5))
    first = finished("main", 0, 3.0, *reports, wrote={"c": (1, ids(1.0))})
    one.add({"main": [first], "c": []}, NOW_US)
    early = one.latency(NOW_US)
    assert early is not None and early.p99_s == pytest.approx(0.5), "the other one is in flight"
    one.add({"main": [], "c": [finished("c", 0, 7.0, took=((0, 1),))]}, NOW_US)
    whole = one.latency(NOW_US)
    assert whole is not None and (whole.p50_s, whole.p99_s) == pytest.approx((0.5, 6.0))


def test_a_cut_right_behind_the_source_is_measured_by_traces_alone() -> None:
    one = meter(source("s"), cut("c", "s"), step("m", "c"), sink("out", "m"))
    first = finished("main", 0, 3.0, report("c", born=ids(1.0)), wrote={"c": (9, ids(1.0))})
    last = finished("c", 4, 5.0, took=((0, 1),))
    one.add({"main": [first], "c": [last]}, NOW_US)
    whole = one.latency(NOW_US)
    assert whole is not None and whole.mean_s == pytest.approx(4.0)
    main = one.of_segment("main", whole, NOW_US)
    assert main is not None and main.mean_s == pytest.approx(2.0)


def test_channels_without_an_arrival_column_still_time_their_segments() -> None:
    one = meter(replace(source("s"), arrival=None), step("m", "s"), cut("c", "m"), sink("out", "c"))
    first = finished("main", 0, 3.0, report("m"), wrote={"c": (9, ids())})
    one.add({"main": [first], "c": [finished("c", 0, 5.0, took=((0, 1),))]}, NOW_US)
    assert one.latency(NOW_US) is None
    behind = one.of_segment("c", None, NOW_US)
    assert behind is not None and behind.mean_s == pytest.approx(2.0)
