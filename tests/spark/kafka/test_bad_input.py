"""What goes wrong with a real broker: each is said in one sentence, and nothing more is lost."""

import logging
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import tidegate as tg
from tests.helpers.feed import Collected
from tests.spark.conftest import WaitFor
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.client import confluent
from tidegate.spark.kafka.topics import create_topic, delete_topic, end_offsets

AHEAD_MS = 1_800_000
"""Kafka 4 itself refuses records of more than an hour in the future."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def send(broker: Broker, topic: str, records: Iterable[tuple[str, int]]) -> None:
    """Records of these keys and timestamps."""
    producer = confluent().Producer({"bootstrap.servers": broker.servers, "log_level": 0})
    refused = []

    def told(error: object, message: object) -> None:
        refused.extend([error] if error else [])

    for key, stamp in records:
        producer.produce(topic, b"", key.encode(), timestamp=stamp, on_delivery=told)
    assert producer.flush(30) == 0 and not refused


def stream(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    source = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    records = spark.readStream.format("kafka").options(**source | options).load()
    return records.selectExpr("CAST(key AS STRING) AS key", "timestamp")


def counts(name: str, frame: DataFrame) -> tg.Stream:
    flow = tg.pipeline(name, frame, arrival="timestamp")
    return flow.keyed("per_key", tg.count(), key="key", shards=8)


def counted(checkpoint: Path) -> dict[str, int]:
    state = tg.read_state(str(checkpoint), "per_key")
    return dict(zip(state["key"].to_pylist(), state["count"].to_pylist(), strict=True))


@pytest.mark.parametrize("option", ["subscribe", "assign"])
def test_a_topic_that_does_not_exist_is_refused_before_anything_starts(
    kafka_spark: SparkSession, broker: Broker, tmp_path: Path, option: str
) -> None:
    given = {"subscribe": "no-such", "assign": '{"no-such":[0]}'}[option]
    reader = kafka_spark.readStream.format("kafka").option(option, given)
    frame = reader.option("kafka.bootstrap.servers", broker.servers).load()
    flow = counts("missing", frame.selectExpr("CAST(key AS STRING) AS key", "timestamp"))
    with pytest.raises(AskedWrongly, match=r"reads topic 'no-such', which is not at 127\..* first"):
        flow.start(str(tmp_path / "ck"), tasks=1)
    assert not (tmp_path / "ck").exists()


def test_no_broker_is_refused_before_anything_starts(
    kafka_spark: SparkSession, tmp_path: Path
) -> None:
    flow = counts("nobody", stream(kafka_spark, "127.0.0.1:1", "some"))
    with pytest.raises(TidegateError, match=r"no Kafka broker answers at 127\.0\.0\.1:1; start it"):
        flow.start(str(tmp_path / "ck"), tasks=1)
    assert not (tmp_path / "ck").exists()


def test_a_topic_that_is_deleted_while_it_is_read(
    kafka_spark: SparkSession,
    broker: Broker,
    tmp_path: Path,
    wait_for: WaitFor,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The pipeline and a query that is attached to say so; what was read is in the state."""
    create_topic(broker.servers, "deleted", partitions=2)
    send(broker, "deleted", [(f"k{number % 3}", now_ms()) for number in range(30)])
    run = counts("deleted", stream(kafka_spark, broker.servers, "deleted")).start(
        str(tmp_path / "ck"), tasks=1
    )
    foreign = stream(kafka_spark, broker.servers, "deleted").writeStream.queryName("foreign")
    query = foreign.format("noop").option("checkpointLocation", str(tmp_path / "other")).start()
    with tg.attach(query, target="5 seconds", tick="100 ms") as attachment:
        run.processAllAvailable()
        query.processAllAvailable()
        wait_for(lambda: attachment.records, query)
        with caplog.at_level(logging.WARNING, "tidegate"):
            delete_topic(broker.servers, "deleted")
            with pytest.raises(TidegateError, match="topic 'deleted' of Kafka does not exist, or"):
                run.awaitTermination(180)  # Kafka's client asks for a minute and more
            while not any("attached query" in message for message in caplog.messages):
                assert not attachment._ended.wait(0.05)
    said = [message for message in caplog.messages if "attached query" in message]
    assert len(said) == 1
    assert said[0].startswith("the attached query 'foreign' failed: topic 'deleted' of Kafka does")
    assert counted(tmp_path / "ck") == {"k0": 10, "k1": 10, "k2": 10}


def test_records_that_retention_removed(
    kafka_spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Refused with their number; with failOnDataLoss=false it goes on, and says what it misses."""
    checkpoint = tmp_path / "ck"

    def start(**options: str) -> tg.Run:
        frame = stream(kafka_spark, broker.servers, topic, **options)
        return counts("aged", frame).start(str(checkpoint), tasks=1)

    send(broker, topic, [("a", now_ms())] * 20)
    run = start()
    run.processAllAvailable()
    run.stop()
    send(broker, topic, [("a", now_ms())] * 30)
    (partition,) = [number for number, end in end_offsets(broker.servers, topic).items() if end]
    client = confluent()
    admin = client.admin.AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
    for done in admin.delete_records([client.TopicPartition(topic, partition, 42)]).values():
        done.result(30)
    with pytest.raises(TidegateError, match=rf"lost 22 records of partition {partition} that were"):
        start()
    assert counted(checkpoint) == {"a": 20}
    with caplog.at_level(logging.WARNING, "tidegate"):
        run = start(failOnDataLoss="false")
    try:
        run.processAllAvailable()
    finally:
        run.stop()
    assert any("lost 22 records" in message for message in caplog.messages)
    assert counted(checkpoint) == {"a": 28}, "the 8 that are there, and none of the others"


def test_a_timestamp_in_the_future_moves_neither_latency_nor_watermark(
    kafka_spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    wait_for: WaitFor,
    caplog: pytest.LogCaptureFixture,
) -> None:
    windows = Collected()
    fold = tg.window(tg.count(), every="1 second", event_time="timestamp")
    frame = stream(kafka_spark, broker.servers, topic)
    flow = tg.pipeline("ahead", frame, arrival="timestamp").keyed("w", fold, key="key", shards=4)
    run = flow.to(windows).start(str(tmp_path / "ck"), target="5 seconds", cores=1, tick="100 ms")
    loop, query = run.loop, run.queries["main"]
    begun_ms = now_ms()
    try:
        with caplog.at_level(logging.WARNING, "tidegate"):
            send(broker, topic, [("a", begun_ms)] * 50 + [("a", begun_ms + AHEAD_MS)])
            run.processAllAvailable()
            send(broker, topic, [("a", begun_ms + 1)] * 20)
            run.processAllAvailable()
            send(broker, topic, [("a", begun_ms + 4000)])  # closes the windows before it
            run.processAllAvailable()
            send(broker, topic, [("a", begun_ms + 4001)])
            run.processAllAvailable()
        wait_for(lambda: loop.records and loop.records[-1].measurement.latency, query)
        late = sum(report.late_rows for result in run.results() for report in result.of("w"))
    finally:
        run.stop()
    assert late == 0, "the row of the future made no other row late"
    assert sum(row["count"] for row in windows.rows()) == 70
    told = [record.measurement for record in loop.records]
    latencies = [tick.latency for tick in told if tick.latency is not None]
    assert latencies and all(0.0 <= one.mean_s < 60.0 and one.p99_s < 60.0 for one in latencies)
    assert max(tick.arrival_rate for tick in told) > 10.0, "not that of a second to come"
    said = [message for message in caplog.messages if "in the future" in message]
    assert len(said) == 1 and "operator 'w' got 1 rows with a time more than a minute" in said[0]
