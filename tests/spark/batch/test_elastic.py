"""Elastic operators on real Spark: whatever happens between batches, the result is the batch's."""

import collections
import random

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Collected, Feed
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch.step import Step

pytestmark = pytest.mark.spark
DDL = "k string, v long"


def rows(seed: int, count: int = 400, keys: int = 60) -> pa.Table:
    chance = np.random.default_rng(seed)
    names = [f"key-{number}" for number in chance.integers(0, keys, count)]
    return pa.table({"k": names, "v": chance.integers(0, 100, count)})


def totals(table: pa.Table) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for row in table.to_pylist():
        count, total = found.get(row["k"], (0, 0))
        found[row["k"]] = (count + 1, total + row["v"])
    return found


def flow_of(feed: Feed, spark, sink):
    summary = tg.aggregate(n=tg.count(), total=tg.sum("v"))
    return (
        tg.pipeline("shop", feed.stream(spark))
        .map(lambda table: table, name="same")
        .keyed("sums", summary, key="k", shards=32)
        .to(sink)
    )


def stored(checkpoint) -> dict[str, tuple[int, int]]:
    return {
        r["k"]: (r["n"], r["total"]) for r in tg.read_state(str(checkpoint), "sums").to_pylist()
    }


def test_rescale_and_reroute_between_batches_change_nothing_but_the_route(spark, tmp_path):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    feed.add(rows(0))
    run = flow_of(feed, spark, sink).start(str(tmp_path / "ck"), tasks=2)
    try:
        run.processAllAvailable()
        for step, act in enumerate(
            [
                lambda: run.rescale("sums", 5),
                lambda: run.reroute("sums", {0: 4, 1: 4, 31: 0}),
                lambda: run.rescale("sums", 1),
                lambda: run.rescale("sums", 3),
            ]
        ):
            act()
            feed.add(rows(step + 1))
            run.processAllAvailable()
            assert stored(tmp_path / "ck") == totals(feed.all())
        plans = [result.plan.operators["sums"] for result in run.results()]
        assert [plan.tasks for plan in plans] == [2, 5, 5, 1, 3]
        assert plans[2].route[0] == plans[2].route[1] == 4
        assert plans[2].route[31] == 0
        last = {row["k"]: (row["n"], row["total"]) for row in sink.rows()}
        assert last == totals(feed.all())
        for result in run.results():
            assert sum(report.rows_in for report in result.of("sums")) == 400
            assert sum(report.rows_in for report in result.of("same")) == 400
            by_shard = sum(int(report.shard_rows[1].sum()) for report in result.of("sums"))
            assert by_shard == 400
            assert list(result.steps_s) == list(Step)
        with pytest.raises(AskedWrongly, match="did you mean 'sums'"):
            run.rescale("sum", 2)
        with pytest.raises(AskedWrongly, match="1 to 32 tasks, not 33"):
            run.rescale("sums", 33)
        with pytest.raises(AskedWrongly, match="there is no shard 32"):
            run.reroute("sums", {32: 0})
    finally:
        run.stop()


STEPS = [
    Step.PLANNED,
    Step.COMPILED,
    Step.SINKS_WRITTEN,
    Step.RAN,
    Step.COMMITTED,
    Step.CLEANED,
]


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_after_any_step_repeats_the_batch_exactly(spark, tmp_path, step):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    run = flow_of(feed, spark, sink).start(str(tmp_path / "ck"), tasks=2)
    crash_after(run, step, at_batch=1)
    for seed in range(3):
        feed.add(rows(seed))
    with pytest.raises(Exception, match=f"after '{step.value}' of batch 1"):
        run.processAllAvailable()
    run.stop()
    first_try = sink.batches.get(1)
    assert (first_try is None) == (step in (Step.PLANNED, Step.COMPILED))
    again = flow_of(feed, spark, sink).start(str(tmp_path / "ck"), tasks=4)
    try:
        again.rescale("sums", 3)
        again.processAllAvailable()
        results = {result.plan.batch_id: result for result in again.results()}
        if step in (Step.COMMITTED, Step.CLEANED):
            assert 1 not in results, "what is committed is not run again"
        else:
            assert results[1].replayed
            assert results[1].plan.operators["sums"].tasks == 2, "a replay keeps the plan it had"
        assert results[2].plan.operators["sums"].tasks == 3
        assert first_try in (None, sink.batches[1])
        assert stored(tmp_path / "ck") == totals(feed.all())
        assert {r["k"]: (r["n"], r["total"]) for r in sink.rows()} == totals(feed.all())
    finally:
        again.stop()


