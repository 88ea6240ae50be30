"""Estimates from rows that were kept by chance: unbiased, and as far off as they say."""

import math

import numpy as np
import pyarrow as pa
import pytest

from tidegate.errors import AskedWrongly
from tidegate.pipelines import functions as tg
from tidegate.pipelines.keyed import KeyedBatch
from tidegate.spark.shedding.task import GROUP, PART, ROW, RowShedder, ShedStage

ROWS = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("_weight", pa.float64())])
ESTIMATES = tg.aggregate(
    n=tg.count(weighted=True), total=tg.sum("v", weighted=True), average=tg.mean("v", weighted=True)
)


def outcome(table: pa.Table, windows: int, bound) -> dict[str, np.ndarray]:
    """The results of one batch, a window (key) a row."""
    keys = pa.table({"k": pa.array(np.arange(windows))})
    state = pa.schema([("k", pa.int64()), *bound.state]).empty_table()
    update = bound.update(
        KeyedBatch(
            rows=table,
            keys=keys,
            row_key=table["k"].to_numpy(),
            state=state,
            state_key=np.empty(0, dtype=np.int64),
            at_us=0,
        )
    )
    return {n: update.output[n].to_numpy() for n in update.output.column_names}


def offered(chance: np.random.Generator, windows: int, each: int) -> pa.Table:
    count = windows * each
    return pa.table(
        {
            "k": np.repeat(np.arange(windows), each),
            "v": chance.integers(0, 100, count),
            ROW: chance.integers(-(2**63), 2**63 - 1, count),
            PART: np.zeros(count, dtype=np.int32),
        }
    )


def kept(table: pa.Table, fraction: float, batch_id: int = 0) -> pa.Table:
    shedder = RowShedder(ShedStage("source", weight=True), batch_id, (fraction,))
    return shedder.kept(table.combine_chunks().to_batches()[0])


def coverage_of_a_count(each: int) -> float:
    """How often 1.96 errors reach the truth, exactly: a count is binomial, and so in steps."""
    kept_rows = np.arange(1, each + 1)
    reached = np.abs(2 * kept_rows - each) <= 1.96 * np.sqrt(2 * kept_rows)
    return sum(math.comb(each, rows) for rows in kept_rows[reached].tolist()) / 2**each


def test_half_of_the_rows_tell_the_rest_within_the_error_they_state() -> None:
    windows, each = 2000, 400
    table = offered(np.random.default_rng(3), windows, each)
    found = outcome(kept(table, 0.5), windows, ESTIMATES.bind(ROWS, ("k",)))
    values = table["v"].to_numpy().reshape(windows, -1)
    truth = {"n": np.full(windows, each), "total": values.sum(1), "average": values.mean(1)}
    expected = {"n": coverage_of_a_count(each), "total": 0.95, "average": 0.95}
    # Four standard errors of a share that is counted over so many windows.
    allowed = 4 * (0.95 * 0.05 / windows) ** 0.5
    for name, true in truth.items():
        off = np.abs(found[name] - true) / found[f"{name}_se"]
        assert abs(np.mean(off <= 1.96) - expected[name]) <= allowed, name
        assert abs(np.mean(found[name] - true)) <= 4 * np.std(found[name] - true) / windows**0.5


def test_with_nothing_shed_there_is_no_error() -> None:
    table = offered(np.random.default_rng(4), 5, each=20)
    found = outcome(kept(table, 1.0), 5, ESTIMATES.bind(ROWS, ("k",)))
    assert found["n"].tolist() == [20.0] * 5
    assert found["total"].tolist() == table["v"].to_numpy().reshape(5, -1).sum(1).tolist()
    for name in ("n_se", "total_se", "average_se"):
        assert np.allclose(found[name], 0.0)


def test_errors_add_up_over_batches_of_different_keeps() -> None:
    table = offered(np.random.default_rng(5), 1, each=40)
    parts = [kept(table.slice(0, 20), 0.5), kept(table.slice(20), 0.25)]
    rows = pa.concat_tables(parts)
    found = outcome(rows, 1, ESTIMATES.bind(ROWS, ("k",)))
    w, v = rows["_weight"].to_numpy(), rows["v"].to_numpy()
    assert set(w) == {2.0, 4.0}
    assert found["n"][0] == pytest.approx(w.sum())
    assert found["n_se"][0] == pytest.approx((w * (w - 1)).sum() ** 0.5)
    assert found["total_se"][0] == pytest.approx((w * (w - 1) * v**2).sum() ** 0.5)
    mean = (w * v).sum() / w.sum()
    spread = (w * (w - 1) * (v - mean) ** 2).sum() ** 0.5
    assert found["average_se"][0] == pytest.approx(spread / w.sum())


def test_a_weighted_measure_needs_the_weight_column() -> None:
    bare = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    with pytest.raises(AskedWrongly, match="no column '_weight'"):
        tg.count(weighted=True).bind(bare, ("k",))
    with pytest.raises(AskedWrongly, match="leave weight out"):
        tg.sum("v", weight="w", weighted=True)


def test_groups_are_not_among_what_is_kept() -> None:
    table = offered(np.random.default_rng(6), 3, each=10).append_column(
        GROUP, pa.array(np.arange(30) % 4, pa.int32())
    )
    shedder = RowShedder(ShedStage("source", shards=4), 0, (0.5,))
    rows = shedder.kept(table.to_batches()[0])
    assert rows.column_names == ["k", "v"]
    groups = shedder.counts().groups
    assert groups is not None
    assert groups[0].tolist() == [8, 8, 7, 7]
    assert groups[1].sum() == rows.num_rows
