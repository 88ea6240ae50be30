"""Topics: create and delete them, and ask how many records they have."""

from collections.abc import Mapping
from typing import Any

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.kafka.answering import require_broker
from tidegate.spark.kafka.client import confluent, reason

_PATIENCE_S = 30.0


def create_topic(
    servers: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic, and wait until the broker has it."""
    if partitions < 1:
        raise AskedWrongly(f"a topic with {partitions} partitions is not possible; give 1 or more")
    new = confluent().admin.NewTopic(topic, partitions, 1, config=dict(config or {}))
    admin = _admin(servers)  # its calls fail when it is gone, so it must have a name
    _await(admin.create_topics([new]), f"topic '{topic}' could not be created")


def delete_topic(servers: str, topic: str) -> None:
    """Delete a topic with its records."""
    admin = _admin(servers)
    _await(admin.delete_topics([topic]), f"topic '{topic}' could not be deleted")


def end_offsets(servers: str, topic: str) -> dict[int, int]:
    """The offset of the next record of every partition: of a topic that keeps all, its records."""
    client = confluent()
    admin = _admin(servers)
    try:
        found = admin.list_topics(topic, timeout=_PATIENCE_S).topics[topic]
        if found.error is not None:
            raise TidegateError(f"topic '{topic}' is not at {servers}: {found.error.str()}")
        latest = {
            client.TopicPartition(topic, partition): client.admin.OffsetSpec.latest()
            for partition in found.partitions
        }
        answers = admin.list_offsets(latest, request_timeout=_PATIENCE_S)
        ends = {place.partition: answer.result().offset for place, answer in answers.items()}
    except client.KafkaException as error:
        raise TidegateError(
            f"the broker at {servers} does not tell the offsets of topic '{topic}': {reason(error)}"
        ) from error
    return dict(sorted(ends.items()))


def _admin(servers: str) -> Any:
    require_broker(servers)
    # Without its log: what goes wrong reaches the caller as an exception.
    return confluent().admin.AdminClient({"bootstrap.servers": servers, "log_level": 0})


def _await(answers: Mapping[str, Any], what: str) -> None:
    for answer in answers.values():
        try:
            answer.result(_PATIENCE_S)
        except Exception as error:
            raise TidegateError(f"{what}: {reason(error)}") from error
