"""Sliding windows are folded in blocks of rows: bounded memory, and the same to the last bit."""

import importlib
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.pipelines.keyed import KeyedBatch

ROWS = pa.schema([("k", pa.int64()), ("timestamp", pa.timestamp("us")), ("x", pa.float64())])
MODULE = importlib.import_module("tidegate.pipelines.functions.window")
SECOND_US = 1_000_000


def batch(seed: int, rows: int, keys: int, state: pa.Table, watermark_us: int | None) -> KeyedBatch:
    chance = np.random.default_rng(seed)
    row_key = chance.integers(0, keys, rows)
    at_us = chance.integers(0, 100 * SECOND_US, rows)
    here = chance.random(rows) < 0.95
    table = pa.table(
        [
            pa.array(row_key),
            pa.array(at_us, mask=~here).view(pa.timestamp("us")),
            pa.array(chance.normal(size=rows) * 1e6),
        ],
        schema=ROWS,
    )
    state_key = state["k"].to_numpy()
    return KeyedBatch(table, pa.table({"k": np.arange(keys)}), row_key, state, state_key, 0,
                      watermark_us)  # fmt: skip


@pytest.mark.parametrize("emit", ["update", "close"])
@pytest.mark.parametrize(
    "fold",
    [
        tg.aggregate(n=tg.count(), total=tg.sum("x"), last=tg.latest("x", by="timestamp")),
        tg.top_n(2, by="x"),
    ],
)
def test_blocks_change_nothing(monkeypatch, fold, emit):
    bound = tg.window(fold, every="1 second", size="8 seconds", emit=emit).bind(ROWS, ("k",))
    empty = pa.schema([ROWS.field("k"), *bound.state]).empty_table()
    first = bound.update(batch(1, 2000, 7, empty, None))
    told = {}
    for pairs in (1 << 22, 8 * 300, 8 * 7):
        monkeypatch.setattr(MODULE, "PAIRS_PER_BLOCK", pairs)
        given = batch(2, 3000, 7, first.upserts, 30 * SECOND_US)
        told[pairs] = bound.update(given)
    whole, *others = told.values()
    assert whole.late_count > 0 and whole.upserts.num_rows > 100
    for other in others:
        assert other.late_count == whole.late_count
        assert other.upserts.equals(whole.upserts) and other.output.equals(whole.output)
        assert np.array_equal(other.upsert_key, whole.upsert_key)
        assert other.drops.equals(whole.drops)


def test_memory_does_not_grow_with_rows_times_windows():
    bound = tg.window(tg.count(), every="1 second", size="1000 seconds").bind(ROWS, ("k",))
    empty = pa.schema([ROWS.field("k"), *bound.state]).empty_table()
    given = batch(1, 40_000, 1, empty, None)
    tracemalloc.start()
    update = bound.update(given)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert update.upserts.num_rows == 1100 - 1
    assert most < 250e6, "40 million pairs of two numbers are 640 MB"
