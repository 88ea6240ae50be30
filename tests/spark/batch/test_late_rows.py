"""Late rows as a stream of their own: with a sink, behind a map, and through a channel."""

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Collected, Feed

pytestmark = pytest.mark.spark
START = datetime(2026, 1, 1)


def rows(*seconds: int) -> pa.Table:
    times = [START + timedelta(seconds=second) for second in seconds]
    return pa.table({"k": [1] * len(seconds), "at": pa.array(times, pa.timestamp("us", "UTC"))})


def second(row: dict, name: str = "at") -> int:
    return round((row[name].replace(tzinfo=None) - START).total_seconds())


def test_late_rows_go_their_own_way(spark, tmp_path, wait_for):
    feed = Feed(tmp_path / "in", "k long, at timestamp")
    windows, late, passed_on = Collected(), Collected(), Collected()
    stream = tg.pipeline("p", feed.stream(spark), arrival="at")
    counted = stream.keyed(
        "w", tg.window(tg.count(), every="1 minute", event_time="at"), key="k", shards=4
    )
    counted.to(windows)
    aside = counted.late()
    aside.to(late)
    aside.map(lambda rows: rows, name="again").cut("cut").to(passed_on)
    run = counted.start(str(tmp_path / "ck"), target="1 minute", cores=2, tasks=2, warm_up=False)
    try:
        for batch in (rows(10, 20, 70), rows(200, 15), rows(30, 210), rows(400, 199), rows(401)):
            feed.add(batch)
            run.processAllAvailable()
        wait_for(lambda: len(passed_on.rows()) == 2, run.queries["cut"])
        reports = [report for result in run.results() for report in result.of("w")]
    finally:
        run.stop()
    assert [(second(row, "window_start"), row["count"]) for row in windows.rows()] == [
        (0, 2),
        (60, 1),
        (180, 3),
    ]
    assert set(windows.rows()[0]) == {"k", "window_start", "window_end", "count"}
    # 15 s came when the watermark was at 70 s, 30 s when it was at 200 s; 199 s was in time.
    assert [second(row) for row in late.rows()] == [15, 30]
    assert sorted(second(row) for row in passed_on.rows()) == [15, 30]
    assert sum(report.late_rows for report in reports) == 2
