"""Aggregates over any batches and routes give what one pass in plain Python gives."""

import datetime as dt
import math
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines import functions as tg

KEY = pa.schema([("k", pa.string()), ("j", pa.int32())])
ROWS = pa.schema(
    [
        *KEY,
        ("v", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("w", pa.float64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
START = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
NAMES = ("k", "j")


def maybe(strategy):
    return st.one_of(st.none(), strategy)


row = st.fixed_dictionaries(
    {
        "k": st.sampled_from([None, "a", "b"]),
        "j": st.integers(0, 2),
        "v": maybe(st.integers(-(2**50), 2**50)),
        "f": maybe(st.floats(-1e6, 1e6) | st.just(math.nan)),
        "s": maybe(st.sampled_from(["", "x", "xy", "é"])),
        "w": maybe(st.sampled_from([0.5, 1.0, 4.0])),
        "timestamp": maybe(st.integers(0, 5).map(lambda s: START + dt.timedelta(seconds=s))),
    }
)
batches = st.lists(
    st.tuples(st.lists(row, max_size=12), st.integers(1, 3), st.integers(0, 99)),
    min_size=1,
    max_size=5,
)

EVERYTHING = tg.aggregate(
    n=tg.count(),
    some=tg.count("s"),
    heavy=tg.count(weight="w"),
    total=tg.sum("v"),
    floating=tg.sum("f"),
    product=tg.sum("v", weight="w"),
    average=tg.mean("v"),
    weighted=tg.mean("v", weight="w"),
    low=tg.min("f"),
    high=tg.max("f"),
    first_word=tg.min("s"),
    last_word=tg.max("s"),
    last=tg.latest("v", "s"),
)


def expected(rows: list[dict]) -> dict:
    """What the aggregate of one key's rows is, one row after the other."""

    def order(value):
        return (math.isnan(value), value) if isinstance(value, float) else value

    def present(name):
        return [r[name] for r in rows if r[name] is not None]

    def running(values):
        total = 0
        for value in values:
            total += value
        return total if values else None

    products = [float(r["v"]) * r["w"] for r in rows if None not in (r["v"], r["w"])]
    weights = [r["w"] for r in rows if None not in (r["v"], r["w"])]
    last = None
    for r in rows:
        if r["timestamp"] is not None and (last is None or r["timestamp"] >= last["timestamp"]):
            last = r
    return {
        "n": len(rows),
        "some": len(present("s")),
        "heavy": running(present("w")) or 0.0,
        "total": running(present("v")),
        "floating": running(present("f")),
        "product": running(products),
        "average": running(present("v")) / len(present("v")) if present("v") else None,
        "weighted": running(products) / running(weights) if weights else None,
        "low": min(present("f"), key=order, default=None),
        "high": max(present("f"), key=order, default=None),
        "first_word": min(present("s"), default=None),
        "last_word": max(present("s"), default=None),
        "last_v": last and last["v"],
        "last_s": last and last["s"],
    }


def same(left, right) -> bool:
    """Equal to the last bit, and NaN equals NaN."""
    return left == right or (left != left and right != right)


@settings(max_examples=15, deadline=None)
@given(batches)
def test_any_batches_and_routes_give_what_one_pass_gives(batches):
    bound = EVERYTHING.bind(ROWS, NAMES)
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), bound, KEY)
        seen: dict[tuple, list[dict]] = {}
        for batch_id, (rows, tasks, seed) in enumerate(batches):
            route = np.random.default_rng(seed).integers(0, tasks, SHARDS).tolist()
            table = pa.Table.from_pylist(rows, ROWS)
            output = store.run(batch_id, table, route, list(range(tasks)))["output"]
            assert output.schema == bound.output
            touched = {(r["k"], r["j"]) for r in rows}
            for r in rows:
                seen.setdefault((r["k"], r["j"]), []).append(r)
            found = {(r.pop("k"), r.pop("j")): r for r in output.to_pylist()}
            assert found.keys() == touched and output.num_rows == len(touched)
            for key, result in found.items():
                for name, value in expected(seen[key]).items():
                    assert same(result[name], value), (name, result[name], value)
        state = store.state(len(batches) - 1).to_pylist()
        assert {(r["k"], r["j"]): r["n"] for r in state} == {k: len(v) for k, v in seen.items()}


def run_once(function, rows: pa.Table, key: tuple[str, ...], tmp_path) -> pa.Table:
    bound = function.bind(rows.schema, key)
    schema = pa.schema([rows.schema.field(name) for name in key])
    return Store(tmp_path, bound, schema).run(0, rows, [0] * SHARDS, [0])["output"]


@pytest.mark.parametrize(
    "function, name, value",
    [
        (tg.count(), "count", 3),
        (tg.count("v"), "count_v", 2),
        (tg.count(as_="clicks"), "clicks", 3),
        (tg.sum("v"), "sum_v", 5),
        (tg.mean("v", as_="average"), "average", 2.5),
        (tg.min("v"), "min_v", 2),
        (tg.max("v"), "max_v", 3),
        (tg.latest("v", by="at"), "v", None),
        (tg.latest("v", by="at", as_="last"), "last", None),
        (tg.max("at"), "max_at", dt.date(2024, 1, 3)),
        (tg.min("ok"), "min_ok", False),
    ],
)
def test_a_single_one_is_an_aggregate_of_one(tmp_path, function, name, value):
    days = [dt.date(2024, 1, day) for day in (1, 2, 3)]
    rows = pa.table({"k": [7, 7, 7], "v": [2, 3, None], "at": days, "ok": [True, False, None]})
    assert run_once(function, rows, ("k",), tmp_path).to_pylist() == [{"k": 7, name: value}]


def test_a_bound_function_can_be_sent_to_a_worker():
    bound = EVERYTHING.bind(ROWS, NAMES)
    assert pickle.loads(pickle.dumps(bound)).state == bound.state


def test_sums_are_exact_in_64_bits_and_never_wrap(tmp_path):
    big = 2**62
    rows = pa.table({"k": ["a"] * 3, "v": [big, big - 1, -big]})
    assert run_once(tg.sum("v"), rows, ("k",), tmp_path / "fits")["sum_v"].to_pylist() == [big - 1]
    rows = pa.table({"k": ["a"] * 3, "v": [big, big, 5]})
    with pytest.raises(TidegateError, match="sum of 'v': a total exceeds 64 bits"):
        run_once(tg.sum("v"), rows, ("k",), tmp_path / "wraps")


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: tg.sum("vv"), "no column 'vv'; did you mean 'v'"),
        (lambda: tg.sum("s"), "'s' is string, expected a number"),
        (lambda: tg.mean("timestamp"), "expected a number"),
        (lambda: tg.count(weight="s"), "'s' is string, expected a number"),
        (lambda: tg.count("kk"), "no column 'kk'; did you mean 'k'"),
        (lambda: tg.latest("v", by="timestmp"), "did you mean 'timestamp'"),
        (lambda: tg.latest(), "latest has no column"),
        (lambda: tg.min("tags"), "has no order"),
        (lambda: tg.count(as_="k"), "two columns would be named 'k'"),
        (lambda: tg.aggregate(), "aggregate has no measure"),
        (lambda: tg.aggregate(n=3), "'n' is a int"),
        (lambda: tg.aggregate(n=tg.count(as_="m")), "leave as_ out"),
        (lambda: tg.aggregate(a=tg.mean("v"), a__count=tg.count()), "named 'a__count'"),
    ],
)
def test_a_wrong_ask_is_answered_before_anything_starts(make, message):
    schema = ROWS.append(pa.field("tags", pa.list_(pa.string())))
    with pytest.raises(AskedWrongly, match=message) as error:
        make().bind(schema, NAMES)
    assert "\n" not in str(error.value)
