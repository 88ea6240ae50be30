"""A pipeline sets what it needs in its queries' own sessions and leaves the user's alone."""

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Feed

pytestmark = pytest.mark.spark
BLOCK = "spark.sql.execution.arrow.maxRecordsPerBatch"
ADAPTIVE = "spark.sql.adaptive.enabled"


def test_settings_of_a_batch_stay_in_its_session(spark, tmp_path):
    before = {name: spark.conf.get(name) for name in (BLOCK, ADAPTIVE)}
    seen = []

    def sink(frame, batch_id: int) -> None:
        inside = frame.sparkSession.conf
        seen.append((inside.get(BLOCK), inside.get(ADAPTIVE), frame.toArrow().num_rows))

    feed = Feed(tmp_path / "in", "k long")
    feed.add(pa.table({"k": [1, 2, 2]}))
    flow = tg.pipeline("p", feed.stream(spark)).keyed("n", tg.count(), key="k", shards=4).to(sink)
    run = flow.start(str(tmp_path / "ck"), tasks=2)
    try:
        run.processAllAvailable()
        assert {name: spark.conf.get(name) for name in before} == before
    finally:
        run.stop()
    assert seen == [("131072", "false", 2)]


def test_a_checkpoint_may_be_a_file_url(spark, tmp_path):
    feed = Feed(tmp_path / "in", "k long")
    feed.add(pa.table({"k": [1, 2, 2]}))
    url = f"file://{tmp_path}/ck"

    def flow():
        first = tg.pipeline("p", feed.stream(spark)).cut("between")
        return first.keyed("n", tg.count(), key="k", shards=4)

    for batches in (1, 2):
        run = flow().start(url, tasks=2)
        try:
            run.processAllAvailable()
        finally:
            run.stop()
        found = {row["k"]: row["count"] for row in tg.read_state(url, "n").to_pylist()}
        assert found == {1: batches, 2: 2 * batches}
        feed.add(pa.table({"k": [1, 2, 2]}))
    assert tg.read_state(str(tmp_path / "ck"), "n").num_rows == 2
