"""Which rows are late: those that a look at each single row calls late."""

import importlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate as tg
from tidegate.pipelines.keyed import KeyedBatch

windows = importlib.import_module("tidegate.pipelines.functions.window")

TIME = pa.timestamp("us", "UTC")
ROWS = pa.schema([("k", pa.int64()), ("at", TIME)])
SECOND = 1_000_000
WATERMARK_S = 100


def batch(bound, times_s: list[int | None]) -> KeyedBatch:
    at = pa.array([None if s is None else s * SECOND for s in times_s], pa.int64()).cast(TIME)
    count = len(times_s)
    empty = pa.schema([ROWS.field("k"), *bound.state]).empty_table()
    return KeyedBatch(
        rows=pa.table([pa.array([7] * count, pa.int64()), at], schema=ROWS),
        keys=pa.table({"k": pa.array([7] if count else [], pa.int64())}),
        row_key=np.zeros(count, dtype=np.int64),
        state=empty,
        state_key=np.empty(0, dtype=np.int64),
        at_us=0,
        watermark_us=WATERMARK_S * SECOND,
    )


CASES = {
    "tumbling": (tg.window(tg.count(), every="10 seconds", event_time="at"), 10, 10),
    "sliding": (
        tg.window(tg.count(), every="5 seconds", size="20 seconds", event_time="at"),
        5,
        20,
    ),
}


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(60, 130)), max_size=25), st.integers(1, 50))
def test_windows(case, times_s, block):
    function, every, size = CASES[case]
    bound = function.bind(ROWS, ("k",))
    before = windows.PAIRS_PER_BLOCK
    windows.PAIRS_PER_BLOCK = block
    try:
        update = bound.update(batch(bound, times_s))
    finally:
        windows.PAIRS_PER_BLOCK = before
    expected = [s is None or s // every * every + size <= WATERMARK_S for s in times_s]
    assert update.late.tolist() == expected
    assert update.late_count == sum(expected)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(60, 130)), max_size=25))
def test_sessions(times_s):
    bound = tg.sessions(gap="8 seconds", event_time="at").bind(ROWS, ("k",))
    update = bound.update(batch(bound, times_s))
    assert update.late.tolist() == [s is None or s + 8 <= WATERMARK_S for s in times_s]
