"""The Kafka sources of a streaming DataFrame, as Spark's plan has them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

_CLIENT = "kafka."
"""Options of Spark's source with this prefix are those of Kafka's client."""


@dataclass(frozen=True, slots=True)
class StreamSource:
    """One `readStream.format("kafka")`: Spark's options, their names in lower case."""

    options: Mapping[str, str]

    @property
    def servers(self) -> str:
        """The addresses that it was given."""
        return self.options.get("kafka.bootstrap.servers", "")

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that it reads by name; none where it reads all that match a pattern."""
        if (names := self.options.get("subscribe")) is not None:
            return tuple(name.strip() for name in names.split(",") if name.strip())
        return tuple(json.loads(self.options.get("assign", "{}")))

    @property
    def pattern(self) -> str | None:
        """The pattern that its topics match, if it has one."""
        return self.options.get("subscribepattern")

    @property
    def fails_on_loss(self) -> bool:
        """Whether records that are gone before they were read end the query: Spark's default."""
        return self.options.get("failondataloss", "true").lower() == "true"

    @property
    def encrypted(self) -> bool:
        """Whether its brokers speak TLS."""
        return "SSL" in self.options.get("kafka.security.protocol", "").upper()

    @property
    def client(self) -> dict[str, str]:
        """The settings of its Kafka clients."""
        return {
            name.removeprefix(_CLIENT): value
            for name, value in self.options.items()
            if name.startswith(_CLIENT)
        }


def stream_sources(frame: DataFrame) -> list[StreamSource]:
    """The Kafka sources that a streaming DataFrame reads."""
    return _sources_of(frame._jdf.queryExecution().analyzed())


def query_sources(query: StreamingQuery) -> list[StreamSource]:
    """The Kafka sources of a query that runs; none where Spark has its plan elsewhere."""
    try:
        return _sources_of(query._jsq.streamingQuery().analyzedPlan())
    except (Py4JError, AttributeError, TypeError):
        return []


def _sources_of(plan: Any) -> list[StreamSource]:
    leaves: Any = plan.collectLeaves()
    found = []
    for place in range(leaves.size()):
        leaf = leaves.apply(place)
        if (
            leaf.getClass().getSimpleName() == "StreamingRelationV2"
            and leaf.sourceName() == "kafka"
        ):
            given = leaf.extraOptions().asCaseSensitiveMap()
            found.append(StreamSource({str(k).lower(): str(given[k]) for k in given}))
    return found
