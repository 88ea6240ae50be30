"""What the broker says about the topics of a source, by the Kafka client that Spark itself uses.

It gets the source's own settings, so that it also reaches brokers that want TLS or a password.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tidegate.errors import TidegateError

_PATIENCE_MS = 10_000

Offsets = Mapping[str, Mapping[int, int]]
"""By topic and partition."""


class TopicOffsets:
    """A connection to the brokers of a source: `with TopicOffsets(session, client) as topics`."""

    def __init__(self, session: SparkSession, client: Mapping[str, str]) -> None:
        java: Any = session._jvm
        self._java = java
        settings = java.java.util.Properties()
        patience = {"request.timeout.ms": _PATIENCE_MS, "default.api.timeout.ms": _PATIENCE_MS}
        for name, value in {**client, **patience}.items():
            settings.put(name, str(value))
        admin = java.org.apache.kafka.clients.admin.Admin
        self._admin = self._asked(lambda: admin.create(settings))

    def __enter__(self) -> "TopicOffsets":
        return self

    def __exit__(self, *error: object) -> None:
        self._admin.close(self._java.java.time.Duration.ofMillis(0))

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions these topics have; those that do not exist are left out."""
        names = self._java.java.util.ArrayList()
        for topic in topics:
            names.add(topic)
        futures = self._admin.describeTopics(names).topicNameValues()
        found = {}
        for topic in futures:
            try:
                found[str(topic)] = int(futures[topic].get().partitions().size())
            except Py4JJavaError as error:
                if "UnknownTopicOrPartitionException" not in _said(error):
                    raise TidegateError(_said(error)) from error
        return found

    def matching(self, pattern: str) -> list[str]:
        """The topics whose names match a pattern of Java's."""
        names = self._asked(lambda: self._admin.listTopics().names().get())
        matches = self._java.java.util.regex.Pattern.matches
        return sorted(str(name) for name in names if matches(pattern, name))

    def ends(self, partitions: Mapping[str, int]) -> tuple[Offsets, Offsets]:
        """The oldest offset of every partition, and the one that the next record will get."""
        spec = self._java.org.apache.kafka.clients.admin.OffsetSpec
        return self._offsets(partitions, spec.earliest()), self._offsets(partitions, spec.latest())

    def _offsets(self, partitions: Mapping[str, int], spec: Any) -> Offsets:
        asked = self._java.java.util.HashMap()
        place = self._java.org.apache.kafka.common.TopicPartition
        places = [(topic, number) for topic, n in partitions.items() for number in range(n)]
        for topic, number in places:
            asked.put(place(topic, number), spec)
        answers = self._asked(lambda: self._admin.listOffsets(asked).all().get())
        found: dict[str, dict[int, int]] = {topic: {} for topic in partitions}
        for topic, number in places:
            found[topic][number] = int(answers[place(topic, number)].offset())
        return found

    def _asked(self, ask: Any) -> Any:
        try:
            return ask()
        except Py4JJavaError as error:
            raise TidegateError(_said(error)) from error


def _said(error: Py4JJavaError) -> str:
    """The error at the root of a Java error, in one line."""
    root = error.java_exception
    while root.getCause() is not None:
        root = root.getCause()
    return str(root.toString()).splitlines()[0]
