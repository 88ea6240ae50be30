"""Which topic a channel has, and which records may be deleted from it."""

import pyarrow as pa
import pytest

from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Channel, Graph, Topic
from tidegate.spark.batch.channel import Log
from tidegate.spark.kafka import channel_topic
from tidegate.spark.kafka.channel_topic import ChannelTopic, check_topics
from tidegate.spark.kafka.reference import RecordsReference
from tidegate.spark.state.files import Durable


def channel(topic: Topic | None, name: str = "between") -> Channel:
    return Channel(name=name, inputs=("x",), schema=pa.schema({}), topic=topic)


def test_every_checkpoint_has_a_topic_of_its_own_unless_one_is_named():
    asked = channel(Topic("b:1"))
    one, other = (ChannelTopic.of("my ads!", asked, place) for place in ("/a", "/b"))
    assert one is not None and other is not None
    assert one.topic.startswith("tidegate-my_ads_-between-") and one.topic != other.topic
    long = ChannelTopic.of("p" * 300, asked, "/a")
    assert long is not None and len(long.topic) <= 249
    named = ChannelTopic.of("ads", channel(Topic("b:1", "mine", 3, (("a", "b"),))), "/a")
    assert named == ChannelTopic("b:1", "mine", 3, {"a": "b"})
    assert ChannelTopic(**named.to_options()) == named
    assert named.client == {"bootstrap.servers": "b:1", "a": "b"}
    assert ChannelTopic.of("ads", channel(None), "/a") is None


def test_two_cuts_cannot_share_a_topic():
    graph = Graph("ads")
    for name in ("one", "two"):
        graph.nodes[name] = channel(Topic("b:1", "same"), name)
    with pytest.raises(AskedWrongly, match="two cuts write to the topic 'same'"):
        check_topics(graph, "/a")


def test_only_what_lies_before_every_unread_record_is_deleted(monkeypatch):
    asked = []
    monkeypatch.setattr(channel_topic, "delete_before", lambda *given: asked.append(given[1]))
    read = [RecordsReference("a", "t", 0, (5, 9)), RecordsReference("b", "t", 1, (3,))]
    kept = [RecordsReference("c", "t", 0, (7, 12)), RecordsReference("d", "t", 2, (1,))]
    ChannelTopic("b:1", "t", 3).forget(read, kept)
    assert asked == [{("t", 0): 7, ("t", 1): 4}]


class Forgetting:
    """In place of a topic: notes what may go."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def forget(self, read, kept) -> None:
        self.calls.append((len(list(read)), len(list(kept))))


def test_records_are_deleted_for_many_batches_at_once_and_files_beside_them(tmp_path):
    log, topic = Log(Durable(str(tmp_path))), Forgetting()
    log.make()
    log.data.write("0000000000-f.arrow", b"rows")
    log.commit(0, -1, [("0000000000-f.arrow", 1)])
    for batch in range(1, 50):
        log.commit(batch, batch - 1, [(f"{batch:010d}-r@t:0:{batch}", 1)])
    log.forget(30, topic)
    assert topic.calls == [] and log.length() == 50
    assert log.read(0) is not None
    log.forget(45, topic)
    assert topic.calls == [(41, 8)]
    assert log.data.names() == [] and log.read(41) is None and log.read(42) is not None
