"""Spark's own logs of a query on S3: written once, by one driver, and checked before each batch.

Spark logs the offsets of a batch before it runs it. If a driver that was paused could put its own
offsets in the place of its successor's, a restart would read other rows than the state has. Spark's
default writer renames, and S3A copies objects to do that: of two drivers the later one wins.

So the writer for object stores is used (`AbortableStreamBasedCheckpointFileManager`), and S3A is
told to create objects under a condition: an entry of the log is never replaced. That writer has a
defect: it logs a failed write, and goes on as if it had succeeded. Therefore each batch begins with
a look at the store, and fails if the entry there is not the one that Spark works by.
"""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.s3.address import Address, is_s3
from tidegate.spark.s3.connector import require_connector, s3a_options
from tidegate.spark.state.files import Durable, Missing

_WRITER = "spark.sql.streaming.checkpointFileManagerClass"
_FOR_OBJECTS = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
_CONDITIONAL = {"fs.s3a.performance.flags": "create", "fs.s3a.create.conditional.enabled": "true"}
"""With the flag, S3A does not look whether an object exists before it creates one, but makes the
put depend on that."""
_STREAMING = "org.apache.spark.sql.execution.streaming"


@contextmanager
def logs_on(session: SparkSession, place: Durable) -> Iterator[None]:
    """Settings for a query that starts in this block and logs to this place.

    A query takes a copy of its session's settings when it starts, so those of the session are put
    back at the end: other queries may log to a local disk.
    """
    if not is_s3(place.url):
        yield
        return
    before = {name: session.conf.get(name, None) for name in _settings(session, place)}
    for name, value in _settings(session, place).items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def _settings(session: SparkSession, place: Durable) -> dict[str, str]:
    """What the query needs beside the settings of its session, which have precedence."""
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    options = s3a_options(Address.of(place.url))
    own = {
        name: value
        for name, value in options.items()
        if hadoop.get(name) in (None, "") or ("endpoint" in name and "?" in place.url)
    }
    return {**own, **_CONDITIONAL, _WRITER: _FOR_OBJECTS}


def check_logs(session: SparkSession, place: Durable) -> None:
    """Before a start, refuse a session whose Spark would replace entries of its logs on S3.

    An entry is created twice, as Spark creates them. The first one must stay.
    """
    if not is_s3(place.url):
        return
    require_connector(session)
    java: Any = session.sparkContext._jvm
    name = f".probe-{uuid.uuid4().hex[:12]}"
    path = java.org.apache.hadoop.fs.Path(f"{place.location.rstrip('/')}/{name}")
    with logs_on(session, place):
        conf = session._jsparkSession.sessionState().newHadoopConf()
    try:
        managers = getattr(java, f"{_STREAMING}.checkpointing").CheckpointFileManager
        manager = managers.create(path.getParent(), conf)
        streams = [manager.createAtomic(path, False) for _ in range(2)]
        for number, stream in enumerate(streams):
            stream.write(ord("1") + number)
            stream.close()
        found = place.read(name)
    except (Py4JJavaError, Py4JError, Missing) as error:
        raise TidegateError(
            f"Spark cannot write its logs to {place.location} ({_cause(error)}); check its "
            "credentials and its fs.s3a settings, and that its jars are those of "
            "tidegate.session(..., s3=True)"
        ) from error
    place.remove(name)
    if found != b"1":
        raise AskedWrongly(
            f"Spark replaces files at {place.location}, so the offsets of two drivers could not be "
            "told apart; use the jars of tidegate.session(..., s3=True), which create files "
            "under a condition"
        )


def _cause(error: Exception) -> str:
    told = getattr(error, "java_exception", None)
    text = str(error) if told is None else str(told.toString())
    return text.strip().splitlines()[0][:300]


def logged_offsets(
    session: SparkSession, query: str, place: Durable
) -> Callable[[int], None] | None:
    """What compares the offsets of each batch with those in the store; None if not on S3."""
    return OffsetsOnS3(session, query, place).require if is_s3(place.url) else None


@dataclass(frozen=True, slots=True)
class OffsetsOnS3:
    """Compares the offsets by which Spark runs a batch with those in the checkpoint."""

    session: SparkSession
    query: str
    place: Durable
    """The directory of the query's logs."""

    def require(self, batch_id: int) -> None:
        """Raise if the entry of this batch is missing from the store, or is another driver's."""
        try:
            found = self.place.below("offsets").read(str(batch_id))
        except Missing:
            raise TidegateError(
                f"Spark could not write the offsets of batch {batch_id} of '{self.query}' to "
                f"{self.place.location}; nothing of the batch was done; start again"
            ) from None
        if _lines(found) != _lines(self._in_memory(batch_id)):
            raise TidegateError(
                f"the offsets of batch {batch_id} of '{self.query}' in {self.place.location} are "
                "those of another driver; nothing of the batch was done; make sure that only one "
                "driver uses the checkpoint, and start again"
            )

    def _in_memory(self, batch_id: int) -> bytes:
        """The entry as this driver has it; Spark keeps the newest ones."""
        java: Any = self.session.sparkContext._jvm
        running = self.session._jsparkSession.streams().active()
        query = next(one for one in running if one.name() == self.query)
        log = query.streamingQuery().offsetLog()
        entry = log.get(batch_id)
        out = java.java.io.ByteArrayOutputStream()
        log.serialize(entry.get(), out)
        return bytes(out.toByteArray())


def _lines(entry: bytes) -> list[Any]:
    """The lines of an entry, those with JSON as what they mean."""
    found: list[Any] = []
    for line in entry.decode().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            found.append(line)
    return found
