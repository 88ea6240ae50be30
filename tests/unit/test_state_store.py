"""Any batches, routes, drops, lost tries and merges leave the state that a dictionary would have."""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.pipeline.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.spark.state import layer as layer_module
from tidegate.spark.state.files import Durable
from tidegate.spark.state.layer import NodeCache
from tidegate.spark.state.layout import file_schema, shard_of, slot_of
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.read import read_version
from tidegate.spark.state.task import Keeper, TaskState
from tidegate.spark.state.version import Version

SHARDS = 8
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


def hashes_of(rows: pa.Table, bits: int) -> np.ndarray:
    """A poor hash on purpose: few bits, so that many keys share a slot."""
    raw = [
        hash((k, j)) % (1 << bits)
        for k, j in zip(*(rows[c].to_pylist() for c in "kj"), strict=True)
    ]
    return (np.array(raw, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


class Store:
    """A miniature of the runtime: one operator, tasks one after the other, a commit per batch."""

    def __init__(self, root: Path, bound: BoundKeyed, ttl_us: int | None = None, bits: int = 62):
        self.durable = Durable(str(root / "state" / "op"))
        self.durable.make()
        self.manifests = Manifests(Durable(str(root / "manifests")), Durable(str(root / "state")))
        self.manifests.directory.make()
        self.bound, self.ttl_us, self.bits, self.root = bound, ttl_us, bits, root
        self.reads = {"own": 0, "durable": 0}

    def keeper(self, node: int) -> Keeper:
        cache = NodeCache(str(self.root / f"node-{node}"), self.durable, SHARDS)
        cache.make()
        return Keeper(operator="op", key=KEY, bound=self.bound, cache=cache, ttl_us=self.ttl_us)

    def run(
        self,
        batch_id: int,
        rows: pa.Table,
        route: list[int],
        nodes: list[int],
        at_us: int = 0,
        tries: int = 1,
    ) -> dict:
        hashes = hashes_of(rows, self.bits)
        task_of_row = np.array(route)[shard_of(hashes, SHARDS)]
        for _ in range(tries):
            version = self.manifests.read(batch_id - 1, {"op": SHARDS})["op"]
            changes, outputs, newest = [], [], []
            for task, node in enumerate(nodes):
                mine = task_of_row == task
                part = rows.filter(pa.array(mine))
                state = TaskState(
                    self.keeper(node),
                    version,
                    [s for s in range(SHARDS) if route[s] == task],
                    batch_id,
                    at_us,
                    task,
                )
                update = self.bound.update(state.batch(part, slot_of(hashes[mine], SHARDS)))
                outputs.append(update.output)
                change = state.change(update)
                if change is not None:
                    changes.append(change)
                self.reads["own"] += len(state.reads.own)
                self.reads["durable"] += len(state.reads.durable)
        after = version.after(changes, None)
        self.manifests.commit(batch_id, {"op": after})
        self.manifests.clean(batch_id, {"op": after})
        return {"output": pa.concat_tables(outputs)}

    def state(self, batch_id: int, at_us: int = 0) -> pa.Table:
        version = self.manifests.read(batch_id, {"op": SHARDS})["op"]
        schema = file_schema(KEY, self.bound)
        return read_version(self.durable, version, KEY.names, self.bound.within, at_us, schema)


keys = st.tuples(st.sampled_from([None, "", "a", "b", "longer key"]), st.integers(0, 5))
row = st.tuples(keys, st.integers(1, 20))
batch_of_rows = st.tuples(
    st.lists(row, max_size=25),
    st.integers(1, 4),  # tasks
    st.integers(0, 1000),  # seed of the route and of the nodes
    st.integers(1, 2),  # tries before the commit
)


@settings(max_examples=60, deadline=None)
@given(st.lists(batch_of_rows, min_size=1, max_size=22), st.sampled_from([1, 3, 62]))
def test_state_is_what_a_dictionary_holds(batches, bits):
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), SUM, bits=bits)
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
    layer_module._open_layers.clear()
    store = Store(tmp_path, SUM)
    chance = np.random.default_rng(1)
    rows = pa.table(
        {"k": ["x"] * 400, "j": np.arange(400), "add": np.ones(400, dtype=np.int64)}, ROWS
    )
    route = [s % 2 for s in range(SHARDS)]
    for batch_id in range(4):
        store.run(batch_id, rows.take(chance.permutation(400)), route, [0, 1])
    assert store.reads == {"own": 3 * SHARDS, "durable": 0}
    moved = [1, *route[1:]]
    store.run(4, rows, moved, [0, 1])
    assert store.reads == {"own": 3 * SHARDS + SHARDS - 1, "durable": 1}
    store.run(5, rows, moved, [0, 1])
    assert store.reads == {"own": 4 * SHARDS + SHARDS - 1, "durable": 1}


def test_rows_past_their_time_to_live_are_gone(tmp_path):
    keep_all = dataclasses.replace(
        SUM,
        update=lambda b: Update(
            output=b.keys, upserts=b.keys.append_column("total", b.aligned()["total"].fill_null(1))
        ),
    )
    store = Store(tmp_path, keep_all, ttl_us=100)
    one = pa.Table.from_pylist([{"k": "a", "j": 1, "add": 1}], ROWS)
    two = pa.Table.from_pylist([{"k": "b", "j": 1, "add": 1}], ROWS)
    store.run(0, one, [0] * SHARDS, [0], at_us=1000)
    store.run(1, two, [0] * SHARDS, [0], at_us=1050)
    assert {r["k"] for r in store.state(1, at_us=1099).to_pylist()} == {"a", "b"}
    assert {r["k"] for r in store.state(1, at_us=1100).to_pylist()} == {"b"}


def test_a_missing_or_short_file_is_named(tmp_path):
    store = Store(tmp_path, SUM)
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
    store = Store(tmp_path, dataclasses.replace(SUM, update=update))
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
    store = Store(tmp_path, bound)
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
