"""The source that is always full: fixed batches, keys by the clock, the same rows again."""

from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.apps.batch_size import set_batch_rows
from tidegate.apps.full_source import FullReader, full_options, full_source
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.workload.keys import Keys
from tidegate.workload.parse import parse_profile
from tidegate.workload.rows import rows_between

OPTIONS = {"keys": "zipf:100,1.0/2.0", "seed": "4", **full_options(50, first_rows=80)}


def rows(reader: FullReader, start: dict[str, int], end: dict[str, int]) -> pa.Table:
    parts = reader.partitions(start, end)  # type: ignore[arg-type]
    return pa.Table.from_batches([batch for part in parts for batch in reader.read(part)])


def test_there_is_always_one_more_batch() -> None:
    reader = FullReader(OPTIONS)
    begin = reader.initialOffset()
    first = reader.latestOffset(begin, None)  # type: ignore[arg-type]
    second = reader.latestOffset(first, None)  # type: ignore[arg-type]
    assert (begin["rows"], first["rows"], second["rows"]) == (0, 80, 130)
    assert begin["ms"] <= first["ms"] <= second["ms"]


def test_rows_are_numbered_and_a_replay_has_the_same() -> None:
    start, end = {"start_ms": 10, "ms": 5, "rows": 80}, {"start_ms": 10, "ms": 700, "rows": 131}
    found = rows(FullReader(OPTIONS), start, end)
    assert found["seq"].to_pylist() == list(range(80, 131))
    assert found.equals(rows(FullReader(OPTIONS), {**start, "start_ms": 99}, end))
    assert set(found["timestamp"].cast(pa.int64()).to_pylist()) == {710_000}


def test_keys_and_values_are_those_of_the_other_source() -> None:
    profile = parse_profile("constant:1000")
    wanted = rows_between(profile, Keys(100, 1.0), 4, 0, 60)
    zero = {"start_ms": 0, "ms": 0, "rows": 0}
    found = rows(FullReader(OPTIONS), zero, {"start_ms": 0, "ms": 1, "rows": 60})
    assert found["key"].to_pylist() == wanted.key.tolist()
    assert found["value"].to_pylist() == wanted.value.tolist()


def test_keys_are_shuffled_by_the_clock() -> None:
    zero = {"start_ms": 0, "ms": 0, "rows": 0}
    early = rows(FullReader(OPTIONS), zero, {"start_ms": 0, "ms": 1999, "rows": 60})
    late = rows(FullReader(OPTIONS), zero, {"start_ms": 0, "ms": 2000, "rows": 60})
    assert early["key"].to_pylist() != late["key"].to_pylist()
    assert early["value"].equals(late["value"])


def test_a_batch_without_rows_is_refused() -> None:
    with pytest.raises(AskedWrongly):
        full_source(None, Keys(10), seed=1, batch_rows=0)  # type: ignore[arg-type]


def test_batches_follow_the_file_while_the_stream_runs(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    set_batch_rows(file, 7)
    reader = FullReader({**OPTIONS, **full_options(file, partitions=3)})
    first = reader.latestOffset(reader.initialOffset(), None)  # type: ignore[arg-type]
    set_batch_rows(file, 70)
    second = reader.latestOffset(first, None)  # type: ignore[arg-type]
    assert (first["rows"], second["rows"]) == (7, 77)
    parts = reader.partitions(first, second)
    assert [part.end - part.first for part in parts] == [23, 23, 24]


@pytest.mark.parametrize("text", ["", "many"])
def test_a_file_without_a_number_fails_with_its_path(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rows"
    file.write_text(text)
    reader = FullReader({**OPTIONS, **full_options(file)})
    with pytest.raises(TidegateError, match="rows"):
        reader.latestOffset(reader.initialOffset(), None)  # type: ignore[arg-type]


def test_no_rows_and_no_partitions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AskedWrongly):
        set_batch_rows(tmp_path / "rows", 0)
    with pytest.raises(AskedWrongly):
        full_options(10, partitions=0)
