"""What `.cut(...)` takes about its channel."""

import pytest

from tidegate.errors import AskedWrongly
from tidegate.pipelines.channels import channel_topic_of
from tidegate.pipelines.graph import Topic


def asked(channel="kafka", servers=None, topic=None, partitions=None, settings=None):
    return channel_topic_of("c", channel, servers, topic, partitions, settings)


def test_a_topic_only_where_it_is_asked_for():
    assert asked("directory") is None
    assert asked(servers="b:1") == Topic("b:1", None, 8, ())
    named = asked(servers="b:1", topic="t", partitions=2, settings={"security.protocol": "SSL"})
    assert named == Topic("b:1", "t", 2, (("security.protocol", "SSL"),))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"channel": "kafak"}, "cut 'c': there is no channel 'kafak'; did you mean 'kafka'"),
        ({}, r"needs the address of a broker, as in .cut\('c', channel='kafka', servers="),
        ({"channel": "directory", "topic": "t"}, "topic go with channel='kafka'; give that"),
        ({"servers": "b:1", "topic": "a b"}, "'a b' cannot name a topic"),
        ({"servers": "b:1", "partitions": 0}, "partitions=0; give a whole number of 1 or more"),
    ],
)
def test_what_contradicts_is_refused(given, said):
    with pytest.raises(AskedWrongly, match=said):
        asked(**given)
