"""Lag and arrivals from the offsets of batches, without Spark."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.fake_query import progress
from tidegate.control.learning.told_rate import ToldRate
from tidegate.spark.measure.lag_meter import LagMeter
from tidegate.spark.measure.progress import BatchProgress, PartitionOffsets
from tidegate.spark.measure.read_limits import ReadLimits


def batch(number: int, at_s: float, *offsets: tuple[int | None, int, int]) -> BatchProgress:
    """A batch of partitions with these starts, ends and newest offsets."""
    parts = tuple(PartitionOffsets(0, "t", n, *one) for n, one in enumerate(offsets))
    plain = progress(number, at_s, 1.0, sum(end - (start or 0) for start, end, _ in offsets))
    return replace(plain, partitions=parts, behind_rows=sum(one.behind for one in parts))


def test_lag_by_partition_in_rows_and_seconds() -> None:
    meter = LagMeter(lambda: ReadLimits(rows=20, min_partitions=3))
    assert meter.add(batch(0, 0.0, (None, 10, 100), (None, 10, 10))) == 0.0, "a backlog, no rate"
    assert meter.add(batch(1, 1.0, (10, 30, 150), (10, 10, 10))) == 50.0
    lag = meter.tell(2.0, rate=60.0)
    assert lag is not None
    assert [(p.behind_rows, p.taken_rows, p.arrived_rows) for p in lag.partitions] == [
        (120, 20, 50),
        (0, 0, 0),
    ]
    assert (lag.rows, lag.seconds, lag.limit_rows, lag.readers) == (120, 2.0, 20, 3)
    again = meter.tell(3.0, rate=0.0)
    assert again is not None and again.rows == 120 and again.seconds is None
    assert [p.taken_rows for p in again.partitions] == [0, 0], "each batch is told once"


def test_a_new_partition_has_arrived_with_all_that_it_holds() -> None:
    meter = LagMeter()
    meter.add(batch(0, 0.0, (None, 10, 10)))
    assert meter.add(batch(1, 1.0, (10, 12, 12), (0, 5, 7))) == 9.0


def test_offsets_without_rows_are_no_arrivals() -> None:
    """Of 20 offsets 10 had a row: the others were removed by compaction, or end a transaction."""
    meter = LagMeter()
    meter.add(batch(0, 0.0, (None, 10, 10)))
    assert meter.add(replace(batch(1, 1.0, (10, 30, 50)), rows=10)) == 20.0


def test_a_source_without_offsets_and_limits_tells_no_lag() -> None:
    meter = LagMeter()
    assert meter.add(progress(0, 0.0, 1.0, 40)) == 0.0
    assert meter.add(progress(1, 1.0, 1.0, 40)) == 40.0
    assert meter.tell(2.0, rate=40.0) is None
    files = LagMeter(lambda: ReadLimits(files=1))
    files.add(progress(0, 0.0, 1.0, 40))
    lag = files.tell(1.0, rate=40.0)
    assert lag is not None and (lag.limit_files, lag.readers, lag.seconds) == (1, None, None)


@given(
    limit=st.integers(1, 500),
    spans=st.lists(st.tuples(st.floats(0.1, 20.0), st.integers(0, 2000)), min_size=3, max_size=40),
    share=st.floats(0.0, 1.0),
)
def test_the_rate_told_adds_up_to_what_arrived(limit, spans, share) -> None:
    """For any limit, any lengths of batches and any arrivals, in two partitions."""
    meter, told = LagMeter(), ToldRate(0.5, 0.05)
    at_s, ends, newest = 0.0, [0, 0], [100, 30]
    arrived, summed, before_s = 0, 0.0, None
    for number, (length_s, rows) in enumerate(spans):
        starts = list(ends)
        left = limit
        for place in (0, 1):
            ends[place] = min(newest[place], ends[place] + left)
            left -= ends[place] - starts[place]
        one = batch(
            number, at_s, *((s, e, n) for s, e, n in zip(starts, ends, newest, strict=True))
        )
        told.add(meter.add(one), before_s, at_s)
        if number + 1 < len(spans):
            first = round(share * rows)
            newest = [newest[0] + first, newest[1] + rows - first]
            arrived += rows
        before_s, at_s = at_s, at_s + length_s
        for _ in range(round(length_s)):
            summed += told.tell(1.0)
    assert summed + told.untold == pytest.approx(arrived)
    assert meter._behind == sum(newest) - sum(ends)
    for _ in range(200):  # nothing arrives any more, so all that is known is told
        summed += told.tell(1.0, quiet=True)
    assert summed >= arrived - 1e-6 * (1 + arrived)
