"""Any batches, routes, drops, lost tries and merges leave the state a dictionary would have."""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import TidegateError
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.spark.state.layout import file_schema, shard_of
from tidegate.spark.state.node_cache import NodeCache, open_layers
from tidegate.spark.state.version import Version

KEY = pa.schema([("k", pa.string()), ("j", pa.int64())])
ROWS = pa.schema([*KEY, ("add", pa.int64())])


def running_sum(batch: KeyedBatch) -> Update:
    """Adds; a key whose sum is a multiple of 7 is dropped."""
    add = np.bincount(
        batch.row_key, weights=batch.rows["add"].to_numpy(), minlength=batch.keys.num_rows
    ).astype(np.int64)
    old = batch.aligned()["total"].fill_null(0).to_numpy()
    total = old + add
    gone = total % 7 == 0
    table = batch.keys.append_column("total", pa.array(total))
    number = np.arange(batch.keys.num_rows)
    return Update(
        output=table,
        upserts=table.filter(pa.array(~gone)),
        upsert_key=number[~gone],
        drops=batch.keys.filter(pa.array(gone)),
        drop_key=number[gone],
    )


SUM = BoundKeyed(
    update=running_sum,
    state=pa.schema([("total", pa.int64())]),
    output=pa.schema([*KEY, ("total", pa.int64())]),
)


keys = st.tuples(st.sampled_from([None, "", "a", "b", "longer key"]), st.integers(0, 5))
row = st.tuples(keys, st.integers(1, 20))
batch_of_rows = st.tuples(
    st.lists(row, max_size=25),
    st.integers(1, 4),  # tasks
    st.integers(0, 1000),  # seed of the route and of the nodes
    st.sampled_from([1, 1, 2]),  # tries before the commit
)


@settings(max_examples=12, deadline=None)
@given(st.lists(batch_of_rows, min_size=4, max_size=18), st.sampled_from([1, 3, 62]))
def test_state_is_what_a_dictionary_holds(batches, bits):
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), SUM, KEY, bits=bits)
        truth: dict[tuple, int] = {}
        for batch_id, (rows, tasks, seed, tries) in enumerate(batches):
            chance = np.random.default_rng(seed)
            route = chance.integers(0, tasks, SHARDS).tolist()
            table = pa.Table.from_pylist([{"k": k, "j": j, "add": a} for (k, j), a in rows], ROWS)
            store.run(batch_id, table, route, chance.integers(0, 3, tasks).tolist(), tries=tries)
            for key in {key for key, _ in rows}:
                truth[key] = truth.get(key, 0) + sum(a for other, a in rows if other == key)
                if truth[key] % 7 == 0:
                    del truth[key]
            found = {(r["k"], r["j"]): r["total"] for r in store.state(batch_id).to_pylist()}
            assert found == truth
        assert len(store.manifests.committed()) <= 3
        live = set().union(
            *(store.manifests.read(b, {})["op"].names for b in store.manifests.committed())
        )
        longest = max(
            len(chain) for chain in store.manifests.read(len(batches) - 1, {})["op"].chains
        )
        assert longest <= 12
        assert live <= set(store.durable.names())


def test_a_shard_that_stays_is_read_from_its_node_and_one_that_moves_from_the_durable_part(
    tmp_path,
):
    open_layers.clear()
    store = Store(tmp_path, SUM, KEY)
    chance = np.random.default_rng(1)
    rows = pa.table(
        {"k": ["x"] * 400, "j": np.arange(400), "add": np.ones(400, dtype=np.int64)}, ROWS
    )
    route = [s % 2 for s in range(SHARDS)]
    for batch_id in range(4):
        store.run(batch_id, rows.take(chance.permutation(400)), route, [0, 1])
    assert store.reads == {"own": 3 * SHARDS, "durable": 0}
    assert store.durable_bytes == 0
    moved = [1, *route[1:]]
    store.run(4, rows, moved, [0, 1])
    assert store.reads == {"own": 3 * SHARDS + SHARDS - 1, "durable": 1}
    fetched = store.durable_bytes
    assert fetched > 0
    store.run(5, rows, moved, [0, 1])
    assert store.reads == {"own": 4 * SHARDS + SHARDS - 1, "durable": 1}
    assert store.durable_bytes == fetched, "what was fetched stays on the node"


def test_a_fetched_piece_counts_once_whatever_shards_it_has(tmp_path):
    open_layers.clear()
    store = Store(tmp_path, SUM, KEY)
    rows = pa.table(
        {"k": ["x"] * 400, "j": np.arange(400), "add": np.ones(400, dtype=np.int64)}, ROWS
    )
    store.run(0, rows, [0] * SHARDS, [0])
    (file,) = store.manifests.read(0, {"op": SHARDS})["op"].files
    held = NodeCache(str(tmp_path / "node-0"), store.durable, SHARDS)
    piece, own = held.layer(file, 0, file_schema(KEY, SUM))
    assert own and len(file.pieces) == 1
    store.run(1, rows, [0] * SHARDS, [1])
    assert store.reads["durable"] == SHARDS
    assert store.durable_bytes == piece.table.nbytes
    store.run(2, rows, [s % 2 for s in range(SHARDS)], [2, 2])
    newest = store.manifests.read(1, {"op": SHARDS})["op"]
    assert store.durable_bytes == piece.table.nbytes + sum(
        held.layer(one, 0, file_schema(KEY, SUM))[0].table.nbytes for one in newest.files
    ), "the second task of the node finds what the first has fetched"


