"""What imbalance to expect on other tasks and of other batches."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.learning.segment_imbalance import SegmentImbalance
from tidegate.control.learning.segment_model import SegmentModel
from tidegate.control.measurement import BatchMeasurement, Measurement, SegmentMeasurement


def seen(delta: float, rows: float, tasks: int, chance: float) -> SegmentImbalance:
    found = SegmentImbalance()
    found.learn(delta, rows, tasks)
    found.learn_chance(chance)
    return found


@settings(max_examples=200, deadline=None)
@given(st.floats(1.0, 3.0), st.floats(1.0, 1e5), st.integers(1, 24), st.floats(0.0, 2.0))
def test_it_expects_what_is_seen_and_less_of_larger_batches(
    delta: float, rows: float, tasks: int, chance: float
) -> None:
    found = seen(min(delta, float(tasks)), rows, tasks, chance)
    assert found.on(tasks) == pytest.approx(min(delta, float(tasks)))
    assert found.on(tasks, 4.0 * rows) <= found.on(tasks) + 1e-12
    lasting, c = found.terms()
    assert 1.0 + lasting + c / math.sqrt(rows / tasks) == pytest.approx(found.now)
    assert found.terms(tasks) == pytest.approx((lasting, c))
    assert list(found.up_to(tasks + 3)) == pytest.approx([found.on(k) for k in range(1, tasks + 4)])


def test_without_chance_all_imbalance_lasts() -> None:
    found = seen(1.4, 100.0, 8, 0.0)
    assert found.on(8, 1e6) == pytest.approx(1.4)
    assert seen(1.4, 100.0, 8, 9.0).on(8, 1e9) == pytest.approx(1.0, abs=1e-3)


def measured(*batches: BatchMeasurement) -> tuple[Measurement, SegmentMeasurement]:
    segment = SegmentMeasurement(
        name="main",
        tasks=batches[-1].tasks,
        arrival_rate=100.0,
        backlog_rows=0.0,
        batches=batches,
    )
    return (
        Measurement(
            at_s=batches[-1].ended_s,
            interval_s=1.0,
            arrival_rate=100.0,
            processed_rate=100.0,
            backlog_rows=0.0,
            saturated=False,
            cores_asked=8,
            cores_granted=8,
            segments=(segment,),
        ),
        segment,
    )


def test_a_station_knows_that_long_batches_are_balanced_better() -> None:
    """Batches of tasks whose fullest one has c sqrt(n) rows more; the load then rises."""
    tasks, work_s, fixed_s, c = 8, 0.02, 0.3, 1.1
    model = SegmentModel()
    at_s = 0.0
    for number in range(200):
        rows = (40, 90, 160, 60)[number % 4]
        each = rows / tasks
        delta = 1.0 + c / math.sqrt(each)
        duration_s = fixed_s + work_s * each * delta
        at_s += duration_s
        batch = BatchMeasurement(
            batch_id=number,
            rows=rows,
            tasks=tasks,
            imbalance=delta,
            duration_s=duration_s,
            ended_s=at_s,
            parts_s={"slowest": work_s * each * delta},
        )
        model.learn(*measured(batch))
    for rate in (80.0, 160.0, 240.0):
        duration_s = 1.0
        for _ in range(2000):
            each = rate * duration_s / tasks
            duration_s = fixed_s + work_s * (each + c * math.sqrt(each))
        station = model.station(rate, 1.0, 0.0, tasks)
        assert station is not None
        assert station.duration_s(tasks) == pytest.approx(duration_s, rel=0.1)
