"""Recorded rows, over and over: their numbers, their times, and samples that are refused."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.capacity import sample_source
from tidegate.apps.capacity.sample_source import Sample, SampleReader, read_sample
from tidegate.apps.full_source import full_options
from tidegate.errors import AskedWrongly

STAMP = pa.timestamp("us", "UTC")


def stored(path: Path, times: list[int | None], **more: pa.Array) -> Path:
    columns = {"n": pa.array(range(len(times))), "at": pa.array(times, STAMP), **more}
    pq.write_table(pa.table(columns), path)
    return path


def rows(sample: Sample, first: int, end: int) -> list[dict[str, object]]:
    return pa.Table.from_batches(sample.batches(first, end), sample.rows.schema).to_pylist()


@given(
    cuts=st.lists(st.integers(0, 40), min_size=2, max_size=6).map(sorted),
    gaps=st.lists(st.integers(0, 1000), min_size=1, max_size=7),
)
def test_any_part_of_the_stream_can_be_made_alone(cuts: list[int], gaps: list[int]) -> None:
    times = [sum(gaps[: place + 1]) for place in range(len(gaps))]
    table = pa.table({"n": pa.array(range(len(times))), "at": pa.array(times, STAMP)})
    sample = Sample(table, sample_source._period_us(table))
    whole = rows(sample, cuts[0], cuts[-1])
    parts = [row for one, other in pairwise(cuts) for row in rows(sample, one, other)]
    assert parts == whole
    assert [row["n"] for row in whole] == [n % len(times) for n in range(cuts[0], cuts[-1])]
    stamps = [row["at"] for row in whole]
    assert stamps == sorted(stamps)  # type: ignore[type-var]


def test_the_times_of_the_next_turn_follow_those_of_the_last(tmp_path: Path) -> None:
    """Nulls stay nulls, and the columns of a row keep their distance."""
    due = pa.array([1_000_000, None, 1_000_400], pa.timestamp("us"))
    sample = read_sample(stored(tmp_path / "a.parquet", [0, 200, 400], due=due))
    assert sample.period_us == 600
    turn = rows(sample, 3, 6)
    assert [row["at"].microsecond for row in turn] == [600, 800, 1000]  # type: ignore[attr-defined]
    assert turn[1]["due"] is None
    assert turn[0]["due"].microsecond == 600  # type: ignore[attr-defined]


def test_rows_without_times_are_the_same_in_every_turn(tmp_path: Path) -> None:
    pq.write_table(pa.table({"word": ["a", "b"]}), tmp_path / "a.parquet")
    sample = read_sample(tmp_path / "a.parquet")
    assert [row["word"] for row in rows(sample, 1, 6)] == ["b", "a", "b", "a", "b"]


def test_a_directory_of_files_is_one_sample(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    stored(tmp_path / "part-0.parquet", [0, 1])
    stored(tmp_path / "part-1.parquet", [2, 3])
    assert read_sample(tmp_path).rows.num_rows == 4


def test_the_reader_hands_out_what_the_ranges_say(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.parquet", [0, 10, 20])
    reader = SampleReader({"sample": str(path), **full_options(7, partitions=2)})
    zero = {"start_ms": 0, "ms": 0, "rows": 0}
    parts = reader.partitions(zero, {**zero, "rows": 7})  # type: ignore[arg-type, typeddict-item]
    found = [n for part in parts for batch in reader.read(part) for n in batch["n"].to_pylist()]
    assert found == [0, 1, 2, 0, 1, 2, 0]


def test_what_is_no_sample_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AskedWrongly, match="there is no such file"):
        read_sample(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("n,at\n1,2\n")
    with pytest.raises(AskedWrongly, match="cannot be read as Parquet"):
        read_sample(tmp_path / "text.parquet")
    with pytest.raises(AskedWrongly, match="it has 0 rows"):
        read_sample(stored(tmp_path / "empty.parquet", []))
    monkeypatch.setattr(sample_source, "MOST_ROWS", 2)
    with pytest.raises(AskedWrongly, match="it has 3 rows; give a sample of 1 to 2"):
        read_sample(stored(tmp_path / "large.parquet", [0, 1, 2]))
