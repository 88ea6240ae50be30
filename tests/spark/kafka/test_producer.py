"""The producer against a real broker: what it says that it sent is what the topic has."""

import socket
import time
from pathlib import Path

import pytest

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.kafka import broker as broker_module
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.produce import produce
from tidegate.spark.kafka.producer import ProducerProcess
from tidegate.spark.kafka.topic_load import TopicLoad
from tidegate.spark.kafka.topics import create_topic, end_offsets

LOAD = TopicLoad.of("constant:500", "zipf:40,0.8", seconds=1.0, seed=5)


def test_a_child_produces_the_load_at_its_pace(broker: Broker, topic: str) -> None:
    began = time.time()
    with ProducerProcess(broker.servers, topic, LOAD) as producer:
        start_ms = producer.begin()
        done = producer.wait(60)
    assert start_ms == done.start_ms >= began * 1000 - 1
    assert time.time() - start_ms / 1000 >= 0.998, "no row is sent before it arrives"
    assert done.rows == LOAD.count == 500 and done.failed == 0
    assert sum(done.per_key.values()) == 500
    assert sum(end_offsets(broker.servers, topic).values()) == 500


def test_a_start_in_the_past_makes_a_backlog(broker: Broker, topic: str) -> None:
    hour = TopicLoad.of("constant:1", "uniform:7", seconds=3600.0)
    done = produce(broker.servers, topic, hour, start_ms=time.time_ns() // 1_000_000 - 3_600_000)
    assert done.rows == sum(end_offsets(broker.servers, topic).values()) == 3600
    assert done.behind_s == 0.0, "it was asked to be late"


def test_one_that_is_stopped_says_what_it_sent(broker: Broker, topic: str) -> None:
    long = TopicLoad.of("constant:300", "uniform:5", seconds=600.0)
    with ProducerProcess(broker.servers, topic, long) as producer:
        producer.begin()
        while not sum(end_offsets(broker.servers, topic).values()):
            pass
        done = producer.stop()
    assert 0 < done.rows < long.count
    assert done.rows == sum(done.per_key.values())
    assert done.rows == sum(end_offsets(broker.servers, topic).values())


def test_nothing_is_lost_or_doubled_when_the_broker_is_killed(broker: Broker, topic: str) -> None:
    load = TopicLoad.of("constant:2000", "uniform:50", seconds=2.0)
    pid = broker.pid
    with ProducerProcess(broker.servers, topic, load) as producer:
        producer.begin()
        while not sum(end_offsets(broker.servers, topic).values()):
            pass
        broker.kill()
        broker.restart()
        done = producer.wait(120)
    assert broker.pid != pid
    assert done.rows == load.count and done.failed == 0
    assert sum(end_offsets(broker.servers, topic).values()) == load.count


def test_what_the_broker_never_acknowledged_is_not_counted(broker: Broker, topic: str) -> None:
    with ProducerProcess(broker.servers, topic, LOAD, patience_s=1.0) as producer:
        producer.begin()
        broker.kill()
        try:
            done = producer.wait(60)
        finally:
            broker.restart()
    assert done.failed > 0 and done.rows + done.failed == LOAD.count
    assert done.rows == sum(done.per_key.values())
    assert done.rows <= sum(end_offsets(broker.servers, topic).values())


def test_a_new_broker_takes_no_directory_of_another(kafka_jars: None, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(TidegateError, match="already has the data of a broker"):
        Broker(tmp_path)
    assert (tmp_path / "data").is_dir()


def test_a_topic_that_does_not_exist_is_said_at_once(broker: Broker) -> None:
    with (
        ProducerProcess(broker.servers, "no-such-topic", LOAD) as producer,
        pytest.raises(TidegateError, match="there is no topic 'no-such-topic' at 127"),
    ):
        producer.begin()
    with pytest.raises(TidegateError, match="topic 'no-such-topic' is not at 127"):
        end_offsets(broker.servers, "no-such-topic")


def test_a_broker_that_is_not_there_is_said_at_once() -> None:
    with (
        ProducerProcess("127.0.0.1:1", "some", LOAD) as producer,
        pytest.raises(TidegateError, match=r"no Kafka broker answers at 127\.0\.0\.1:1; start it"),
    ):
        producer.wait(60)
    with pytest.raises(TidegateError, match="no Kafka broker answers"):
        create_topic("127.0.0.1:1", "some")


def test_topics_that_cannot_be_created(broker: Broker, topic: str) -> None:
    with pytest.raises(AskedWrongly, match="0 partitions"):
        create_topic(broker.servers, "some", 0)
    with pytest.raises(TidegateError, match=r"could not be created: .*already exists"):
        create_topic(broker.servers, topic)


def test_a_port_that_another_takes_meanwhile_is_replaced(
    kafka_jars: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        free, asked = broker_module.free_ports, []

        def first_taken(count: int) -> list[int]:
            asked.append(count)
            found = free(count)
            return [port, *found[1:]] if len(asked) == 1 else found

        monkeypatch.setattr(broker_module, "free_ports", first_taken)
        with Broker() as other:
            assert other.servers != f"127.0.0.1:{port}"
    assert len(asked) == 2
    assert not other.directory.exists()
    with pytest.raises(TidegateError, match="not running"):
        other.pid  # noqa: B018
