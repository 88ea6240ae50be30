"""Event time of merged sources: the one that is behind decides when a window closes."""

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Collected, Feed

pytestmark = pytest.mark.spark
START = datetime(2026, 1, 1)
COLUMNS = ["k", "at"]


def at(*seconds: int) -> pa.Table:
    times = [START + timedelta(seconds=second) for second in seconds]
    return pa.table({"k": [1] * len(seconds), "at": pa.array(times, pa.timestamp("us", "UTC"))})


def test_rows_of_the_source_that_is_behind_are_not_late(spark, tmp_path):
    ahead, behind = (Feed(tmp_path / name, "k long, at timestamp") for name in ("a", "b"))
    windows, plain = Collected(), Collected()

    def same(rows: pa.Table) -> pa.Table:
        assert rows.column_names == COLUMNS
        return rows

    stream = tg.pipeline("p", ahead.stream(spark))
    both = stream.merge(stream.source(behind.stream(spark), name="behind")).map(same)
    both.to(plain)
    fold = tg.window(tg.count(), every="1 minute", event_time="at")
    flow = both.keyed("w", fold, key="k", shards=4).to(windows)
    run = flow.start(str(tmp_path / "ck"), tasks=1)
    try:
        for one, other in (
            (at(10), at(20)),
            (at(600), None),
            (at(601), at(40)),
            (at(1200), at(1200)),
            (at(1201), at(1201, 30)),
        ):
            ahead.add(one)
            if other is not None:
                behind.add(other)
            run.processAllAvailable()
        late = [sum(report.late_rows for report in result.of("w")) for result in run.results()]
    finally:
        run.stop()
    found = {
        int((row["window_start"].replace(tzinfo=None) - START).total_seconds()): row["count"]
        for row in windows.rows()
    }
    assert found == {0: 3, 600: 2}
    assert sum(late) == 1, "only the row at 30 s, after all had come past that minute"
    assert {tuple(row) for row in plain.rows()} == {tuple(COLUMNS)}
