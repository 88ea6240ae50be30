"""Old rows read as new columns: every value that was there is the same, the rest is the default."""

import dataclasses
import datetime
import decimal
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly
from tidegate.pipelines.defaults import default_of, with_defaults
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.spark.state.evolution import read_through, widens
from tidegate.spark.state.layout import file_schema, with_system
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.read import read_version

TYPES = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(5, 2),
    pa.decimal128(12, 2),
    pa.decimal128(21, 4),
    pa.decimal128(38, 0),
    pa.string(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.list_(pa.int32()),
    pa.list_(pa.int64()),
    pa.list_(pa.field("item", pa.int32(), nullable=False)),
    pa.struct([("a", pa.int32()), ("b", pa.float32())]),
    pa.struct([("a", pa.int64()), ("b", pa.float64())]),
    pa.struct([("b", pa.float64()), ("a", pa.int64())]),
]


def values_of(kind: pa.DataType) -> st.SearchStrategy:
    """Values of a type, the extreme ones among them."""
    if pa.types.is_integer(kind):
        reach = 2 ** (kind.bit_width - 1)
        return st.sampled_from([-reach, reach - 1, 0]) | st.integers(-reach, reach - 1)
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width, allow_nan=False)
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(
            lambda n: decimal.Decimal(n).scaleb(-kind.scale, decimal.Context(prec=60))
        )
    if pa.types.is_list(kind):
        return st.lists(values_of(kind.value_type), max_size=3)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    if pa.types.is_string(kind):
        return st.text(max_size=5)
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_date(kind):
        return st.dates()
    return st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2200, 1, 1)).map(
        lambda at: at.replace(tzinfo=datetime.UTC) if kind.tz else at
    )


@given(st.sampled_from(TYPES), st.sampled_from(TYPES), st.data())
def test_a_wider_type_has_every_value_as_it_was(old, new, data):
    if not widens(old, new):
        return
    values = data.draw(st.lists(values_of(old) | st.none(), max_size=5))
    if pa.types.is_list(old) and not old.value_field.nullable:
        values = [v for v in values if v is not None]
    rows = pa.table({"x": pa.array(values, old)})
    assert read_through(rows, [pa.schema([("x", new)])])["x"].to_pylist() == values


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.float64()),  # 2^53 + 1 is no double
        (pa.int32(), pa.float32()),
        (pa.float64(), pa.float32()),
        (pa.float32(), pa.int64()),
        (pa.int32(), pa.string()),
        (pa.string(), pa.int64()),
        (pa.int64(), pa.decimal128(18, 0)),
        (pa.decimal128(12, 2), pa.decimal128(12, 4)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.date32(), pa.timestamp("us")),
        (pa.bool_(), pa.int32()),
        (pa.list_(pa.int64()), pa.list_(pa.int32())),
        (pa.list_(pa.int32()), pa.list_(pa.field("item", pa.int32(), nullable=False))),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int32()), ("b", pa.int32())])),
    ],
)
def test_what_could_change_a_value_is_no_widening(old, new):
    assert not widens(old, new)


@given(st.sampled_from(TYPES), st.data())
def test_a_default_is_the_value_that_was_declared(kind, data):
    value = data.draw(values_of(kind))
    schema = with_defaults(pa.schema([("x", kind)]), {"x": value}, "operator 'op'")
    back = pa.ipc.read_schema(schema.serialize())  # as the checkpoint's description keeps it
    assert default_of(back.field("x")).as_py() == value
    rows = read_through(pa.table({"k": [1, 2]}), [pa.schema([("k", pa.int64()), *back])])
    assert rows.to_pylist() == [{"k": 1, "x": value}, {"k": 2, "x": value}]


def test_a_default_that_the_column_cannot_have_is_refused():
    columns = pa.schema([("n", pa.int32()), pa.field("must", pa.int32(), nullable=False)])
    for defaults, said in [
        ({"m": 0}, "'m', which is no column of the state; known: must, n"),
        ({"n": "zero"}, "the default 'zero' of the state column 'n' is not of its type int32"),
        ({"n": 2**40}, "is not of its type int32"),
        ({"must": None}, "'must' is not of its type int32, which has no null"),
    ]:
        with pytest.raises(AskedWrongly, match=said):
            with_defaults(columns, defaults, "operator 'op'")


def test_a_column_that_went_and_came_back_has_its_new_default_in_the_oldest_rows():
    first = pa.schema([("k", pa.int64()), ("n", pa.int32())])
    without = pa.schema([("k", pa.int64())])
    again = pa.schema([("k", pa.int64()), ("n", pa.string())])
    again = with_defaults(again, {"n": "none yet"}, "operator 'op'")
    rows = pa.table({"k": [1], "n": [7]}, first)
    assert read_through(rows, [without, again]).to_pylist() == [{"k": 1, "n": "none yet"}]


