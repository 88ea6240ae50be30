"""The meter of a running query, against what its source has sent."""

from pathlib import Path

import pytest

from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.query_meter import QueryMeter
from tidegate.spark.sources.arrivals import arrivals
from tidegate.workload.parse import parse_profile

PROFILE = "sine:800+-700/2"
ROWS = parse_profile(PROFILE).count(3000)


def test_every_batch_is_read_once_and_has_its_rows(spark, wait_for, tmp_path: Path) -> None:
    query = (
        arrivals(spark, PROFILE, seconds=3, partitions=2)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    meter, batches = QueryMeter(query), list[BatchProgress]()

    def all_rows_read() -> bool:
        batches.extend(meter.read())
        return sum(batch.rows for batch in batches) >= ROWS

    wait_for(all_rows_read, query)
    assert meter.read() == []
    query.stop()
    assert [batch.batch_id for batch in batches] == list(range(len(batches)))
    assert sum(batch.rows for batch in batches) == ROWS
    for batch in batches:
        parts_s = batch.offsets_s + batch.planning_s + batch.reading_s + batch.log_s
        assert parts_s + batch.work_s + batch.other_s == pytest.approx(batch.duration_s, abs=0.005)
        assert batch.end_us == batch.start_us + round(batch.duration_s * 1e6)
