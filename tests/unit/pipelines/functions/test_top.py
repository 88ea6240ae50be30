"""The largest rows per key: any batches and routes give what sorting all rows gives."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly
from tidegate.pipelines import functions as tg

KEY = pa.schema([("k", pa.string())])

TYPES = {
    "whole": (pa.int64(), st.integers(-3, 3) | st.just(-(2**63))),
    "fraction": (pa.float64(), st.sampled_from([-1.5, -0.0, 0.0, 2.0, float("inf")])),
    "word": (pa.string(), st.sampled_from(["", "a", "ab", "b"])),
}


def rows_of(values):
    row = st.tuples(st.sampled_from([None, "a", "b"]), st.none() | values)
    batch = st.tuples(st.lists(row, max_size=10), st.integers(1, 3), st.integers(0, 99))
    return st.lists(batch, min_size=1, max_size=4)


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=12, deadline=None)
@given(data=st.data(), n=st.integers(1, 4))
def test_lists_are_what_sorting_all_rows_gives(kind, data, n):
    type_, values = TYPES[kind]
    schema = pa.schema([*KEY, ("v", type_), ("id", pa.int64())])
    bound = tg.top_n(n, by="v").bind(schema, ("k",))
    seen: dict = {}
    lists: dict = {}
    number = 0
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), bound, KEY)
        batches = data.draw(rows_of(values))
        for batch_id, (rows, tasks, seed) in enumerate(batches):
            route = np.random.default_rng(seed).integers(0, tasks, SHARDS).tolist()
            table = []
            for k, v in rows:
                number += 1
                table.append({"k": k, "v": v, "id": number})
                seen.setdefault(k, []).append((v, number))
            before = dict(lists)
            for k, all_rows in seen.items():
                valued = [r for r in all_rows if r[0] is not None]
                lists[k] = sorted(valued, key=lambda r: r[0], reverse=True)[:n]
            output = store.run(
                batch_id, pa.Table.from_pylist(table, schema), route, list(range(tasks))
            )["output"]
            assert output.schema == bound.output
            told: dict = {}
            for r in output.to_pylist():
                told.setdefault(r["k"], []).append((r["rank"], (r["v"], r["id"])))
            changed = {k for k in lists if lists[k] != before.get(k, [])}
            assert told == {k: list(enumerate(lists[k], 1)) for k in changed}
        state = store.state(len(batches) - 1).to_pylist()
        found = {r["k"]: [(t["v"], t["id"]) for t in r["top"]] for r in state}
        assert found == {k: v for k, v in lists.items() if v}


def test_only_what_is_asked_for_is_kept():
    schema = pa.schema([*KEY, ("v", pa.int64()), ("a", pa.string()), ("b", pa.string())])
    assert tg.top_n(2, by="v", of="b").bind(schema, ("k",)).output.names == ["k", "rank", "v", "b"]
    named = tg.top_n(2, by="v", as_="place").bind(schema, ("k",))
    assert named.output.names == ["k", "place", "v", "a", "b"]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: tg.top_n(0, by="v"), "n=0; give at least 1"),
        (lambda: tg.top_n(2, by="w"), "no column 'w'"),
        (lambda: tg.top_n(2, by="v", of=("rnk",)), "no column 'rnk'; did you mean 'rank'"),
        (lambda: tg.top_n(2, by="v"), "two columns would be named 'rank'"),
        (lambda: tg.aggregate(t=tg.top_n(2, by="v")), "'t' is a Top"),
    ],
)
def test_a_wrong_ask_is_answered_before_anything_starts(make, message):
    schema = pa.schema([*KEY, ("v", pa.int64()), ("rank", pa.int64())])
    with pytest.raises(AskedWrongly, match=message):
        make().bind(schema, ("k",))
