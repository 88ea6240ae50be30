"""A query that is not ours, shed through its source: changed while it runs, alike on a replay."""

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Feed
from tidegate.errors import AskedWrongly
from tidegate.spark.shedding.foreign_source import settled

pytestmark = pytest.mark.spark
DDL = "k string, v long"


def rows(seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    names = [f"key-{number}" for number in chance.integers(0, 5, 500)]
    return pa.table({"k": names, "v": chance.integers(0, 10**9, 500)})


class Sink:
    """Remembers every try of every batch; fails once in a chosen one."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.tries: list[tuple[int, list[tuple]]] = []
        self.fail_at = fail_at

    def __call__(self, frame, batch_id: int) -> None:
        found = sorted(tuple(row) for row in frame.collect())
        self.tries.append((batch_id, found))
        frame.count()  # a sink may read twice; its rows are counted once
        if batch_id == self.fail_at:
            raise RuntimeError("the sink failed")


def test_the_fraction_changes_while_the_query_runs_and_a_replay_sheds_alike(spark, tmp_path):
    feed, place = Feed(tmp_path / "in", DDL), str(tmp_path / "shed")
    frame, handle = tg.shedding(feed.stream(spark), place, weight=True)
    sink = Sink(fail_at=2)

    def start(wrapped):
        writer = wrapped.writeStream.option("checkpointLocation", str(tmp_path / "ck"))
        return writer.foreachBatch(sink).start()

    query = start(frame)
    try:
        feed.add(rows(0))
        query.processAllAvailable()
        handle.shed(0.5)
        feed.add(rows(1))
        query.processAllAvailable()
        handle.shed(0.25)
        feed.add(rows(2))
        with pytest.raises(Exception, match="the sink failed"):
            query.processAllAvailable()
    finally:
        query.stop()
    first = handle.counts()
    sizes = [len(found) for _, found in sink.tries]
    assert sizes[0] == 500
    assert 200 < sizes[1] < 300
    assert 80 < sizes[2] < 170
    assert (first.offered, first.kept) == (1500, sum(sizes))
    assert {row[-1] for row in sink.tries[1][1]} == {2.0}

    sink.fail_at = None
    again, handle = tg.shedding(feed.stream(spark).repartition(3), place, weight=True)
    handle.shed(1.0)
    query = start(again)
    try:
        feed.add(rows(3))
        query.processAllAvailable()
    finally:
        query.stop()
    assert [batch_id for batch_id, _ in sink.tries] == [0, 1, 2, 2, 3]
    assert sink.tries[2] == sink.tries[3]
    assert len(sink.tries[4][1]) == 500
    assert handle.counts().offered == 1000
    assert handle.counts().kept == 500 + sizes[2]


def test_wrong_wishes_and_settled_files(spark, tmp_path):
    feed = Feed(tmp_path / "in", DDL)
    stream = feed.stream(spark)
    with pytest.raises(AskedWrongly, match="not a stream"):
        tg.shedding(spark.range(3), str(tmp_path / "p"))
    with pytest.raises(AskedWrongly, match="is a URL"):
        tg.shedding(stream, "s3://bucket/p")
    classes = {"key-1": tg.ShedClass(floor=0.8)}
    _, handle = tg.shedding(stream, str(tmp_path / "p"), by="k", classes=classes)
    with pytest.raises(AskedWrongly, match="did you mean 'key-1'"):
        handle.shed(0.5, by_class={"key1": 0.1})
    handle.shed(0.5)
    assert handle.keep() == (0.5, {"key-1": 0.8, "other": 0.5})
    assert settled(tmp_path / "p", "query", 0).fraction == 0.5
    handle.shed(0.1)
    assert settled(tmp_path / "p", "query", 0).fraction == 0.5
    assert settled(tmp_path / "p", "query", 1).fraction == 0.1
    assert settled(tmp_path / "p", "other", 0).fraction == 0.1
