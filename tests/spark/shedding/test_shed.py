"""Shedding on real Spark: before the first operator, counted to the row, the same on a replay."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Collected, Feed
from tidegate.control.decision import Decision
from tidegate.control.shedding.keep import KEEP_ALL, Keep
from tidegate.errors import AskedWrongly
from tidegate.spark.batch.step import Step
from tidegate.spark.loop.loop import ControlLoop

pytestmark = pytest.mark.spark
DDL = "k string, v long, tier string"
CLASSES = {"gold": tg.ShedClass(priority=1, floor=0.9), "free": tg.ShedClass()}


def rows(seed: int, count: int = 400) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "k": [f"key-{number}" for number in chance.integers(0, 40, count)],
            "v": chance.integers(0, 1000, count),
            "tier": chance.choice(["gold", "free", "new"], count),
        }
    )


def same(table: pa.Table) -> pa.Table:
    return table


def state_of(checkpoint) -> dict[str, tuple[int, int]]:
    return {
        r["k"]: (r["n"], r["total"]) for r in tg.read_state(str(checkpoint), "sums").to_pylist()
    }


def totals(table: list[dict]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for row in table:
        count, total = found.get(row["k"], (0, 0))
        found[row["k"]] = (count + 1, total + row["v"])
    return found


SUMS = tg.aggregate(n=tg.count(), total=tg.sum("v"))


@pytest.mark.parametrize("first", ["map", "map with tasks", "keyed"])
def test_counts_classes_and_state_agree_to_the_row(spark, tmp_path, first):
    """Whatever the first operator is: in its own call, in a stage before it, before the shuffle."""
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    source = tg.pipeline("shop", feed.stream(spark)).shed(by="tier", classes=CLASSES, key="k")
    if first != "keyed":
        source = source.map(same, tasks=None if first == "map" else (1, 4), name="same")
    if first == "map":
        source.to(sink)
    flow = source.keyed("sums", SUMS, key="k", shards=16)
    feed.add(rows(0))
    run = flow.start(str(tmp_path / "ck"), tasks=2)
    try:
        run.processAllAvailable()
        assert run.keep() == KEEP_ALL
        run.shed(0.5, by_class={"free": 0.2})
        assert run.keep() == Keep(0.5, {"free": 0.2, "gold": 0.9})
        feed.add(rows(1))
        run.processAllAvailable()
        run.shed()
        feed.add(rows(2))
        run.processAllAvailable()
        results = run.results()
        counts = run.counts()["source"]
        with pytest.raises(AskedWrongly, match="did you mean 'gold'"):
            run.shed(0.5, by_class={"gld": 0.2})
        with pytest.raises(AskedWrongly, match="from 0 to 1"):
            run.shed(1.5)
    finally:
        run.stop()
    assert [result.plan.keep.fraction for result in results] == [1.0, 0.5, 1.0]
    for result, offered in zip(results, feed.batches, strict=True):
        (count,) = result.sources
        assert (count.name, count.offered) == ("source", 400)
        assert count.kept == sum(report.rows_in for report in result.of("sums"))
        for part in count.classes:
            expected = offered["tier"].to_pylist()
            named = ("gold", "free")
            assert part.offered == sum(
                (t if t in named else "other") == part.name for t in expected
            )
        assert sum(part.kept for part in count.classes) == count.kept
    shed = results[1].sources[0]
    assert 0 < shed.kept < 400
    assert sum(shed.groups_offered) == 400
    assert sum(shed.groups_kept) == shed.kept
    by_name = {part.name: part for part in shed.classes}
    shares = {name: part.kept / part.offered for name, part in by_name.items()}
    assert shares["gold"] > 0.8
    assert shares["free"] < 0.35
    assert 0.35 < shares["other"] < 0.65
    assert (counts.offered, counts.shed) == (1200, shed.shed)
    stored = state_of(tmp_path / "ck")
    assert sum(n for n, _ in stored.values()) == counts.kept
    if first == "map":
        assert stored == totals(sink.rows())


def test_keep_one_leaves_the_plan_unchanged(spark, tmp_path, plans_of):
    plans = plans_of("sums")
    feed = Feed(tmp_path / "in", DDL)
    feed.add(rows(0))
    shapes = []
    for name, sheds in (("plain", False), ("sheds", True)):
        source = tg.pipeline("shop", feed.stream(spark))
        if sheds:
            source = source.shed(by="tier", classes=CLASSES, key="k")
        flow = source.map(same, name="same").keyed("sums", SUMS, key="k", shards=16)
        run = flow.start(str(tmp_path / name), tasks=2)
        try:
            run.processAllAvailable()
            if sheds:
                run.shed(0.5)
                feed.add(rows(1))
                run.processAllAvailable()
        finally:
            run.stop()
        shapes = [
            [line.lstrip(" +-:").split("(")[0].split("#")[0] for line in p.splitlines()]
            for p in plans
        ]
    assert shapes[0] == shapes[1]
    # Shedding in the map's own call adds the columns that it draws by, and no Python stage.
    arrow = [sum("MapInArrow" in line for line in p.splitlines()) for p in plans]
    assert len(set(arrow)) == 1
    assert "__row" not in plans[1]
    assert "__row" in plans[2]


@pytest.mark.parametrize(
    "step, at", [(Step.SINKS_WRITTEN, 1), (Step.ENTERED, 0), (Step.HANDED_OVER, 1)]
)
def test_a_crash_in_an_overload_sheds_the_same_rows_again(spark, tmp_path, step, at):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    tries: list[list[tuple]] = []

    def collect(frame, batch_id):
        sink(frame, batch_id)
        if batch_id == at:
            tries.append(sorted(tuple(row.values()) for row in sink.batches[at]))

    def flow(partitions: int):
        # The second start reads the batch in other partitions: its rows decide, not their places.
        stream = feed.stream(spark).repartition(partitions)
        source = tg.pipeline("shop", stream).shed(by="tier", classes=CLASSES, weight=True)
        return source.map(same, name="same").to(collect).keyed("sums", SUMS, key="k", shards=16)

    run = flow(2).start(str(tmp_path / "ck"), tasks=2)
    run.shed(0.4)
    crash_after(run, step, at_batch=at)
    for seed in range(3):
        feed.add(rows(seed))
    with pytest.raises(Exception, match=f"after '{step.value}' of batch {at}"):
        run.processAllAvailable()
    run.stop()
    run = flow(3).start(str(tmp_path / "ck"), tasks=3)
    try:
        run.processAllAvailable()
        first, *_, last = run.results()
        counts = run.counts()["source"]
    finally:
        run.stop()
    assert first.replayed
    assert first.plan.keep.fraction == 0.4
    assert last.plan.keep.fraction == 1.0  # nobody has asked for less since the restart
    assert len(tries) == 2
    assert tries[0] == tries[1]
    assert 0 < first.sources[0].kept < 400
    assert counts.offered == 1200
    assert counts.kept == len(sink.rows()) == sum(n for n, _ in state_of(tmp_path / "ck").values())
    assert state_of(tmp_path / "ck") == totals(sink.rows())
    weights = {row["tier"]: row["_weight"] for row in sink.batches[at]}
    assert weights["gold"] == pytest.approx(1 / 0.9)
    assert weights["free"] == weights["new"] == 2.5
    assert {row["_weight"] for row in sink.batches[2]} == {1.0}


def test_a_source_that_two_operators_read_is_shed_and_counted_once(spark, tmp_path):
    feed, left, right = Feed(tmp_path / "in", DDL), Collected(), Collected()
    source = tg.pipeline("shop", feed.stream(spark))
    one = source.map(same, name="one").to(left)
    two = source.map(same, name="two").to(right)
    flow = one.merge(two).keyed("sums", SUMS, key="k", shards=16)
    feed.add(rows(0))
    run = flow.start(str(tmp_path / "ck"), tasks=2)
    try:
        run.processAllAvailable()
        assert run.counts() == {}
        run.shed(0.5)
        feed.add(rows(1))
        run.processAllAvailable()
        (count,) = run.results()[-1].sources
        assert run.counts() == {"source": count}
    finally:
        run.stop()
    assert count.offered == 400
    assert count.kept == len(left.batches[1]) == len(right.batches[1])
    assert left.batches[1] == right.batches[1]


def test_two_sources_are_counted_apart_while_they_shed(spark, tmp_path):
    feeds = [Feed(tmp_path / "one", DDL), Feed(tmp_path / "two", DDL)]
    for feed in feeds:
        feed.add(rows(0))
    one = tg.pipeline("shop", feeds[0].stream(spark))
    two = one.source(feeds[1].stream(spark), name="second")
    flow = one.merge(two).map(same, name="same").keyed("sums", SUMS, key="k", shards=16)
    run = flow.start(str(tmp_path / "ck"), tasks=2)
    try:
        run.processAllAvailable()
        (together,) = run.results()[-1].sources
        run.shed(0.5)
        for feed in feeds:
            feed.add(rows(1))
        run.processAllAvailable()
        results = [result for result in run.results() if result.plan.keep.fraction < 1]
        shed = list(itertools.chain.from_iterable(result.sources for result in results))
        counts = run.counts()
    finally:
        run.stop()
    assert together.name == "second+source"
    assert together.shed == 0
    assert counts["source"].offered == counts["second"].offered == 400
    assert sum(count.kept for count in shed) == counts["source"].kept + counts["second"].kept


def test_what_the_loop_decides_to_shed_holds_from_the_next_batch_on(spark, tmp_path, wait_for):
    stream = tg.arrivals(spark, "constant:200", keys="uniform:10", partitions=2)
    flow = (
        tg.pipeline("held", stream, arrival="timestamp")
        .shed(weight=True)
        .map(same, name="same")
        .keyed("sums", tg.count(weighted=True), key="key", shards=16)
    )
    run = flow.start(str(tmp_path / "ck"), target="30 seconds", cores=(1, 2), dry_run=True)
    loop = run.loop
    assert isinstance(loop, ControlLoop)
    try:
        wait_for(lambda: run.results(), run.queries["main"])
        loop.act(Decision(reason="by hand", keep=0.25))
        assert run.keep() == Keep(0.25)

        def measured() -> bool:
            return any(
                r.measurement.keep == 0.25 and any(s.shed for s in r.measurement.sources)
                for r in list(loop.records)
            )

        wait_for(measured, run.queries["main"])
    finally:
        run.stop()
    state = tg.read_state(str(tmp_path / "ck"), "sums").to_pydict()
    counts = run.counts()["source"]
    seen = [r.measurement for r in list(loop.records) if r.measurement.sources]
    batches = [b for m in seen for segment in m.segments for b in segment.batches]
    assert sum(b.rows for b in batches) == sum(s.kept for m in seen for s in m.sources)
    assert sum(b.shed_rows for b in batches) == sum(s.shed for m in seen for s in m.sources)
    assert 0 < counts.shed < counts.offered
    error = sum(state["count__spread"]) ** 0.5
    assert error > 0
    assert abs(sum(state["count"]) - counts.offered) <= 5 * error


@pytest.mark.parametrize(
    "options, message",
    [
        ({"by": "tire", "classes": CLASSES}, "did you mean 'tier'"),
        ({"by": "tier"}, "give both"),
        ({"by": "tier", "classes": {"gold": tg.ShedClass(floor=1.2)}}, "from 0 to 1"),
        ({"by": "tier", "classes": {"gold": tg.ShedClass(weight=0)}}, "more than 0"),
        ({"by": "tier", "classes": {"gold": 0.5}}, "expected tg.ShedClass"),
        ({"key": "user"}, "there is no column 'user'"),
        (
            {
                "by": "tier",
                "classes": {"gold": tg.ShedClass(floor=1), "other": tg.ShedClass(floor=1)},
            },
            "nothing could be shed",
        ),
    ],
)
def test_a_wrong_wish_is_refused_before_the_start(spark, tmp_path, options, message):
    feed = Feed(tmp_path / "in", DDL)
    with pytest.raises(AskedWrongly, match=message):
        tg.pipeline("shop", feed.stream(spark)).shed(**options)


def test_only_a_source_is_shed(spark, tmp_path):
    flow = tg.pipeline("shop", Feed(tmp_path / "in", DDL).stream(spark))
    with pytest.raises(AskedWrongly, match="right after"):
        flow.map(same).shed()
    with pytest.raises(AskedWrongly, match="reads the source"):
        flow.shed()
