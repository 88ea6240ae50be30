"""Records of a run that goes on: each is read once, whatever happens to its files meanwhile."""

from dataclasses import replace
from pathlib import Path

from tests.helpers.synthetic_surge import surge
from tidegate.recording import CURRENT, FollowedRecords, RecordParts, RecordWriter
from tidegate.spark.state.files import Durable


def ticks(records) -> list[int]:
    return [record.tick for record in records]


def test_each_record_comes_once_through_rotations(tmp_path: Path) -> None:
    records = surge()
    size = len(records[0].to_json())
    with RecordWriter(tmp_path, most_bytes=6 * size, kept_files=9) as writer:
        for record in records[:10]:
            writer.write(record)
        followed = FollowedRecords(tmp_path)
        found = ticks(followed.all().records)
        assert found == list(range(10))
        for record in records[10:]:
            writer.write(record)
            if record.tick % 3 == 0:
                found += ticks(followed.fresh())
    found += ticks(followed.fresh())
    followed.close()
    assert found == ticks(records)


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    first, second = surge()[:2]
    path = tmp_path / CURRENT
    path.write_text(first.to_json() + "\n")
    followed = FollowedRecords(path)
    followed.all()
    line = second.to_json() + "\n"
    with path.open("a") as file:
        file.write(line[:100])
        file.flush()
        assert followed.fresh() == []
        file.write(line[100:])
    assert ticks(followed.fresh()) == [1]
    assert followed.fresh() == []
    followed.close()


def test_a_damaged_line_does_not_end_it(tmp_path: Path) -> None:
    first, second = surge()[:2]
    path = tmp_path / CURRENT
    path.write_text(first.to_json() + "\n")
    followed = FollowedRecords(tmp_path)
    followed.all()
    with path.open("a") as file:
        file.write("damaged\n" + second.to_json() + "\n")
    assert ticks(followed.fresh()) == [1]
    followed.close()


def test_a_run_that_starts_again_is_followed(tmp_path: Path) -> None:
    """A restart begins with tick 0 again; time goes on."""
    first = surge()[0]
    with RecordWriter(tmp_path) as writer:
        writer.write(first)
        followed = FollowedRecords(tmp_path)
        followed.all()
        later = replace(first.measurement, at_s=first.measurement.at_s + 100.0)
        writer.write(replace(first, measurement=later))
    assert ticks(followed.fresh()) == [0]
    followed.close()


def test_parts_of_a_store_are_followed(tmp_path: Path) -> None:
    place = Durable(str(tmp_path))
    parts = RecordParts(place, flush_s=0.01)
    records = surge()
    for record in records[:5]:
        parts.write(record)
    parts.close()
    followed = FollowedRecords(place)
    assert ticks(followed.all().records) == [0, 1, 2, 3, 4]
    for record in records[5:8]:
        parts.write(record)
    parts.close()
    assert ticks(followed.fresh()) == [5, 6, 7]
