"""Rows that were combined before the shuffle give the same result as the rows, bit for bit."""

import datetime as dt
import math
import struct
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import TidegateError
from tidegate.pipelines import functions as tg
from tidegate.pipelines.functions.combine import panes_us
from tidegate.pipelines.keyed import ROWS

KEY = pa.schema([("k", pa.string()), ("j", pa.int32())])
ROW = pa.schema(
    [
        *KEY,
        ("v", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
START = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
FAR_US = 2**62


def maybe(strategy):
    return st.one_of(st.none(), strategy)


row = st.fixed_dictionaries(
    {
        "k": st.sampled_from([None, "a", "b"]),
        "j": st.integers(0, 2),
        "v": maybe(st.integers(-3, 3) | st.sampled_from([2**62, -(2**62), 2**40])),
        "f": maybe(st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.inf])),
        "s": maybe(st.sampled_from(["", "x", "xy", "é"])),
        "d": maybe(st.integers(0, 3).map(lambda n: dt.date(2024, 1, 1 + n))),
        "timestamp": maybe(st.integers(0, 40).map(lambda s: START + dt.timedelta(seconds=s))),
    }
)
batches = st.lists(
    st.tuples(
        st.lists(row, max_size=16),
        st.lists(st.integers(0, 16), max_size=3),
        st.integers(1, 3),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=6,
)

FUNCTIONS = {
    "count": tg.count(),
    "count of values": tg.count("f"),
    "sum": tg.sum("v"),
    "mean": tg.mean("v"),
    "min of floats": tg.min("f"),
    "max of floats": tg.max("f"),
    "max of strings": tg.max("s"),
    "min of dates": tg.min("d"),
    "latest": tg.latest("v", "f", by="s"),
    "aggregate": tg.aggregate(
        n=tg.count(),
        total=tg.sum("v"),
        average=tg.mean("v"),
        low=tg.min("f"),
        last=tg.latest("v", "timestamp", by="d"),
    ),
    "top": tg.top_n(2, by="s", of=("v", "f")),
    "top of all columns": tg.top_n(2, by="f"),
    "tumbling": tg.window(
        tg.aggregate(n=tg.count(), low=tg.min("f"), last=tg.latest("v", by="s")), every="10 seconds"
    ),
    "tumbling, late": tg.window(tg.sum("v"), every="5 seconds", delay="3 seconds", emit="update"),
    "sliding": tg.window(
        tg.aggregate(n=tg.count(), total=tg.sum("v"), last=tg.max("d")),
        every="4 seconds",
        size="10 seconds",
        emit="update",
    ),
    "sliding top": tg.window(
        tg.top_n(2, by="s", of=("v", "timestamp")), every="5 seconds", size="15 seconds"
    ),
    "top, changed only": tg.window(tg.top_n(1, by="s", of="v"), every="10 seconds", emit="update"),
}


def bits(table: pa.Table) -> list[tuple]:
    """All values of a table as they are in memory: NaN equals NaN, and 0.0 is not -0.0."""

    def told(value):
        if isinstance(value, float):
            return struct.pack("d", value)
        if isinstance(value, dict):
            return tuple((name, told(one)) for name, one in value.items())
        return tuple(map(told, value)) if isinstance(value, list) else value

    return [tuple(told(one) for one in record.values()) for record in table.to_pylist()]


def combined(combiner, rows: pa.Table, cuts: list[int], until_us: int = FAR_US) -> pa.Table:
    """The rows as the tasks of a first stage would send them: each has consecutive rows."""
    ends = sorted({min(cut, rows.num_rows) for cut in cuts} | {rows.num_rows})
    parts, start = [], 0
    for end in ends:
        if end > start:
            parts.append(combiner.combine(rows.slice(start, end - start), until_us))
        start = end
    return pa.concat_tables(parts) if parts else combiner.rows.empty_table()


def run(store: Store, number: int, rows: pa.Table, tasks: int, tries: int) -> dict | str:
    route = [(shard * 7 + number) % tasks for shard in range(SHARDS)]
    try:
        ran = store.run(number, rows, route, list(range(tasks)), tries=tries)
    except TidegateError as error:
        return str(error)
    late = ran["late"]
    stand_for = late[ROWS].to_pylist() if ROWS in late.column_names else [1] * late.num_rows
    return {"output": bits(ran["output"]), "late": sum(stand_for)}


def emitting(bound, update):
    """The function with an empty table in the place of no output."""

    def told(batch):
        made = update(batch)
        return replace(made, output=made.output or bound.output.empty_table())

    return told


@pytest.mark.parametrize("name", FUNCTIONS)
@given(batches=batches, hash_bits=st.sampled_from([62, 3]))
@settings(max_examples=40, deadline=None)
def test_combined_rows_give_the_same_output_and_state(name, batches, hash_bits):
    """Under any cut into tasks, any number of tasks, shards that move, replays and collisions.

    Keys whose hashes collide are emitted as they appear, and the largest rows of a key may appear
    later than its first row. So the order of the output is compared only without collisions.
    """
    bound = FUNCTIONS[name].bind(ROW, ("k", "j"))
    combiner = bound.combiner
    assert combiner is not None
    plain = replace(bound, update=emitting(bound, bound.update))
    ours = replace(bound, update=emitting(bound, combiner.update), event_time=combiner.time)
    with tempfile.TemporaryDirectory() as scratch:
        stores = [
            Store(Path(scratch) / str(n), one, KEY, bits=hash_bits)
            for n, one in enumerate((plain, ours))
        ]
        for number, (records, cuts, tasks, tries) in enumerate(batches):
            rows = pa.Table.from_pylist(records, schema=ROW)
            fewer = combined(combiner, rows, cuts)
            assert sum(fewer[ROWS].to_pylist()) == rows.num_rows
            assert fewer.num_rows <= rows.num_rows
            expected = run(stores[0], number, rows, tasks, 1)
            found = run(stores[1], number, fewer, tasks, tries)
            if hash_bits < 62 and isinstance(expected, dict) and isinstance(found, dict):
                found["output"].sort(key=repr)
                expected["output"].sort(key=repr)
            assert found == expected
            if isinstance(expected, str):  # a total of more than 64 bits ends both
                return
            assert sorted(bits(stores[1].state(number)), key=repr) == sorted(
                bits(stores[0].state(number)), key=repr
            )


@pytest.mark.parametrize(
    "function",
    [
        tg.sum("f"),
        tg.mean("f"),
        tg.count(weight="f"),
        tg.aggregate(n=tg.count(), total=tg.sum("f")),
        tg.window(tg.min("f"), every="5 seconds", size="10 seconds"),
        tg.window(tg.latest("v"), every="5 seconds", size="10 seconds"),
        tg.sessions(gap="5 seconds"),
    ],
)
def test_what_would_not_be_exact_is_not_combined(function):
    """Floats are added in the order of their rows, and a sliding window's panes come mixed."""
    assert function.bind(ROW, ("k",)).combiner is None


def table(**columns) -> pa.Table:
    count = len(next(iter(columns.values())))
    given = {"k": ["a"] * count, "j": [0] * count, **columns}
    return pa.table({name: given.get(name, [None] * count) for name in ROW.names}, schema=ROW)


def test_a_key_with_half_the_rows_becomes_one_row():
    """However many rows a key has, its task gets one row of each task that read some."""
    rows = table(k=["hot"] * 1000 + [f"k{n}" for n in range(1000)], v=[1] * 2000)
    combiner = tg.aggregate(n=tg.count(), total=tg.sum("v")).bind(ROW, ("k",)).combiner
    assert combiner is not None
    found = combiner.combine(rows, FAR_US)
    assert found.num_rows == 1001
    assert found.slice(0, 1).to_pylist() == [
        {"k": "hot", "__part_n": 1000, "__part_total": 1000, ROWS: 1000}
    ]


def test_totals_that_could_pass_64_bits_are_not_combined():
    """A part could wrap around where the whole does not."""
    combiner = tg.sum("v").bind(ROW, ("k",)).combiner
    assert combiner is not None
    rows = table(v=[2**62, 2**62, -(2**62), -(2**62)])
    assert combiner.combine(rows, FAR_US)[ROWS].to_pylist() == [1, 1, 1, 1]


def test_rows_with_times_of_the_future_stay_apart():
    """They do not move the watermark, so they must not be in one row with others that do."""
    combiner = tg.window(tg.count(), every="10 seconds").bind(ROW, ("k",)).combiner
    assert combiner is not None
    rows = table(timestamp=[START, START, START + dt.timedelta(days=365)])
    until_us = int((START + dt.timedelta(days=1)).timestamp() * 1e6)
    assert combiner.combine(rows, until_us)[ROWS].to_pylist() == [1, 1, 1]
    assert combiner.combine(rows.slice(0, 2), until_us)[ROWS].to_pylist() == [2]


@given(every=st.integers(1, 60), extra=st.integers(0, 60), at=st.integers(0, 10_000))
def test_rows_of_one_pane_lie_in_the_same_windows(every, extra, at):
    """A pane may be no longer than that."""
    size = every + extra
    pane = panes_us(every, size)
    start = at // pane * pane

    def windows(time):
        newest = time // every
        return {n for n in range(newest - size // every - 1, newest + 1) if n * every + size > time}

    assert windows(at) == windows(start) == windows(start + pane - 1)
