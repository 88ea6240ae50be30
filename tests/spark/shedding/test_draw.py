"""Rows that are told apart: Spark draws for them before the shuffle, with no Python stage."""

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Collected, Feed
from tidegate.errors import AskedWrongly
from tidegate.spark.batch.step import Step

pytestmark = pytest.mark.spark
DDL = "id long, k string, v long, tier string, note string, at timestamp"
GOLD = "gold `\\' one"
CLASSES = {GOLD: tg.ShedClass(floor=0.9), "free": tg.ShedClass()}
SUMS = tg.aggregate(n=tg.count(), total=tg.sum("v"))
READERS = ["map", "map with tasks", "keyed"]


def rows(seed: int, count: int = 600) -> pa.Table:
    chance = np.random.default_rng(seed)
    tiers = chance.choice(np.array([GOLD, "free", "new"], dtype=object), count)
    return pa.table(
        {
            "id": np.arange(count) + 10_000 * seed,
            "k": [f"key-{number}" for number in chance.integers(0, 40, count)],
            "v": chance.integers(0, 3, count),
            "tier": pa.array(tiers, pa.string()),
            "note": ["as long as it takes"] * count,
            "at": pa.array(
                np.full(count, 1_700_000_000_000_000 + seed * 10**6), pa.timestamp("us", "UTC")
            ),
        }
    )


def same(table: pa.Table) -> pa.Table:
    assert not {name for name in table.column_names if name.startswith("__")}
    return table


def flow(stream, first: str, sink: Collected, **options):
    source = tg.pipeline("shop", stream, arrival="at").shed(unique="id", **options)
    if first == "keyed":
        return source.keyed("sums", SUMS, key="k", shards=16, tasks=(1, 4))
    source = source.map(same, tasks=(3, 3) if first == "map with tasks" else None, name="same")
    return source.to(sink).keyed("sums", SUMS, key="k", shards=16, tasks=(1, 4))


@pytest.mark.parametrize("first", READERS)
def test_every_row_is_counted_wherever_spark_draws(spark, tmp_path, first):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    feed.add(rows(0))
    run = flow(feed.stream(spark), first, sink, by="tier", classes=CLASSES, weight=True).start(
        str(tmp_path / "ck"), tasks=2
    )
    try:
        run.processAllAvailable()
        run.shed(0.5, by_class={"free": 0.2})
        feed.add(rows(1))
        run.processAllAvailable()
        run.shed(0.0, by_class={GOLD: 1.0})
        feed.add(rows(2))
        run.processAllAvailable()
        results, counts = run.results(), run.counts()["source"]
    finally:
        run.stop()
    for result, offered in zip(results, feed.batches, strict=True):
        (count,) = result.sources
        assert count.offered == 600
        assert count.kept == sum(report.rows_in for report in result.of("sums"))
        tiers = offered["tier"].to_pylist()
        named = {GOLD: tiers.count(GOLD), "free": tiers.count("free"), "other": tiers.count("new")}
        assert {part.name: part.offered for part in count.classes} == named
        assert sum(part.kept for part in count.classes) == count.kept
    half, least = results[1].sources[0], results[2].sources[0]
    shares = {part.name: part.kept / part.offered for part in half.classes}
    assert shares[GOLD] > 0.8
    assert shares["free"] < 0.35
    assert 0.35 < shares["other"] < 0.65
    assert {part.name: part.kept for part in least.classes} == {
        GOLD: least.offered - least.shed,
        "free": 0,
        "other": 0,
    }
    if first == "keyed":
        assert sum(half.groups_offered) == 600
        assert sum(half.groups_kept) == half.kept
    told = [report.shed for report in results[1].of("source") if report.shed is not None]
    assert sum(part.stamps.rows for part in told) == 600
    state = tg.read_state(str(tmp_path / "ck"), "sums").to_pylist()
    assert sum(row["n"] for row in state) == counts.kept == 1800 - counts.shed
    if first != "keyed":
        assert {row["note"] for row in sink.batches[1]} == {"as long as it takes"}
        weights = {row["tier"]: row["_weight"] for row in sink.batches[1]}
        assert weights == {GOLD: pytest.approx(1 / 0.9), "free": 5.0, "new": 2.0}


def test_the_rows_decide_and_not_who_draws_or_where(spark, tmp_path):
    """A task and Spark draw the same numbers, in whatever partitions."""
    kept = []
    for number, first in enumerate([*READERS[:2], *READERS[:2]]):
        feed, sink = Feed(tmp_path / f"in-{number}", DDL), Collected()
        feed.add(rows(0))
        stream = feed.stream(spark).repartition(1 + number)
        run = flow(stream, first, sink).start(str(tmp_path / f"ck-{number}"), tasks=1)
        try:
            run.processAllAvailable()
            run.shed(0.4)
            feed.add(rows(1))
            run.processAllAvailable()
        finally:
            run.stop()
        kept.append(sorted(row["id"] for row in sink.batches[1]))
    assert 180 < len(kept[0]) < 300
    assert all(ids == kept[0] for ids in kept)


