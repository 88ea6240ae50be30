"""Tells of what a program does with PySpark, without a change to the program.

PySpark's own methods are wrapped in this process. However a program comes by a session (the
builder, `SparkSession(context)`, `newSession`), PySpark calls the constructor of its class, and
however it names a format, the method `format` of a reader or a writer.
"""

import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Protocol

from pyspark.sql import DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

KAFKA = "kafka"
_WITH_FORMATS = (DataStreamReader, DataStreamWriter, DataFrameReader, DataFrameWriter)


class Listener(Protocol):
    """Who is told. What it raises reaches the program."""

    def session(self, session: SparkSession) -> None:
        """A session exists; the program has not had it yet."""
        ...

    def remote(self) -> None:
        """The program is about to connect to a driver elsewhere (Spark Connect)."""
        ...

    def kafka(self, session: SparkSession) -> None:
        """The program is about to read or write Kafka."""
        ...


def listen(listener: Listener) -> Callable[[], None]:
    """Wrap PySpark's methods. Returns a function that takes the wrapping off again."""
    wrapped: list[tuple[Any, str, Any]] = []

    def wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
        before = getattr(owner, name)
        wrapped.append((owner, name, before))
        setattr(owner, name, wraps(before)(around(before)))

    wrap(SparkSession, "__init__", lambda before: _after_session(before, listener))
    for name in ("getOrCreate", "create"):
        wrap(SparkSession.Builder, name, lambda before: _before_remote(before, listener))
    for owner in _WITH_FORMATS:
        wrap(owner, "format", lambda before: _before_kafka(before, listener))

    def unlisten() -> None:
        for owner, name, before in reversed(wrapped):
            setattr(owner, name, before)

    return unlisten


def uses_connect(options: Mapping[str, Any]) -> bool:
    """Whether a session with these options would be one of Spark Connect, as PySpark decides it."""
    if "spark.remote" in options or {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"} & set(
        os.environ
    ):
        return True
    mode = options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))
    return str(mode).lower() == "connect"


def _after_session(before: Callable[..., Any], listener: Listener) -> Callable[..., Any]:
    def made(self: SparkSession, *given: Any, **named: Any) -> None:
        before(self, *given, **named)
        listener.session(self)

    return made


def _before_remote(before: Callable[..., Any], listener: Listener) -> Callable[..., Any]:
    def built(self: Any, *given: Any, **named: Any) -> Any:
        if uses_connect(self._options):
            listener.remote()
        return before(self, *given, **named)

    return built


def _before_kafka(before: Callable[..., Any], listener: Listener) -> Callable[..., Any]:
    def formatted(self: Any, source: str, *given: Any, **named: Any) -> Any:
        if isinstance(source, str) and source.lower() == KAFKA:
            listener.kafka(self._spark)
        return before(self, source, *given, **named)

    return formatted
