"""A null in `within` is a value of its own, and leaves large numbers exact."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import TidegateError
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.spark.state.files import Durable

KEY = pa.schema([("k", pa.int64())])
ROWS = pa.schema([*KEY, ("day", pa.int64())])
LARGE = 2**53


def per_day(batch: KeyedBatch) -> Update:
    old = {(row["k"], row["day"]): row["seen"] for row in batch.state.to_pylist()}
    seen = [old.get((row["k"], row["day"]), 0) + 1 for row in batch.rows.to_pylist()]
    return Update(upserts=batch.rows.append_column("seen", pa.array(seen)), output=batch.rows)


BOUND = BoundKeyed(
    update=per_day,
    within="day",
    output=ROWS,
    state=pa.schema([("day", pa.int64()), ("seen", pa.int64())]),
)


def rows(*days: tuple[int, int | None]) -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "day": day} for k, day in days], ROWS)


def test_a_null_of_one_key_does_not_merge_large_values_of_another(tmp_path):
    store = Store(tmp_path, BOUND, KEY)
    given = rows((1, LARGE), (1, LARGE + 1), (1, None), (2, None), (2, 5))
    for batch_id in range(20):
        store.run(batch_id, given, [0] * SHARDS, [0])
    found = {(row["k"], row["day"]): row["seen"] for row in store.state(19).to_pylist()}
    assert found == dict.fromkeys(((row["k"], row["day"]) for row in given.to_pylist()), 20)


def test_a_null_that_comes_twice_is_refused(tmp_path):
    store = Store(tmp_path, BOUND, KEY)
    with pytest.raises(TidegateError, match="twice"):
        store.run(0, rows((1, None), (1, None)), [0] * SHARDS, [0])


def test_the_one_value_that_stands_for_null_is_refused(tmp_path):
    store = Store(tmp_path, BOUND, KEY)
    with pytest.raises(TidegateError, match="cannot be told apart from null; give another value"):
        store.run(0, rows((1, None), (1, -(2**63))), [0] * SHARDS, [0])


def test_a_file_that_cannot_be_linked_is_copied_in_blocks(tmp_path, monkeypatch):
    (tmp_path / "cached").write_bytes(b"state" * 1000)

    def other_filesystem(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    def whole(*_: object) -> bytes:
        raise AssertionError("the whole file was read into memory")

    monkeypatch.setattr(os, "link", other_filesystem)
    monkeypatch.setattr(Path, "read_bytes", whole)
    durable = Durable(str(tmp_path / "durable"))
    durable.make()
    durable.adopt(tmp_path / "cached", "file")
    assert durable.read("file") == b"state" * 1000
