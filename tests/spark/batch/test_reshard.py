"""Another number of shards on real Spark, whose hashes decide which shard a key is in."""

import datetime
import decimal

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Feed
from tidegate.spark.batch.reshard import reshard
from tidegate.spark.batch.step import Step
from tidegate.spark.state.hash_of_keys import spark_hashes

pytestmark = pytest.mark.spark

KEY = ["s", "i", "b", "d", "t", "x", "y"]
DDL = "s string, i int, b boolean, d date, t timestamp, x decimal(12,2), y binary, v long"


def rows(count: int) -> pa.Table:
    def some(value: object, number: int) -> object:
        return None if number % 5 == 0 else value

    day = datetime.date(2026, 1, 1)
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return pa.table(
        {
            "s": [some(f"key {n}", n) for n in range(count)],
            "i": pa.array([some(n, n + 1) for n in range(count)], pa.int32()),
            "b": [n % 2 == 0 for n in range(count)],
            "d": [day + datetime.timedelta(n % 3) for n in range(count)],
            "t": [at + datetime.timedelta(microseconds=n % 7) for n in range(count)],
            "x": pa.array([decimal.Decimal(n % 4) for n in range(count)], pa.decimal128(12, 2)),
            "y": [bytes([n % 250]) for n in range(count)],
            "v": [1] * count,
        }
    )


def test_a_pipeline_goes_on_with_more_shards_after_a_crash(spark, tmp_path):
    checkpoint = tmp_path / "ck"
    feed = Feed(tmp_path / "in", DDL)

    def flow(shards: int):
        return tg.pipeline("shop", feed.stream(spark)).keyed(
            "sums", tg.sum("v", as_="x_sum"), key=KEY, shards=shards
        )

    run = flow(8).start(str(checkpoint), tasks=2)
    crash_after(run, Step.RAN, at_batch=1)
    feed.add(rows(200))
    feed.add(rows(300))
    with pytest.raises(Exception, match="of batch 1"):
        run.processAllAvailable()
    run.stop()
    with pytest.raises(tg.AskedWrongly, match="tidegate reshard CHECKPOINT 64 --operator sums"):
        flow(64).start(str(checkpoint))
    (one,) = reshard(str(checkpoint), 64, spark_hashes(spark))
    assert (one.before, one.after, one.rows) == (8, 64, 200)
    again = flow(64).start(str(checkpoint), tasks=3)
    again.processAllAvailable()
    again.stop()
    found = tg.read_state(str(checkpoint), "sums")
    assert found.num_rows == 300
    assert sum(found["x_sum"].to_pylist()) == 500
