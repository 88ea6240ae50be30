"""What Kafka's errors mean for a query, in one sentence: Spark quotes the Java client's words."""

import re

_SOURCE = re.compile(r"Kafka\w*\[(?:Subscribe|SubscribePattern|Assign)\[(.+?)\]\]")
_PLACE = re.compile(
    r"offset=(?P<offset>\d+).*? out of range for partition (?P<partition>\S+-\d+)", re.DOTALL
)


def kafka_sentence(text: str) -> str | None:
    """What happened and what to do, from all that Spark says about an error; None: not Kafka's."""
    source = _SOURCE.search(text)
    topic = "a topic of Kafka" if source is None else f"topic '{source[1]}' of Kafka"
    if "Some data may have been lost because they are not available in Kafka" in text:
        place = _PLACE.search(text)
        where = "" if place is None else f" ({place['partition']} from offset {place['offset']} on)"
        return (
            f"{topic} no longer has records that were not read yet{where}: its retention removed "
            "them, or it was deleted and created again; give the source .option('failOnDataLoss', "
            "'false') to go on with the oldest that are there"
        )
    if "UnknownTopicOrPartitionException" in text or "UnknownTopicIdException" in text:
        return (
            f"{topic} does not exist, or was deleted while it was read; create it, or read another"
            " one"
        )
    if "kafka" in text and ("TimeoutException" in text or "timed out" in text.lower()):
        return (
            f"no broker answered in time about {topic}; see that it runs and that it can be reached"
            " from the driver and the executors"
        )
    return None
