"""What failed tries leave behind goes, what is committed or under way stays; readers keep up."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.keyed import KeyedBatch, Update
from tidegate.spark.batch.channel import Log
from tidegate.spark.state import read
from tidegate.spark.state.files import Durable
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.version import Piece

KEY = pa.schema([("k", pa.int64())])
ROWS = pa.schema([*KEY, ("at", pa.timestamp("us"))])


def rows(keys, at_s: int) -> pa.Table:
    at = pa.array(np.full(len(keys), at_s * 1_000_000)).view(pa.timestamp("us"))
    return pa.table([pa.array(keys, pa.int64()), at], schema=ROWS)


def test_a_start_removes_what_failed_tries_left_of_committed_batches_and_nothing_else(tmp_path):
    store = Store(tmp_path, tg.count().bind(ROWS, ("k",)), KEY)
    for batch_id in range(5):
        store.run(batch_id, rows(range(40), 0), [0] * SHARDS, [0])
    named = set(store.durable.names())
    left = ["0000000001-00000-deadbeef.arrow", ".0000000001-00001-deadbeef.arrow.12345678"]
    # Version 3 is kept: a driver that was paused in its commit might still name its own files.
    under_way = ["0000000003-00000-deadbeef.arrow", ".0000000005-00000-deadbeef.arrow.12345678"]
    for name in [*left, *under_way, "notes.txt"]:
        (tmp_path / "state" / "op" / name).write_bytes(b"x")
    (tmp_path / "manifests" / ".0000000002.json.12345678").write_bytes(b"{")
    store.manifests.tidy()
    found = {path.name for path in (tmp_path / "state" / "op").iterdir()}
    assert found == named | set(under_way) | {"notes.txt"}
    manifests = sorted(path.name for path in (tmp_path / "manifests").iterdir())
    assert manifests == [f"{batch:010d}.json" for batch in (2, 3, 4)]
    assert store.state(4)["count"].to_pylist() == [5] * 40


def test_without_a_manifest_nothing_is_swept(tmp_path):
    store = Store(tmp_path, tg.count().bind(ROWS, ("k",)), KEY)
    store.durable.write("0000000000-00000-deadbeef.arrow", b"x")
    store.manifests.tidy()
    assert store.durable.names() == ["0000000000-00000-deadbeef.arrow"]


def test_a_node_forgets_half_written_files_of_old_batches(tmp_path):
    store = Store(tmp_path, tg.count().bind(ROWS, ("k",)), KEY)
    cache = store.keeper(0).cache
    for name in ("0000000001-00000-a.arrow", ".0000000001-00000-b.arrow.1", "0000000009-c.arrow"):
        cache.path(name).write_bytes(b"x")
    cache.prune({"0000000001-00000-a.arrow"}, before_batch=5)
    left = {path.name for path in (tmp_path / "node-0").iterdir()}
    assert left == {"0000000001-00000-a.arrow", "0000000009-c.arrow"}


def test_a_channel_sweeps_what_was_not_handed_over(tmp_path):
    log = Log(Durable(str(tmp_path)))
    log.make()
    for batch_id in range(63):
        log.data.write(f"{batch_id:010d}-lost", b"x")
        log.data.write(f"{batch_id:010d}-kept", b"x")
        log.commit(batch_id, batch_id - 1, [(f"{batch_id:010d}-kept", 1)])
    (tmp_path / "data" / ".0000000007-half.1").write_bytes(b"x")
    log.sweep()
    assert len(log.data.names()) == 126, "the consumer has not read them: all stays"
    log.note_read(63)
    log.forget(63)
    log.sweep()
    assert log.data.names() == [
        f"{batch_id:010d}-{how}" for batch_id in (60, 61, 62) for how in ("kept", "lost")
    ]
    assert len(list((tmp_path / "data").iterdir())) == 6
    log.clean(63)
    assert len(log.data.names()) == 6, "a running channel sweeps now and then"
    log.data.write("0000000059-late", b"x")
    log.clean(64)
    assert log.data.names()[0] == "0000000060-kept"


def checkpoint_of(store: Store) -> None:
    """The store's directory as a checkpoint that `read_state` knows."""
    root = store.root
    schema = pa.schema([*KEY, *store.bound.state])
    said = {
        "key": [["k", "int64"]],
        "shards": SHARDS,
        "within": None,
        "schema": bytes(schema.serialize()).hex(),
    }
    description = {"format": 1, "operators": {"op": said}, "segments": {"main": ["op"]}}
    Durable(str(root)).write_json("pipeline.json", description)
    folder = Durable(str(root / "segments" / "main" / "manifests"))
    folder.make()
    store.manifests = Manifests(folder, Durable(str(root / "state")))


def test_a_version_that_goes_while_it_is_read_is_read_again_from_a_newer_one(tmp_path, monkeypatch):
    store = Store(tmp_path, tg.count().bind(ROWS, ("k",)), KEY)
    checkpoint_of(store)
    done = iter(range(100))

    def go_on(batches: int) -> None:
        for _ in range(batches):
            store.run(next(done), rows(range(400), 0), [0] * SHARDS, [0])

    go_on(3)
    plain, interruptions = read.open_chains, iter([20, 20, 0])

    def late(*arguments):
        go_on(next(interruptions))  # the files of the version are gone before they are opened
        return plain(*arguments)

    monkeypatch.setattr(read, "open_chains", late)
    found = read.read_state(str(tmp_path), "op")
    assert found["count"].to_pylist() == [43] * 400
    interruptions = iter([20])
    with pytest.raises(AskedWrongly, match="there is no version 42; kept versions: 60, 61, 62"):
        read.read_state(str(tmp_path), "op", version=42)


def test_a_file_that_is_lost_is_named_and_not_waited_for(tmp_path):
    store = Store(tmp_path, tg.count().bind(ROWS, ("k",)), KEY)
    checkpoint_of(store)
    store.run(0, rows(range(10), 0), [0] * SHARDS, [0])
    (name,) = store.durable.names()
    store.durable.remove(name)
    with pytest.raises(TidegateError, match=f"{name} is missing"):
        read.read_state(str(tmp_path), "op")


def test_what_is_due_is_handed_in_once_and_other_pieces_are_not_looked_at(tmp_path, monkeypatch):
    bound = tg.sessions(gap="10 seconds", event_time="at").bind(ROWS, ("k",))
    handed: list[list[int]] = []

    def update(batch: KeyedBatch) -> Update:
        handed.append(sorted(set(batch.keys["k"].to_pylist()) - {999}))
        return bound.update(batch)

    store = Store(tmp_path, dataclasses.replace(bound, update=update), KEY)
    looked: list[bool] = []
    plain = Piece.may_be_due
    monkeypatch.setattr(Piece, "may_be_due", lambda *a: looked.append(plain(*a)) or looked[-1])
    store.run(0, rows([*range(5)], 0), [0] * SHARDS, [0])
    store.run(1, rows([*range(5, 8)], 3), [0] * SHARDS, [0])
    looks = []
    for batch_id, at_s in enumerate([9, 10, 11, 13, 14, 20], start=2):
        looked.clear()
        store.run(batch_id, rows([999], at_s), [0] * SHARDS, [0])
        looks.append(any(looked))
    # Batch by batch the watermark is the newest event before: 3, 9, 10, 11, 13, 14.
    assert handed[2:] == [[], [], [0, 1, 2, 3, 4], [], [5, 6, 7], []]
    assert looks[:5] == [False, False, True, False, True]
