"""Renamed and dropped operators on real Spark: a crash in between changes nothing."""

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Feed
from tidegate.spark.batch.step import Step

pytestmark = pytest.mark.spark


def rows(value: int) -> pa.Table:
    return pa.table({"k": ["a", "b", "a"], "v": [value, value, value]})


def flow_of(feed: Feed, spark, name: str, function=None):
    return tg.pipeline("shop", feed.stream(spark)).keyed(
        name, function or tg.sum("v", as_="x"), key="k", shards=8
    )


def stored(checkpoint, name: str) -> dict[str, int]:
    return {row["k"]: row["x"] for row in tg.read_state(str(checkpoint), name).to_pylist()}


def test_a_renamed_operator_goes_on_with_its_state_across_crashes(spark, tmp_path):
    checkpoint = tmp_path / "ck"
    feed = Feed(tmp_path / "in", "k string, v long")
    run = flow_of(feed, spark, "old").start(str(checkpoint), tasks=2)
    crash_after(run, Step.PLANNED, at_batch=1)
    for value in (1, 10, 100):
        feed.add(rows(value))
    with pytest.raises(Exception, match="of batch 1"):
        run.processAllAvailable()
    run.stop()

    renamed = flow_of(feed, spark, "new").start(str(checkpoint), tasks=4, renamed={"old": "new"})
    crash_after(renamed, Step.RAN, at_batch=1)
    with pytest.raises(Exception, match="of batch 1"):
        renamed.processAllAvailable()
    renamed.stop()

    again = flow_of(feed, spark, "new").start(str(checkpoint))
    again.processAllAvailable()
    again.stop()
    replayed = again.results()[0]
    assert replayed.replayed
    assert replayed.plan.operators["new"].tasks == 2, "a replay keeps the plan it had"
    assert stored(checkpoint, "new") == {"a": 222, "b": 111}
    assert [path.name for path in (checkpoint / "state").iterdir()] == ["old"]


def test_dropped_state_is_forgotten_and_stays_forgotten(spark, tmp_path):
    checkpoint = tmp_path / "ck"
    feed = Feed(tmp_path / "in", "k string, v long")
    feed.add(rows(5))
    run = flow_of(feed, spark, "op").start(str(checkpoint), tasks=2)
    run.processAllAvailable()
    run.stop()
    largest = tg.max("v", as_="x")
    # No batch is committed by the first of these, so the newest manifest still names the sums.
    flow_of(feed, spark, "op", largest).start(str(checkpoint), dropped=["op"]).stop()
    feed.add(rows(3))
    again = flow_of(feed, spark, "op", largest).start(str(checkpoint), dropped=["op"])
    again.processAllAvailable()
    again.stop()
    assert stored(checkpoint, "op") == {"a": 3, "b": 3}


def counted(columns: dict[str, pa.DataType]):
    """A function that counts the rows of its keys in every column, from what they had before."""

    def count(given: pa.Table, state: pa.Table) -> tg.Update:
        keys = sorted(set(given["k"].to_pylist()))
        before = {row["k"]: row for row in state.to_pylist()}
        table = pa.table({"k": keys})
        for name, kind in columns.items():
            old = [before.get(key, {}).get(name, 0) for key in keys]
            new = [a + given["k"].to_pylist().count(key) for a, key in zip(old, keys, strict=True)]
            table = table.append_column(name, pa.array(new, kind))
        return tg.Update(output=table.select(["k"]), upserts=table)

    return count


def test_state_gets_a_wider_and_a_new_column_across_a_crash(spark, tmp_path):
    checkpoint = tmp_path / "ck"
    feed = Feed(tmp_path / "in", "k string, v long")

    def flow(columns, ddl, **options):
        return tg.pipeline("shop", feed.stream(spark)).keyed(
            "op", counted(columns), key="k", state=ddl, output="k string", shards=8, **options
        )

    run = flow({"n": pa.int32()}, "n int").start(str(checkpoint), tasks=2)
    crash_after(run, Step.RAN, at_batch=1)
    feed.add(rows(1))
    feed.add(pa.table({"k": ["b"], "v": [1]}))
    with pytest.raises(Exception, match="of batch 1"):
        run.processAllAvailable()
    run.stop()

    wider = {"n": pa.int64(), "more": pa.float64()}
    with pytest.raises(tg.AskedWrongly, match="new state column 'more'; say what it is in rows"):
        flow(wider, "n long, more double").start(str(checkpoint))
    for value in (2, 3):
        again = flow(wider, "n long, more double", defaults={"more": 0.5}).start(str(checkpoint))
        again.processAllAvailable()
        again.stop()
        feed.add(pa.table({"k": ["b"], "v": [value]}))
    found = {
        row["k"]: (row["n"], row["more"])
        for row in tg.read_state(str(checkpoint), "op").to_pylist()
    }
    assert found == {"a": (2, 0.5), "b": (3, 2.5)}
    with pytest.raises(tg.AskedWrongly, match="'n' as int64, now as int32"):
        flow({"n": pa.int32()}, "n int").start(str(checkpoint))
