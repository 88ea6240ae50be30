"""Clocks that differ are named: those of executors, and of who stamps the rows."""

import dataclasses
from collections.abc import Sequence

import pytest

from tests.unit.control.flow.test_bottleneck import operator, tick
from tidegate.control.executors.clock_notes import ClockNotes
from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.measurement import (
    BatchMeasurement,
    ExecutorMeasurement,
    Measurement,
    SegmentMeasurement,
)


def measured(
    ages: Sequence[float | None] = (), clocks: Sequence[float] = (), behind: int | None = None
) -> Measurement:
    batches = tuple(
        BatchMeasurement(
            batch_id=number,
            rows=10,
            tasks=1,
            imbalance=1.0,
            duration_s=1.0,
            ended_s=float(number),
            newest_age_s=age,
        )
        for number, age in enumerate(ages)
    )
    part = PartitionLag(topic="t", partition=0, behind_rows=behind or 0, taken_rows=10)
    segment = SegmentMeasurement(
        name="main",
        arrival_rate=10.0,
        backlog_rows=0.0,
        tasks=1,
        batches=batches,
        lag=None if behind is None else Lag(partitions=(part,)),
    )
    executors = tuple(
        ExecutorMeasurement(name=f"h{n}:/w/{n}", clock_ahead_s=ahead)
        for n, ahead in enumerate(clocks)
    )
    one = tick(operator("count", 0.001))
    return dataclasses.replace(one, segments=(segment,), executors=executors)


def test_rows_of_the_future_and_old_rows_are_named_after_some_batches() -> None:
    notes = ClockNotes()
    assert notes.notes(measured([-62.0] * 4)) == ()
    (said,) = notes.notes(measured([-61.0]))
    assert said.startswith("rows of segment 'main' carry arrival times about 60 s ahead of the")
    assert notes.notes(measured([0.1])) == (), "one that is right ends it"
    (late,) = ClockNotes().notes(measured([60.5] * 5))
    assert "always about 60 s old when they are read, although none wait" in late


@pytest.mark.parametrize(
    ("ages", "behind"),
    [([-0.4] * 9, None), ([0.5] * 9, 0), ([60.0] * 9, 5000), ([None] * 9, None), ([2.9] * 9, 0)],
)
def test_clocks_that_agree_and_rows_that_wait_are_not_named(ages, behind) -> None:
    assert ClockNotes().notes(measured(ages, behind=behind)) == ()


def test_the_clock_of_an_executor_is_named() -> None:
    notes = ClockNotes()
    for _ in range(4):
        assert notes.notes(measured(clocks=(0.0, 58.7, 0.5))) == ()
    (said,) = notes.notes(measured(clocks=(0.0, 59.9, 0.5)))
    assert said.startswith("the clock of executor 1 on h1 is at least 55 s ahead of the driver's")
    back = ClockNotes()
    for _ in range(5):
        found = back.notes(measured(clocks=(-3.5, 0.0)))
    assert found[0].startswith("the clock of executor 0 on h0 is at least 3 s behind the driver's")
