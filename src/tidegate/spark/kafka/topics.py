"""Topics: create, inspect and delete them, ask how many records they have, delete old ones."""

import time
from collections.abc import Mapping
from typing import Any

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.kafka.answering import require_broker
from tidegate.spark.kafka.client import confluent, reason

_PATIENCE_S = 30.0
_LOOK_EVERY_S = 0.05


def create_topic(
    servers: str,
    topic: str,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Create a topic, and wait until the broker has it."""
    if partitions < 1:
        raise AskedWrongly(f"a topic with {partitions} partitions is not possible; give 1 or more")
    new = confluent().admin.NewTopic(topic, partitions, config=dict(config or {}))
    admin = _admin(servers, settings)  # its calls fail when it is gone, so it must have a name
    _await(admin.create_topics([new]), f"topic '{topic}' could not be created")
    # The controller answers before the broker knows of the topic.
    deadline_s = time.monotonic() + _PATIENCE_S
    while admin.list_topics(topic, timeout=_PATIENCE_S).topics[topic].error is not None:
        if time.monotonic() > deadline_s:
            raise TidegateError(
                f"topic '{topic}' was created, but the broker at {servers} does not know it after "
                f"{_PATIENCE_S:g} s; look into the broker's log"
            )
        time.sleep(_LOOK_EVERY_S)


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


def topic_config(
    servers: str, topic: str, settings: Mapping[str, str] | None = None
) -> tuple[int, dict[str, str]] | None:
    """How many partitions a topic has, and its configuration; None if there is no such topic."""
    client = confluent()
    admin = _admin(servers, settings)
    try:
        found = admin.list_topics(topic, timeout=_PATIENCE_S).topics[topic]
        if (
            found.error is not None
            and found.error.code() == client.KafkaError.UNKNOWN_TOPIC_OR_PART
        ):
            return None
        asked = client.admin.ConfigResource(client.admin.ResourceType.TOPIC, topic)
        (answer,) = admin.describe_configs([asked], request_timeout=_PATIENCE_S).values()
        config = {name: str(entry.value) for name, entry in answer.result().items()}
    except client.KafkaException as error:
        raise TidegateError(
            f"the broker at {servers} does not tell what topic '{topic}' is like: {reason(error)}"
        ) from error
    return len(found.partitions), config


def delete_before(
    servers: str, ends: Mapping[tuple[str, int], int], settings: Mapping[str, str] | None = None
) -> None:
    """Delete the records of partitions, given by topic and number, before an offset each."""
    if not ends:
        return
    client = confluent()
    admin = _admin(servers, settings)
    places = [client.TopicPartition(*place, offset) for place, offset in ends.items()]
    _await(admin.delete_records(places), "old records could not be deleted")


def _admin(servers: str, settings: Mapping[str, str] | None = None) -> Any:
    if "security.protocol" not in (settings or {}):  # else it does not answer plain requests
        require_broker(servers)
    # Without its log: what goes wrong reaches the caller as an exception.
    return confluent().admin.AdminClient(
        {"bootstrap.servers": servers, "log_level": 0, **(settings or {})}
    )


def _await(answers: Mapping[Any, Any], what: str) -> None:
    for answer in answers.values():
        try:
            answer.result(_PATIENCE_S)
        except Exception as error:
            raise TidegateError(f"{what}: {reason(error)}") from error
