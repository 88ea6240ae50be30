"""Rows get the columns of a table, a fixed one or one that changes, as a dictionary would tell."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tests.unit.pipelines.functions.test_join import packed
from tidegate.errors import AskedWrongly
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions.enrich import enrichment_of
from tidegate.pipelines.functions.lookup import lookup_of

ROWS = pa.schema([("k", pa.string()), ("n", pa.int64())])
TABLE = pa.schema([("id", pa.string()), ("n", pa.int64()), ("city", pa.string())])

key = st.sampled_from([None, "", "a", "b", "c"])
rows = st.lists(st.tuples(key, st.integers(0, 99)), max_size=10)
changes = st.lists(
    st.tuples(key, st.integers(0, 99), st.sampled_from([None, "x", "y"])), max_size=6
)
batch = st.tuples(
    rows,
    changes,
    st.integers(1, 4),  # tasks
    st.integers(0, 1000),  # seed of the route and of the nodes
    st.sampled_from([1, 1, 2]),  # tries before the commit
)


def table_of(rows: list[tuple], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, r, strict=True)) for r in rows], schema)


@settings(max_examples=40, deadline=None)
@given(st.lists(batch, min_size=1, max_size=8), st.sampled_from(["left", "inner"]))
def test_rows_get_the_newest_row_of_a_table_that_changes(batches, how):
    asked = enrichment_of((ROWS, TABLE), (("k",), ("id",)), how, "_of_it", "enrich")
    bound = asked.bind(asked.packing.schema, ("k",))
    assert bound.output.names == ["k", "n", "n_of_it", "city"]
    known: dict = {}
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), bound, pa.schema([asked.packing.schema.field("k")]))
        for batch_id, (its, news, tasks, seed, tries) in enumerate(batches):
            chance = np.random.default_rng(seed)
            mixed = packed(asked.packing, [table_of(its, ROWS), table_of(news, TABLE)])
            order = np.concatenate([len(its) + np.arange(len(news)), np.arange(len(its))])
            ran = store.run(
                batch_id,
                mixed.take(pa.array(order)) if seed % 2 else mixed,
                chance.integers(0, tasks, SHARDS).tolist(),
                chance.integers(0, 3, tasks).tolist(),
                tries=tries,
            )
            known.update({k: (n, city) for k, n, city in news if k is not None})
            expected = [
                (k, n, *known.get(k, (None, None))) for k, n in its if how == "left" or k in known
            ]
            found = [tuple(row.values()) for row in ran["output"].to_pylist()]
            assert sorted(found, key=repr) == sorted(expected, key=repr)


@given(
    rows,
    st.dictionaries(st.sampled_from(["", "a", "b", "zz"]), st.integers(0, 9)),
    st.sampled_from(["left", "inner"]),
    st.booleans(),
)
def test_rows_get_the_row_of_a_table_that_stays(its, entries, how, numbered):
    """`numbered`: by a number and a string, the number with nulls."""
    table = table_of([(k, n, f"city of {k}") for k, n in entries.items()], TABLE)
    keys, others, expected = ("k",), ("id",), {k: (n, f"city of {k}") for k, n in entries.items()}
    if numbered:
        keys, others = ("n", "k"), ("n", "id")
        expected = {k: (f"city of {k}",) for k in entries}
        its = [(k, None if n % 3 == 0 else n % 10) for k, n in its]
    lookup = lookup_of(ROWS, table, keys, others, how, "_of_it", "enrich")
    made = lookup(table_of(its, ROWS))
    nothing = (None,) if numbered else (None, None)
    wanted, kept = [], []
    for k, n in its:
        there = k in entries and (not numbered or entries[k] == n)
        kept.append(there)
        if there or how == "left":
            wanted.append((k, n, *(expected[k] if there else nothing)))
    if how == "inner":
        assert isinstance(made, Derived)
        assert list(made.parents) == kept
        made = made.rows
    assert [tuple(row.values()) for row in made.to_pylist()] == wanted
    assert made.schema == lookup.output


@pytest.mark.parametrize(
    ("table", "how", "said"),
    [
        (table_of([("a", 1, "x"), ("a", 2, "y")], TABLE), "left", "more than once"),
        (table_of([], TABLE), "right", "give 'left' or 'inner'"),
        (table_of([], TABLE).select(["id"]), "left", "nothing to add"),
        ({"id": ["a"]}, "left", "expected an Arrow table"),
        (pa.table({"id": [1], "x": [2]}), "left", "cast one of them"),
        (
            pa.table({"id": ["a"], "x": pa.array(["x" * (65 << 20)])}),
            "left",
            "give it as a stream",
        ),
    ],
)
def test_a_table_that_cannot_be_looked_up_is_refused(table, how, said):
    with pytest.raises(AskedWrongly, match=said):
        lookup_of(ROWS, table, ("k",), ("id",), how, "_right", "enrich")
