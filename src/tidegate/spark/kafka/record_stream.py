"""Bytes of any length as records of a topic, and back.

A broker takes no record above a limit (`message.max.bytes`), so a long stream of bytes becomes
several. Their numbers bring them into order again. Clients are kept for the life of the process:
to connect costs more than a small batch, and Spark uses its Python workers again.
"""

import functools
import io
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tidegate.errors import TidegateError
from tidegate.spark.kafka.client import confluent
from tidegate.spark.kafka.reference import RecordsReference

HEADER = "tidegate-channel"
RECORD_BYTES = 900_000
"""Below the limit of a broker as it is installed, which is a megabyte with all that belongs to a
record."""
_POLL_S = 0.2
_AT_ONCE = 100


class TopicWriter(io.RawIOBase):
    """Takes bytes, and sends them to a partition in records of bounded size."""

    def __init__(self, settings: Mapping[str, str], place: tuple[str, int], name: str) -> None:
        super().__init__()
        self._settings = tuple(sorted(settings.items()))
        self._producer = _producer(self._settings)
        self._topic, self._partition = place
        self._name = name
        self._held = bytearray()
        self._sent = 0
        self._offsets: dict[int, int] = {}
        self._failure: str | None = None

    def writable(self) -> bool:
        """It is for writing only."""
        return True

    def write(self, content: Any) -> int:
        """Send what fills records, and keep the rest."""
        taken = memoryview(content).cast("B")
        self._held += taken
        while len(self._held) >= RECORD_BYTES:
            self._send(bytes(self._held[:RECORD_BYTES]))
            del self._held[:RECORD_BYTES]
        return len(taken)

    def finish(self, patience_s: float) -> RecordsReference:
        """Send the rest, and wait until the broker has everything; returns where it is."""
        if self._held:
            self._send(bytes(self._held))
            self._held.clear()
        left = self._producer.flush(patience_s)
        offsets = tuple(self._offsets.get(number, -1) for number in range(self._sent))
        if left or self._failure or min(offsets, default=0) < 0:
            _producer.cache_clear()  # it may hold records that nobody wants any more
            said = self._failure or f"{left} records were not acknowledged in {patience_s:g} s"
            raise TidegateError(
                f"topic '{self._topic}' did not take the rows of {self._name}: {said}; see to the "
                "broker; the batch repeats"
            )
        return RecordsReference(self._name, self._topic, self._partition, offsets)

    def _send(self, content: bytes) -> None:
        number = self._sent
        self._sent += 1

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self._offsets[number] = message.offset()
            else:
                self._failure = error.str()

        while True:
            try:
                self._producer.produce(
                    self._topic,
                    content,
                    partition=self._partition,
                    headers={HEADER: f"{self._name}/{number}"},
                    on_delivery=delivered,
                )
                break
            except BufferError:  # it waits for the broker
                self._producer.poll(_POLL_S)
        self._producer.poll(0)


def fetched(settings: Mapping[str, str], where: RecordsReference, patience_s: float) -> bytes:
    """The bytes that one task wrote. Records of others between them are passed over."""
    client = confluent()
    consumer = _consumer(tuple(sorted(settings.items())))
    start = client.TopicPartition(where.topic, where.partition, where.offsets[0])
    consumer.assign([start])
    parts: list[bytes] = []
    try:
        wanted = iter(enumerate(where.offsets))
        number, offset = next(wanted)
        for message in _messages(consumer, patience_s, where):
            if message.offset() < offset:
                continue
            if message.offset() > offset:
                raise gone(where, f"offset {offset} is missing")
            if dict(message.headers() or []).get(HEADER) != f"{where.name}/{number}".encode():
                raise gone(where, f"offset {offset} has another record")
            parts.append(message.value())
            following = next(wanted, None)
            if following is None:
                break
            number, offset = following
    finally:
        consumer.unassign()
    return b"".join(parts)


def gone(where: RecordsReference, why: str) -> TidegateError:
    """The error for records that were handed over, but are not in the topic any more."""
    return TidegateError(
        f"the rows of {where.name} are not in partition {where.partition} of topic "
        f"'{where.topic}' any more ({why}): the topic was made anew, or its retention is shorter "
        "than its reader was behind; a channel's topic needs retention.ms=-1"
    )


def _messages(consumer: Any, patience_s: float, where: RecordsReference) -> Iterator[Any]:
    """The records from the assigned place on; raises after so long without one."""
    lost = confluent().KafkaError._AUTO_OFFSET_RESET
    deadline_s, said = time.monotonic() + patience_s, "it does not answer"
    while time.monotonic() < deadline_s:
        for message in consumer.consume(_AT_ONCE, _POLL_S):
            error = message.error()
            if error is None:
                deadline_s = time.monotonic() + patience_s
                yield message
            elif error.code() == lost:
                raise gone(where, error.str())
            else:
                said = error.str()
    raise TidegateError(
        f"topic '{where.topic}' did not give back the rows of {where.name} in {patience_s:g} s: "
        f"{said}; see to the broker; the batch repeats"
    )


def _kept(make: Callable[[dict[str, str]], Any]) -> Any:
    """One client for each group of settings, for as long as the process lives."""
    return functools.lru_cache(maxsize=8)(lambda settings: make(dict(settings)))


_producer = _kept(
    lambda settings: confluent().Producer(
        {
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 0,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
            **settings,
        }
    )
)
_consumer = _kept(
    lambda settings: confluent().Consumer(
        {
            "group.id": "tidegate-channel",  # required, and of no use: nothing is committed
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 10,
            "queued.max.messages.kbytes": 16_384,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
            **settings,
        }
    )
)