@pytest.mark.parametrize(
    "step", [Step.CHANNELS_WRITTEN, Step.RAN, Step.HANDED_OVER, Step.COMMITTED]
)
def test_a_crash_around_a_channel_hands_every_batch_over_once(spark, tmp_path, step):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()

    def flow():
        return (
            tg.pipeline("two", feed.stream(spark))
            .map(lambda table: table, name="dealt", tasks=3)
            .keyed("first", tg.count(), key="k", shards=8)
            .cut("between")
            .keyed("second", tg.count(), key="k", shards=8)
            .to(sink)
        )

    run = flow().start(str(tmp_path / "ck"), tasks=2)
    crash_after(run, step, at_batch=1)
    for seed in range(3):
        feed.add(rows(seed))
    with pytest.raises(Exception, match=f"after '{step.value}' of batch 1"):
        run.processAllAvailable()
    run.stop()
    again = flow().start(str(tmp_path / "ck"), tasks=2)
    try:
        again.processAllAvailable()
        # Every batch emits each of its keys once: the second count is in how many it occurred.
        expected = collections.Counter(
            key for batch in feed.batches for key in set(batch["k"].to_pylist())
        )
        found = tg.read_state(str(tmp_path / "ck"), "second").to_pylist()
        assert {row["k"]: row["count"] for row in found} == expected
    finally:
        again.stop()


def test_order_within_a_key_is_kept_when_asked_for(spark, tmp_path):
    def chain(batch_rows: pa.Table, state: pa.Table) -> tg.Update:
        text = {row["k"]: row["text"] for row in state.to_pylist()}
        for row in batch_rows.to_pylist():
            text[row["k"]] = text.get(row["k"], "") + f"{row['v']},"
        table = pa.table({"k": list(text), "text": list(text.values())})
        return tg.Update(output=table, upserts=table)

    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    chance = random.Random(5)
    number = 0
    for _ in range(3):
        part = list(range(number, number + 200))
        number += 200
        chance.shuffle(part)
        feed.add(pa.table({"k": [f"k{v % 7}" for v in part], "v": part}))
    flow = (
        tg.pipeline("ordered", feed.stream(spark).repartition(3))
        .keyed(
            "chain",
            chain,
            key="k",
            state="text string",
            output="k string, text string",
            order_by="v",
            shards=16,
        )
        .to(sink)
    )
    run = flow.start(str(tmp_path / "ck"), tasks=3)
    try:
        run.processAllAvailable()
        found = {
            r["k"]: r["text"] for r in tg.read_state(str(tmp_path / "ck"), "chain").to_pylist()
        }
        expected = collections.defaultdict(str)
        for value in range(number):
            expected[f"k{value % 7}"] += f"{value},"
        assert found == expected
    finally:
        run.stop()


def test_branches_merge_and_two_keyed_operators_in_one_segment(spark, tmp_path):
    feed, small, large = Feed(tmp_path / "in", DDL), Collected(), Collected()
    for seed in range(2):
        feed.add(rows(seed))
    start = tg.pipeline("branches", feed.stream(spark))
    low = start.map(lambda t: t.filter(pa.compute.less(t["v"], 50)), name="low")
    high = start.map(lambda t: t.filter(pa.compute.greater_equal(t["v"], 50)), name="high")
    low.keyed("lows", tg.count(), key="k").to(small, name="small")
    low.merge(high).keyed("all", tg.count(), key="k").to(large, name="large")
    run = start.start(str(tmp_path / "ck"), tasks=2)
    try:
        run.processAllAvailable()
        table = feed.all().to_pylist()
        want_all = collections.Counter(row["k"] for row in table)
        want_low = collections.Counter(row["k"] for row in table if row["v"] < 50)
        assert {r["k"]: r["count"] for r in small.rows()} == want_low
        assert {r["k"]: r["count"] for r in large.rows()} == want_all
        for result in run.results():
            assert sum(report.rows_in for report in result.of("low")) == 400, "computed once"
    finally:
        run.stop()


