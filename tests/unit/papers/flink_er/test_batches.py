"""Batches, minutes and breaks from made-up records."""

import pytest

from tests.unit.papers.flink_er.made_up import READER, START_S, batch, rescaled_run, tick
from tidegate.papers.flink_er.breaks import breaks_of, gaps_between
from tidegate.papers.flink_er.done_batches import done_batches
from tidegate.papers.flink_er.minutes import minutes_of
from tidegate.papers.flink_er.outcome import outcome_of


def test_rows_that_came_back_by_a_loop_do_not_count() -> None:
    records = [tick(1.0, [batch(0.5, 300), batch(0.9, 100)], read=200)]
    assert [one.rows for one in done_batches(records, READER)] == [150.0, 50.0]
    only_loop = [tick(1.0, [batch(0.5, 64)], read=0), tick(2.0)]
    assert [one.rows for one in done_batches(only_loop, READER)] == [0.0]


def test_the_first_batch_with_other_tasks_is_the_rescaled_one() -> None:
    batches = done_batches(rescaled_run(), READER)
    assert [number for number, one in enumerate(batches) if one.rescaled] == [5]
    fewer = [tick(1.0, [batch(1.0, 10, tasks=8)]), tick(2.0, [batch(2.0, 10, tasks=6)])]
    assert [one.rescaled for one in done_batches(fewer, READER)] == [False, True]


def test_a_break_is_what_the_rescaled_batch_takes_longer_than_those_around_it() -> None:
    (found,) = breaks_of(done_batches(rescaled_run(), READER))
    assert (found.gap_s, found.usual_s, found.seconds) == pytest.approx((3.0, 2.0, 1.0))
    assert found.at_s == START_S + 13.0


def test_a_shorter_batch_is_no_break() -> None:
    records = [tick(at, [batch(at, 10)]) for at in (2.0, 4.0, 6.0)]
    records.append(tick(7.0, [batch(7.0, 10, tasks=10)]))
    (found,) = breaks_of(done_batches(records, READER))
    assert found.seconds == 0.0


def test_a_rescale_with_nothing_around_it_tells_no_break() -> None:
    records = [tick(2.0, [batch(2.0, 10)]), tick(4.0, [batch(4.0, 10, tasks=8)])]
    assert breaks_of(done_batches(records, READER)) == []


def test_gaps_are_those_within_the_time() -> None:
    batches = done_batches(rescaled_run(), READER)
    assert gaps_between(batches, START_S + 10.0, START_S + 15.0) == [2.0, 3.0]


def test_minutes_have_what_was_done_in_them() -> None:
    records = rescaled_run()
    minutes = minutes_of(records, done_batches(records, READER), 5.0, 4)
    assert [one.at for one in minutes] == [1, 2, 3, 4]
    # Two seconds a batch of 200 rows, and one of three.
    assert [one.rows_per_s for one in minutes] == pytest.approx(
        [100.0, 100.0, 240 / 3.0, 100.0], 0.05
    )
    assert [one.latency_s for one in minutes] == [3.0] * 4
    assert [one.cores for one in minutes] == [6, 6, 8, 8]
    # Three seconds of work in two seconds of six cores.
    assert minutes[0].occupied == pytest.approx(3.0 / 12.0)


def test_all_rows_are_in_some_minute() -> None:
    records = rescaled_run()
    minutes = minutes_of(records, done_batches(records, READER), 3.0, 10)
    assert sum(one.rows_per_s * 3.0 for one in minutes) == pytest.approx(2000.0)
    assert minutes_of(records, [], 3.0, 10) == []


def test_an_empty_minute_has_no_latency() -> None:
    records = [tick(1.0, [batch(1.0, 10, latency_s=2.0)]), tick(12.0, backlog=70.0)]
    minutes = minutes_of(records, done_batches(records, READER), 5.0, 3)
    assert [one.latency_s for one in minutes] == [2.0, None, None]
    assert minutes[2].waiting_rows == 70.0


def test_an_outcome_tells_changes_and_breaks() -> None:
    found = outcome_of("flow", rescaled_run(), READER, 2.0)
    assert found.longest_break_s == pytest.approx(1.0)
    assert found.changes == ((pytest.approx(5.25), "8 cores (count 8)"),)
    assert max(found.gaps_s) == 3.0
    assert found.peak_rows_per_s < found.rows_per_s_within


def test_a_batch_over_several_minutes_counts_in_all_of_them() -> None:
    records = [tick(1.0, [batch(2.0, 0)]), *(tick(at + 0.5) for at in range(2, 12))]
    records.append(tick(12.5, [batch(12.0, 1000, duration_s=10.0, latency_s=9.0)], busy_s=30.0))
    minutes = minutes_of(records, done_batches(records, READER), 5.0, 2)
    assert [one.rows_per_s for one in minutes] == pytest.approx([60.0, 100.0])
    assert [one.occupied for one in minutes] == pytest.approx([0.3, 0.5])


def test_if_no_batch_ends_at_the_peak_the_next_one_tells_the_latency() -> None:
    records = [tick(1.0, [batch(1.0, 10, duration_s=1.0, latency_s=1.0)])]
    records.append(tick(30.5, [batch(30.0, 900, duration_s=29.0, latency_s=20.0)]))
    assert outcome_of("static", records, READER, 1.0).peak_latency_s == 20.0
    assert outcome_of("static", records[:1], READER, 1.0).peak_latency_s is None
