"""Says that a broker is gone while a pipeline or an attached query runs, and that it is back.

Spark's Kafka client waits in silence: the query is active, and nothing happens. That is right,
since a broker that comes back finds the query where it was, but somebody should be told.
"""

import logging
import threading
from collections.abc import Callable, Iterable

from pyspark.sql.streaming.query import StreamingQuery

from tidegate.spark.kafka.answering import answers
from tidegate.spark.kafka.stream_sources import StreamSource, query_sources

_LOG = logging.getLogger("tidegate")
_LOOK_EVERY_S = 5.0


def watch_query(query: StreamingQuery, ended: Callable[[float], bool]) -> None:
    """Watch the brokers of a query of others, which Spark's plan of it names."""
    watch_brokers(f"the attached query '{query.name or query.id}'", query_sources(query), ended)


def watch_brokers(
    reader: str,
    sources: Iterable[StreamSource],
    ended: Callable[[float], bool],
    every_s: float = _LOOK_EVERY_S,
) -> None:
    """Watch the brokers of a reader until it has ended; `ended` waits for that, up to a time."""
    places = sorted({(source.servers, source.encrypted) for source in sources})
    if places:
        threading.Thread(
            target=_watch,
            args=(reader, places, ended, every_s),
            name="tidegate-brokers",
            daemon=True,
        ).start()


def _watch(
    reader: str,
    places: list[tuple[str, bool]],
    ended: Callable[[float], bool],
    every_s: float,
) -> None:
    silent = dict.fromkeys(places, 0)
    while not ended(every_s):
        for place in places:
            servers, encrypted = place
            if answers(servers, encrypted=encrypted):
                if silent[place] > 1:
                    _LOG.warning("%s: the Kafka broker at %s answers again", reader, servers)
                silent[place] = 0
                continue
            silent[place] += 1
            if silent[place] == 2:  # one look may meet a broker that is just too busy
                _LOG.warning(
                    "%s: no Kafka broker answers at %s; it waits, and goes on where it was when "
                    "one answers again",
                    reader,
                    servers,
                )
