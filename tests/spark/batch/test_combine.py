"""Combining rows before the shuffle, on Spark: no result changes, and no key bounds its task."""

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Collected, Feed
from tidegate.errors import AskedWrongly
from tidegate.spark.batch.step import Step

pytestmark = pytest.mark.spark
DDL = "k string, v long, f double, at timestamp"
START_US = 1_700_000_000_000_000
TASKS = 4


def rows(seed: int, count: int = 900, keys: int = 40) -> pa.Table:
    """Rows of which one key has half, with late ones and floats of which each bit matters."""
    chance = np.random.default_rng(seed)
    key = np.where(chance.random(count) < 0.5, 0, chance.integers(0, keys, count))
    floats = chance.choice([0.0, -0.0, math.nan, 1.5, -2.0], count)
    at_us = START_US + (seed * 10 + chance.integers(-15, 10, count)) * 1_000_000
    return pa.table(
        {
            "k": [f"key-{number}" for number in key],
            "v": chance.integers(-(2**40), 2**40, count),
            "f": floats,
            "at": pa.array(at_us, pa.timestamp("us", "UTC")),
        }
    )


def flow_of(feed: Feed, spark, sums: Collected, windows: Collected):
    """An aggregate behind a map, and windows right behind the source."""
    stream = tg.pipeline("hot", feed.stream(spark))
    summary = tg.aggregate(
        n=tg.count(), total=tg.sum("v"), low=tg.min("f"), last=tg.latest("v", by="f")
    )
    stream.map(lambda table: table, name="same").keyed("sums", summary, key="k", shards=32).to(sums)
    per_window = tg.window(
        tg.aggregate(n=tg.count(), total=tg.sum("v")),
        every="5 seconds",
        size="10 seconds",
        event_time="at",
    )
    return stream.keyed("windows", per_window, key="k", shards=16).to(windows)


def in_bits(found: list[dict]) -> list[tuple]:
    """Rows with their floats as hexadecimal: NaN equals NaN, and -0.0 is not 0.0."""
    return [
        tuple(value.hex() if isinstance(value, float) else value for value in row.values())
        for row in found
    ]


def in_bits_by_batch(sink: Collected) -> dict[int, list[tuple]]:
    return {batch: sorted(in_bits(found), key=repr) for batch, found in sink.batches.items()}


def test_results_states_and_counts_are_those_without_combining(spark, tmp_path):
    """Over a rescale, moves of shards, a replay and late rows."""
    found = {}
    for way in ("never", "always"):
        feed = Feed(tmp_path / way / "in", DDL)
        sums, windows, place = Collected(), Collected(), str(tmp_path / way / "ck")
        run = flow_of(feed, spark, sums, windows).start(place, tasks=2, combine=way)
        feed.add(rows(0))
        run.processAllAvailable()
        run.rescale("sums", TASKS)
        run.reroute("windows", {0: 1, 3: 1})
        feed.add(rows(1))
        run.processAllAvailable()
        crash_after(run, Step.RAN, at_batch=2)
        feed.add(rows(2))
        with pytest.raises(Exception, match="of batch 2"):
            run.processAllAvailable()
        first = list(run.results())
        run.stop()
        run = flow_of(feed, spark, sums, windows).start(place, tasks=2, combine=way)
        try:
            feed.add(rows(3))
            run.processAllAvailable()
            results = [*first, *run.results()]
        finally:
            run.stop()
        assert sums.tries[2] == 2
        assert [one.replayed for one in results] == [False, False, True, False]
        for one in results:
            assert [one.combines(name) for name in ("sums", "windows")] == [way == "always"] * 2
            for name in ("sums", "windows"):
                assert sum(report.rows_in for report in one.of(name)) == 900
        assert [one.plan.operators["sums"].tasks for one in results] == [2, 4, 4, 4]
        found[way] = {
            "sums": in_bits_by_batch(sums),
            "windows": in_bits_by_batch(windows),
            "late": [sum(r.late_rows for r in one.of("windows")) for one in results],
            "offered": [sum(count.offered for count in one.sources) for one in results],
            "states": [
                sorted(in_bits(tg.read_state(place, name).to_pylist()), key=repr)
                for name in ("sums", "windows")
            ],
        }
    assert found["always"] == found["never"]
    assert sum(found["always"]["late"]) > 0


def test_a_key_with_half_of_all_rows_is_spread_by_itself(spark, tmp_path):
    """It begins after two batches in which that key bounded its task, and the record says so."""
    chance = np.random.default_rng(5)
    feed, sink = Feed(tmp_path / "in", "k string, at timestamp"), Collected()
    flow = tg.pipeline("half", feed.stream(spark), arrival="at").keyed("n", tg.count(), key="k")
    count, batches = 400_000, 4
    run = flow.to(sink).start(str(tmp_path / "ck"), tasks=TASKS, combine="auto")
    try:
        hot = 0
        for _ in range(batches):
            key = np.where(chance.random(count) < 0.5, 0, chance.integers(0, 500, count))
            hot += int((key == 0).sum())
            now = pa.scalar(dt.datetime.now(dt.UTC), pa.timestamp("us", "UTC"))
            times = pa.chunked_array([pa.repeat(now, count)])
            feed.add(pa.table({"k": pa.array(key).cast(pa.string()), "at": times}))
            run.processAllAvailable()
        results = run.results()
    finally:
        run.stop()
    assert [one.combines("n") for one in results] == [False, False, True, True]
    for one in results:
        assert sum(report.rows_in for report in one.of("n")) == count
        assert sum(s.rows for s in stamps_of(one)) == count, "every arrival is noted once"
    alone, spread = results[1], results[-1]
    assert max(report.rows_in for report in alone.of("n")) > 0.5 * count
    given = [report.combined_rows for report in spread.of("n")]
    assert sum(given) == sum(report.rows_out for report in spread.in_front_of("n"))
    assert sum(given) < 0.01 * count
    assert max(given) < 0.6 * sum(given)
    last = {row["k"]: row["count"] for row in sink.batches[batches - 1]}
    assert last["0"] == hot


def stamps_of(result):
    return [report.stamps for report in result.reports if report.stamps is not None]


def test_an_unknown_way_is_refused(spark, tmp_path):
    feed = Feed(tmp_path / "in", "k string")
    flow = tg.pipeline("p", feed.stream(spark)).keyed("n", tg.count(), key="k").to("noop")
    with pytest.raises(AskedWrongly, match="combine='sometimes': give one of 'auto', 'always'"):
        flow.start(str(tmp_path / "ck"), combine="sometimes")