def test_a_cut_makes_two_segments_and_a_loop_halves_until_one(spark, tmp_path):
    """Every number is halved (integer division) until it is 1; the steps it took are known."""
    feed, sink = Feed(tmp_path / "in", "id long, n long, steps long"), Collected()
    chance = random.Random(3)
    expected = {}
    for batch in range(2):
        numbers = [chance.randrange(1, 500) for _ in range(30)]
        ids = [batch * 100 + i for i in range(30)]
        expected |= {i: n.bit_length() - 1 for i, n in zip(ids, numbers, strict=True)}
        feed.add(pa.table({"id": ids, "n": numbers, "steps": [0] * 30}))

    def halve(table: pa.Table) -> pa.Table:
        odd = table["n"].to_numpy()
        more = odd > 1
        return pa.table(
            {
                "id": table["id"],
                "n": np.where(more, odd // 2, odd),
                "steps": table["steps"].to_numpy() + more,
            }
        )

    start = tg.pipeline("collatz", feed.stream(spark))
    back = start.loop("again")
    halved = start.merge(back).map(halve)
    halved.map(lambda t: t.filter(pa.compute.greater(t["n"], 1)), name="unfinished").feed(back)
    done = halved.map(lambda t: t.filter(pa.compute.equal(t["n"], 1)), name="finished").cut("ready")
    done.keyed("result", tg.max("steps"), key="id").to(sink)
    run = start.start(str(tmp_path / "ck"), tasks=2)
    try:
        assert len(run.queries) == 2
        run.processAllAvailable()
        found = tg.read_state(str(tmp_path / "ck"), "result").to_pylist()
        assert {row["id"]: row["max_steps"] for row in found} == expected
    finally:
        run.stop()


def test_a_function_that_raises_names_the_operator_and_the_users_line(spark, tmp_path):
    def broken(batch_rows: pa.Table, state: pa.Table) -> tg.Update:
        return batch_rows["nothing"]  # the user's own line

    feed = Feed(tmp_path / "in", DDL)
    feed.add(rows(0))
    flow = tg.pipeline("bad", feed.stream(spark)).keyed(
        "broken", broken, key="k", state="n long", output="k string"
    )
    run = flow.start(str(tmp_path / "ck"), tasks=2)
    with pytest.raises(TidegateError, match=r"operator 'broken' raised KeyError.*user's own line"):
        run.processAllAvailable()
    run.stop()

    def mended(batch_rows: pa.Table, state: pa.Table) -> tg.Update:
        keys = batch_rows.select(["k"]).group_by("k").aggregate([])
        return tg.Update(upserts=keys.append_column("n", pa.array([1] * keys.num_rows)))

    flow = tg.pipeline("bad", feed.stream(spark)).keyed(
        "broken", mended, key="k", state="n long", output="k string"
    )
    run = flow.start(str(tmp_path / "ck"), tasks=2, same_state=["broken"])
    try:
        run.processAllAvailable()
        assert run.results()[0].replayed
        assert tg.read_state(str(tmp_path / "ck"), "broken").num_rows == 60
    finally:
        run.stop()


def test_a_wrong_output_schema_names_operator_and_column(spark, tmp_path):
    feed = Feed(tmp_path / "in", DDL)
    feed.add(rows(0))
    flow = tg.pipeline("bad", feed.stream(spark)).map(
        lambda t: t.rename_columns(["key", "v"]), "k string, v long", name="renamed"
    )
    run = flow.to(Collected()).start(str(tmp_path / "ck"), tasks=2)
    with pytest.raises(TidegateError, match="operator 'renamed': the column 'k' is missing"):
        run.processAllAvailable()
    run.stop()


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda s: tg.pipeline("other", s).keyed("n", tg.count(), key="k"),
            "belongs to pipeline 'p'",
        ),
        (
            lambda s: tg.pipeline("p", s).keyed("m", tg.count(), key="k"),
            "'n', which the pipeline no longer",
        ),
        (lambda s: tg.pipeline("p", s).keyed("n", tg.count(), key="v"), "had the key"),
        (
            lambda s: tg.pipeline("p", s).keyed("n", tg.count(), key="k", shards=8),
            "shard count 256, now 8",
        ),
        (lambda s: tg.pipeline("p", s).keyed("n", tg.sum("v"), key="k"), "had the function count"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(spark, tmp_path, change, message):
    feed = Feed(tmp_path / "in", DDL)
    first = tg.pipeline("p", feed.stream(spark)).keyed("n", tg.count(), key="k")
    first.start(str(tmp_path / "ck")).stop()
    before = sorted(str(p) for p in (tmp_path / "ck").rglob("*"))
    with pytest.raises(AskedWrongly, match=message):
        change(feed.stream(spark)).start(str(tmp_path / "ck"))
    assert sorted(str(p) for p in (tmp_path / "ck").rglob("*")) == before


def test_a_missing_state_file_is_named_at_the_start(spark, tmp_path):
    feed, sink = Feed(tmp_path / "in", DDL), Collected()
    feed.add(rows(0))
    run = flow_of(feed, spark, sink).start(str(tmp_path / "ck"), tasks=2)
    run.processAllAvailable()
    run.stop()
    file = next((tmp_path / "ck" / "state" / "sums").glob("*.arrow"))
    file.unlink()
    with pytest.raises(TidegateError, match=f"{file.name} of operator 'sums' is missing"):
        flow_of(feed, spark, sink).start(str(tmp_path / "ck"))


def test_mistakes_are_named_before_anything_starts(spark, tmp_path):
    stream = Feed(tmp_path / "in", DDL).stream(spark)
    flow = tg.pipeline("p", stream)
    for act, message in [
        (lambda: flow.keyed("n", tg.count(), key="kk"), "no column 'kk'; did you mean 'k'"),
        (lambda: flow.keyed("n", tg.sum("w"), key="k"), "'w'"),
        (lambda: flow.keyed("n", lambda r, s: None, key="k"), "declare state"),
        (lambda: flow.map(lambda t: t, "k strin"), "not Spark DDL"),
        (lambda: flow.keyed("n", tg.count(), key="k", shards=0), "0 shards"),
        (lambda: flow.keyed("n", tg.count(), key="k", tasks=(4, 2)), "least <= most"),
        (lambda: flow.keyed("a b", tg.count(), key="k"), "name 'a b' is not usable"),
        (lambda: tg.pipeline("p", spark.range(3)), "not a stream"),
        (lambda: tg.pipeline("p", stream, arrival="v"), "expected a timestamp"),
        (lambda: tg.pipeline("q", stream).start(str(tmp_path / "ck")), "has no end"),
    ]:
        with pytest.raises(AskedWrongly, match=message):
            act()
    assert not (tmp_path / "ck").exists()
