"""The capacity of the edges into an operator: service rate, links, and the state they carry."""

import dataclasses
import math

import pytest

from tests.unit.control.flow.test_bottleneck import operator, tick
from tidegate.control.flow.view import FlowView
from tidegate.control.learning.outliers import FIRST
from tidegate.control.measurement import Measurement

ROW_BYTES = 100.0


def received(rows: int, bandwidth: float, **changes: object) -> object:
    """An operator of 1 ms a row and 4 tasks that received its rows over such links."""
    task_bytes = rows * ROW_BYTES / 4
    return operator(
        "match",
        0.001,
        rows=rows,
        row_bytes=ROW_BYTES,
        task_bytes=task_bytes,
        task_wait_s=0.05 + task_bytes / bandwidth,
        **changes,
    )


def after(view: FlowView, bandwidth: float, sizes: list[int], **changes: object) -> FlowView:
    for number, rows in enumerate(sizes):
        view.update(tick(received(rows, bandwidth, **changes), number=number))
    return view


SIZES = [100, 400, 200, 900, 50, 700, 300, 800]


def test_a_slow_link_takes_its_part_of_the_time() -> None:
    """100 kB/s are 1,000 rows a second, as many as the function takes: half of that together."""
    known = after(FlowView(), 100e3, SIZES).known("match")
    assert known.service_rate == pytest.approx(1000.0)
    assert known.link_rate == pytest.approx(1000.0, rel=1e-3)
    assert known.capacity_rate == pytest.approx(500.0, rel=1e-3)


def test_a_fast_link_and_one_that_is_not_known_do_not_limit() -> None:
    assert after(FlowView(), 1e9, SIZES).known("match").capacity_rate == pytest.approx(
        1e3, rel=1e-3
    )
    same = after(FlowView(), 100e3, [400] * 8).known("match")
    assert math.isinf(same.link_rate) and same.capacity_rate == pytest.approx(1000.0)
    silent = FlowView()
    for number in range(8):
        silent.update(tick(operator("match", 0.001, row_bytes=ROW_BYTES), number=number))
    assert math.isinf(silent.known("match").link_rate)


def test_fetched_state_takes_bandwidth_for_its_tick() -> None:
    """Eq. 9: 20 kB/s of the 100 kB/s of each of four tasks are taken by state."""
    view = after(FlowView(), 100e3, SIZES)
    view.update(tick(received(400, 100e3, durable_bytes=80_000), number=9))
    assert view.known("match").link_rate == pytest.approx(800.0, rel=1e-3)
    view.update(tick(received(400, 100e3, durable_bytes=10**9), number=10))
    assert view.known("match").link_rate == pytest.approx(100.0, rel=1e-2)
    view.update(tick(received(400, 100e3), number=11))
    assert view.known("match").link_rate == pytest.approx(1000.0, rel=1e-3)


def test_a_link_makes_the_bottleneck() -> None:
    """Both operators take 1 ms a row, but the rows of one come slowly."""
    view = FlowView()
    for number, rows in enumerate(SIZES):
        flow = view.update(
            tick(operator("parse", 0.001, rows=rows), received(rows, 100e3), number=number)
        )
    assert flow is not None
    assert flow.first_behind(0) == 1
    assert flow.demand[1] == pytest.approx(2.0 * flow.demand[0], rel=0.01)


def as_first(measurement: Measurement) -> Measurement:
    """The same tick, as if its batches were the first of their segments."""
    segments = tuple(
        dataclasses.replace(
            one, batches=tuple(dataclasses.replace(batch, outlier=FIRST) for batch in one.batches)
        )
        for one in measurement.segments
    )
    return dataclasses.replace(measurement, segments=segments)


def test_the_first_batch_teaches_nothing() -> None:
    """Its three rows took a second each, because code was loaded meanwhile."""
    view = FlowView()
    assert view.update(as_first(tick(operator("match", 1.0, rows=3), number=0))) is None
    assert view.update(tick(operator("match", 0.001), number=1)) is not None
    assert view.known("match").service_rate == pytest.approx(1000.0)


def test_few_rows_tell_less_of_their_cost_than_many() -> None:
    view = FlowView()
    for number, (rows, cost_s) in enumerate([(3, 1.0), (3000, 0.001), (3, 1.0)]):
        view.update(tick(operator("match", cost_s, rows=rows), number=number))
    assert view.known("match").service_rate == pytest.approx(903.27 / 4.17)
    view.update(tick(operator("match", 0.001, rows=3000), number=3))
    assert view.known("match").service_rate == pytest.approx(1000.0, rel=0.5)


def test_a_map_without_tasks_takes_no_cores() -> None:
    """Its rows come in twelve partitions, which run on the cores that its segment has."""
    alone = operator("broadcast", 0.001, tasks=12, inside="model", least_tasks=12, most_tasks=12)
    flow = FlowView().update(tick(operator("gradient", 0.01, tasks=6), alone))
    assert flow is not None
    assert flow.widths.tolist() == [6.0]
    assert flow.turns.tolist() == pytest.approx([100 * 0.01 / 6, 100 * 0.001 / 6])