def test_no_stage_is_added_and_what_is_kept_is_dealt_evenly(spark, tmp_path, plans_of):
    plans = plans_of("sums")
    feed = Feed(tmp_path / "in", DDL)
    feed.add(rows(0))
    run = flow(feed.stream(spark), "map with tasks", Collected()).start(
        str(tmp_path / "ck"), tasks=2
    )
    try:
        run.processAllAvailable()
        run.shed(0.5)
        feed.add(rows(1))
        run.processAllAvailable()
        _, shed = run.results()
    finally:
        run.stop()
    assert plans[0].count("MapInArrow") == plans[1].count("MapInArrow")
    assert "__kept" not in plans[0]
    dealt = [report.rows_in for report in shed.of("same")]
    assert len(dealt) == 3
    assert sum(dealt) == shed.sources[0].kept < 600
    assert max(dealt) - min(dealt) <= 1  # one file a batch is one partition


@pytest.mark.parametrize("first", READERS[1:])
def test_a_replay_in_other_partitions_keeps_the_same_rows(spark, tmp_path, first):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    run = flow(feed.stream(spark).repartition(2), first, sink).start(str(tmp_path / "ck"), tasks=2)
    run.shed(0.4)
    crash_after(run, Step.ENTERED, at_batch=1)
    feed.add(rows(0))
    feed.add(rows(1))
    with pytest.raises(Exception, match="after 'entered' of batch 1"):
        run.processAllAvailable()
    first_try = run.counts()["source"]
    run.stop()
    before = {batch: list(found) for batch, found in sink.batches.items()}
    run = flow(feed.stream(spark).repartition(5), first, sink).start(str(tmp_path / "ck"), tasks=3)
    try:
        run.processAllAvailable()
        (replay,) = run.results()
        counts = run.counts()["source"]
    finally:
        run.stop()
    assert replay.replayed
    assert counts == first_try, "the same rows by class and key group, and entered once"
    assert sorted(map(str, before.get(1, []))) == sorted(map(str, sink.batches.get(1, [])))
    assert (first == "keyed") == (sink.batches == {}), "only a map has a sink here"
    assert counts.offered == 1200
    assert 0 < counts.kept < 700
    state = tg.read_state(str(tmp_path / "ck"), "sums").to_pylist()
    assert sum(row["n"] for row in state) == counts.kept


@pytest.mark.parametrize("sink", ["looks first, then writes one file", "takes a few rows"])
def test_sinks_that_cut_and_join_partitions_lose_no_count(spark, tmp_path, sink):
    """A count belongs to the rows' own task, whichever of Spark's tasks computes it."""
    feed, taken = Feed(tmp_path / "in", DDL), []

    def write(frame, batch_id):
        if sink.startswith("takes"):
            taken.append(len(frame.take(3)))
        elif not frame.isEmpty():
            taken.append(frame.coalesce(1).toArrow().num_rows)

    source = tg.pipeline("shop", feed.stream(spark), arrival="at").shed(unique="id")
    run = source.map(same, tasks=(3, 3), name="same").to(write).start(str(tmp_path / "ck"))
    offered = [600, 600, 2, 2]  # with two rows one task or two have none
    try:
        for number, keep in enumerate([0.5, 1.0, 1.0, 0.5]):
            run.shed(keep)
            feed.add(rows(number, offered[number]))
            run.processAllAvailable()
        results, counts = run.results(), run.counts()["source"]
    finally:
        run.stop()
    assert [result.sources[0].offered for result in results] == offered
    assert counts.offered == sum(offered)
    assert sum(sum(report.rows_in for report in r.of("same")) for r in results) == counts.kept
    if not sink.startswith("takes"):
        assert sum(taken) == counts.kept


def test_a_replay_draws_as_its_plan_says_whatever_the_pipeline_says_now(spark, tmp_path):
    """Drawn by content at first; the pipeline that comes back names what tells rows apart."""
    feed, sinks = Feed(tmp_path / "in", DDL), [Collected(), Collected()]

    def pipe(sink, **options):
        source = tg.pipeline("shop", feed.stream(spark)).shed(**options)
        return source.map(same, tasks=(3, 3), name="same").to(sink)

    run = pipe(sinks[0]).start(str(tmp_path / "ck"))
    run.shed(0.4)
    crash_after(run, Step.HANDED_OVER, at_batch=1)
    feed.add(rows(0))
    feed.add(rows(1))
    with pytest.raises(Exception, match="after 'handed over' of batch 1"):
        run.processAllAvailable()
    run.stop()
    run = pipe(sinks[1], unique="id").start(str(tmp_path / "ck"))
    try:
        run.processAllAvailable()
        feed.add(rows(2))
        run.processAllAvailable()
        plans = [result.plan for result in run.results()]
    finally:
        run.stop()
    assert [plan.unique for plan in plans] == [{}, {"source": ("id",)}]
    first, again = (sorted(row["id"] for row in sink.batches[1]) for sink in sinks)
    assert first == again
    assert 0 < len(first) < 600


def test_unique_columns_must_be_there_and_plain(spark, tmp_path):
    stream = Feed(tmp_path / "in", DDL).stream(spark)
    with pytest.raises(AskedWrongly, match="there is no column 'ix'"):
        tg.pipeline("shop", stream).shed(unique="ix")
    nested = stream.selectExpr("struct(id) as pair")
    with pytest.raises(AskedWrongly, match="give plain columns"):
        tg.pipeline("shop", nested).shed(unique="pair")
