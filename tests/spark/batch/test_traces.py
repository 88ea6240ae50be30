"""Traces on Spark: which inputs are sampled, and that a replayed batch writes the same."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Feed
from tidegate.control.learning.traces import arrival_us, weights
from tidegate.pipelines.graph import Source
from tidegate.pipelines.schema import arrow_schema
from tidegate.spark.batch.step import Step
from tidegate.spark.batch.traces import TraceSample, with_traces
from tidegate.spark.batch.worker import TRACE

BEGIN_US = 1_750_000_000_000_000
ROWS = 10_000


def traced(frame, every: int = 1) -> pa.Table:
    source = Source(
        name="s", inputs=(), schema=arrow_schema(frame.schema), frame=frame, arrival="at"
    )
    return with_traces(frame, source, every).toArrow()


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_every_row_of_a_small_block_is_sampled_and_few_of_a_large_one(spark, kind) -> None:
    """Three rows share a microsecond, and every seventh row has no arrival."""
    at = f"timestamp_micros({BEGIN_US} + id div 3)"
    if kind == "timestamp_ntz":
        at = f"to_timestamp_ntz(date_format({at}, 'yyyy-MM-dd HH:mm:ss.SSSSSS'))"
    frame = spark.range(0, 2 * ROWS, 1, 2).selectExpr("id", f"if(id % 7 = 0, null, {at}) as at")
    table = traced(frame)
    assert table.column_names == ["id", "at", TRACE]
    assert table.equals(traced(frame)), "a replay samples the same rows"
    ids = table["id"].to_numpy()
    traces = table[TRACE].to_pylist()
    places, known = ids % ROWS, ids % 7 != 0
    strides = np.select([places < 512, places < 8192], [1, 16], 256)
    chosen = known & (places % strides == 0)
    assert [one is not None for one in traces] == chosen.tolist()
    found = -np.frombuffer(b"".join(filter(None, traces)), dtype=">i8").astype(np.int64)
    assert len(set(found.tolist())) == len(found)
    assert (arrival_us(found) == BEGIN_US + ids[chosen] // 3).all()
    assert weights(found).tolist() == strides[chosen].tolist()
    assert weights(found).sum() == pytest.approx(known.sum(), rel=0.05)
    sampled = TraceSample("at").of(table, places + (ids // ROWS << 33))
    assert sampled.born.tolist() == found.tolist(), "an operator samples as Spark does"
    tenth = traced(frame, every=10)
    assert [one is not None for one in tenth[TRACE].to_pylist()] == (
        known & (places % 10 == 0) & ((places // 10 < 512) | (places // 10 % 16 == 0))
    ).tolist()


def test_a_replayed_batch_writes_the_same_traces(spark, tmp_path, wait_for) -> None:
    """Through a shuffle, a map that drops rows without saying which, and a keyed operator."""
    feed = Feed(tmp_path / "in", "k long, at timestamp")

    def flow():
        first = (
            tg.pipeline("twice", feed.stream(spark).repartition(3), arrival="at")
            .map(lambda rows: rows.slice(0, rows.num_rows // 2), name="half", tasks=2)
            .keyed("count", tg.count(), key="k", shards=4)
            .cut("between")
        )
        first.map(lambda rows: rows, name="again").cut("last").to("noop")
        return first

    data = Path(tmp_path / "ck" / "channels" / "between" / "data")

    def written(names: set[str]) -> list[dict]:
        tables = [pa.ipc.open_file(str(data / name)).read_all() for name in sorted(names)]
        return [row for table in tables for row in table.to_pylist()]

    at = pa.array(BEGIN_US + np.arange(600)).cast(pa.timestamp("us", "UTC"))
    options = {"target": "60 seconds", "cores": 2, "policy": "static"}
    run = flow().start(str(tmp_path / "ck"), **options)
    crash_after(run, Step.CHANNELS_WRITTEN, at_batch=0)
    feed.add(pa.table({"k": np.random.default_rng(1).integers(0, 50, 600), "at": at}))
    with pytest.raises(Exception, match=r"of batch 0"):
        run.processAllAvailable()
    run.stop()
    first = {path.name for path in data.iterdir()}
    rows = written(first)
    assert len(rows) == 50 and sum(len(row[TRACE]) // 8 for row in rows) > 200
    again = flow().start(str(tmp_path / "ck"), **options)
    try:
        wait_for(again.results, again.queries["main"])
        assert again.results()[0].replayed
        assert written({path.name for path in data.iterdir()} - first) == rows
    finally:
        again.stop()
