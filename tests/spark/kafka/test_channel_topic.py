"""A channel in a topic: every batch is handed over once, whatever failed tries left there."""

import collections
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tests.helpers.crash import crash_after
from tests.helpers.feed import Collected, Feed
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.step import Step
from tidegate.spark.kafka import record_stream
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.channel_topic import ChannelTopic
from tidegate.spark.kafka.reference import RecordsReference
from tidegate.spark.kafka.topics import (
    create_topic,
    delete_before,
    delete_topic,
    end_offsets,
    topic_config,
)
from tidegate.spark.state.files import Durable

DDL = "k string, v long"


def rows(seed: int, count: int = 300) -> pa.Table:
    chance = np.random.default_rng(seed)
    names = [f"key-{number}" for number in chance.integers(0, 60, count)]
    return pa.table({"k": names, "v": chance.integers(0, 100, count)})


def block(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": np.arange(count), "text": ["x" * 50] * count})


@pytest.mark.parametrize("step", [Step.CHANNELS_WRITTEN, Step.HANDED_OVER])
def test_a_crash_around_the_hand_over_passes_every_batch_on_once(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, step: Step
) -> None:
    feed, sink = Feed(tmp_path / "in", DDL), Collected()

    def start():
        flow = (
            tg.pipeline("two", feed.stream(spark))
            .keyed("first", tg.count(), key="k", shards=8)
            .cut("between", channel="kafka", servers=broker.servers, topic=topic, partitions=2)
            .keyed("second", tg.count(), key="k", shards=8)
            .to(sink)
        )
        return flow.start(str(tmp_path / "ck"), tasks=3)

    run = start()
    crash_after(run, step, at_batch=1)
    for seed in range(3):
        feed.add(rows(seed))
    with pytest.raises(Exception, match=f"after '{step.value}' of batch 1"):
        run.processAllAvailable()
    run.stop()
    again = start()
    try:
        again.processAllAvailable()
    finally:
        again.stop()
    # Every batch emits each of its keys once: the second count is in how many it occurred.
    expected = collections.Counter(
        key for batch in feed.batches for key in set(batch["k"].to_pylist())
    )
    found = tg.read_state(str(tmp_path / "ck"), "second").to_pylist()
    assert {row["k"]: row["count"] for row in found} == expected
    assert sum(end_offsets(broker.servers, topic).values()) == 4 * 3, "a try left its records"
    data = Log(Checkpoint(Durable(str(tmp_path / "ck"))).channel("between")).data
    assert data.names() == [], "no rows are in the checkpoint"


def test_rows_come_back_as_they_were_in_several_records(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_stream, "RECORD_BYTES", 10_000)
    place = ChannelTopic(broker.servers, topic, 1)
    blocks = [block(1000), block(1)]
    first = RecordsReference.parsed(place.write("a", 0, blocks[0].schema, blocks))
    second = RecordsReference.parsed(place.write("b", 1, blocks[0].schema, blocks[1:]))
    assert first is not None and second is not None
    assert len(first.offsets) > 5 and len(second.offsets) == 1
    assert list(place.read(first)) == blocks
    assert list(place.read(second)) == blocks[1:]
    other = RecordsReference("c", topic, 0, second.offsets)
    with pytest.raises(TidegateError, match="has another record"):
        list(place.read(other))
    place.forget([first, second], [second])
    assert list(place.read(second)) == blocks[1:], "what was not read is kept"
    with pytest.raises(TidegateError, match=r"are not in partition 0 .* needs retention.ms=-1"):
        list(place.read(first))


def test_the_topic_is_made_and_checked(broker: Broker, topic: str) -> None:
    place = ChannelTopic(broker.servers, f"{topic}-new", 3)
    place.make()
    place.make()
    try:
        found = topic_config(broker.servers, place.topic)
        assert found is not None
        assert found[0] == 3 and found[1]["retention.ms"] == "-1"
    finally:
        delete_topic(broker.servers, place.topic)
    with pytest.raises(AskedWrongly, match="has 2 partitions, but the channel was given parti"):
        ChannelTopic(broker.servers, topic, 8).make()
    for config, said in (
        ({"cleanup.policy": "compact"}, "is compacted"),
        ({"max.message.bytes": "5000"}, "takes records up to max.message.bytes=5000"),
    ):
        name = f"{topic}-{len(said)}"
        create_topic(broker.servers, name, 1, config)
        try:
            with pytest.raises(AskedWrongly, match=said):
                ChannelTopic(broker.servers, name, 1).make()
        finally:
            delete_topic(broker.servers, name)


def test_a_short_retention_is_warned_of(
    broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"{topic}-short"
    create_topic(broker.servers, name, 1, {"retention.ms": "3600000"})
    try:
        ChannelTopic(broker.servers, name, 1).make()
    finally:
        delete_topic(broker.servers, name)
    assert "keeps records for 1 hours only" in caplog.text


def test_no_broker_is_said_before_the_start(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    stream = spark.readStream.format("rate").load()
    flow = tg.pipeline("p", stream).cut("c", channel="kafka", servers="localhost:1").to("noop")
    with pytest.raises(TidegateError, match="no Kafka broker answers at localhost:1;"):
        flow.start(str(tmp_path / "ck"))
    assert not (tmp_path / "ck").exists()


def test_nothing_to_delete_asks_nobody() -> None:
    delete_before("localhost:1", {})
