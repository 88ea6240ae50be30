"""Records on disk: nothing lost over rotations and crashes, and bad files told apart."""

import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.synthetic_surge import record, surge
from tidegate.control.record import VERSION, Record
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.recording import CURRENT, RecordWriter, read_readable, read_records


def fill(directory: Path, records: list, **options: int) -> None:
    with RecordWriter(directory, **options) as writer:
        for one in records:
            writer.write(one)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def line_bytes() -> int:
    return max(len(one.to_json()) + 1 for one in surge())


def test_what_was_written_is_read(tmp_path: Path) -> None:
    fill(tmp_path / "new" / "checkpoint", surge())
    assert read_records(tmp_path / "new" / "checkpoint") == surge()
    assert read_records(tmp_path / "new" / "checkpoint" / CURRENT) == surge()


def test_a_record_of_before_nodes_were_told_is_read() -> None:
    document = json.loads(record(3).to_json())
    for operator in document["measurement"]["operators"]:
        del operator["nodes"], operator["durable_bytes"]
    assert Record.from_json(json.dumps(document)) == record(3)


def test_a_record_is_on_disk_before_the_writer_is_closed(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    writer.write(record(0))
    assert read_records(tmp_path) == [record(0)]
    writer.close()


def test_files_are_set_aside_by_size_and_read_in_order(tmp_path: Path) -> None:
    most = 10 * line_bytes()
    fill(tmp_path, surge(), most_bytes=most, kept_files=9)
    assert {"records.jsonl", "records.1.jsonl", "records.2.jsonl"} <= set(names(tmp_path))
    assert all(path.stat().st_size <= most for path in tmp_path.iterdir())
    assert read_records(tmp_path) == surge()


def test_every_file_begins_with_the_options_of_the_run(tmp_path: Path) -> None:
    """Old files go, and with them the first record; what comes later is of the same run."""
    asked, later = {"policy": "drs(w=6)"}, {"policy": "static"}
    first, *others = surge()
    written = [replace(first, assembly=asked), *others]
    fill(tmp_path, written, most_bytes=10 * line_bytes(), kept_files=1)
    kept = read_records(tmp_path)
    assert len(kept) < len(written)
    assert kept[0].assembly == asked
    assert [replace(one, assembly=None) for one in kept] == others[-len(kept) :]
    assert sum(one.assembly is not None for one in kept) == 2
    fill(tmp_path, [replace(first, assembly=later), *others], most_bytes=10 * line_bytes())
    assert read_records(tmp_path)[-len(others) - 1].assembly == later
    newest = (tmp_path / CURRENT).read_text().splitlines()
    assert Record.from_json(newest[0]).assembly == later


def test_only_so_many_old_files_are_kept(tmp_path: Path) -> None:
    fill(tmp_path, surge(), most_bytes=1, kept_files=3)
    assert names(tmp_path) == [
        "records.1.jsonl",
        "records.2.jsonl",
        "records.3.jsonl",
        "records.jsonl",
    ]
    assert read_records(tmp_path) == surge()[-4:]
    fill(tmp_path / "none", surge(), most_bytes=1, kept_files=0)
    assert names(tmp_path / "none") == ["records.jsonl"]


def test_ten_files_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    fill(tmp_path, surge(), most_bytes=1, kept_files=12)
    assert read_records(tmp_path) == surge()[-13:]


def test_a_gap_that_a_crash_left_in_the_numbers_loses_nothing(tmp_path: Path) -> None:
    fill(tmp_path, surge(4), most_bytes=1, kept_files=9)
    (tmp_path / "records.1.jsonl").rename(tmp_path / "records.7.jsonl")
    (tmp_path / "records.3.jsonl").rename(tmp_path / "records.8.jsonl")
    assert [one.tick for one in read_records(tmp_path)] == [0, 2, 1, 3]
    fill(tmp_path, [record(4)], most_bytes=1, kept_files=9)
    assert [one.tick for one in read_records(tmp_path)] == [0, 2, 1, 3, 4]


@pytest.mark.parametrize("cut", [1, 2, 30, 500])
def test_a_line_that_a_crash_cut_off_is_left_out_and_then_mended(tmp_path: Path, cut: int) -> None:
    fill(tmp_path, surge(5))
    path = tmp_path / CURRENT
    path.write_bytes(path.read_bytes()[:-cut])
    # Only the end of the line is missing when one byte is: the record is whole.
    whole = 5 if cut == 1 else 4
    assert [one.tick for one in read_records(tmp_path)] == list(range(whole))
    fill(tmp_path, [record(30)])
    assert [one.tick for one in read_records(tmp_path)] == [*range(whole), 30]


def test_a_cut_line_longer_than_a_block_is_mended(tmp_path: Path) -> None:
    fill(tmp_path, surge(2))
    with (tmp_path / CURRENT).open("ab") as file:
        file.write(b'{"version":1,"policy":"' + b"x" * 200_000)
    fill(tmp_path, [record(2)])
    assert read_records(tmp_path) == surge(3)


def test_the_writer_goes_on_on_a_whole_line_after_a_full_disk(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    writer.write(record(0))
    full = (tmp_path / CURRENT).stat().st_size + 100
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (full, limits[1]))
    try:
        with pytest.raises(TidegateError, match="Only part of a record"):
            writer.write(record(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / CURRENT).stat().st_size == full
    writer.write(record(2))
    writer.close()
    assert [one.tick for one in read_records(tmp_path)] == [0, 2]


def test_a_damaged_line_in_the_middle_is_refused_with_its_place(tmp_path: Path) -> None:
    lines = [one.to_json() for one in surge(3)]
    for damage in ("nonsense", "3", '{"version":1}', lines[1][:-9]):
        path = tmp_path / CURRENT
        path.write_text("\n".join([lines[0], damage, lines[2], ""]))
        with pytest.raises(TidegateError, match=r"^Line 2 of .*records\.jsonl is not a record"):
            read_records(tmp_path)


def test_another_version_is_named(tmp_path: Path) -> None:
    line = record(0).to_json().replace(f'"version":{VERSION}', '"version":0', 1)
    (tmp_path / CURRENT).write_text(line + "\n")
    with pytest.raises(TidegateError, match=f"version 0; this Tidegate reads {VERSION}") as caught:
        read_records(tmp_path)
    assert "Line 1 of" in str(caught.value)
    assert not isinstance(caught.value, AskedWrongly)


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(AskedWrongly, match="no records in"):
        read_records(tmp_path)
    with pytest.raises(AskedWrongly, match="elsewhere does not exist"):
        read_records(tmp_path / "elsewhere")
    (tmp_path / CURRENT).touch()
    with pytest.raises(AskedWrongly, match=r"no record in .* yet"):
        read_records(tmp_path)


@pytest.mark.parametrize("content", [b"notes\nof mine\n", b"notes", b"\xff\xfe\n", b"{}\n"])
def test_a_file_of_something_else_is_bad_input(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.txt").write_bytes(content)
    with pytest.raises(AskedWrongly, match=r"notes\.txt has no record that can be read"):
        read_readable(tmp_path / "notes.txt")


def test_impossible_sizes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AskedWrongly, match="at least 1 byte"):
        RecordWriter(tmp_path, most_bytes=0)
