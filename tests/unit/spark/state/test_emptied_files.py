"""A state file that most of its shards have left is emptied: its last shards move to a new file."""

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.keyed_store import SHARDS, Store, hashes_of
from tidegate.spark.state.layout import shard_of
from tidegate.spark.state.merge import TURN
from tidegate.spark.state.node_cache import open_layers
from tidegate.spark.state.version import Version

KEY = pa.schema([("k", pa.int64())])
BOUND = tg.count().bind(KEY, ("k",))
KEYS = pa.table({"k": np.arange(200)})
ALL = [0] * SHARDS


@pytest.fixture(autouse=True)
def fresh_process():
    open_layers.clear()


def version_of(store: Store, batch: int) -> Version:
    return store.manifests.read(batch, {"op": SHARDS})["op"]


def counts_of(store: Store, batch: int) -> dict[int, int]:
    return {row["k"]: row["count"] for row in store.state(batch).to_pylist()}


def test_a_shard_without_rows_does_not_keep_an_old_file(tmp_path) -> None:
    store = Store(tmp_path, BOUND, KEY)
    quiet = shard_of(hashes_of(KEYS, store.bits), SHARDS) == 3
    store.run(0, KEYS, ALL, [0])
    last = 5 * TURN
    for batch in range(1, last + 1):
        store.run(batch, KEYS.filter(pa.array(~quiet)), ALL, [0])
    files = version_of(store, last).files
    assert min(file.batch_id for file in files) > last - 3 * TURN
    assert counts_of(store, last) == {
        key: 1 if still else last + 1 for key, still in enumerate(quiet.tolist())
    }


def test_a_change_of_routes_empties_no_file(tmp_path) -> None:
    store = Store(tmp_path, BOUND, KEY)
    store.run(0, KEYS, ALL, [0])
    before = version_of(store, 0)
    spread = list(range(SHARDS))  # each task then has an eighth of the file
    for batch in range(1, 3 * TURN):
        store.run(batch, KEYS.slice(0, 0), spread, [0] * SHARDS)
    assert version_of(store, 3 * TURN - 1).files == before.files
