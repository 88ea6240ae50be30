"""What Spark quotes of Kafka's client, in one sentence."""

import pytest

from tidegate.spark.batch.failure import failure_of, foreign_failure
from tidegate.spark.kafka.failures import kafka_sentence

DELETED = (
    "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host "
    "this topic-partition.\n=== Streaming Query ===\nCurrent Committed Offsets: "
    '{KafkaV2[Subscribe[clicks]]: {"clicks":{"0":414}}}'
)
GONE = (
    "Some data may have been lost because they are not available in Kafka any more; either the\n "
    "data was aged out by Kafka or the topic may have been deleted before all the data in the\n "
    "topic was processed.\nFetch position FetchPosition{offset=586, offsetEpoch=Optional.empty} is "
    "out of range for partition clicks-1"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DELETED, "topic 'clicks' of Kafka does not exist, or was deleted while it was read"),
        (GONE, "(clicks-1 from offset 586 on): its retention removed them"),
        ("org.apache.kafka.common.errors.TimeoutException: Call timed out", "no broker answered"),
    ],
)
def test_a_sentence_says_what_happened(text: str, said: str) -> None:
    sentence = kafka_sentence(text)
    assert sentence is not None and said in sentence and "\n" not in sentence
    told = failure_of("main", None, RuntimeError(text))
    assert told is not None and sentence in told[0] and "repeats at the next start" in told[0]
    assert foreign_failure(RuntimeError(text)) == sentence


def test_other_errors_are_not_kafkas() -> None:
    assert kafka_sentence("ValueError: a TimeoutException of something else") is None
    assert foreign_failure(ValueError("no such column")) == "ValueError: no such column"
