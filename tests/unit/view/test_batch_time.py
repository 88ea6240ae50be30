"""What the time of batches went to, and the cores of a run, from hand-made records."""

import dataclasses

import pytest

from tests.helpers.known_cost import known_run
from tidegate.control.batch_parts import ADD_UP, PLANNING, SLOWEST, STAGES
from tidegate.control.learning.outliers import FIRST
from tidegate.control.measurement import BatchMeasurement
from tidegate.control.record import Record
from tidegate.view.batch_time import _PART_WORDS, batches_by_segment
from tidegate.view.cores_used import cores_used


def with_batches(records: list[Record], **changed) -> list[Record]:
    """The same records, with other values in each batch; a function is given the batch."""

    def other(batch: BatchMeasurement) -> BatchMeasurement:
        values = {name: one(batch) if callable(one) else one for name, one in changed.items()}
        return dataclasses.replace(batch, **values)

    found = []
    for one in records:
        (segment,) = one.measurement.segments
        segment = dataclasses.replace(segment, batches=tuple(map(other, segment.batches)))
        tick = dataclasses.replace(one.measurement, segments=(segment,))
        found.append(dataclasses.replace(one, measurement=tick))
    return found


def test_parts_are_shares_of_the_time() -> None:
    parts = {PLANNING: 0.1, STAGES: 0.1, SLOWEST: 0.2}
    (told,) = batches_by_segment(with_batches(known_run([1000.0] * 10, [2] * 10), parts_s=parts))
    assert not told.foreign and told.batches == 10 and told.mean_s == pytest.approx(0.4)
    assert dict(told.parts) == {SLOWEST: 0.5, PLANNING: 0.25, STAGES: 0.25}
    assert told.went_to == (
        "Of that time: 50% the slowest task of each stage, 25% Spark's planning, 25% scheduling"
        " stages and moving rows between them."
    )
    assert told.took == (
        "Segment `main`: 10 batches of 400 rows took 400 ms on average, 400 ms at most."
    )


def test_every_part_has_words() -> None:
    assert set(_PART_WORDS) == set(ADD_UP)


def test_first_batches_are_told_apart() -> None:
    run = with_batches(
        known_run([1000.0] * 10, [2] * 10),
        outlier=lambda batch: FIRST if batch.batch_id == 1 else None,
        duration_s=lambda batch: 8.0 if batch.batch_id == 1 else 0.4,
    )
    (told,) = batches_by_segment(run)
    assert told.batches == 9 and told.longest_s == pytest.approx(0.4)
    assert told.began == (
        "The first one, which loaded and compiled code, took 8 s and is left out."
    )
    (only,) = batches_by_segment(run[:1])
    assert only.batches == 1 and only.mean_s == 8.0 and only.began == ""


def test_batches_without_rows_say_nothing() -> None:
    assert batches_by_segment(with_batches(known_run([1000.0] * 3, [2] * 3), rows=0)) == ()


def test_cores_are_counted_by_time() -> None:
    run = known_run([1000.0] * 30, [2] * 20 + [5] * 10)
    told = cores_used(run)
    assert (told.asked, told.granted, told.per_executor) == ((2, 5), (2, 5), 1)
    assert told.mean_granted == pytest.approx(3.0)
    assert told.words == (
        "2 to 5 cores were asked for, 2 to 5 were there (3.0 on average), 1.0 were busy on average."
    )


def test_no_more_cores_are_busy_than_there_are() -> None:
    """On Spark the busy time is that of batches, which may have begun on more cores."""
    run = [
        dataclasses.replace(one, measurement=dataclasses.replace(one.measurement, cores_busy=2.65))
        for one in known_run([1000.0] * 5, [2] * 5)
    ]
    assert cores_used(run).mean_busy == 2.0
    assert (
        cores_used(run).words == "2 cores were asked for, 2 were there, 2.0 were busy on average."
    )
