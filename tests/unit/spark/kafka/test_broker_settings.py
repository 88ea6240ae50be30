"""The text of a broker's configuration."""

from pathlib import Path

from tidegate.spark.kafka.broker_settings import BrokerSettings


def settings() -> dict[str, str]:
    text = BrokerSettings(Path("/some/where"), 5001, 5002).properties()
    return dict(line.split("=", 1) for line in text.splitlines())


def test_it_is_reached_on_the_loopback_only():
    found = settings()
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:5001"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:5001,CONTROLLER://127.0.0.1:5002"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:5002"
    assert BrokerSettings(Path("/x"), 5001, 5002).servers == "127.0.0.1:5001"


def test_one_node_asks_for_no_second_replica():
    found = settings()
    replicas = [value for name, value in found.items() if name.endswith("replication.factor")]
    assert len(replicas) == 4 and set(replicas) == {"1"}
    assert {value for name, value in found.items() if name.endswith("min.isr")} == {"1"}


def test_nothing_is_created_or_removed_by_itself():
    found = settings()
    assert found["auto.create.topics.enable"] == "false"
    assert found["log.retention.ms"] == "-1", "records with old stamps would be removed at once"
    assert found["log.dirs"] == "/some/where/data"
