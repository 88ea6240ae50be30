"""What can be known of Kafka sources before a pipeline starts: brokers, topics, lost records.

Spark itself would find out in its first batch, some of it after minutes of retries, and tells it in
the words of a Java client.
"""

import json
import logging

from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.graph import Graph, Source
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.kafka.answering import require_broker
from tidegate.spark.kafka.stream_sources import StreamSource, stream_sources
from tidegate.spark.kafka.topic_offsets import Offsets, TopicOffsets
from tidegate.spark.state.files import Durable

_LOG = logging.getLogger("tidegate")


def check_sources(graph: Graph, session: SparkSession, location: str) -> list[StreamSource]:
    """Refuse Kafka sources that cannot be read, or whose next records are gone; returns them all.

    Records that are gone are only told of where the source has `failOnDataLoss=false`.
    """
    found = []
    for segment in graph.segments():
        for node in segment.reads:
            if not isinstance(node, Source):
                continue
            for source in stream_sources(node.frame):
                place = Checkpoint(Durable(location)).segment(segment.name).below("spark")
                _check(graph.name, session, source, committed_offsets(place))
                found.append(source)
    return found


def _check(name: str, session: SparkSession, source: StreamSource, read: Offsets) -> None:
    require_broker(source.servers, encrypted=source.encrypted)
    try:
        with TopicOffsets(session, source.client) as topics:
            named = topics.matching(source.pattern) if source.pattern else source.topics
            there = topics.partitions(named)
            oldest, ends = topics.ends(there)
    except TidegateError as error:
        # An account may be allowed to read and not to ask; Spark will tell what does not work.
        _LOG.warning(
            "pipeline '%s': the broker at %s was not asked about its topics (%s)",
            name,
            source.servers,
            error,
        )
        return
    if source.pattern and not named:
        _LOG.warning(
            "pipeline '%s': no topic at %s matches '%s' yet", name, source.servers, source.pattern
        )
    if missing := [topic for topic in source.topics if topic not in there]:
        raise AskedWrongly(
            f"pipeline '{name}' reads topic '{missing[0]}', which is not at {source.servers}; "
            "create it first, or give another name"
        )
    if said := lost(read, oldest, ends):
        if source.fails_on_loss:
            raise TidegateError(
                f"pipeline '{name}' cannot go on where it ended: {said}; to go on with what is "
                "there, give its source .option('failOnDataLoss', 'false'), or start with a new "
                "checkpoint"
            )
        _LOG.warning(
            "pipeline '%s': %s; it goes on without them, as failOnDataLoss=false says", name, said
        )


def lost(read: Offsets, oldest: Offsets, ends: Offsets) -> str | None:
    """What a topic no longer has of the records behind those that were read; None: all are there.

    A topic that ends before what was read is another one of the same name.
    """
    for topic, partitions in read.items():
        if topic not in ends:
            continue
        for number, after in partitions.items():
            if number not in ends[topic] or ends[topic][number] < after:
                return (
                    f"it had read topic '{topic}' up to offset {after} of partition {number}, and "
                    "the topic ends before that: it was deleted and created again"
                )
        gone = {
            number: oldest[topic][number] - after
            for number, after in partitions.items()
            if oldest[topic][number] > after
        }
        if gone:
            where = f"partition{'s' if len(gone) > 1 else ''} {', '.join(map(str, sorted(gone)))}"
            return (
                f"topic '{topic}' has lost {sum(gone.values()):,} records of {where} that were not "
                "read yet, most likely by its retention"
            )
    return None


def committed_offsets(place: Durable) -> Offsets:
    """The offsets behind the last batch that Spark has committed; empty before the first one."""
    batches = [int(name) for name in place.below("commits").names() if name.isdigit()]
    if not batches:
        return {}
    found: dict[str, dict[int, int]] = {}
    for line in place.read(f"offsets/{max(batches)}").decode().splitlines()[2:]:
        for topic, partitions in _kafka_offsets(line).items():
            known = found.setdefault(topic, {})
            for number, after in partitions.items():
                known[number] = min(after, known.get(number, after))
    return found


def _kafka_offsets(line: str) -> dict[str, dict[int, int]]:
    """The offsets of a line of Spark's log, if it is one of a Kafka source."""
    try:
        return {
            str(topic): {int(number): int(after) for number, after in partitions.items()}
            for topic, partitions in json.loads(line).items()
        }
    except (ValueError, AttributeError, TypeError):  # the offset of a source of another kind
        return {}
