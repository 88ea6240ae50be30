"""On Spark: duplicates go, timers go off, through a rescale, a restart and rows that come late."""

from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tidegate as tg
from tests.helpers.feed import Collected, Feed

pytestmark = pytest.mark.spark
START = datetime(2026, 1, 1)


def rows(*events: tuple[str, int]) -> pa.Table:
    times = [START + timedelta(seconds=second) for _, second in events]
    keys = [key for key, _ in events]
    return pa.table({"id": keys, "at": pa.array(times, pa.timestamp("us", "UTC"))})


def after(row: dict, name: str = "at") -> int:
    return round((row[name].replace(tzinfo=None) - START).total_seconds())


def silent(rows: pa.Table, state: pa.Table, batch: tg.KeyedBatch) -> tg.Update:
    """Emits a key a minute after its last row."""
    newest = rows.group_by("id").aggregate([("at", "max")]).rename_columns(["id", "last"])
    due = state.filter(pa.array(batch.state_due)) if batch.state_due is not None else state[:0]
    quiet = due.join(newest, "id", join_type="left anti").select(["id", "last"])
    wake = pc.add(newest["last"], pa.scalar(timedelta(minutes=1), pa.duration("us")))
    return tg.Update(output=quiet, upserts=newest.append_column("wake", wake))


def test_the_first_of_several_deliveries_passes_and_silence_is_noticed(spark, tmp_path):
    feed, passed, quiet = Feed(tmp_path / "in", "id string, at timestamp"), Collected(), Collected()

    def flow() -> tg.Stream:
        once = tg.pipeline("p", feed.stream(spark)).distinct(
            "id", within="30 seconds", event_time="at", delay="10 seconds", shards=8
        )
        once.to(passed)
        return once.keyed(
            "silent",
            silent,
            key="id",
            state="last timestamp, wake timestamp",
            output="id string, last timestamp",
            timer="wake",
            event_time="at",
            shards=8,
        ).to(quiet)

    checkpoint = str(tmp_path / "ck")
    run = flow().start(checkpoint, tasks=1)
    try:
        for number, batch in enumerate(
            (
                rows(("a", 0), ("b", 1), ("a", 2)),
                rows(("a", 5), ("c", 70), ("b", 31)),
                rows(("c", 65), ("a", 20), ("d", 90)),
                rows(("d", 130), ("e", 131)),
            )
        ):
            feed.add(batch)
            run.processAllAvailable()
            run.rescale("distinct", 1 + number % 3)
            run.rescale("silent", 3 - number % 3)
    finally:
        run.stop()
    run = flow().start(checkpoint, tasks=2)
    try:
        feed.add(rows(("f", 220)))
        run.processAllAvailable()
        feed.add(rows(("g", 300)))
        run.processAllAvailable()
        late = [
            sum(report.late_rows for report in result.of("distinct")) for result in run.results()
        ]
    finally:
        run.stop()
    # The row of "a" at 20 s came when the watermark was at 60 s.
    assert sorted((row["id"], after(row)) for row in passed.rows()) == [
        *(("a", 0), ("b", 1), ("b", 31), ("c", 70), ("d", 90), ("d", 130), ("e", 131)),
        *(("f", 220), ("g", 300)),
    ]
    assert sorted((row["id"], after(row, "last")) for row in quiet.rows()) == [
        *(("a", 0), ("b", 31), ("c", 70), ("d", 130), ("e", 131)),
    ]
    assert late == [0, 0]
