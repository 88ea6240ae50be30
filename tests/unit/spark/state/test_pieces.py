"""Pieces are checked where they are opened, mapped from the node, and closed when they are old."""

import json
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.keyed_store import SHARDS, Store
from tidegate import columns
from tidegate.errors import TidegateError
from tidegate.spark.state.chains import Chains
from tidegate.spark.state.files import Durable
from tidegate.spark.state.layer import Layer
from tidegate.spark.state.layout import file_schema
from tidegate.spark.state.node_cache import NodeCache, open_layers
from tidegate.spark.state.open_layers import OpenLayers
from tidegate.spark.state.version import Piece, StateFile, Version

KEY = pa.schema([("k", pa.int64())])
BOUND = tg.count().bind(KEY, ("k",))
ALL = [0] * SHARDS


@pytest.fixture(autouse=True)
def fresh_process():
    open_layers.clear()
    yield
    open_layers.clear()


def counted(tmp_path: Path, keys: int = 500) -> Store:
    """A store after one batch on node 0, in which each key came once."""
    store = Store(tmp_path, BOUND, KEY)
    store.run(0, pa.table({"k": np.arange(keys)}), ALL, [0])
    return store


def counts(store: Store, batch_id: int) -> set[int]:
    return set(store.state(batch_id)["count"].to_pylist())


def damage(path: Path, at: float = 0.5) -> None:
    """Flip a bit in a copy of the file: the cache may hold a link to the durable file."""
    content = bytearray(path.read_bytes())
    content[int(len(content) * at)] ^= 1
    path.unlink()
    path.write_bytes(content)


def test_a_start_compares_sizes_and_reads_no_state(tmp_path, monkeypatch):
    store = counted(tmp_path)
    versions = store.manifests.read(0, {})

    def read(*_: object) -> None:
        raise AssertionError("state was read")

    monkeypatch.setattr(Durable, "read", read)
    monkeypatch.setattr(Durable, "open", read)
    store.manifests.verify(versions)


@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
def test_a_damaged_durable_piece_is_an_error_that_names_the_file(tmp_path, at):
    store = counted(tmp_path, 5000)
    (name,) = store.durable.names()
    damage(Path(store.durable.path(name)), at)
    with pytest.raises(TidegateError, match=f"{name} cannot be read .its checksum differs"):
        store.run(1, pa.table({"k": [1]}), ALL, [1])
    with pytest.raises(TidegateError, match=f"{name} cannot be read .its checksum differs"):
        store.state(0)
    assert store.durable.names() == [name], "a reader removes nothing"


def test_a_damaged_cached_file_is_dropped_and_fetched_again(tmp_path):
    store = counted(tmp_path)
    (name,) = store.durable.names()
    damage(tmp_path / "node-0" / name)
    open_layers.clear()
    store.run(1, pa.table({"k": np.arange(500)}), ALL, [0])
    assert counts(store, 1) == {2}
    assert store.reads == {"own": 0, "durable": SHARDS}
    assert not (tmp_path / "node-0" / name).exists()


