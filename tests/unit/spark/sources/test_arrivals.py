"""The source's planning, without Spark: offsets and ranges for any cut of time."""

import itertools
import pickle
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tidegate.errors import AskedWrongly
from tidegate.spark.sources import arrivals as source
from tidegate.spark.sources.arrivals import ArrivalsReader, Offset

START_MS = 1_700_000_000_000


def reader(**changes: str) -> ArrivalsReader:
    options = {
        "profile": "step:500@0,0@1,3000@1.2/2",
        "keys": "zipf:100,1.1@1.3",
        "seed": "5",
        "seconds": "",
        "partitions": "",
        "cores": "4",
    }
    return ArrivalsReader(options | changes)


def at(ms: int, of: ArrivalsReader, start_ms: int = START_MS) -> Offset:
    return Offset(start_ms=start_ms, ms=ms, workload=of.initialOffset()["workload"])


def read(of: ArrivalsReader, begin_ms: int, end_ms: int) -> pa.Table:
    """What tasks would make of the range: planner and task each see a pickled copy."""
    tables = []
    for part in of.partitions(at(begin_ms, of), at(end_ms, of)):
        task, range_ = pickle.loads(pickle.dumps((of, part)))
        tables += list(task.read(range_))
    return pa.Table.from_batches(tables, source._ARROW_SCHEMA)


@given(
    st.lists(st.integers(0, 6000), min_size=2, max_size=6).map(sorted),
    st.sampled_from(["", "1", "3"]),
)
@settings(max_examples=40, deadline=None)
def test_any_range_is_read_again_identically(cuts: list[int], partitions: str) -> None:
    whole = read(reader(), cuts[0], cuts[-1])
    parts = [read(reader(partitions=partitions), *cut) for cut in itertools.pairwise(cuts)]
    assert pa.concat_tables(parts).equals(whole)
    assert whole.num_rows == reader().profile.count(cuts[-1]) - reader().profile.count(cuts[0])
    stamps_us = whole["timestamp"].cast(pa.int64()).to_numpy() - START_MS * 1000
    assert all(stamps_us > cuts[0] * 1000) and all(stamps_us <= cuts[-1] * 1000)


def test_a_range_larger_than_an_arrow_batch() -> None:
    fast = reader(profile="constant:200000", partitions="2")
    table = read(fast, 0, 1000)
    assert table["seq"].to_pylist() == list(range(200_000))


def test_the_latest_offset_is_now() -> None:
    of = reader(profile="constant:100")
    with mock.patch.object(source.time, "time_ns", return_value=(START_MS + 250) * 1_000_000):
        assert of.latestOffset(at(0, of), ReadAllAvailable())["ms"] == 250
        assert of.latestOffset(at(245, of), ReadAllAvailable())["ms"] == 250
        assert of.latestOffset(at(250, of), ReadAllAvailable()) == at(250, of)


def test_no_new_row_is_no_new_offset() -> None:
    of = reader(profile="constant:1")
    with mock.patch.object(source.time, "time_ns", return_value=(START_MS + 900) * 1_000_000):
        assert of.latestOffset(at(0, of), ReadAllAvailable()) == at(0, of)


def test_a_clock_that_was_set_back_does_no_harm() -> None:
    of = reader()
    with mock.patch.object(source.time, "time_ns", return_value=(START_MS - 5000) * 1_000_000):
        assert of.latestOffset(at(700, of), ReadAllAvailable()) == at(700, of)


def test_the_stream_runs_dry() -> None:
    of = reader(profile="constant:100", seconds="2.5")
    with mock.patch.object(source.time, "time_ns", return_value=(START_MS + 9000) * 1_000_000):
        dry = of.latestOffset(at(0, of), ReadAllAvailable())
        assert dry["ms"] == 2500
        assert of.latestOffset(dry, ReadAllAvailable()) == dry


def test_a_replayed_first_batch_keeps_the_logged_start() -> None:
    of = reader(profile="constant:100")
    later = at(0, of, start_ms=START_MS + 60_000)
    (part,) = of.partitions(later, at(1000, of))
    assert part.start_ms == START_MS and (part.first, part.end) == (0, 100)


def test_tasks_for_the_rows_there_are() -> None:
    of = reader(profile="constant:50000")
    assert [len(of.partitions(at(0, of), at(ms, of))) for ms in (0, 100, 1000, 60_000)] == [
        0,
        1,
        3,
        4,
    ]


def test_tasks_are_not_sent_the_whole_profile() -> None:
    steps = ",".join(f"{rate}@{rate}" for rate in range(20_000))
    of = reader(profile=f"step:{steps}")
    (part,) = of.partitions(at(5_000, of), at(6_000, of))
    assert len(pickle.dumps((of, part))) < 3000


def test_another_workload_is_refused() -> None:
    of, other = reader(), reader(seed="6")
    with pytest.raises(AskedWrongly, match="another profile, keys or seed"):
        other.partitions(at(0, of), at(1000, of))
