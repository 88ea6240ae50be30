"""What `.cut(...)` says about the channel: where its rows are."""

import re
from collections.abc import Mapping

from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.graph import Topic

_KINDS = ("directory", "kafka")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""What Kafka takes as the name of a topic."""
_PARTITIONS = 8


def channel_topic_of(
    name: str,
    channel: str,
    servers: str | None,
    topic: str | None,
    partitions: int | None,
    settings: Mapping[str, str] | None,
) -> Topic | None:
    """The topic of a cut's channel; None if its rows are files of the checkpoint."""
    what = f"cut '{name}'"
    if channel not in _KINDS:
        raise AskedWrongly(f"{what}: there is no channel '{channel}'{nearest(channel, _KINDS)}")
    given = {"servers": servers, "topic": topic, "partitions": partitions, "settings": settings}
    named = [option for option, value in given.items() if value is not None]
    if channel == "directory":
        if named:
            raise AskedWrongly(
                f"{what}: {' and '.join(named)} go with channel='kafka'; give that, or leave "
                f"{'it' if len(named) == 1 else 'them'} out"
            )
        return None
    if not servers:
        raise AskedWrongly(
            f"{what}: a channel in Kafka needs the address of a broker, as in "
            f".cut('{name}', channel='kafka', servers='localhost:9092')"
        )
    if topic is not None and not _NAME.fullmatch(topic):
        raise AskedWrongly(
            f"{what}: '{topic}' cannot name a topic; use up to 249 letters, digits, '.', '_', '-'"
        )
    count = _PARTITIONS if partitions is None else partitions
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise AskedWrongly(f"{what}: partitions={partitions!r}; give a whole number of 1 or more")
    pairs = ((key, str(value)) for key, value in (settings or {}).items())
    return Topic(servers, topic, count, tuple(sorted(pairs)))
