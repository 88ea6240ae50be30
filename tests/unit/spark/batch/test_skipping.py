"""Rows and keys that a function cannot process are found by halving; all others are processed."""

import dataclasses
import math
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.graph import Graph, Map, Source
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.pipelines.stream import Stream
from tidegate.spark.batch.map_task import MapStage, MapTask, mapped
from tidegate.spark.batch.narrow import narrowed
from tidegate.spark.batch.skip_keys import SkippedKeys, emitted, skipping
from tidegate.spark.batch.worker import ORIGIN

ROWS = pa.schema([("n", pa.int64()), ("text", pa.string())])
OUT = pa.schema([("n", pa.int64())])


def table(texts: list[str]) -> pa.Table:
    return pa.table([pa.array(range(len(texts)), pa.int64()), pa.array(texts)], schema=ROWS)


def parsed(rows: pa.Table) -> pa.Table:
    """Fails on what is no number; leaves out odd numbers, and repeats multiples of four."""
    numbers = rows["text"].cast(pa.int64()).to_numpy()
    times = np.where(numbers % 2 == 1, 0, np.where(numbers % 4 == 0, 2, 1))
    return rows.select(["n"]).take(pa.array(np.repeat(np.arange(len(numbers)), times)))


def with_parents(rows: pa.Table) -> Derived:
    made = parsed(rows)
    place = {n: i for i, n in enumerate(rows["n"].to_pylist())}
    return Derived(made, np.array([place[n] for n in made["n"].to_pylist()], dtype=np.int64))


def stage(function=parsed, **more) -> MapStage:
    return MapStage("parse", function, OUT, skips=True, **more)


some_texts = st.lists(st.sampled_from([*"01234567", "x", ""]), max_size=40)


@settings(max_examples=80, deadline=None)
@given(some_texts, st.booleans())
def test_a_map_leaves_out_the_bad_rows_and_no_other(texts, says_parents):
    part = mapped(stage(with_parents if says_parents else parsed), table(texts))
    bad = [place for place, text in enumerate(texts) if not text.isdigit()]
    good = [place for place in range(len(texts)) if place not in bad]
    expected = [place for place in good for _ in range({0: 2, 2: 1}.get(int(texts[place]) % 4, 0))]
    assert part.rows["n"].to_pylist() == expected
    assert [one.place for one in part.failed] == bad
    assert all(one.error.startswith("ArrowInvalid: ") for one in part.failed)
    assert part.given == len(texts)
    if says_parents and bad:
        assert part.parents.tolist() == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.sets(st.integers(0, 2999), max_size=8))
def test_bad_rows_take_few_calls(count, bad):
    bad = {place for place in bad if place < count}

    def call(begin: int, end: int) -> range:
        if any(begin <= place < end for place in bad):
            raise ValueError("bad")
        return range(begin, end)

    found = narrowed(call, count, "it")
    assert [one.place for one in found.failed] == sorted(bad)
    assert [n for _, _, part in found.done for n in part] == [
        n for n in range(count) if n not in bad
    ]
    assert found.calls <= 1 + 2 * len(bad) * math.ceil(math.log2(count) if count > 1 else 0)


def test_a_function_that_always_fails_fails_the_batch():
    def broken(begin: int, end: int) -> None:
        raise KeyError("prize")

    with pytest.raises(TidegateError, match=r"more than 5 rows or keys .* KeyError: 'prize'"):
        narrowed(broken, 100, "operator 'parse'", most=5)
    with pytest.raises(KeyError):
        narrowed(broken, 0, "operator 'parse'")


class Told:
    def __init__(self) -> None:
        self.reports = []

    def add(self, reports) -> None:
        self.reports += reports


def test_a_task_reports_them_and_puts_them_aside():
    made = stage(asides={"failed": ROWS.append(pa.field("_error", pa.string()))}, origins=True)
    rows = table(["0", "x", "2", "y", "6"]).append_column(
        ORIGIN, pa.array([1, 1, 0, 0, 1], pa.int32())
    )
    told = Told()
    task = MapTask(pickle.dumps(made), 3, told)
    result = pa.Table.from_batches(list(task(iter(rows.to_batches()))))
    output = result.filter(result["__failed"].is_null())
    assert sorted(zip(output["n"].to_pylist(), output[ORIGIN].to_pylist(), strict=True)) == [
        *((0, 1), (0, 1), (2, 0), (4, 1)),
    ]
    aside = result.filter(result["__failed"].is_valid())
    assert [(row["n"], row["text"]) for row in aside["__failed"].to_pylist()] == [
        (3, "y"),
        (1, "x"),
    ]
    assert aside[ORIGIN].to_pylist() == [0, 1]
    (report,) = told.reports
    assert (report.rows_in, report.rows_out, report.skipped_rows) == (5, 4, 2)
    assert report.skipped_error.startswith("ArrowInvalid")


