"""A topic that holds the rows of a channel, between the segment that writes and the one that reads.

Only the rows are in the topic. That a batch is handed over is still one small file of the
checkpoint, which names the records of the batch by their offsets (`spark.batch.channel`). The
reader fetches these and no others. So what failed tries left between them is never read, and the
hand-over is exactly once without transactions of Kafka.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Channel, Graph
from tidegate.spark.hdfs.address import plain
from tidegate.spark.kafka.record_stream import RECORD_BYTES, TopicWriter, fetched
from tidegate.spark.kafka.reference import RecordsReference
from tidegate.spark.kafka.topics import create_topic, delete_before, topic_config

_LONGEST_NAME = 249
_KEEP_ALL = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
_WEEK_MS = 7 * 24 * 3600 * 1000

log = logging.getLogger("tidegate")


@dataclass(frozen=True, slots=True)
class ChannelTopic:
    """The topic of one channel. It is sent to tasks, so it holds no connection."""

    servers: str
    topic: str
    partitions: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further settings of Kafka's client, such as those for encryption."""
    patience_s: float = 120.0
    """How long tasks wait for a broker that does not answer."""

    @classmethod
    def of(cls, pipeline: str, channel: Channel, checkpoint: str) -> "ChannelTopic | None":
        """The topic of a channel; None for one whose rows are files of the checkpoint.

        By default every checkpoint has a topic of its own: what has been read is deleted from it.
        """
        asked = channel.topic
        if asked is None:
            return None
        mark = hashlib.sha256(plain(checkpoint).encode()).hexdigest()[:8]
        words = re.sub(r"[^A-Za-z0-9._-]", "_", f"tidegate-{pipeline}-{channel.name}")
        name = asked.name or f"{words[: _LONGEST_NAME - 9]}-{mark}"
        return cls(asked.servers, name, asked.partitions, dict(asked.settings))

    def to_options(self) -> dict[str, object]:
        """As JSON can hold it."""
        return asdict(self)

    @property
    def client(self) -> dict[str, str]:
        """The settings of a client."""
        return {"bootstrap.servers": self.servers, **self.settings}

    def make(self) -> None:
        """Create the topic if it is not there, and check that it keeps what was not read."""
        found = topic_config(self.servers, self.topic, self.settings)
        if found is None:
            create_topic(self.servers, self.topic, self.partitions, _KEEP_ALL, self.settings)
            return
        partitions, config = found
        if "compact" in config.get("cleanup.policy", ""):
            raise AskedWrongly(
                f"topic '{self.topic}' is compacted, so it may drop rows of a channel before they "
                "are read; set cleanup.policy=delete, or give another topic"
            )
        if int(config.get("max.message.bytes", RECORD_BYTES * 2)) < RECORD_BYTES + 10_000:
            raise AskedWrongly(
                f"topic '{self.topic}' takes records up to max.message.bytes="
                f"{config['max.message.bytes']}; a channel writes up to {RECORD_BYTES:,} bytes, so "
                "raise it to 1048588, which is Kafka's default"
            )
        if partitions < self.partitions:
            raise AskedWrongly(
                f"topic '{self.topic}' has {partitions} partitions, but the channel was given "
                f"partitions={self.partitions}; add some to the topic, or give partitions="
                f"{partitions}"
            )
        kept_ms = int(config.get("retention.ms", -1))
        if 0 <= kept_ms < _WEEK_MS:
            log.warning(
                "topic '%s' keeps records for %g hours only; rows of a channel that are not read "
                "for so long, because the pipeline is down, are lost: set retention.ms=-1",
                self.topic,
                kept_ms / 3.6e6,
            )

    def write(
        self, name: str, task: int, schema: pa.Schema, blocks: Iterable[pa.RecordBatch]
    ) -> str:
        """Write the blocks of a task, and return the name by which `read` finds them."""
        place = (self.topic, task % self.partitions)
        stream = TopicWriter(self.client, place, name)
        with pa.ipc.new_stream(pa.PythonFile(stream, mode="w"), schema) as writer:
            for block in blocks:
                writer.write_batch(block)
        return str(stream.finish(self.patience_s))

    def read(self, where: RecordsReference) -> Iterator[pa.RecordBatch]:
        """The blocks that a task wrote."""
        yield from pa.ipc.open_stream(fetched(self.client, where, self.patience_s))

    def forget(self, read: Iterable[RecordsReference], kept: Iterable[RecordsReference]) -> None:
        """Delete records that were read, up to the first one that was not."""
        ends: dict[tuple[str, int], int] = {}
        for one in read:
            place = (one.topic, one.partition)
            ends[place] = max(ends.get(place, 0), one.offsets[-1] + 1)
        for one in kept:
            place = (one.topic, one.partition)
            if place in ends:
                ends[place] = min(ends[place], one.offsets[0])
        delete_before(self.servers, ends, self.settings)


def topics_of(graph: Graph, checkpoint: str) -> list[ChannelTopic]:
    """The topics of all channels of a pipeline."""
    channels = [node for node in graph.nodes.values() if isinstance(node, Channel)]
    found = (ChannelTopic.of(graph.name, channel, checkpoint) for channel in channels)
    return [topic for topic in found if topic is not None]


def check_topics(graph: Graph, checkpoint: str) -> None:
    """Refuse a broker that does not answer, a missing client, and a topic of two channels."""
    topics = topics_of(graph, checkpoint)
    named = [topic.topic for topic in topics]
    for topic in topics:
        if named.count(topic.topic) > 1:
            raise AskedWrongly(
                f"two cuts write to the topic '{topic.topic}'; give each one a topic of its own"
            )
        topic_config(topic.servers, topic.topic, topic.settings)
