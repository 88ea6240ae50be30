"""Aggregates that end: each key is emitted once, when the watermark has passed its time."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly

SECOND = 1_000_000
TIME = pa.timestamp("us", "UTC")
ROWS = pa.schema([("k", pa.int64()), ("hour", TIME), ("at", TIME), ("v", pa.int64())])
KEY = pa.schema([ROWS.field("k"), ROWS.field("hour")])
LASTS_S, DELAY_S = 10, 3


def table(rows: list[tuple[int, int | None, int]]) -> pa.Table:
    """Rows of (key, event second, value), grouped by ten seconds."""
    hours = [None if s is None else s // LASTS_S * LASTS_S * SECOND for _, s, _ in rows]
    at = [None if s is None else s * SECOND for _, s, _ in rows]
    columns = [[k for k, _, _ in rows], hours, at, [v for _, _, v in rows]]
    arrays = [pa.array(column, pa.int64()) for column in columns]
    return pa.table(arrays, names=ROWS.names).cast(ROWS)


class Hours:
    """The same, row by row."""

    def __init__(self, emit: str) -> None:
        self.emit, self.newest_s = emit, None
        self.open: dict[tuple[int, int], int] = {}
        self.late = 0

    def run(self, rows: list[tuple[int, int | None, int]]) -> set[tuple[int, int, int]]:
        over_s = None if self.newest_s is None else self.newest_s - DELAY_S
        changed = set()
        for key, second, value in rows:
            hour = None if second is None else second // LASTS_S * LASTS_S
            if hour is None or (over_s is not None and hour + LASTS_S <= over_s):
                self.late += 1
                continue
            self.open[key, hour] = self.open.get((key, hour), 0) + value
            changed.add((key, hour))
        closed = {
            (key, hour)
            for key, hour in self.open
            if over_s is not None and hour + LASTS_S <= over_s
        }
        told = changed if self.emit == "update" else closed
        out = {(*one, self.open[one]) for one in told}
        for one in closed:
            del self.open[one]
        seconds = [second for _, second, _ in rows if second is not None]
        if seconds:
            self.newest_s = max([*seconds, *([] if self.newest_s is None else [self.newest_s])])
        return out


some_row = st.tuples(
    st.integers(0, 3), st.one_of(st.none(), st.integers(-25, 6)), st.integers(-5, 5)
)
batch = st.tuples(st.lists(some_row, max_size=15), st.integers(0, 8), st.integers(0, 1000))


@settings(max_examples=15, deadline=None)
@given(st.lists(batch, min_size=3, max_size=14), st.sampled_from(["append", "close", "update"]))
def test_keys_close_as_they_would_one_by_one(batches, emit):
    function = tg.closing(
        tg.sum("v"),
        at="hour",
        lasts="10 seconds",
        event_time="at",
        delay="3 seconds",
        emit=emit,
    )
    truth = Hours("update" if emit == "update" else "close")
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), function.bind(ROWS, ("k", "hour")), KEY)
        now_s, late = 100, 0
        for batch_id, (rows, passed_s, seed) in enumerate(batches):
            now_s += passed_s
            chance = np.random.default_rng(seed)
            route = chance.integers(0, 3, SHARDS).tolist()
            told = [(k, None if s is None else now_s + s, v) for k, s, v in rows]
            ran = store.run(batch_id, table(told), route, [0, 1, 0], tries=1 + seed % 2)
            late += ran["late_rows"]
            found = [
                (row["k"], round(row["hour"].timestamp()), row["sum_v"])
                for row in ran["output"].to_pylist()
            ]
            assert len(set(found)) == len(found)
            assert set(found) == truth.run(told)
        assert late == truth.late
        held = store.state(len(batches) - 1).to_pylist()
        assert {(r["k"], round(r["hour"].timestamp())): r["sum_v"] for r in held} == truth.open


def test_a_date_is_a_time_as_well():
    rows = pa.schema([("day", pa.date32()), ("timestamp", TIME)])
    bound = tg.closing(tg.count(), at="day", lasts="1 day").bind(rows, ("day",))
    assert bound.output.names == ["day", "count"]
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), bound, pa.schema([rows.field("day")]))
        outputs = []
        for batch_id, (day, hour) in enumerate(((1, 5), (2, 1), (2, 2))):
            at = datetime(2026, 1, day, hour, tzinfo=UTC)
            given_ = pa.table({"day": [at.date()], "timestamp": [at]}, schema=rows)
            outputs += store.run(batch_id, given_, [0] * SHARDS, [0])["output"].to_pylist()
        assert [(row["day"].day, row["count"]) for row in outputs] == [(1, 1)]


def test_mistakes_are_refused():
    with pytest.raises(AskedWrongly, match="'hour' is not a column of the key"):
        tg.closing(tg.count(), at="hour", event_time="at").bind(ROWS, ("k",))
    with pytest.raises(AskedWrongly, match="'k' is int64, expected a timestamp or a date"):
        tg.closing(tg.count(), at="k", event_time="at").bind(ROWS, ("k",))
    with pytest.raises(AskedWrongly, match="unknown emit='apend'; did you mean 'append'"):
        tg.closing(tg.count(), at="hour", emit="apend")
