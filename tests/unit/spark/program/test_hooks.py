"""PySpark's methods tell of sessions, of Spark Connect and of Kafka, and are as before after it."""

from types import SimpleNamespace

import pytest
from pyspark.sql import DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from tidegate.spark.program.hooks import listen, uses_connect

FORMATS = {
    DataStreamReader: "_jreader",
    DataStreamWriter: "_jwrite",
    DataFrameReader: "_jreader",
    DataFrameWriter: "_jwrite",
}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch):
    """What a listener was told; the hooks are taken off at the end of the test."""
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(SparkSession, "__init__", lambda self, *given: None)
    for name in ("getOrCreate", "create"):
        monkeypatch.setattr(SparkSession.Builder, name, lambda self: "built")
    heard: list[object] = []
    listener = SimpleNamespace(
        session=lambda session: heard.append(session),
        remote=lambda: heard.append("remote"),
        kafka=lambda session: heard.append(f"kafka of {session}"),
    )
    unlisten = listen(listener)
    yield heard
    unlisten()


def test_a_session_is_told_when_it_exists(told) -> None:
    session = SparkSession(object())
    assert told == [session]


@pytest.mark.parametrize("owner", FORMATS, ids=lambda owner: owner.__name__)
def test_kafka_is_told_before_the_format_is_set(told, owner) -> None:
    java = SimpleNamespace(format=lambda source: told.append(source) or java)
    one = object.__new__(owner)
    one._spark = "a session"
    setattr(one, FORMATS[owner], java)
    assert one.format("parquet") is one
    assert told == ["parquet"]
    one.format("Kafka")
    assert told[1:] == ["kafka of a session", "Kafka"]


def test_spark_connect_is_told_before_it_connects(told, monkeypatch) -> None:
    assert SparkSession.builder.getOrCreate() == "built"
    assert told == []
    assert SparkSession.builder.config("spark.remote", "sc://host").getOrCreate() == "built"
    assert SparkSession.builder.config("spark.api.mode", "Connect").create() == "built"
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    SparkSession.builder.getOrCreate()
    assert told == ["remote"] * 3


def test_classic_mode_is_not_connect(monkeypatch) -> None:
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_API_MODE", "connect")
    assert uses_connect({})
    assert not uses_connect({"spark.api.mode": "classic"})


def test_the_wrapping_can_be_taken_off() -> None:
    before = [owner.format for owner in FORMATS], SparkSession.__init__
    listen(SimpleNamespace())()
    assert ([owner.format for owner in FORMATS], SparkSession.__init__) == before
