"""One Spark session for all tests that need one: it takes longer to start than most tests run.

`make test` runs them on two workers, each with a session of its own.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.helpers.class_archive import archive_options
from tests.helpers.places import ROOT, SOURCE
from tidegate.spark.batch.compile import Compiler
from tidegate.spark.jars.ivy import JarsUnavailable
from tidegate.spark.kafka.broker import Broker, broker_jars
from tidegate.spark.kafka.connector import connector_jars
from tidegate.spark.kafka.topics import create_topic, delete_topic
from tidegate.spark.session import session

WaitFor = Callable[[Callable[[], Any], StreamingQuery], None]


# No JVM of the tests lives long enough to get back what the optimising compiler and a parallel
# collector cost it, which is a quarter of their CPU time. All of them read this variable.
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault("JDK_JAVA_OPTIONS", f"{LIGHT} {archive_options()}".strip())
# Programs that tests start import what the tests do, whichever test of a worker is the first.
os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(ROOT)])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start a Spark of their own take longest, so they go before all others.

    Of two workers one begins with these and the other with the rest. One of them at the end would
    keep its worker busy for minutes while the other has nothing left to do.
    """
    for item in items:
        if "tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: "spark" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    running = session("local[4]", "tidegate tests")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """What Kafka tests need; where it cannot be had, they are skipped, and say why."""
    pytest.importorskip("confluent_kafka", reason="Kafka tests need the extra kafka")
    try:
        broker_jars()
        connector_jars()
    except JarsUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def broker(kafka_jars: None) -> Iterator[Broker]:
    """A Kafka broker, one for each worker; a test that kills it has to restart it."""
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of the test's own, with two partitions."""
    name = f"{request.function.__name__}-{uuid.uuid4().hex[:8]}"
    create_topic(broker.servers, name, partitions=2)
    yield name
    delete_topic(broker.servers, name)


@pytest.fixture
def say_now(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Prints a line while a long test runs, although pytest keeps what tests print."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{line}", end="", flush=True)

    return say


@pytest.fixture
def wait_for() -> WaitFor:
    """Waits until something is true of a running query; raises its own error if it has one."""

    def wait(condition: Callable[[], Any], query: StreamingQuery) -> None:
        deadline_s = time.monotonic() + 180
        pause = threading.Event()
        while not condition():
            if (failure := query.exception()) is not None:
                raise failure
            assert query.isActive, "the query ended"
            assert time.monotonic() < deadline_s, "waited three minutes"
            pause.wait(0.02)

    return wait


@pytest.fixture
def plans_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Spark's optimized plan of an operator, micro-batch by micro-batch."""

    def watched(operator: str) -> list[str]:
        plans: list[str] = []
        frames = Compiler.frames

        def seen(self, *given):
            made = frames(self, *given)
            plans.append(made.of[operator]._jdf.queryExecution().optimizedPlan().toString())
            return made

        monkeypatch.setattr(Compiler, "frames", seen)
        return plans

    return watched
