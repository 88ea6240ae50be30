"""Produces a load to a topic as its profile says: row by row at its time, or late, never early.

A record's timestamp is when the row arrives by the profile, not when the producer got to send it.
So what a producer that falls behind delays counts as latency, as it would for a real event. With a
start in the past, all rows up to now are sent at once: that makes a backlog.

The client is idempotent: a record that it sends again after a lost answer, or after the broker was
killed and restarted, is in the topic once.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tidegate.errors import TidegateError
from tidegate.spark.kafka.answering import require_broker
from tidegate.spark.kafka.client import confluent, reason
from tidegate.spark.kafka.produced import KeyTally, Produced
from tidegate.spark.kafka.topic_load import TopicLoad, encoded

_STEP_S = 0.01
_ROWS_AT_ONCE = 20_000
_LOOK_S = 5.0


def produce(
    servers: str,
    topic: str,
    load: TopicLoad,
    *,
    start_ms: int | None = None,
    stop: threading.Event | None = None,
    patience_s: float = 120.0,
    on_begin: Callable[[int], None] | None = None,
) -> Produced:
    """Send the load until its end, or until `stop` is set; returns what was acknowledged.

    The profile begins at `start_ms`, which is now by default; `on_begin` is told. A broker that
    does not answer is waited for, but no record longer than `patience_s`.
    """
    client = confluent()
    stop = stop or threading.Event()
    failed = KeyTally()
    producer = client.Producer(_settings(servers, patience_s))
    _require_topic(producer, servers, topic)
    begun_ms = _now_ms() if start_ms is None else start_ms
    if on_begin is not None:
        on_begin(begun_ms)
    sent, behind_ms, done, count = KeyTally(), 0, 0, load.count

    def on_failure(error: object, message: Any) -> None:
        failed.add(np.array([int(message.key())]))

    while done < count and not stop.is_set():
        now_ms = _now_ms()
        end = min(load.arrived(now_ms - begun_ms), done + _ROWS_AT_ONCE)
        if end == done:
            producer.poll(0)
            stop.wait(_STEP_S)
            continue
        rows = load.rows(done, end)
        stamps = (rows.arrival_us // 1000 + begun_ms).tolist()
        if start_ms is None:
            behind_ms = max(behind_ms, now_ms - stamps[0])
        for key, value, stamp in zip(*encoded(rows, load.form), stamps, strict=True):
            while True:
                try:
                    producer.produce(topic, value, key, timestamp=stamp, on_delivery=on_failure)
                    break
                except BufferError:  # it waits for the broker
                    producer.poll(0.05)
                except client.KafkaException as error:
                    raise TidegateError(
                        f"the broker at {servers} takes no more records: {reason(error)}"
                    ) from error
        producer.poll(0)
        sent.add(rows.key)
        done = end
    if producer.flush(patience_s + _LOOK_S):
        producer.purge()
        producer.flush(_LOOK_S)  # calls `on_failure` for those that are left
    lost_keys, lost = failed.totals()
    sent.add(lost_keys, -lost)
    keys, counts = sent.totals()
    failures = int(lost.sum())
    return Produced(done - failures, failures, keys, counts, begun_ms, behind_ms / 1000.0)


def _settings(servers: str, patience_s: float) -> dict[str, object]:
    return {
        "bootstrap.servers": servers,
        "enable.idempotence": True,
        "message.timeout.ms": round(patience_s * 1000),
        # One call into Python per failure, not per record.
        "delivery.report.only.error": True,
        "linger.ms": 5,
        # The partition that Java's clients would choose for the same key.
        "partitioner": "murmur2_random",
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
    }


def _require_topic(producer: Any, servers: str, topic: str) -> None:
    """Refuse a broker that is not there and a topic that does not exist, before rows are due."""
    require_broker(servers)
    try:
        listed = producer.list_topics(topic, timeout=_LOOK_S)
    except confluent().KafkaException as error:
        raise TidegateError(f"the broker at {servers} does not answer: {reason(error)}") from error
    if listed.topics[topic].error is not None:
        raise TidegateError(f"there is no topic '{topic}' at {servers}; create it first")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
