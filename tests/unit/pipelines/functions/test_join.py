"""A join on the real state, with moves and replays, gives what rows give one by one."""

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.join_reference import JoinByHand
from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.join import Join, join_of
from tidegate.pipelines.identity import same_identity, shown
from tidegate.pipelines.packing import INPUT, Packing, packing_of

AT = pa.timestamp("us", "UTC")
LEFT = pa.schema([("k", pa.string()), ("at", AT), ("n", pa.int64()), ("text", pa.string())])
RIGHT = pa.schema([("n", pa.int64()), ("seen", AT), ("who", pa.string()), ("more", pa.string())])
KEYS = (("k",), ("who",))

key = st.sampled_from(["a", "b", "c", "", None])
time = st.one_of(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.none())
rows = st.lists(st.tuples(key, time), max_size=8)
batch = st.tuples(
    rows,
    rows,
    st.integers(0, 8),  # how far it is ahead of the batch before, in event time
    st.integers(1, 4),  # tasks
    st.integers(0, 1000),  # seed of the route and of the nodes
    st.sampled_from([1, 1, 2]),  # tries before the commit
)
within = st.sampled_from([None, ("0 us", "5 us"), ("7 us", "7 us"), ("3 us", "0 us")])


def join(how: str = "inner", within=("7 us", "7 us"), delay: str = "0 us", ttl=None) -> Join:
    return join_of(
        (LEFT, RIGHT),
        KEYS,
        how=how,
        within=within,
        event_times=("at", "seen"),
        delay=delay,
        suffix="_right",
        ttl=ttl,
        what="join",
    )


def packed(packing: Packing, tables: list[pa.Table]) -> pa.Table:
    """What Spark makes of the rows of several inputs."""
    parts = []
    for number, table in enumerate(tables):
        stands = packing.of(number)
        columns = [
            pa.array([number] * table.num_rows, field.type)
            if field.name == INPUT
            else table[stands[field.name]]
            if field.name in stands
            else pa.nulls(table.num_rows, field.type)
            for field in packing.schema
        ]
        parts.append(pa.table(columns, schema=packing.schema))
    return pa.concat_tables(parts)


def table_of(rows: list[tuple], schema: pa.Schema) -> pa.Table:
    names = {"k": 0, "who": 0, "at": 1, "seen": 1, "n": 2}
    columns = [
        pa.array([row[names[f.name]] for row in rows], f.type)
        if f.name in names
        else pa.array([f"{f.name}{row[2]}" for row in rows], f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(batch, min_size=2, max_size=8),
    st.sampled_from(["inner", "left", "right", "full"]),
    within,
    st.sampled_from([0, 4, 10]),
    st.sampled_from([1, 62]),
)
def test_a_join_is_what_rows_give_one_by_one(batches, how, within, delay, bits):
    how = how if within is not None else "inner"
    asked = join(how, within, f"{delay} us")
    truth = JoinByHand(how, asked.before_us, asked.after_us, delay)
    key = pa.schema([asked.packing.schema.field("k")])
    bound = asked.bind(asked.packing.schema, ("k",))
    number = late_rows = begin = 0
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), bound, key, bits=bits)
        for batch_id, (lefts, rights, ahead, tasks, seed, tries) in enumerate(batches):
            sides = []
            begin += ahead
            for its in (lefts, rights):
                sides.append([])
                for k, at in its:
                    number += 1
                    sides[-1].append((k, None if at is None else at + begin, number))
            chance = np.random.default_rng(seed)
            mixed = packed(asked.packing, [table_of(sides[0], LEFT), table_of(sides[1], RIGHT)])
            ran = store.run(
                batch_id,
                mixed.take(chance.permutation(mixed.num_rows)),
                chance.integers(0, tasks, SHARDS).tolist(),
                chance.integers(0, 3, tasks).tolist(),
                tries=tries,
            )
            late_rows += ran["late_rows"]
            assert ran["output"].schema.names == ["k", "at", "n", "text", "n_right", "seen", "more"]
            found = Counter()
            for row in ran["output"].to_pylist():
                found[(row["k"], row["n"], row["n_right"])] += 1
                assert row["text"] == (None if row["n"] is None else f"text{row['n']}")
                theirs = row["n_right"]
                assert row["more"] == (None if theirs is None else f"more{theirs}")
            assert found == truth.run(*sides)
            assert late_rows == truth.late_rows
            held = Counter(store.state(batch_id)[INPUT].to_pylist())
            waiting = {side: len(rows) for side, rows in enumerate(truth.waiting) if rows}
            assert dict(held) == waiting


