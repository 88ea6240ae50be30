"""What is said about sources that limit a query."""

from dataclasses import replace

from tests.helpers.pipeline_worlds import measured
from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.control.sources.source_notes import SourceNotes


def tick(number: int, lag: Lag, **changes) -> Measurement:
    """A tick of a query of others on four cores."""
    found = measured(number, rate=1000.0)
    segment = replace(found.segments[0], lag=lag, tasks=4, **changes)
    return replace(found, segments=(segment,), operators=())


def parts(*arrived: int, **changes) -> tuple[PartitionLag, ...]:
    return tuple(
        PartitionLag(
            topic="t", partition=n, behind_rows=1, taken_rows=1, arrived_rows=rows, **changes
        )
        for n, rows in enumerate(arrived)
    )


def said(lag: Lag, ticks: int = 12, **changes) -> tuple[str, ...]:
    noter = SourceNotes()
    for number in range(ticks):
        notes = noter.notes(tick(number, lag, **changes))
    return notes


def test_nothing_is_said_of_a_source_that_limits_nothing() -> None:
    assert said(Lag(partitions=parts(100, 110, 90, 100))) == ()
    assert SourceNotes().notes(measured(0, rate=100.0)) == ()


def test_a_hot_partition_is_named_with_what_helps() -> None:
    (note,) = said(Lag(partitions=parts(100, 400, 100, 100)))
    assert note.startswith("partition 1 of 't' gets about 4 times as many rows")
    assert "minPartitions" in note and "more partitions" in note
    (note,) = said(Lag(partitions=parts(100, 400, 100, 100), min_partitions=6))
    assert "a higher minPartitions" in note
    assert said(Lag(partitions=parts(1, 4, 1, 1)), ticks=8) == (), "so few rows are chance"
    assert said(Lag(partitions=parts(100, 400, 100, 100)), ticks=3) == (), "too soon to tell"


def test_a_stuck_partition_is_named() -> None:
    partitions = parts(100, 100, 100, 100)
    (note,) = said(Lag(partitions=(*partitions[:3], replace(partitions[3], stuck=True))))
    assert note.startswith("partition 3 of 't' is stuck") and "no core is added" in note


def test_too_few_tasks_that_read_are_named() -> None:
    (note,) = said(Lag(partitions=parts(100, 100)))
    assert note.startswith("the stage that reads has 2 tasks for 4 cores: set minPartitions to 4")
    assert said(Lag(partitions=parts(100, 100), min_partitions=4)) == ()


def test_maps_with_tasks_of_their_own_are_not_limited_by_readers() -> None:
    own = OperatorMeasurement(name="parse", arrival_rate=1.0, service_rate=1.0)
    lag = Lag(partitions=parts(100, 100))
    found = tick(0, lag)
    assert SourceNotes().notes(replace(found, operators=(own,))) == ()
    inside = replace(own, inside="source")
    (note,) = SourceNotes().notes(replace(found, operators=(inside,)))
    assert "so 'parse' has no more tasks" in note


def test_a_read_limit_below_the_load_is_named() -> None:
    lag = Lag(partitions=parts(100, 100, 100, 100), limit_rows=100)
    batch = replace(measured(0, rate=1000.0).segments[0].batches[0], rows=100, duration_s=0.5)
    (note,) = said(lag, batches=(batch,))
    assert "the read limit of 100 rows" in note and "maxOffsetsPerTrigger" in note
    quick = replace(batch, duration_s=0.05)
    assert said(lag, batches=(quick,)) == (), "2,000 rows/s: it catches up"