KEY = pa.schema([("k", pa.int64())])
ROWS = pa.schema([("k", pa.int64()), ("add", pa.int64())])
LAYOUTS = [
    pa.schema([("total", pa.int32())]),
    pa.schema([("total", pa.int64())]),
    with_defaults(pa.schema([("n", pa.int64()), ("total", pa.int64())]), {"n": 100}, "op"),
    pa.schema([("total", pa.int64())]),
    with_defaults(pa.schema([("total", pa.int64()), ("n", pa.float64())]), {"n": 0.5}, "op"),
]


def adding(state: pa.Schema) -> BoundKeyed:
    """Adds to the total, counts in `n` where there is one, and drops multiples of 7."""

    def update(batch: KeyedBatch) -> Update:
        old = batch.aligned()
        table = batch.keys
        for column in state:
            add = np.ones(len(batch.row_key)) if column.name == "n" else batch.rows["add"]
            sums = np.bincount(batch.row_key, add, minlength=batch.keys.num_rows)
            whole = pa.array(sums).cast(column.type)
            kept = old[column.name].combine_chunks().fill_null(0)
            table = table.append_column(column.name, pa.compute.add(kept, whole))
        gone = table["total"].to_numpy() % 7 == 0
        number = np.arange(batch.keys.num_rows)
        return Update(
            output=table.select(["k"]),
            upserts=table.filter(pa.array(~gone)),
            upsert_key=number[~gone],
            drops=batch.keys.filter(pa.array(gone)),
            drop_key=number[gone],
        )

    return BoundKeyed(update=update, state=state, output=KEY)


class Evolving(Store):
    """A store whose operator gets other columns between two batches."""

    def __init__(self, root: Path, bits: int) -> None:
        super().__init__(root, adding(LAYOUTS[0]), KEY, bits=bits)
        self.at = 0

    def evolve(self) -> None:
        self.at += 1
        self.bound = adding(LAYOUTS[self.at])

    @property
    def earlier(self) -> tuple[pa.Schema, ...]:
        return tuple(with_system(pa.schema([*KEY, *state])) for state in LAYOUTS[: self.at])

    def keeper(self, node: int):
        plain = super().keeper(node)
        cache: NodeCache = dataclasses.replace(plain.cache, earlier=self.earlier)
        return dataclasses.replace(plain, cache=cache)

    def rows(self, batch_id: int) -> list[dict]:
        version = self.manifests.read(batch_id, {"op": SHARDS})["op"]
        schema = file_schema(self.key, self.bound)
        return read_version(self.durable, version, ["k"], None, 0, schema, self.earlier).to_pylist()


step = st.tuples(
    st.lists(st.tuples(st.integers(0, 15), st.integers(1, 20)), max_size=12),
    st.integers(1, 3),  # tasks
    st.integers(0, 1000),  # seed of the route and of the nodes
    st.booleans(),  # whether the columns change before it
)


@settings(max_examples=25, deadline=None)
@given(st.lists(step, min_size=6, max_size=24), st.sampled_from([2, 62]))
def test_state_that_evolves_is_what_a_dictionary_that_was_converted_at_once_holds(steps, bits):
    with tempfile.TemporaryDirectory() as directory:
        store = Evolving(Path(directory), bits)
        truth: dict[int, dict] = {}
        for batch_id, (rows, tasks, seed, evolves) in enumerate(steps):
            if evolves and store.at + 1 < len(LAYOUTS):
                store.evolve()
                now = LAYOUTS[store.at]
                for row in truth.values():
                    for column in now:
                        row.setdefault(column.name, default_of(column).as_py())
                    for name in set(row) - set(now.names):
                        del row[name]
            chance = np.random.default_rng(seed)
            route = chance.integers(0, tasks, SHARDS).tolist()
            table = pa.Table.from_pylist([{"k": k, "add": a} for k, a in rows], ROWS)
            store.run(batch_id, table, route, chance.integers(0, 3, tasks).tolist())
            for key in {key for key, _ in rows}:
                mine = [a for k, a in rows if k == key]
                row = truth.setdefault(key, dict.fromkeys(store.bound.state.names, 0))
                row["total"] += sum(mine)
                if "n" in row:
                    row["n"] += len(mine)
                if row["total"] % 7 == 0:
                    del truth[key]
            found = {row.pop("k"): row for row in store.rows(batch_id)}
            assert found == truth


def test_old_files_stay_as_they_are_and_mapped(tmp_path):
    store = Evolving(tmp_path, 62)
    rows = pa.table({"k": range(100_000), "add": [1] * 100_000}, ROWS)
    store.run(0, rows, [0] * SHARDS, [0])
    before = store.durable.names()
    store.evolve()
    store.evolve()
    few = pa.table({"k": [1], "add": [2]}, ROWS)
    store.run(1, few, [0] * SHARDS, [0])
    assert set(before) < set(store.durable.names())
    file = store.manifests.read(1, {})["op"].files[0]
    layer, _ = store.keeper(0).cache.layer(file, 0, file_schema(KEY, store.bound))
    assert layer.heap_bytes < 1_000 < layer.mapped_bytes
    found = {row["k"]: row for row in store.rows(1)}
    assert found[1] == {"k": 1, "n": 101, "total": 3}
    assert found[2] == {"k": 2, "n": 100, "total": 1}
