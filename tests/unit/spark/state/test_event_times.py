"""The watermark follows the slowest source, never goes back, and leaves idle sources out."""

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate import columns
from tidegate.spark.batch.keyed_task import newest_events
from tidegate.spark.batch.worker import ORIGIN
from tidegate.spark.state.event_times import ALL, BATCHES_OF_SILENCE, IDLE_US
from tidegate.spark.state.version import Version

BOTH = ("a", "b")
MINUTE_US = 60_000_000


def after(version: Version, newest_us: dict[str, int], at_us: int, delay_us: int = 0) -> Version:
    made = version.after([], newest_us, delay_us, sources=BOTH, at_us=at_us)
    assert Version.from_json(json.loads(columns.dumps(made.to_json()))) == made
    return made


def test_the_watermark_is_that_of_the_source_furthest_behind():
    version = after(Version.empty(4), {"a": 1000, "b": 400}, 0)
    assert version.watermark_us(delay_us=100) == 300
    version = after(version, {"b": 2000}, 1, delay_us=100)
    assert version.watermark_us(delay_us=100) == 900
    assert version.newest_event_us == 2000


def test_a_source_without_rows_yet_holds_it_back_until_it_is_idle():
    version = after(Version.empty(4), {"a": 1000}, 0)
    assert version.watermark_us(0) is None
    batches = 0
    while version.watermark_us(0) is None:
        batches += 1
        version = after(version, {"a": 1000 + batches}, batches * MINUTE_US)
    assert batches * MINUTE_US == IDLE_US
    assert version.watermark_us(0) == 1000 + batches


def test_an_idle_source_counts_again_with_its_next_row_and_it_does_not_go_back():
    version = after(Version.empty(4), {"a": 10, "b": 10}, 0)
    for minute in range(1, 8):
        version = after(version, {"a": 1000 * minute}, minute * MINUTE_US)
    assert version.watermark_us(0) == 7000
    version = after(version, {"a": 9000, "b": 20}, 8 * MINUTE_US)
    assert version.watermark_us(0) == 7000
    version = after(version, {"b": 8000}, 9 * MINUTE_US)
    assert version.watermark_us(0) == 8000


def test_a_pause_of_the_pipeline_makes_no_source_idle():
    version = after(Version.empty(4), {"a": 10, "b": 10}, 0)
    version = after(version, {"a": 5000}, 100 * IDLE_US)
    assert version.watermark_us(0) == 10
    assert version.event_times["b"].idle_us == IDLE_US // BATCHES_OF_SILENCE


def test_the_time_after_which_a_source_is_idle_can_be_given_and_is_kept():
    limit_us = 10_000_000
    version = after(Version.empty(4), {"a": 10, "b": 10}, 0)
    for second in range(1, 12):
        before = version
        version = version.after(
            [],
            {"a": 1000 * second},
            0,
            sources=BOTH,
            at_us=second * 1_000_000,
            idle_after_us=limit_us,
        )
        assert Version.from_json(json.loads(columns.dumps(version.to_json()))) == version
        assert version.watermark_us(0) == (10 if second < 10 else 1000 * second)
    # Started with another time: what the version before says of the next batch stays the same.
    assert before.after([], {}, 0, sources=BOTH, at_us=11_000_001).handed_us == 10_000


def test_a_clock_that_steps_back_adds_nothing():
    version = after(Version.empty(4), {"a": 10, "b": 10}, MINUTE_US)
    assert after(version, {"a": 20}, 0).event_times["b"].idle_us == 0


def test_while_all_are_idle_none_is_left_out():
    version = after(Version.empty(4), {"a": 50, "b": 10}, 0)
    for minute in range(1, 9):
        version = after(version, {}, minute * MINUTE_US)
    assert version.watermark_us(0) == 10


def test_one_source_is_never_left_out():
    version = Version.empty(4).after([], {ALL: 50}, 0)
    for minute in range(1, 9):
        version = version.after([], {}, 0, at_us=minute * MINUTE_US)
    assert version.watermark_us(20) == 50  # handed with a delay of 0, and never back
    assert version.newest_event_us == 50


def test_a_manifest_of_an_earlier_version_continues_with_its_newest_event():
    document = Version.empty(4).to_json()
    del document["event_times"], document["at_us"]
    document |= {"newest_event_us": 700, "handed_us": 500}
    version = Version.from_json(document)
    assert version.watermark_us(100) == 600
    version = version.after([], {"a": 900}, 100, sources=BOTH, at_us=1)
    assert version.watermark_us(100) == 600, "the other source may be as far as all were"
    version = version.after([], {"b": 1000}, 100, sources=BOTH, at_us=2)
    assert version.watermark_us(100) == 800


events = st.dictionaries(st.sampled_from(BOTH), st.integers(-1000, 1000))


@given(st.lists(st.tuples(events, st.integers(0, 2 * IDLE_US)), max_size=30), st.integers(0, 50))
def test_it_never_goes_back_and_is_never_past_the_newest_event(batches, delay_us):
    version, before, at_us = Version.empty(4), None, 0
    for newest_us, passed_us in batches:
        at_us += passed_us
        version = after(version, newest_us, at_us, delay_us)
        reached = version.watermark_us(delay_us)
        assert version.handed_us == before
        if reached is not None:
            assert before is None or reached >= before
            assert reached <= version.newest_event_us - delay_us
        before = reached


def test_newest_events_by_origin():
    times = pa.array([3, None, 9, 5, None], pa.timestamp("us"))
    rows = pa.table({"at": times, ORIGIN: pa.array([0, 0, 2, 0, 1], pa.int32())})
    assert newest_events(rows, "at", ("x", "y", "z"), 100) == ({"x": 5, "z": 9}, 0)
    assert newest_events(rows.drop_columns([ORIGIN]), "at", (), 100) == ({ALL: 9}, 0)
    assert newest_events(rows, None, (), 100) == newest_events(None, "at", (), 100) == ({}, 0)
    assert newest_events(rows.slice(0, 0), "at", (), 100) == ({}, 0)


def test_the_watermark_does_not_follow_events_of_the_future():
    times = pa.array([3, None, 9, 5, 7], pa.timestamp("us"))
    rows = pa.table({"at": times, ORIGIN: pa.array([0, 0, 2, 0, 1], pa.int32())})
    assert newest_events(rows, "at", ("x", "y", "z"), 5) == ({"x": 5}, 2)
    assert newest_events(rows.drop_columns([ORIGIN]), "at", (), 8) == ({ALL: 7}, 1)
    assert newest_events(rows, "at", ("x", "y", "z"), 2) == ({}, 4)