def test_rows_past_their_time_to_live_are_gone(tmp_path):
    keep_all = dataclasses.replace(
        SUM,
        update=lambda b: Update(
            output=b.keys, upserts=b.keys.append_column("total", b.aligned()["total"].fill_null(1))
        ),
    )
    store = Store(tmp_path, keep_all, KEY, ttl_us=100)
    one = pa.Table.from_pylist([{"k": "a", "j": 1, "add": 1}], ROWS)
    two = pa.Table.from_pylist([{"k": "b", "j": 1, "add": 1}], ROWS)
    store.run(0, one, [0] * SHARDS, [0], at_us=1000)
    store.run(1, two, [0] * SHARDS, [0], at_us=1050)
    assert {r["k"] for r in store.state(1, at_us=1099).to_pylist()} == {"a", "b"}
    assert {r["k"] for r in store.state(1, at_us=1100).to_pylist()} == {"b"}


def test_a_missing_or_short_file_is_named(tmp_path):
    store = Store(tmp_path, SUM, KEY)
    one = pa.Table.from_pylist([{"k": "a", "j": 1, "add": 1}], ROWS)
    store.run(0, one, [0] * SHARDS, [0])
    versions = store.manifests.read(0, {})
    store.manifests.verify(versions)
    name = versions["op"].files[0].name
    whole = (tmp_path / "state" / "op" / name).read_bytes()
    (tmp_path / "state" / "op" / name).unlink()
    with pytest.raises(TidegateError, match=f"{name} of operator 'op' is missing"):
        store.manifests.verify(versions)
    (tmp_path / "state" / "op" / name).write_bytes(whole[:-5])
    with pytest.raises(TidegateError, match="expected"):
        store.manifests.verify(versions)


@pytest.mark.parametrize(
    "update, message",
    [
        (lambda b: Update(upserts=b.keys), "column 'total' is missing"),
        (
            lambda b: Update(upserts=pa.table({"k": ["zz"], "j": [1], "total": [1]})),
            "not among the keys",
        ),
        (
            lambda b: Update(upserts=pa.table({"k": ["a"] * 2, "j": [1] * 2, "total": [1] * 2})),
            "twice",
        ),
        (
            lambda b: Update(upserts=pa.table({"k": ["a"], "j": [1], "total": ["x"]})),
            "'total' is string",
        ),
        (
            lambda b: Update(upserts=pa.table({"k": ["a"], "j": [1], "totl": [1]})),
            "did you mean 'totl'",
        ),
    ],
)
def test_a_wrong_update_is_refused_with_what_is_wrong(tmp_path, update, message):
    store = Store(tmp_path, dataclasses.replace(SUM, update=update), KEY)
    one = pa.Table.from_pylist([{"k": "a", "j": 1, "add": 1}], ROWS)
    with pytest.raises(TidegateError, match=message):
        store.run(0, one, [0] * SHARDS, [0])
    assert store.manifests.committed() == []


def test_several_rows_of_one_key_are_told_apart_by_within(tmp_path):
    def per_day(batch: KeyedBatch) -> Update:
        rows = batch.rows
        upserts = rows.select(["k", "j"]).append_column("day", rows["add"])
        old = {(r["k"], r["j"], r["day"]): r["seen"] for r in batch.state.to_pylist()}
        seen = [old.get((r["k"], r["j"], r["day"]), 0) + 1 for r in upserts.to_pylist()]
        return Update(upserts=upserts.append_column("seen", pa.array(seen)), output=rows)

    bound = BoundKeyed(
        update=per_day,
        within="day",
        output=ROWS,
        state=pa.schema([("day", pa.int64()), ("seen", pa.int64())]),
    )
    store = Store(tmp_path, bound, KEY)
    for batch_id in range(20):
        rows = pa.Table.from_pylist(
            [{"k": "a", "j": 1, "add": d} for d in range(batch_id % 3 + 1)], ROWS
        )
        store.run(batch_id, rows, [0] * SHARDS, [0])
    found = {r["day"]: r["seen"] for r in store.state(19).to_pylist()}
    assert found == {0: 20, 1: 13, 2: 6}


def test_version_survives_json():
    version = Version.empty(4)
    assert Version.from_json(version.to_json()) == version


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 256, 1000, 1024])
def test_the_shard_of_a_hash_is_that_of_spark(shards):
    """Not the remainder of C, which is negative for negative hashes."""
    hashes = np.array([0, 1, -1, 255, -256, 2**63 - 1, -(2**63), 12345678901, -98765432109])
    assert shard_of(hashes, shards).tolist() == [int(one) % shards for one in hashes]
