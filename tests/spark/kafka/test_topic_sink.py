"""A topic as a sink: what a replay repeats is in the topic twice, and reaches readers once."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Feed
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch.step import Step
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.topics import end_offsets
from tidegate.spark.sinks.topic import TopicSink

DDL = "k string, v long"


def rows(seed: int, count: int = 150) -> pa.Table:
    chance = np.random.default_rng(seed)
    names = [f"key-{number}" for number in chance.integers(0, 40, count)]
    return pa.table({"k": names, "v": chance.integers(0, 3, count)})


def listed(table: pa.Table) -> list[tuple]:
    return sorted(zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True))


def values(frame) -> list[tuple]:
    found = [json.loads(row["value"]) for row in frame.select("value").toArrow().to_pylist()]
    return sorted((row["k"], row["v"]) for row in found)


def kafka(reader, servers: str, topic: str):
    reader = reader.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", topic).option("includeHeaders", "true")
    return reader.option("startingOffsets", "earliest").load()


def test_a_replayed_batch_reaches_readers_once(
    kafka_spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark, servers = kafka_spark, broker.servers
    feed = Feed(tmp_path / "in", DDL)

    def start(tasks: int):
        copied = tg.pipeline("copy", feed.stream(spark)).map(
            lambda table: table, name="dealt", tasks=(1, 8)
        )
        flow = copied.to("kafka", topic=topic, servers=servers, key="k", name="out")
        return flow.start(str(tmp_path / "ck"), tasks=tasks)

    stream = tg.without_replays(kafka(spark.readStream, servers, topic), within="1 hour")
    seen = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "reader"))
        .start(str(tmp_path / "seen"))
    )
    run = start(3)
    crash_after(run, Step.SINKS_WRITTEN, at_batch=1)
    for seed in range(3):
        feed.add(rows(seed))
    with pytest.raises(Exception, match="of batch 1"):
        run.processAllAvailable()
    run.stop()
    seen.processAllAvailable()  # it reads the first try before the second is there
    run = start(5)
    try:
        run.processAllAvailable()
        assert run.results()[0].replayed and run.results()[0].plan.batch_id == 1
    finally:
        run.stop()
    seen.processAllAvailable()
    seen.stop()
    assert sum(end_offsets(servers, topic).values()) == 4 * 150, "batch 1 is there twice"
    written = kafka(spark.read, servers, topic)
    once = tg.without_replays(written)
    assert once.columns == written.columns
    assert values(once) == listed(feed.all())
    assert values(spark.read.parquet(str(tmp_path / "seen"))) == listed(feed.all())
    assert {bytes(row["key"]).decode() for row in once.select("key").toArrow().to_pylist()} == set(
        feed.all()["k"].to_pylist()
    )
    assert_headers(written.select("headers").toArrow().to_pylist())


def assert_headers(records: list[dict]) -> None:
    """Every row has a number of its own in its batch, and the replay the same ones."""
    found = [{one["key"]: one["value"].decode() for one in row["headers"]} for row in records]
    assert {name for row in found for name in row} == {
        "tidegate-sink", "tidegate-batch", "tidegate-row", "tidegate-digest",
    }  # fmt: skip
    assert {row["tidegate-sink"].rpartition("/")[0] for row in found} == {"copy/out"}
    numbers = [(int(row["tidegate-batch"]), int(row["tidegate-row"])) for row in found]
    assert len(set(numbers)) == 3 * 150
    assert {(row[0], row[1]) for row in numbers if numbers.count(row) == 2} == {
        row for row in numbers if row[0] == 1
    }


def test_a_keyed_operator_with_tasks_without_rows_writes_to_a_topic(
    kafka_spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    feed = Feed(tmp_path / "in", DDL)
    flow = (
        tg.pipeline("few", feed.stream(kafka_spark))
        .keyed("n", tg.count(), key="k", shards=32)
        .to("kafka", topic=topic, servers=broker.servers, key="k")
    )
    feed.add(pa.table({"k": ["a", "b", "a"], "v": [1, 2, 3]}))
    run = flow.start(str(tmp_path / "ck"), tasks=8)
    try:
        run.processAllAvailable()
        assert len(run.results()[0].of("n")) == 8
    finally:
        run.stop()
    found = kafka(kafka_spark.read, broker.servers, topic).toArrow().to_pylist()
    counts = sorted(
        (json.loads(row["value"])["k"], json.loads(row["value"])["count"]) for row in found
    )
    assert counts == [("a", 2), ("b", 1)]


def test_records_keep_their_headers_and_lose_those_of_another_sink(
    kafka_spark: SparkSession, broker: Broker, topic: str
) -> None:
    from tidegate.spark.sinks.attempt import Attempt

    spark, servers = kafka_spark, broker.servers
    given = spark.sql(
        "SELECT 'x' AS value, 'a' AS key, array(named_struct('key', 'mine', 'value', X'01'), "
        "named_struct('key', 'tidegate-row', 'value', X'30')) AS headers "
        "UNION ALL SELECT 'y', NULL, NULL"
    )
    sink = TopicSink(servers, topic, None, records=True)
    for again in (False, True):
        sink.write(given, Attempt("p", "s", "0" * 32, 7, again))
    given.drop("headers").write.format("kafka").option("kafka.bootstrap.servers", servers).option(
        "topic", topic
    ).save()
    once = tg.without_replays(kafka(spark.read, servers, topic)).toArrow().to_pylist()
    found = sorted((bytes(row["value"]), len(row["headers"] or [])) for row in once)
    assert found == [(b"x", 0), (b"x", 5), (b"y", 0), (b"y", 4)], "records of others are kept"
    (mine,) = [row["headers"] for row in once if len(row["headers"] or []) == 5]
    assert [one["value"] for one in mine if one["key"] == "mine"] == [b"\x01"]
    assert [one["key"] for one in mine].count("tidegate-row") == 1


def test_what_is_missing_is_said_before_the_start(
    kafka_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    def start(**options: str) -> None:
        stream = kafka_spark.readStream.format("rate").load()
        tg.pipeline("p", stream).to("kafka", **options).start(str(tmp_path / "ck"))

    with pytest.raises(AskedWrongly, match="sink 'kafka': no topic; give one"):
        start(servers=broker.servers)
    with pytest.raises(TidegateError, match="no Kafka broker answers at localhost:1;"):
        start(servers="localhost:1", topic="t")
    assert not (tmp_path / "ck").exists()
