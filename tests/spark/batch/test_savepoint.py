"""Savepoints on real Spark: of a run, and of what a crash has left; starts that go on from them."""

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Collected, Feed
from tidegate.spark.batch.step import Step
from tidegate.spark.savepoint.make import make_savepoint

pytestmark = pytest.mark.spark


def rows(value: int) -> pa.Table:
    return pa.table({"k": ["a", "b", "a"], "v": [value, value, value]})


def stored(checkpoint, name: str, column: str) -> dict[str, int]:
    return {row["k"]: row[column] for row in tg.read_state(str(checkpoint), name).to_pylist()}


def finished(flow, checkpoint, **options) -> None:
    run = flow.start(str(checkpoint), **options)
    run.processAllAvailable()
    run.stop()


def test_two_segments_are_saved_while_they_run_and_go_on_from_there_twice(spark, tmp_path):
    feed = Feed(tmp_path / "in", "k string, v long")

    def flow():
        sums = tg.pipeline("shop", feed.stream(spark)).keyed(
            "sums", tg.sum("v", as_="x"), key="k", shards=8
        )
        return sums.cut("between").keyed("seen", tg.count(as_="n"), key="k", shards=8)

    for value in (1, 10):
        feed.add(rows(value))
    run = flow().start(str(tmp_path / "ck"), tasks=2)
    run.processAllAvailable()
    saved = run.savepoint(tmp_path / "sp")
    assert saved.batches == {"main": 1, "between": saved.batches["between"]}
    feed.add(rows(100))
    run.processAllAvailable()
    run.stop()
    assert stored(tmp_path / "ck", "sums", "x") == {"a": 222, "b": 111}

    for name, values in (("one", (1000,)), ("two", ())):
        for value in values:
            feed.add(rows(value))
        for _ in range(2):  # at the second start the savepoint has no effect any more
            finished(flow(), tmp_path / name, savepoint=str(tmp_path / "sp"))
        assert stored(tmp_path / name, "sums", "x") == {"a": 2222, "b": 1111}
        assert stored(tmp_path / name, "seen", "n") == {"a": 4, "b": 4}
    with pytest.raises(tg.AskedWrongly, match="is a savepoint, which stays as it is"):
        flow().start(str(tmp_path / "sp"))


def test_a_batch_that_was_begun_is_repeated_from_the_savepoint(spark, tmp_path):
    feed, sink = Feed(tmp_path / "in", "k string, v long"), Collected()

    def flow(name="sums", function=None):
        made = tg.pipeline("shop", feed.stream(spark))
        return made.keyed(name, function or tg.sum("v", as_="x"), key="k", shards=8).to(sink)

    run = flow().start(str(tmp_path / "ck"), tasks=2)
    crash_after(run, Step.SINKS_WRITTEN, at_batch=1)
    for value in (1, 10):
        feed.add(rows(value))
    with pytest.raises(Exception, match="of batch 1"):
        run.processAllAvailable()
    run.stop()
    first = sorted(sink.batches[1], key=lambda row: row["k"])
    make_savepoint(str(tmp_path / "ck"), str(tmp_path / "sp"))

    with pytest.raises(tg.AskedWrongly, match="had the function sum"):
        flow(function=tg.max("v", as_="x")).start(str(tmp_path / "n"), savepoint=tmp_path / "sp")
    assert not (tmp_path / "n" / "segments").exists()
    again = flow("total").start(
        str(tmp_path / "n"), tasks=4, savepoint=tmp_path / "sp", renamed={"sums": "total"}
    )
    again.processAllAvailable()
    again.stop()
    assert again.results()[0].replayed
    assert again.results()[0].plan.operators["total"].tasks == 2, "a replay keeps the plan it had"
    assert sink.tries[1] == 2
    assert sorted(sink.batches[1], key=lambda row: row["k"]) == first
    assert stored(tmp_path / "n", "total", "x") == {"a": 22, "b": 11}


def test_a_pipeline_goes_back_to_a_version_that_was_kept(spark, tmp_path):
    feed = Feed(tmp_path / "in", "k string, v long")

    def flow():
        made = tg.pipeline("shop", feed.stream(spark))
        return made.keyed("sums", tg.sum("v", as_="x"), key="k", shards=8)

    for value in (1, 10, 100, 1_000, 10_000, 100_000):
        feed.add(rows(value))
    finished(flow(), tmp_path / "ck", tasks=2, versions=6)
    ends = [stored_at(tmp_path / "ck", version) for version in range(6)]
    assert ends == [2, 22, 222, 2_222, 22_222, 222_222]

    make_savepoint(str(tmp_path / "ck"), str(tmp_path / "sp"), version=1)
    again = flow().start(str(tmp_path / "new"), savepoint=tmp_path / "sp", versions="1 hour")
    again.processAllAvailable()
    again.stop()
    assert again.results()[0].plan.batch_id == 2
    assert stored(tmp_path / "new", "sums", "x") == {"a": 222_222, "b": 111_111}


def stored_at(checkpoint, version: int) -> int:
    table = tg.read_state(str(checkpoint), "sums", version)
    return dict(zip(table["k"].to_pylist(), table["x"].to_pylist(), strict=True))["a"]
