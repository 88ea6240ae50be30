"""Deduplication keeps the rows that a loop over single rows would keep, however it is run."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_store import SHARDS, Store
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.distinct import Deduplication, apart

TIME = pa.timestamp("us", "UTC")
ROWS = pa.schema([("k", pa.int64()), ("at", TIME), ("n", pa.int64())])
KEY = pa.schema([ROWS.field("k")])
SECOND = 1_000_000
WITHIN_S, DELAY_S = 10, 7


def table(rows: list[tuple[int, int | None]], first: int) -> pa.Table:
    return pa.table(
        [
            pa.array([k for k, _ in rows], pa.int64()),
            pa.array([None if s is None else s * SECOND for _, s in rows], pa.int64()).cast(TIME),
            pa.array(range(first, first + len(rows)), pa.int64()),
        ],
        schema=ROWS,
    )


class ByEvent:
    """One row after the other, with all that was ever kept."""

    def __init__(self) -> None:
        self.kept: dict[int, list[int]] = {}
        self.newest_s: int | None = None
        self.late: list[int] = []

    def run(self, rows: list[dict]) -> list[int]:
        over_s = None if self.newest_s is None else self.newest_s - DELAY_S
        found = []
        times = [None if r["at"] is None else round(r["at"].timestamp()) for r in rows]
        in_time = [
            (s, r)
            for s, r in zip(times, rows, strict=True)
            if s is not None and (over_s is None or s >= over_s)
        ]
        on_time = {row["n"] for _, row in in_time}
        self.late += [row["n"] for row in rows if row["n"] not in on_time]
        for at_s, row in sorted(in_time, key=lambda one: one[0]):
            kept = self.kept.setdefault(row["k"], [])
            if all(abs(at_s - other) >= WITHIN_S for other in kept):
                kept.append(at_s)
                found.append(row["n"])
        told = [s for s in times if s is not None]
        if told:
            self.newest_s = max([*told, *([] if self.newest_s is None else [self.newest_s])])
        return sorted(found)


class ByArrival:
    """One row after the other, by the clock of its micro-batch."""

    def __init__(self) -> None:
        self.until: dict[int, int] = {}

    def run(self, rows: list[dict], at_s: int) -> list[int]:
        found = []
        for row in rows:
            if self.until.get(row["k"], at_s) <= at_s:
                self.until[row["k"]] = at_s + WITHIN_S
                found.append(row["n"])
        return found


some_rows = st.lists(
    st.tuples(st.integers(0, 5), st.one_of(st.integers(-25, 8), st.none())), max_size=20
)
batch = st.tuples(
    some_rows,
    st.integers(0, 12),  # seconds that event time moves on
    st.integers(1, 4),  # tasks
    st.integers(0, 1000),  # seed of the route and of the nodes
    st.sampled_from([1, 1, 2]),  # tries before the commit
)


@settings(max_examples=15, deadline=None)
@given(st.lists(batch, min_size=3, max_size=14), st.sampled_from([1, 62]), st.booleans())
def test_what_is_kept_is_what_a_loop_over_rows_keeps(batches, bits, by_event):
    function = Deduplication("10 seconds", *(("at", "7 seconds") if by_event else ()))
    events, arrivals = ByEvent(), ByArrival()
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), function.bind(ROWS, ("k",)), KEY, bits=bits)
        first, now_s, late = 0, 100, []
        for batch_id, (rows, passed_s, tasks, seed, tries) in enumerate(batches):
            now_s += passed_s
            chance = np.random.default_rng(seed)
            route = chance.integers(0, tasks, SHARDS).tolist()
            nodes = chance.integers(0, 3, tasks).tolist()
            given_ = table([(k, None if s is None else now_s + s) for k, s in rows], first)
            first += len(rows)
            at_us = now_s * SECOND + batch_id
            ran = store.run(batch_id, given_, route, nodes, at_us=at_us, tries=tries)
            late += ran["late"]["n"].to_pylist()
            assert ran["late_rows"] == ran["late"].num_rows
            told = given_.to_pylist()
            expected = events.run(told) if by_event else arrivals.run(told, at_us / SECOND)
            assert sorted(ran["output"]["n"].to_pylist()) == expected
        assert sorted(late) == (events.late if by_event else [])
        held = store.state(len(batches) - 1)
        if by_event and events.newest_s is not None:
            last_s = store.manifests.read(len(batches) - 1, {})["op"].handed_us
            for row in held.to_pylist():
                until_us = row["distinct_until"].timestamp() * SECOND
                assert last_s is None or until_us > last_s, "forgotten once the watermark is there"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), max_size=60),
    st.integers(1, 20),
)
def test_times_that_are_apart_are_found_as_by_a_loop(pairs, within):
    pairs.sort()
    expected, last = [], {}
    for key, at in pairs:
        expected.append(key not in last or at - last[key] >= within)
        if expected[-1]:
            last[key] = at
    key, at = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    assert apart(key, at, within).tolist() == expected


def test_a_long_backlog_takes_few_steps():
    """A key with a thousand spans in one batch is walked by doubling, not span by span."""
    at = np.arange(200_000, dtype=np.int64)
    assert apart(np.zeros(200_000, dtype=np.int64), at, 200).sum() == 1000


def test_mistakes_are_refused():
    with pytest.raises(AskedWrongly, match="no column 'att'; did you mean 'at'"):
        Deduplication("1 minute", "att").bind(ROWS, ("k",))
    with pytest.raises(AskedWrongly, match="expected a timestamp"):
        Deduplication("1 minute", "n").bind(ROWS, ("k",))
