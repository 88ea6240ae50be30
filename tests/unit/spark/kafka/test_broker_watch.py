"""A broker that goes and comes back is told of, once each."""

import logging
import socket
import threading

import pytest

from tidegate.spark.kafka.broker_watch import watch_brokers
from tidegate.spark.kafka.stream_sources import StreamSource


def test_a_broker_that_is_gone_is_said_once_and_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = taken.getsockname()
    servers = f"127.0.0.1:{place[1]}"
    over, looks = threading.Event(), threading.Semaphore(0)

    def ended(timeout_s: float) -> bool:
        looks.release()
        return over.wait(timeout_s)

    # Of a broker that speaks TLS only the port is asked, which a plain socket can open.
    tls = {"kafka.bootstrap.servers": servers, "kafka.security.protocol": "SSL"}
    with caplog.at_level(logging.WARNING, "tidegate"):
        watch_brokers("pipeline 'p'", [StreamSource(tls), StreamSource(tls)], ended, 0.01)
        for _ in range(6):
            assert looks.acquire(timeout=10)
        with socket.create_server(place):
            while len(caplog.messages) < 2:
                assert looks.acquire(timeout=10)
        over.set()
    assert caplog.messages[:2] == [
        f"pipeline 'p': no Kafka broker answers at {servers}; it waits, and goes on where it was "
        "when one answers again",
        f"pipeline 'p': the Kafka broker at {servers} answers again",
    ]


def test_a_pipeline_without_kafka_is_not_watched() -> None:
    before = threading.active_count()
    watch_brokers("p", [], lambda _: True)
    assert threading.active_count() == before