KEY = pa.schema([("k", pa.int64())])
KEYED = pa.schema([*KEY, ("add", pa.int64())])


def adds(batch: KeyedBatch) -> Update:
    """Adds, and fails where a sum would become negative or a row is 13."""
    add = batch.rows["add"].to_numpy()
    old = batch.aligned()["total"].fill_null(0).to_numpy()
    total = old + np.bincount(batch.row_key, weights=add, minlength=batch.keys.num_rows).astype(
        np.int64
    )
    if (total < 0).any() or (add == 13).any():
        raise ArithmeticError("no such sum")
    made = batch.keys.append_column("total", pa.array(total))
    number = np.arange(batch.keys.num_rows)
    gone = total == 7
    return Update(
        output=made,
        upserts=made.filter(pa.array(~gone)),
        upsert_key=number[~gone],
        drops=batch.keys.filter(pa.array(gone)),
        drop_key=number[gone],
        late=add == 0,
    )


BOUND = BoundKeyed(
    update=adds,
    state=pa.schema([("total", pa.int64())]),
    output=pa.schema([*KEY, ("total", pa.int64())]),
)
some_rows = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from([-9, 0, 1, 3, 5, 13])), max_size=25
)


@settings(max_examples=25, deadline=None)
@given(st.lists(some_rows, min_size=2, max_size=8), st.integers(1, 3))
def test_a_key_that_cannot_be_processed_keeps_its_state(batches, tasks):
    with tempfile.TemporaryDirectory() as directory:
        found: list[SkippedKeys] = []
        store = Store(Path(directory), BOUND, KEY)

        def update(batch: KeyedBatch) -> Update:
            made, skipped = skipping(keeper, batch)
            found.append(skipped)
            assert batch.rows.take(pa.array(skipped.rows)).num_rows == len(skipped.errors)
            return dataclasses.replace(made, output=emitted(keeper, made))

        keeper = store.keeper(0)
        store.bound = dataclasses.replace(BOUND, update=update)
        truth: dict[int, int] = {}
        for batch_id, rows in enumerate(batches):
            given_ = pa.table(
                [pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)], schema=KEYED
            )
            found.clear()
            route = [shard % tasks for shard in range(SHARDS)]
            ran = store.run(batch_id, given_, route, [0] * tasks)
            bad_rows, late = 0, 0
            expected = set()
            for key in {key for key, _ in rows}:
                adds_ = [add for other, add in rows if other == key]
                total = truth.get(key, 0) + sum(adds_)
                if total < 0 or 13 in adds_:
                    bad_rows += len(adds_)
                    continue
                late += adds_.count(0)
                expected.add((key, total))
                truth[key] = total
                if total == 7:
                    del truth[key]
            assert sum(skipped.count for skipped in found) == bad_rows
            assert ran["late_rows"] == ran["late"].num_rows == late
            assert {(r["k"], r["total"]) for r in ran["output"].to_pylist()} == expected
            held = store.state(batch_id).to_pylist()
            assert {row["k"]: row["total"] for row in held} == truth


def stream() -> Stream:
    graph = Graph("p")
    graph.add(Source(name="in", inputs=(), schema=ROWS, frame=None))
    return Stream(graph, "in")


def test_a_sink_takes_the_failed_rows():
    made = stream().map(parsed, on_error=lambda frame, batch_id: None)
    node = made.graph.nodes["parsed"]
    assert isinstance(node, Map) and node.on_error == "skip"
    aside = made.graph.nodes["parsed_failed"]
    assert aside.schema.names == ["n", "text", "_error"]
    assert made.graph.nodes["parsed_failed_to"].inputs == ("parsed_failed",)
    assert made.failed().node == "parsed_failed"


def test_mistakes_are_refused():
    with pytest.raises(AskedWrongly, match="on_error='skipp'; did you mean 'skip'"):
        stream().map(parsed, on_error="skipp")
    with pytest.raises(AskedWrongly, match="puts no rows aside"):
        stream().map(parsed).failed()
    with pytest.raises(AskedWrongly, match="puts no rows aside"):
        stream().keyed("n", tg.count(), key="n").failed()
    twice = stream().map(parsed, on_error="skip").failed().map(parsed, on_error="skip")
    with pytest.raises(AskedWrongly, match="have a column '_error' already"):
        twice.failed()
