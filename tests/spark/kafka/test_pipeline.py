"""A pipeline that reads a real broker counts what was produced, whatever happens to the broker."""

from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

import tidegate as tg
from tests.spark.conftest import WaitFor
from tidegate.errors import AskedWrongly
from tidegate.spark.kafka.batch_offsets import batch_offsets
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.connector import add_connector, has_connector
from tidegate.spark.kafka.producer import ProducerProcess
from tidegate.spark.kafka.rows import topic_table
from tidegate.spark.kafka.topic_load import TopicLoad

LOAD = TopicLoad.of("constant:1500", "zipf:60,0.8", seconds=2.0, seed=2)


def state(checkpoint: str) -> dict[str, int]:
    try:
        found = tg.read_state(checkpoint, "per_key")
    except AskedWrongly:  # no batch is committed yet
        return {}
    return dict(zip(found["key"].to_pylist(), found["count"].to_pylist(), strict=True))


def test_counts_equal_what_was_produced_though_the_broker_was_killed(
    kafka_spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, wait_for: WaitFor
) -> None:
    checkpoint = str(tmp_path / "counts")
    stream = (
        kafka_spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("CAST(key AS STRING) AS key", "timestamp")
    )
    flow = tg.pipeline("counts", stream, arrival="timestamp").keyed(
        "per_key", tg.count(), key="key", shards=16
    )
    run = flow.start(checkpoint, tasks=2)
    query = run.queries["main"]
    try:
        with ProducerProcess(broker.servers, topic, LOAD) as producer:
            wait_for(lambda: state(checkpoint), query)
            broker.kill()
            broker.restart()
            done = producer.wait(120)
        wait_for(lambda: sum(state(checkpoint).values()) >= done.rows, query)
    finally:
        run.stop()
    assert state(checkpoint) == {str(key): count for key, count in done.per_key.items()}
    assert sum(done.per_key.values()) == LOAD.count
    last = run.results()[-1].plan.batch_id
    table = topic_table(
        kafka_spark, broker.servers, topic, batch_offsets(checkpoint, last, topic)
    ).toArrow()
    assert_rows(table.sort_by("seq"), done.start_ms)


def assert_rows(table, start_ms: int) -> None:
    """The topic has every row once, with its arrival, to the millisecond, as its timestamp."""
    rows = LOAD.rows(0, LOAD.count)
    assert table["seq"].to_pylist() == rows.seq.tolist()
    assert table["key"].to_pylist() == rows.key.tolist()
    assert table["value"].to_pylist() == rows.value.tolist()
    stamps = table["timestamp"].to_numpy().astype("datetime64[ms]").astype(np.int64)
    assert stamps.tolist() == (rows.arrival_us // 1000 + start_ms).tolist()


def test_a_running_session_gets_the_connector_once(kafka_spark: SparkSession) -> None:
    assert has_connector(kafka_spark)
    before = kafka_spark.sql("LIST JARS").count()
    add_connector(kafka_spark)
    assert tg.session(kafka=True) is kafka_spark
    assert kafka_spark.sql("LIST JARS").count() == before == 4