@pytest.mark.parametrize("shorter", [False, True])
def test_a_damaged_cached_piece_is_dropped_and_fetched_again(tmp_path, shorter):
    store = counted(tmp_path)
    (name,) = store.durable.names()
    store.run(1, pa.table({"k": [-1]}), ALL, [1])
    fetched = tmp_path / "node-1" / f"{name}.0"
    whole = fetched.read_bytes()
    if shorter:
        fetched.write_bytes(whole[: len(whole) // 2])
    else:
        damage(fetched)
    open_layers.clear()
    store.run(2, pa.table({"k": np.arange(500)}), ALL, [1])
    assert counts(store, 2) == {1, 2}
    assert fetched.read_bytes() == whole


def test_a_piece_is_checked_once_in_a_process(tmp_path, monkeypatch):
    checked: list[int] = []
    real = zlib.crc32
    monkeypatch.setattr(zlib, "crc32", lambda content: checked.append(1) or real(content))
    store = counted(tmp_path)
    (file,) = store.manifests.read(0, {})["op"].files
    schema = file_schema(KEY, BOUND)
    cache = store.keeper(0).cache
    checked.clear()
    cache.layer(file, 0, schema)
    assert not checked, "this process has written it"
    open_layers.clear()
    cache.layer(file, 0, schema)
    assert len(checked) == 1
    cache.layer(file, 0, schema)
    assert len(checked) == 1


def as_before(store: Store, batch_id: int) -> None:
    """Write a manifest as it was when files had one checksum, and pieces none."""
    name = f"{batch_id:010d}.json"
    document = store.manifests.directory.read_json(name)
    for file in document["operators"]["op"]["files"]:
        file[2] = [piece[:3] for piece in file[2]]
        file[3] = zlib.crc32(store.durable.read(file[0]))
    store.manifests.directory.write(name, json.dumps(document).encode())


def test_files_of_an_earlier_version_are_read_and_checked_as_a_whole(tmp_path):
    store = counted(tmp_path)
    as_before(store, 0)
    store.manifests.verify(store.manifests.read(0, {}))
    open_layers.clear()
    store.run(1, pa.table({"k": np.arange(500)}), ALL, [1])
    assert counts(store, 1) == {2}
    store.run(2, pa.table({"k": np.arange(500)}), ALL, [0])
    assert counts(store, 2) == {3}
    as_before(store, 2)
    newest = store.manifests.read(2, {})["op"].files[-1].name
    damage(Path(store.durable.path(newest)))
    with pytest.raises(TidegateError, match=f"{newest} cannot be read .its checksum differs"):
        store.run(3, pa.table({"k": [1]}), ALL, [2])


def test_a_piece_keeps_its_checksum_in_the_manifest():
    pieces = (Piece(0, 3, 7, None, None, 184, 96, 12), Piece(4, 7, 1, 5, 6, 280, 64, 13))
    version = Version(
        8, (StateFile("0000000001-00000-a.arrow", 99, pieces),), Chains.of([(0,)] * 8)
    )
    assert Version.from_json(json.loads(columns.dumps(version.to_json()))) == version
    assert Piece(0, 3, 7).to_json() == [0, 3, 7]
    assert Piece(0, 3, 7, 1, 2).to_json() == [0, 3, 7, 1, 2]


def test_a_fetched_piece_is_mapped_and_not_kept_on_the_heap(tmp_path):
    store = counted(tmp_path, 60_000)
    (file,) = store.manifests.read(0, {})["op"].files
    cache = NodeCache(str(tmp_path / "node-1"), store.durable, SHARDS)
    cache.make()
    before = pa.total_allocated_bytes()
    layer, own = cache.layer(file, 0, file_schema(KEY, BOUND))
    assert not own and layer.table.nbytes > 1_000_000
    assert pa.total_allocated_bytes() - before < 100_000
    assert layer.mapped_bytes == layer.table.nbytes and layer.heap_bytes < 1_000


def layer(mapped_bytes: int, heap_bytes: int) -> Layer:
    nothing = np.empty(0, dtype=np.int64)
    slots = nothing.view(np.uint64)
    return Layer(None, slots, nothing, nothing, True, mapped_bytes, heap_bytes)


@pytest.mark.parametrize("mapped_bytes, heap_bytes", [(40, 1), (1, 40)])
def test_open_layers_are_bounded_by_bytes_and_the_unused_ones_are_closed(mapped_bytes, heap_bytes):
    layers = OpenLayers(mapped_bytes=100, heap_bytes=100)
    marks = [("dir", f"{number:010d}.arrow", 0) for number in range(3)]
    layers.put(marks[0], layer(mapped_bytes, heap_bytes))
    layers.put(marks[1], layer(mapped_bytes, heap_bytes))
    assert layers.get(marks[0]) is not None
    layers.put(marks[2], layer(mapped_bytes, heap_bytes))
    assert [layers.get(mark) is not None for mark in marks] == [True, False, True]
    assert layers.mapped_bytes <= 100 and layers.heap_bytes <= 100
    layers.put(marks[1], layer(1000, 1000))
    assert layers.get(marks[1]) is not None and len(layers) == 1, "the one in use stays"


def test_pieces_of_removed_files_are_closed(tmp_path):
    store = counted(tmp_path)
    for batch_id in range(1, 60):
        store.run(batch_id, pa.table({"k": np.arange(500)}), ALL, [0])
    live = store.manifests.read(59, {})["op"].names
    open_files = {name for _, name, _ in open_layers._open}
    assert len(open_files - live) <= 20
    assert open_layers.mapped_bytes == sum(one.mapped_bytes for one in open_layers._open.values())
