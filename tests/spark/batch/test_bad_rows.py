"""Rows that a function cannot process: skipped, counted, and given to a sink of their own."""

import logging

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Collected, Feed

pytestmark = pytest.mark.spark


def rows(*texts: str) -> pa.Table:
    return pa.table({"k": [len(text) for text in texts], "text": list(texts)})


def numbers(table: pa.Table) -> pa.Table:
    return pa.table({"k": table["k"], "n": table["text"].cast(pa.int64())})


def shares(batch: tg.KeyedBatch) -> tg.Update:
    """100 over the sum of a key, which must not be zero."""
    old = batch.aligned()["total"].fill_null(0).to_numpy()
    count = batch.keys.num_rows
    add = np.bincount(batch.row_key, weights=batch.rows["n"].to_numpy(), minlength=count)
    total = old + add.astype(np.int64)
    if (total == 0).any():
        raise ZeroDivisionError("the sum is zero")
    keys = batch.keys
    return tg.Update(
        output=keys.append_column("share", pa.array(100 // total)),
        upserts=keys.append_column("total", pa.array(total)),
    )


def test_bad_rows_are_skipped_and_counted_and_the_rest_is_processed(spark, tmp_path, caplog):
    feed = Feed(tmp_path / "in", "k long, text string")
    shown, bad, undivided = Collected(), Collected(), Collected()
    parsed = tg.pipeline("p", feed.stream(spark)).map(
        numbers, "k long, n long", name="parse", on_error=bad
    )
    shared = parsed.keyed(
        "share",
        lambda rows, state, batch: shares(batch),
        key="k",
        state="total long",
        output="k long, share long",
        shards=4,
        on_error="skip",
    )
    shared.to(shown)
    shared.failed().to(undivided)
    with caplog.at_level(logging.WARNING, logger="tidegate"):
        run = shared.start(str(tmp_path / "ck"), tasks=2)
        try:
            for batch in (
                rows("1", "x", "22", "yy"),
                rows("-1", "zzz", "-1", "40"),
                rows("0", "9", "000"),
            ):
                feed.add(batch)
                run.processAllAvailable()
            reports = [report for result in run.results() for report in result.reports]
        finally:
            run.stop()
    assert [row["text"] for row in bad.rows()] == ["x", "yy", "zzz"]
    assert {row["_error"].partition(":")[0] for row in bad.rows()} == {"ArrowInvalid"}
    # Keys are the lengths of the texts: 22 - 1 - 1 + 40 for the second one.
    assert sorted((row["k"], row["share"]) for row in shown.rows()) == [
        *((1, 10), (1, 100), (2, 1), (2, 4)),
    ]
    (row,) = undivided.rows()
    assert (row["k"], row["n"], row["_error"]) == (3, 0, "ZeroDivisionError: the sum is zero")
    skipped = dict.fromkeys(("parse", "share"), 0)
    for report in reports:
        if report.operator in skipped:
            skipped[report.operator] += report.skipped_rows
    assert skipped == {"parse": 3, "share": 1}
    assert sum("skipped" in record.message for record in caplog.records) == 2
    assert "ArrowInvalid" in caplog.text
