"""Records in a store that cannot append: numbered parts, written in the background."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import fs
from typer.testing import CliRunner

from tests.helpers.synthetic_surge import record, surge
from tidegate.cli import app
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.recording import (
    Directory,
    RecordParts,
    part_name,
    read_readable,
    read_records,
)
from tidegate.spark.loop import reach
from tidegate.spark.loop.recorder import recorder
from tidegate.spark.state import files
from tidegate.spark.state.files import Durable

NEVER_S = 3600.0


class FakeStore:
    """Files in memory; it fails while `error` is set, and hangs while `free` is not."""

    url = "far://store"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.error: Exception | None = None
        self.free = threading.Event()
        self.free.set()

    def names(self) -> list[str]:
        return sorted(self.files)

    def read(self, name: str) -> bytes:
        return self.files[name]

    def write(self, name: str, content: bytes) -> None:
        self.free.wait()
        if self.error is not None:
            raise self.error
        self.files[name] = content

    def remove(self, name: str) -> None:
        del self.files[name]


def parts(store: Directory, **options) -> RecordParts:
    return RecordParts(store, **{"flush_s": NEVER_S, **options})


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A checkpoint by the URL of a filesystem that is not local."""
    (tmp_path / "tree" / "ck").mkdir(parents=True)
    behind = fs.SubTreeFileSystem(str(tmp_path / "tree"), fs.LocalFileSystem())
    known = files._filesystem

    def by_url(url: str):
        return (behind, url[len("far://cluster") :]) if url.startswith("far:") else known(url)

    monkeypatch.setattr(files, "_filesystem", by_url)
    return "far://cluster/ck"


def written(place: str, records: list[Record]) -> None:
    writer = recorder(Durable(place))
    for one in records:
        writer.write(one)
    writer.close()


def test_records_come_back_from_a_store_by_url(far: str) -> None:
    written(far, surge()[:10])
    written(far, surge()[10:])
    assert Durable(far).names() == [part_name(1), part_name(2)], "a second run begins a new part"
    assert read_records(Durable(far)) == surge()
    assert read_readable(Durable(far), newest_parts=1).records == tuple(surge()[10:])


def test_commands_and_the_next_start_read_them_by_url(far: str, monkeypatch) -> None:
    written(far, surge())
    done = CliRunner().invoke(app, ["explain", far, "--json"])
    assert done.exit_code == 0, done.output
    seen = []
    monkeypatch.setattr(reach, "earlier", lambda records: seen.append(records))
    reach._earlier(far)
    assert seen == [tuple(surge())]


def test_a_store_without_records_is_said(far: str) -> None:
    for where in (far, "nowhere://at/all"):
        done = CliRunner().invoke(app, ["explain", where])
        assert isinstance(done.exception, AskedWrongly), done.output
    assert reach._earlier(far) is None


def test_parts_copied_to_this_machine_are_read_as_well(far: str, tmp_path: Path) -> None:
    written(far, surge())
    assert read_records(tmp_path / "tree" / "ck") == surge()


def test_parts_are_bounded_in_size_and_number() -> None:
    store = FakeStore()
    line = len(surge()[0].to_json()) + 1
    writer = parts(store, part_bytes=5 * line, kept_parts=3)
    for one in surge():
        writer.write(one)
        writer._flush()
    writer.close()
    assert all(len(content) <= 5 * line for content in store.files.values())
    assert len(store.files) == 3
    kept = read_records(store)
    assert kept == surge()[-len(kept) :] and len(kept) > 6


def test_every_part_begins_with_the_options_of_the_run() -> None:
    store, asked = FakeStore(), {"policy": "drs(w=6)"}
    writer = parts(store, part_bytes=5 * len(surge()[0].to_json()), kept_parts=2)
    first, *others = surge()
    for one in (replace(first, assembly=asked), *others):
        writer.write(one)
        writer._flush()
    writer.close()
    kept = read_records(store)
    assert kept[0].tick > first.tick and kept[0].assembly == asked
    assert sum(one.assembly is not None for one in kept) == len(store.files) == 2
    assert [replace(one, assembly=None) for one in kept] == others[-len(kept) :]


def test_a_part_begins_with_the_options_of_its_first_record() -> None:
    """Options may change before the part is written: what held at its first tick counts."""
    store = FakeStore()
    line = max(len(one.to_json()) for one in surge()[:5])
    writer = parts(store, part_bytes=4 * line)
    told = [{"policy": "drs"}, None, None, None, {"policy": "flow"}]
    for place, assembly in enumerate(told):
        writer.write(replace(surge()[place], assembly=assembly))
        if place in (2, 4):
            writer._flush()
    writer.close()
    assert len(store.files) == 2
    found = [one.assembly for one in read_records(store)]
    assert found == [{"policy": "drs"}, None, None, {"policy": "drs"}, {"policy": "flow"}]


def test_a_store_that_fails_hurts_nobody_and_recovers() -> None:
    store = FakeStore()
    store.error = OSError("no space")
    writer = parts(store)
    writer.write(record(0))
    writer._flush()
    with pytest.raises(TidegateError, match="could not be written to far://store: no space"):
        writer.write(record(1))
    store.error = None
    writer._flush()
    writer.write(record(2))
    writer.close()
    assert [one.tick for one in read_records(store)] == [0, 1, 2]


def test_while_a_store_fails_only_the_newest_records_are_kept() -> None:
    store = FakeStore()
    store.error = OSError("no space")
    line = len(record(0).to_json()) + 1
    writer = parts(store, part_bytes=4 * line)
    for tick in range(30):
        writer._failure = None
        writer.write(record(tick))
        writer._flush()
    store.error = None
    writer.close()
    kept = [one.tick for one in read_records(store)]
    assert 2 <= len(kept) <= 5 and kept[-1] == 29


def test_the_loop_does_not_wait_for_the_store() -> None:
    store = FakeStore()
    store.free.clear()
    writer = parts(store, flush_s=0.0)
    for one in surge():
        writer.write(one)
    store.free.set()
    writer.close()
    assert read_records(store) == surge()
