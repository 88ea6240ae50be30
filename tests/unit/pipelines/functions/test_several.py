"""A function of several inputs gets a table of rows for each of them, and keeps one state."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tests.unit.pipelines.functions.test_join import packed
from tidegate.pipelines.functions.several import several_inputs
from tidegate.pipelines.keyed import PlainFunction, Update
from tidegate.pipelines.packing import packing_of

ORDERS = pa.schema([("item", pa.string()), ("n", pa.int64())])
PRICES = pa.schema([("price", pa.float64()), ("item", pa.string())])
BALANCE = pa.schema([("balance", pa.int64())])

item = st.sampled_from(["a", "b", "c"])
batch = st.tuples(st.lists(item, max_size=6), st.lists(item, max_size=6), st.integers(0, 99))


def balance(ordered: pa.Table, priced: pa.Table, state: pa.Table) -> Update:
    """Orders less prices of each item."""
    assert ordered.column_names == ORDERS.names
    assert priced.column_names == PRICES.names
    items = pa.concat_tables([ordered.select(["item"]), priced.select(["item"])])["item"]
    signs = np.repeat([1, -1], [ordered.num_rows, priced.num_rows])
    now = pa.table({"item": items, "now": signs}).group_by("item").aggregate([("now", "sum")])
    both = now.join(state, "item", join_type="left outer")
    left = pc.add(both["now_sum"], pc.fill_null(both["balance"], 0))
    table = pa.table({"item": both["item"], "balance": left})
    return Update(output=table, upserts=table)


@settings(max_examples=20, deadline=None)
@given(st.lists(batch, min_size=1, max_size=6))
def test_every_input_is_a_table_of_its_own(batches):
    packing = packing_of((ORDERS, PRICES), [("item",), ("item",)], None, "balance")
    key = pa.schema([packing.schema.field("item")])
    own = several_inputs(balance, packing, "balance", None)
    plain = PlainFunction(own, BALANCE, pa.schema([*key, *BALANCE]))
    bound = plain.bind(packing.schema, ("item",))
    assert own.identity()["name"] == "balance"
    truth: Counter = Counter()
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), bound, key)
        for batch_id, (orders, prices, seed) in enumerate(batches):
            tables = [
                pa.table([orders, np.arange(len(orders))], schema=ORDERS),
                pa.table([np.zeros(len(prices)), prices], schema=PRICES),
            ]
            chance = np.random.default_rng(seed)
            route = chance.integers(0, 2, SHARDS).tolist()
            store.run(batch_id, packed(packing, tables), route, [0, 1], tries=1 + seed % 2)
            truth.update(orders)
            truth.subtract(prices)
            state = store.state(batch_id).to_pylist()
            found = {row["item"]: row["balance"] for row in state}
            assert found == dict(truth)
