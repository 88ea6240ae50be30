"""State with another number of shards is the same state, now and after further batches."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import keyed_store
from tests.helpers.keyed_store import SHARDS, Store, hashes_of
from tests.unit.spark.savepoint.test_savepoint import Made, paths
from tests.unit.spark.state.test_evolution import KEY, LAYOUTS, ROWS, adding
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch import reshard as on_checkpoints
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.layouts import schema_of
from tidegate.spark.batch.reshard import reshard
from tidegate.spark.state.layout import file_schema
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.read import read_version
from tidegate.spark.state.reshard import resharded, rows_of
from tidegate.spark.state.version import Version

BITS = 62


def of_keys(keys: pa.Table) -> np.ndarray:
    return hashes_of(keys, BITS)


def reshard_store(store: Store, batch_id: int, before: int, after: int) -> None:
    """Give a store other shards after a batch, as the command does with a checkpoint."""
    version = store.manifests.read(batch_id, {})["op"]
    old, new = NodeCache("", store.durable, before), NodeCache("", store.durable, after)
    schema = file_schema(store.key, store.bound)
    found = resharded(version, old, new, schema, store.key.names, None, of_keys)
    (Path(store.manifests.directory.url) / f"{batch_id:010d}.json").unlink()
    store.manifests.commit(batch_id, {"op": found})


steps = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 15), st.integers(1, 20)), max_size=12),
        st.integers(0, 1000),  # seed of the route and of the nodes
        st.sampled_from([None, None, 1, 3, 4, 16, 64]),  # the shards from this batch on
    ),
    min_size=4,
    max_size=16,
)


@settings(max_examples=20, deadline=None)
@given(steps)
def test_resharded_state_is_what_a_dictionary_holds_through_later_batches(batches):
    plain = keyed_store.SHARDS
    try:
        with tempfile.TemporaryDirectory() as directory:
            store = Store(Path(directory), adding(LAYOUTS[1]), KEY, bits=BITS)
            truth: dict[int, int] = {}
            for batch_id, (rows, seed, shards) in enumerate(batches):
                if shards is not None and batch_id:
                    reshard_store(store, batch_id - 1, keyed_store.SHARDS, shards)
                    keyed_store.SHARDS = shards
                chance = np.random.default_rng(seed)
                route = chance.integers(0, 2, keyed_store.SHARDS).tolist()
                table = pa.Table.from_pylist([{"k": k, "add": a} for k, a in rows], ROWS)
                store.run(batch_id, table, route, chance.integers(0, 3, 2).tolist())
                for key in {key for key, _ in rows}:
                    truth[key] = truth.get(key, 0) + sum(a for k, a in rows if k == key)
                    if truth[key] % 7 == 0:
                        del truth[key]
                found = {row["k"]: row["total"] for row in store.state(batch_id).to_pylist()}
                assert found == truth
    finally:
        keyed_store.SHARDS = plain


def test_a_multiple_of_the_shards_leaves_chains_as_short_as_they_were(tmp_path):
    store = Store(tmp_path, adding(LAYOUTS[1]), KEY, bits=BITS)
    for batch_id in range(6):
        rows = pa.table({"k": range(2_000), "add": [1] * 2_000}, ROWS)
        store.run(batch_id, rows, [shard % 4 for shard in range(SHARDS)], [0] * 4)
    before = store.manifests.read(5, {})["op"]
    reshard_store(store, 5, SHARDS, 8 * SHARDS)
    after = store.manifests.read(5, {})["op"]
    assert max(map(len, after.chains)) <= max(map(len, before.chains))
    assert rows_of(after) <= rows_of(before)
    assert [file.batch_id for file in after.files] == sorted(f.batch_id for f in after.files)
    store.manifests.verify({"op": after})


def test_other_hashes_than_those_of_the_rows_are_refused(tmp_path):
    store = Store(tmp_path, adding(LAYOUTS[1]), KEY, bits=BITS)
    store.run(0, pa.table({"k": [1, 2], "add": [1, 1]}, ROWS), [0] * SHARDS, [0])
    version = store.manifests.read(0, {})["op"]
    cache = NodeCache("", store.durable, SHARDS)
    with pytest.raises(TidegateError, match="other hashes than when their state was written"):
        resharded(
            version,
            cache,
            NodeCache("", store.durable, 16),
            file_schema(KEY, store.bound),
            ["k"],
            None,
            lambda keys: np.zeros(keys.num_rows, dtype=np.int64),
        )


@pytest.fixture
def made(tmp_path):
    """A checkpoint whose version has the files of a store."""
    found = Made(tmp_path / "ck")
    found.batch(0)
    sums = pa.schema([("n", pa.int64()), ("total", pa.int64())])
    store = Store(tmp_path / "store", adding(sums), KEY, bits=BITS)
    rows = pa.table({"k": range(50), "add": [3] * 50}, ROWS)
    store.run(0, rows, [0] * SHARDS, [0])
    version = store.manifests.read(0, {})["op"]
    folder = found.place.states.below("sums")
    for name in store.durable.names():
        folder.write(name, store.durable.read(name))
    manifest = found.root / "segments/main/manifests/0000000000.json"
    manifest.unlink()
    described = json.loads((found.root / "pipeline.json").read_text())
    described["operators"]["sums"]["shards"] = SHARDS
    (found.root / "pipeline.json").write_text(json.dumps(described))
    manifests = on_checkpoints._manifests(found.place, "main")
    manifests.commit(0, {"sums": version})
    return found


def test_the_description_switches_to_the_new_state_at_once(made, monkeypatch):
    before = {path: (made.root / path).read_bytes() for path in paths(made.root)}
    expected, told = [], []

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "redescribe", killed)
        with pytest.raises(KeyboardInterrupt):
            reshard(str(made.root), 1024, of_keys)
    kept = [path for path in before if "manifests" not in path]
    assert all((made.root / path).read_bytes() == before[path] for path in kept)
    left = {path for path in paths(made.root) if path.startswith("state/sums.2/")}
    assert left

    (one,) = reshard(
        str(made.root), {"sums": 1024}, of_keys, expected=expected.append, told=told.append
    )
    assert (one.operator, one.before, one.after, one.rows) == ("sums", SHARDS, 1024, 50)
    assert expected == [50] and sum(told) == 50
    described = made.place.description()
    assert described["operators"]["sums"]["shards"] == 1024
    assert described["operators"]["sums"]["kept_as"] == "sums.2"
    assert described["retired"] == ["sums"]
    found = on_checkpoints._manifests(made.place, "main").load(0).versions["sums.2"]
    assert isinstance(found, Version) and found.shards == 1024
    new = {f"state/sums.2/{name}" for name in found.names}
    assert new == {path for path in paths(made.root) if path.startswith("state/sums.2/")}
    assert not new & left, "what a killed attempt has left is removed"
    rows = read_version(
        made.place.states.below("sums.2"),
        found,
        ["k"],
        None,
        0,
        schema_of(described["operators"]["sums"]["schema"]),
    )
    assert sorted(rows.column("k").to_pylist()) == list(range(50))


def test_nothing_is_done_where_nothing_changes(made):
    assert reshard(str(made.root), SHARDS, of_keys) == []
    for asked, said in [
        ({"sum": 4}, "no keyed operator 'sum'; did you mean 'sums'"),
        ({"sums": 0}, "operator 'sums': 0 shards; give 1 to 65536"),
    ]:
        with pytest.raises(AskedWrongly, match=said):
            reshard(str(made.root), asked, of_keys)
