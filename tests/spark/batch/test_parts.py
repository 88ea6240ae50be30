"""Tasks that work on their rows in parts: the results are those of tasks that do not."""

import datetime

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Collected, Feed
from tests.spark.batch.test_elastic import DDL, flow_of, rows, stored, totals
from tidegate.spark.batch.step import Step

pytestmark = pytest.mark.spark


def test_a_batch_in_parts_is_repeated_in_the_same_parts_and_nothing_differs(spark, tmp_path):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    run = flow_of(feed, spark, sink).start(str(tmp_path / "ck"), tasks=2)
    run.in_parts("sums", 3)
    assert run.parts() == {"sums": 3}
    crash_after(run, Step.SINKS_WRITTEN, at_batch=1)
    for seed in range(2):
        feed.add(rows(seed))
    with pytest.raises(Exception, match="of batch 1"):
        run.processAllAvailable()
    run.stop()
    first_try = sink.batches[1]
    again = flow_of(feed, spark, sink).start(str(tmp_path / "ck"), tasks=2)
    try:
        feed.add(rows(2, count=3))  # most parts get no row
        again.processAllAvailable()
        replayed, plain = again.results()[0], again.results()[-1]
        assert replayed.replayed and replayed.plan.operators["sums"].parts == 3
        told = [(one.task, one.part) for one in replayed.of("sums")]
        assert sorted(told) == [(task, part) for task in range(2) for part in range(3)]
        assert sink.batches[1] == first_try, "bit for bit"
        assert plain.plan.operators["sums"].parts == 1, "an earlier run's parts are not continued"
        assert stored(tmp_path / "ck") == totals(feed.all())
        assert {r["k"]: (r["n"], r["total"]) for r in sink.rows()} == totals(feed.all())
    finally:
        again.stop()


def test_windows_of_parts_without_rows_close(spark, tmp_path):
    feed, sink = Feed(tmp_path / "in", "k string, at timestamp"), Collected()
    fold = tg.window(tg.count(), every="1 minute", event_time="at")
    flow = tg.pipeline("parted windows", feed.stream(spark)).keyed("w", fold, key="k", shards=8)
    run = flow.to(sink).start(str(tmp_path / "ck"), tasks=2)
    try:
        run.in_parts("w", 2)
        start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

        def add(names: list[str], minute: int) -> None:
            at = [start + datetime.timedelta(minutes=minute)] * len(names)
            feed.add(pa.table({"k": names, "at": pa.array(at, pa.timestamp("us", "UTC"))}))
            run.processAllAvailable()

        keys = [f"key {number}" for number in range(12)]
        add(keys, 0)
        add(["late"], 30)
        add(["late"], 60)
        assert {row["k"] for row in sink.rows() if row["count"] == 1} >= set(keys)
        assert all(result.plan.operators["w"].parts == 2 for result in run.results())
    finally:
        run.stop()
