"""Sojourns through cuts and loops, measured on Spark, against the rows that reach the sinks."""

import time
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pytest

import tidegate as tg
from tests.helpers.feed import Collected, Feed
from tidegate.control.learning.sojourn import SLOT_US
from tidegate.control.measurement import Latency
from tidegate.spark.loop.negotiate import LocalBudget
from tidegate.spark.measure.pipeline_meter import PipelineMeter
from tidegate.spark.measure.query_meter import QueryMeter

COLUMNS = ["id", "n", "at"]
DDL = "id long, n long, at timestamp"


def block(first: int, counts: list[int]) -> pa.Table:
    """Inputs with distinct arrivals of the last seconds."""
    arrived_us = round(time.time() * 1e6) - np.arange(len(counts)) * 3_300 - 500_000
    return pa.table(
        {
            "id": np.arange(first, first + len(counts)),
            "n": np.array(counts, dtype=np.int64),
            "at": pa.array(arrived_us).cast(pa.timestamp("us", "UTC")),
        }
    )


def only_declared(rows: pa.Table) -> None:
    assert rows.column_names == COLUMNS, f"a function sees {rows.column_names}"


def repeated(rows: pa.Table) -> tg.Derived:
    """Each row n times; a row with n = 0 ends here."""
    only_declared(rows)
    parents = np.repeat(np.arange(rows.num_rows), rows["n"].to_numpy())
    return tg.Derived(rows.take(pa.array(parents)), parents)


def where(
    keep: Callable[[pa.Array, int], pa.Array], value: int
) -> Callable[[pa.Table], tg.Derived]:
    def chosen(rows: pa.Table) -> tg.Derived:
        only_declared(rows)
        mask = keep(rows["n"], value)
        return tg.Derived(rows.filter(mask), mask)

    return chosen


def halved(rows: pa.Table) -> tg.Derived:
    """Two rows of half the size for each row."""
    only_declared(rows)
    parents = np.repeat(np.arange(rows.num_rows), 2)
    twice = rows.take(pa.array(parents))
    return tg.Derived(twice.set_column(1, "n", compute.divide(twice["n"], 2)), parents)


class Watched(Collected):
    """A sink that also remembers which columns it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: set[str] = set()

    def __call__(self, frame, batch_id: int) -> None:
        self.columns.update(frame.columns)
        super().__call__(frame, batch_id)


def ends_us(run, segment: str) -> dict[int, int]:
    """When the batches of a segment ended, by a meter of our own."""
    return {p.batch_id: p.end_us for p in QueryMeter(run.queries[segment]).read()}


def expected(last_us: dict[int, int], blocks: list[pa.Table]) -> list[int]:
    """The sojourn of each input."""
    arrived = {}
    for rows in blocks:
        micros = rows["at"].cast(pa.int64()).to_pylist()
        arrived.update(zip(rows["id"].to_pylist(), micros, strict=True))
    assert set(last_us) == set(arrived)
    return sorted(last_us[one] - arrived[one] for one in arrived)


def assert_measured(latency: Latency | None, waits_us: list[int]) -> None:
    assert latency is not None
    assert latency.mean_s == pytest.approx(np.mean(waits_us) / 1e6, abs=1e-6)
    for percent, found_s in ((50, latency.p50_s), (95, latency.p95_s), (99, latency.p99_s)):
        rank = -(-percent * len(waits_us) // 100) - 1
        assert 0 <= round(found_s * 1e6) - waits_us[rank] <= SLOT_US


def measured(run, inputs: int, wait_for):
    """What the meter says once so many inputs are done."""
    meter = PipelineMeter(run, LocalBudget(2), window_s=1e6)
    seen = []

    def done() -> bool:
        seen.append(meter.measure(time.time()))
        batches = meter._sojourns.whole._batches
        return sum(batch.stamps.rows for batch in batches) >= inputs

    wait_for(done, run.queries["main"])
    assert meter._sojourns.followed.in_flight == 0
    rows = {name: part._batches for name, part in meter._sojourns._parts.items()}
    timed = {name: sum(batch.stamps.rows for batch in its) for name, its in rows.items()}
    return seen[-1], timed


def test_through_a_cut(spark, tmp_path, wait_for) -> None:
    """Some inputs are multiplied and some end in the first segment."""
    feed, sink = Feed(tmp_path / "in", DDL), Watched()
    flow = tg.pipeline("cut", feed.stream(spark), arrival="at").map(repeated, name="repeated")
    counted = flow.cut("between").map(where(compute.greater, 0), name="second", tasks=2)
    counted.keyed("last", tg.latest("n", "at", by="at"), key="id", shards=4).to(sink)
    feed.add(block(0, [3, 0, 1, 2] * 10))
    feed.add(block(100, [0, 1, 0, 4] * 10))
    run = flow.start(str(tmp_path / "ck"), target="60 seconds", cores=2, policy="static")
    try:
        tick, _ = measured(run, 80, wait_for)
        first, second = ends_us(run, "main"), ends_us(run, "between")
    finally:
        run.stop()
    entered = {
        one: first[n] for n, rows in enumerate(feed.batches) for one in rows["id"].to_pylist()
    }
    last_us = dict(entered)
    for batch_id, rows in sink.batches.items():
        last_us.update({row["id"]: second[batch_id] for row in rows})
    assert_measured(tick.latency, expected(last_us, feed.batches))
    assert sink.columns == {"id", "n", "at"}
    parts = {segment.name: segment.latency for segment in tick.segments}
    assert_measured(parts["main"], expected(entered, feed.batches))
    assert parts["between"] is not None and 0.0 < parts["between"].mean_s < tick.latency.mean_s
    written = (tmp_path / "ck" / "channels" / "between" / "data").glob("*.arrow")
    for path in written:
        assert pa.ipc.open_file(str(path)).schema.names == COLUMNS, "its reader needs no traces"


def test_through_a_loop_that_multiplies(spark, tmp_path, wait_for) -> None:
    """An input of size n goes round log2(n) times before its last rows reach the sink."""
    feed, sink = Feed(tmp_path / "in", DDL), Watched()
    begin = tg.pipeline("loop", feed.stream(spark), arrival="at")
    back = begin.loop("again")
    parts = begin.merge(back).map(halved, name="halved")
    parts.map(where(compute.greater, 1), name="unfinished").feed(back)
    parts.map(where(compute.less_equal, 1), name="finished").to(sink)
    feed.add(block(0, [1, 2, 4, 8] * 5))
    run = begin.start(str(tmp_path / "ck"), target="60 seconds", cores=2, policy="static")
    try:
        tick, timed = measured(run, 20, wait_for)
        ends = ends_us(run, "main")
        back_again = sum(result.written.get("again", 0) for result in run.results())
    finally:
        run.stop()
    last_us: dict[int, int] = defaultdict(int)
    for batch_id, rows in sink.batches.items():
        for row in rows:
            last_us[row["id"]] = max(last_us[row["id"]], ends[batch_id])
    assert len({*last_us.values()}) == 3, "inputs of other sizes take more rounds"
    assert timed["main"] == 20 + back_again, "each row is timed once, from where it came in"
    assert_measured(tick.latency, expected(last_us, feed.batches))
    assert sink.columns == set(COLUMNS)