def test_columns_share_places():
    packing = packing_of((LEFT, RIGHT), KEYS, ("at", "seen"), "join")
    assert packing.schema.names == [INPUT, "k", "at", "n", "text"]
    assert packing.of(1) == {"n": "n", "at": "seen", "k": "who", "text": "more"}
    wide = packing_of(
        (LEFT, pa.schema([*RIGHT, ("x", pa.string()), ("k", pa.date32())])),
        KEYS,
        ("at", "seen"),
        "join",
    )
    assert wide.schema.names == [INPUT, "k", "at", "n", "text", "x", "k_2"]
    assert wide.of(1)["k_2"] == "k"


def test_every_input_gets_its_rows_back():
    packing = packing_of((LEFT, RIGHT), KEYS, None, "several")
    tables = [
        table_of([("a", 1, 1), ("b", None, 2)], LEFT),
        table_of([("c", 3, 3)], RIGHT),
    ]
    mixed = packed(packing, tables).take(pa.array([2, 0, 1]))
    assert packing.rows_of(0, mixed).equals(tables[0])
    assert packing.rows_of(1, mixed).equals(tables[1])


def test_an_outer_side_may_be_null_in_what_comes_out():
    strict = pa.schema([field.with_nullable(False) for field in LEFT])
    for how, mine, its in (("inner", False, True), ("left", False, True), ("full", True, True)):
        asked = join_of(
            (strict, RIGHT),
            KEYS,
            how=how,
            within="1 s",
            event_times=("at", "seen"),
            delay="0 s",
            suffix="_right",
            ttl=None,
            what="join",
        )
        output = asked.bind(asked.packing.schema, ("k",)).output
        assert output.field("n").nullable is mine
        assert output.field("n_right").nullable is its


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"how": "outer"}, "unknown how='outer'"),
        ({"how": "left", "within": None}, "needs within="),
        ({"within": ("1 s",)}, "give a duration"),
        ({"ttl": "1 hour"}, "leave ttl out"),
        ({"event_times": ("at", "n")}, "expected a timestamp"),
        ({"keys": (("k",), ("n",))}, "cast one of them"),
        ({"keys": (("k",), ("who", "n"))}, "name as many columns"),
        ({"keys": (("k", "at"), ("who", "seen"))}, "part of the key"),
        ({"suffix": ""}, "two columns would be named 'n'"),
    ],
)
def test_what_cannot_be_joined_is_refused(change, said):
    asked = {
        "inputs": (LEFT, RIGHT),
        "keys": KEYS,
        "how": "inner",
        "within": "7 us",
        "event_times": ("at", "seen"),
        "delay": "0 us",
        "suffix": "_right",
        "ttl": None,
        "what": "join",
    }
    with pytest.raises(AskedWrongly, match=said):
        made = join_of(**{**asked, **change})
        made.bind(made.packing.schema, ("k",))


def test_other_columns_are_another_meaning_of_the_state():
    asked = join()
    wider = pa.schema([("new", pa.string()), *RIGHT])
    other = replace(asked, packing=packing_of((LEFT, wider), KEYS, ("at", "seen"), "join"))
    assert not same_identity(asked.identity(), other.identity())
    assert same_identity(asked.identity(), replace(asked, delay="1 s", suffix="_too").identity())
    assert "who: k" in shown(asked.identity())
