"""Keyed operators without an anchor: where the partition's number may name the task, and that
tasks with no rows, rescales and crashes leave the result as it should be."""

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Feed
from tidegate.pipelines.graph import Keyed
from tidegate.spark.batch.anchors import ALONE
from tidegate.spark.batch.unanchored import unanchored

pytestmark = pytest.mark.spark
DDL = "k string, v long, at timestamp"


def stream(spark, tmp_path):
    return Feed(tmp_path / "in", DDL).stream(spark)


def of(pipeline, name: str, executors=ALONE) -> bool:
    """Whether the operator of this name would run without an anchor."""
    (segment,) = pipeline.graph.segments()
    node = next(node for node in segment.nodes if node.name == name)
    assert isinstance(node, Keyed)
    return unanchored(segment, node, executors)


def same(table: pa.Table) -> pa.Table:
    return table


def test_only_where_nothing_puts_partitions_together(spark, tmp_path):
    def counted():
        return tg.pipeline("p", stream(spark, tmp_path)).keyed("n", tg.count(), key="k")

    assert of(counted().to("noop"), "n")
    assert of(counted().map(same, name="same").to("parquet", path="x"), "n")
    assert of(counted().keyed("m", tg.count(), key="k").to(print), "n")
    assert not of(counted().keyed("m", tg.count(), key="k").to(print), "m")
    assert not of(counted().to(print), "n")
    assert of(counted().to("kafka", topic="x", servers="y"), "n")
    assert not of(counted().to("jdbc", url="x"), "n")
    assert not of(counted().to("noop"), "n", frozenset({"executor_host_1"}))
    both = counted()
    merged = both.merge(both.map(same, name="same")).to("noop")
    assert not of(merged, "n")
    windows = tg.pipeline("p", stream(spark, tmp_path)).keyed(
        "w", tg.window(tg.count(), every="1 minute", event_time="at"), key="k"
    )
    assert not of(windows.to("noop"), "w")


def test_tasks_without_rows_and_rescales(spark, tmp_path):
    feed = Feed(tmp_path / "in", "k string, v long")
    flow = tg.pipeline("few", feed.stream(spark)).keyed("n", tg.count(), key="k", shards=32)
    feed.add(pa.table({"k": ["a", "b", "a"], "v": [1, 2, 3]}))
    out = tmp_path / "out"
    run = flow.to("parquet", path=str(out)).start(str(tmp_path / "ck"), tasks=8)
    try:
        run.processAllAvailable()
        for tasks in (3, 16, 1, 8):
            run.rescale("n", tasks)
            feed.add(pa.table({"k": ["a", "c", "c"], "v": [1, 2, 3]}))
            run.processAllAvailable()
        assert [len(result.of("n")) for result in run.results()] == [8, 3, 16, 1, 8]
        assert [sum(r.rows_in for r in result.of("n")) for result in run.results()] == [3] * 5
    finally:
        run.stop()
    state = {row["k"]: row["count"] for row in tg.read_state(str(tmp_path / "ck"), "n").to_pylist()}
    assert state == {"a": 6, "b": 1, "c": 8}
    written = spark.read.parquet(str(out)).groupBy("k").max("count").collect()
    assert {row[0]: row[1] for row in written} == state
