"""Previews on real Spark: the route suits the batch's own rows, and a replay keeps it."""

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Collected, Feed
from tests.spark.batch.test_elastic import DDL, flow_of, stored, totals
from tidegate.control.shards.balance import balance
from tidegate.errors import AskedWrongly
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.step import Step

pytestmark = pytest.mark.spark
TASKS = 4


def skewed(seed: int, count: int = 600, keys: int = 60) -> pa.Table:
    """Rows of which a few keys have most, other ones for each seed."""
    chance = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1.0, keys + 1.0)
    drawn = chance.permutation(keys)[chance.choice(keys, count, p=shares / shares.sum())]
    return pa.table({"k": [f"key-{key}" for key in drawn], "v": chance.integers(0, 100, count)})


def uneven(result: BatchResult) -> bool:
    """Whether another route would have suited a batch's rows better."""
    counts = np.zeros(32)
    for report in result.of("sums"):
        counts[report.shard_rows[0]] += report.shard_rows[1]
    return balance(counts, result.plan.operators["sums"].route, TASKS).worth_it


def test_the_route_suits_the_rows_of_the_batch_itself(spark, tmp_path):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    run = flow_of(feed, spark, sink).start(str(tmp_path / "ck"), tasks=TASKS)
    try:
        for seed in range(6):
            if seed == 3:
                run.preview("sums")
                assert run.previews() == {"sums"}
            feed.add(skewed(seed))
            run.processAllAvailable()
        results = run.results()
        assert len(results) == 6
        blind, seen = results[:3], results[3:]
        assert any(uneven(one) for one in blind) and not any(uneven(one) for one in seen)
        assert all(set(one.previews_s) == {"sums"} for one in seen)
        assert not any(one.previews_s for one in blind)
        for one in results:
            assert sum(report.rows_in for report in one.of("same")) == 600, "mapped once"
        assert run.allocation()["sums"] == seen[-1].plan.operators["sums"]
        assert stored(tmp_path / "ck") == totals(feed.all())
        run.preview("sums", False)
        assert not run.previews()
    finally:
        run.stop()


@pytest.mark.parametrize("step", [Step.PREVIEWED, Step.PLANNED, Step.RAN])
def test_a_replay_keeps_the_route_that_a_preview_found(spark, tmp_path, step):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    run = flow_of(feed, spark, sink).start(str(tmp_path / "ck"), tasks=TASKS)
    run.preview("sums")
    crash_after(run, step, at_batch=1)
    feed.add(skewed(0))
    run.processAllAvailable()
    feed.add(skewed(1))
    with pytest.raises(Exception, match=f"after '{step.value}' of batch 1"):
        run.processAllAvailable()
    wished = run.allocation()["sums"]
    run.stop()
    again = flow_of(feed, spark, sink).start(str(tmp_path / "ck"), tasks=TASKS)
    try:
        again.processAllAvailable()
        (one,) = [result for result in again.results() if result.plan.batch_id == 1]
        assert one.replayed == (step is not Step.PREVIEWED)
        assert not one.previews_s
        if one.replayed:
            assert one.plan.operators["sums"] == wished
        assert stored(tmp_path / "ck") == totals(feed.all())
    finally:
        again.stop()


def test_only_rows_on_their_way_from_a_source_can_be_counted(spark, tmp_path):
    feed = Feed(tmp_path / "in", DDL)
    counted = tg.pipeline("shop", feed.stream(spark)).keyed("first", tg.count(), key="k", shards=8)
    run = counted.keyed("second", tg.count(as_="times"), key="count", shards=8).start(str(tmp_path / "ck"))
    try:
        run.preview("first")
        with pytest.raises(AskedWrongly, match="'second' cannot be counted before"):
            run.preview("second")
        with pytest.raises(AskedWrongly, match="there is no operator"):
            run.preview("third")
    finally:
        run.stop()
