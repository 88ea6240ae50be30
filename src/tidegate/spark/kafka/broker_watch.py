"""Says that a broker is gone while a pipeline runs, and that it is back.

Spark's Kafka client waits in silence: the query is active, and nothing happens. That is right,
since a broker that comes back finds the query where it was, but somebody should be told.
"""

import logging
import threading
from collections.abc import Callable, Iterable

from tidegate.spark.kafka.answering import answers
from tidegate.spark.kafka.stream_sources import StreamSource

_LOG = logging.getLogger("tidegate")
_LOOK_EVERY_S = 5.0


def watch_brokers(
    pipeline: str,
    sources: Iterable[StreamSource],
    ended: Callable[[float], bool],
    every_s: float = _LOOK_EVERY_S,
) -> None:
    """Watch the brokers of a pipeline until it has ended; `ended` waits for that, up to a time."""
    places = sorted({(source.servers, source.encrypted) for source in sources})
    if places:
        threading.Thread(
            target=_watch,
            args=(pipeline, places, ended, every_s),
            name="tidegate-brokers",
            daemon=True,
        ).start()


def _watch(
    pipeline: str,
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
                    _LOG.warning(
                        "pipeline '%s': the Kafka broker at %s answers again", pipeline, servers
                    )
                silent[place] = 0
                continue
            silent[place] += 1
            if silent[place] == 2:  # one look may meet a broker that is just too busy
                _LOG.warning(
                    "pipeline '%s': no Kafka broker answers at %s; it waits, and goes on where it "
                    "was when one answers again",
                    pipeline,
                    servers,
                )
