"""The meter on a running query, against what the rows themselves say."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.spark.measure.query_meter import Meter, MeteredBatch
from tidegate.spark.measure.stamps import StampCounter
from tidegate.spark.sources.arrivals import arrivals
from tidegate.workload.parse import parse_profile

PROFILE = "sine:800+-700/2"
ROWS = parse_profile(PROFILE).count(3000)


def keys_only(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.select(["key"])


def test_every_row_is_measured_once(spark, wait_for, tmp_path: Path) -> None:
    counter = StampCounter(spark.sparkContext)
    rows = arrivals(spark, PROFILE, seconds=3, partitions=2)
    query = (
        rows.mapInArrow(counter.counting(keys_only), "key long")
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    meter, batches = Meter(query, counter, window_s=3600), list[MeteredBatch]()

    def all_rows_read() -> bool:
        batches.extend(meter.read())
        return sum(batch.progress.rows for batch in batches) >= ROWS

    wait_for(all_rows_read, query)
    assert meter.read() == []
    query.stop()
    assert [batch.progress.batch_id for batch in batches] == list(range(len(batches)))
    for batch in batches:
        progress, latency, stamps = batch.progress, batch.latency, batch.stamps
        assert stamps is not None and stamps.end_us == progress.end_us
        assert stamps.stamps.rows == progress.rows
        if latency is None:
            assert progress.rows == 0  # the first batch may come before the first row
            continue
        assert 0 < latency.p50_s <= latency.p95_s <= latency.p99_s
        parts_s = progress.offsets_s + progress.planning_s + progress.reading_s + progress.log_s
        assert parts_s + progress.work_s + progress.other_s == pytest.approx(
            progress.duration_s, abs=0.005
        )
        # A row cannot be done sooner than the batch that started after it arrived.
        assert latency.mean_s >= progress.work_s
    overall = meter.latency(batches[-1].progress.end_us)
    assert overall is not None
    total = sum(batch.latency.mean_s * batch.progress.rows for batch in batches if batch.latency)
    assert overall.mean_s == pytest.approx(total / ROWS)


def test_without_stamps_there_is_progress_alone(spark, wait_for, tmp_path: Path) -> None:
    query = (
        arrivals(spark, "constant:500", seconds=0.4)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    meter, batches = Meter(query), list[MeteredBatch]()

    def all_rows_read() -> bool:
        batches.extend(meter.read())
        return sum(batch.progress.rows for batch in batches) >= 200

    wait_for(all_rows_read, query)
    query.stop()
    assert all(batch.latency is None and batch.stamps is None for batch in batches)
