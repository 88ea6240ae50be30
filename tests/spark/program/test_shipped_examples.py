"""Spark's own streaming examples under `tidegate run`, unchanged, on executors of their own."""

import json
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.helpers.program import (
    SHIPPED,
    RunningProgram,
    tidegate_run,
    words_counted,
)
from tidegate.cli import app
from tidegate.recording import read_records
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.producer import ProducerProcess
from tidegate.spark.kafka.topic_load import TopicLoad

pytestmark = pytest.mark.spark

CLUSTER = [
    *("--master", "local-cluster[2,1,1024]", "--executors", "1:2", "--target", "20s"),
    *("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false"),
]


@contextmanager
def lines_for_everybody(lines: list[str]) -> Iterator[int]:
    """A server that sends the same lines to whoever connects, and stays; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            held = []
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                held.append(connection)
                connection.sendall("".join(f"{line}\n" for line in lines).encode())

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def assert_explained(directory: Path, name: str) -> None:
    """`explain` tells of a change, and `replay` decides as it was recorded."""
    place = directory / "out" / "run" / name
    records = read_records(place)
    for command in ("explain", "replay"):
        told = CliRunner().invoke(app, [command, str(place), "--json"], catch_exceptions=False)
        assert told.exit_code == 0, told.stderr
        document = json.loads(told.stdout)
        if command == "explain":
            assert "cores 2 to 1" in told.stdout
        else:
            (run,) = document["runs"]
            assert run["ticks"] == run["same"] == len(records)


def test_windowed_words_of_a_socket_are_all_counted_and_ctrl_c_is_the_programs(tmp_path) -> None:
    lines = ["tide gate", "tide", "tide gate spring"] * 20
    with lines_for_everybody(lines) as port:
        script = str(SHIPPED / "structured_network_wordcount_windowed.py")
        command = tidegate_run(*CLUSTER, script, "127.0.0.1", str(port), "600")
        with RunningProgram(tmp_path, command) as program:
            expected = Counter(" ".join(lines).split())
            program.wait_until(lambda: words_counted(program.stdout) == expected)
            program.wait_until(lambda: recorded_segments(tmp_path, Path(script).stem))
            code = program.ctrl_c()
        assert code == -signal.SIGINT, program.told()
        assert "in <module>\n    query.awaitTermination()" in program.stderr
        assert "tidegate/" not in program.stderr, "the program's traceback has frames of ours"
        assert "time within the target" in program.stderr
        assert "tidegate" not in program.stdout


def test_an_example_that_spark_refuses_ends_as_without_tidegate(tmp_path: Path) -> None:
    """It asks for the output mode `update`, which Spark does not have for session windows."""
    with lines_for_everybody([]) as port:
        script = str(SHIPPED / "structured_sessionization.py")
        words = ["--master", "local[1]", "--target", "5s", "--conf", "spark.ui.enabled=false"]
        command = tidegate_run(*words, script, "127.0.0.1", str(port))
        with RunningProgram(tmp_path, command) as program:
            assert program.wait() == 1, program.told()
    assert "AnalysisException" in program.stderr
    assert "structured_sessionization.py" in program.stderr and ".start()" in program.stderr
    assert "tidegate/" not in program.stderr, "the program's traceback has frames of ours"


def test_words_of_a_topic_are_all_counted_and_the_connector_is_brought(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    script = str(SHIPPED / "structured_kafka_wordcount.py")
    load = TopicLoad.of("constant:200", "zipf:15,0.8", seconds=2.0, seed=3, form="key")
    options = [*CLUSTER, "--scale-in-after", "1s"]
    command = tidegate_run(*options, script, broker.servers, "subscribe", topic)
    with RunningProgram(tmp_path, command) as program:
        # It reads from the latest offsets on, so nothing may be produced before its first batch.
        program.wait_until(lambda: "Batch: 0" in program.stdout)
        with ProducerProcess(broker.servers, topic, load) as producer:
            produced = producer.wait(120)
        expected = {str(key): count for key, count in produced.per_key.items()}
        program.wait_until(lambda: words_counted(program.stdout) == expected)
        # Now it is idle, and one executor is enough.
        program.wait_until(lambda: released(tmp_path, Path(script).stem))
        program.process.terminate()
        assert program.wait() == -signal.SIGTERM
    assert "cores 2 to 1: " in program.stderr
    assert words_counted(program.stdout) == expected
    assert_explained(tmp_path, "structured_kafka_wordcount")


def recorded_segments(directory: Path, name: str) -> bool:
    """Whether a finished batch has been recorded."""
    records = read_records(directory / "out" / "run" / name)
    return any(segment.batches for one in records for segment in one.measurement.segments)


def released(directory: Path, name: str) -> bool:
    """Whether an executor was released by a decision, and is gone."""
    records = read_records(directory / "out" / "run" / name)
    decided = any(one.acted and one.decision.cores == 1 for one in records)
    return decided and records[-1].measurement.cores_granted == 1
