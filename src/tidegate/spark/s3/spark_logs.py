"""Spark's own logs of a query on S3: each entry is written once, by one driver.

Spark logs the offsets of a batch before it runs it, and file sources log which files they saw. If
a driver that was paused could put its own entries in the place of its successor's, a restart would
read other rows than the state has. Neither of Spark's writers prevents that on S3. The default one
renames, and S3A copies objects to do that. The one of spark-hadoop-cloud looks first and puts
later, and takes a put that failed for a success (Spark 4.1.2).

So Spark gets a writer of ours, `ConditionalCheckpointFileManager`: an entry is one put, under the
condition that there is none. It is a small Java class. Spark's JVM compiles it, with the compiler
that Spark brings for its generated code, so that the package holds no compiled code.
"""

import atexit
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.s3.address import Address, is_s3
from tidegate.spark.s3.connector import require_connector, s3a_options
from tidegate.spark.state.files import Durable, Missing

SOURCE = Path(__file__).with_name("ConditionalCheckpointFileManager.java")
WRITER = f"org.tidegate.spark.{SOURCE.stem}"
_SETTING = "spark.sql.streaming.checkpointFileManagerClass"
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
_ONE_AT_A_TIME = threading.RLock()
"""Two starts in two threads would each put back what the other has set."""


@contextmanager
def logs_on(session: SparkSession, place: Durable) -> Iterator[None]:
    """Settings for a query that starts in this block and logs to this place.

    A query takes a copy of its session's settings when it starts, so those of the session are put
    back at the end: other queries may log to a local disk.
    """
    with _ONE_AT_A_TIME:
        wanted = _settings(session, place) if is_s3(place.url) else {}
        before = {name: session.conf.get(name, None) for name in wanted}
        for name, value in wanted.items():
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
    """The writer, and what the query needs to find the store that the checkpoint's URL names.

    The URL alone decides about the endpoint if it has options; else what somebody has set for the
    session comes first.
    """
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    by_url = "?" in place.url
    options = {
        name: value
        for name, value in s3a_options(Address.of(place.url)).items()
        if _is_default(hadoop, name) or (by_url and "endpoint" in name)
    }
    return {**options, _SETTING: WRITER}


def _is_default(hadoop: Any, name: str) -> bool:
    """Whether nobody has set this option of Hadoop."""
    sources = hadoop.getPropertySources(name)
    return sources is None or list(sources)[-1] == "core-default.xml"


def check_logs(session: SparkSession, place: Durable) -> None:
    """Before a start, give Spark the writer, and refuse a session that cannot write with it.

    An entry is created twice, as Spark creates them. The second time must fail.
    """
    if not is_s3(place.url):
        return
    require_connector(session)
    java: Any = session.sparkContext._jvm
    name = f".probe-{uuid.uuid4().hex[:12]}"
    path = java.org.apache.hadoop.fs.Path(f"{place.location.rstrip('/')}/{name}")
    try:
        install_writer(java)
        with logs_on(session, place):
            conf = session._jsparkSession.sessionState().newHadoopConf()
        managers = getattr(java, _CHECKPOINTING).CheckpointFileManager
        manager = managers.create(path.getParent(), conf)
        _write(manager, path, "1")
        replaced = _write_again(manager, path)
        found = place.read(name)
    except (Py4JError, PySparkException, Missing) as error:
        raise TidegateError(
            f"Spark cannot write its logs to {place.location} ({_cause(error)}); check its "
            "credentials and its fs.s3a settings, and that its jars are those of "
            "tidegate.session(..., s3=True)"
        ) from error
    place.remove(name)
    if replaced or found != b"1":
        raise AskedWrongly(
            f"Spark replaces files at {place.location}, so the offsets of two drivers could not be "
            "told apart; use the jars of tidegate.session(..., s3=True)"
        )


def _write(manager: Any, path: Any, letter: str) -> None:
    stream = manager.createAtomic(path, False)
    stream.write(ord(letter))
    stream.close()


def _write_again(manager: Any, path: Any) -> bool:
    """Whether an entry that exists can be written again."""
    try:
        _write(manager, path, "2")
    except Py4JJavaError as error:
        if "FileAlreadyExists" in _cause(error):
            return False
        raise
    return True


def install_writer(java: Any) -> None:
    """Compile the writer in Spark's JVM, unless it is there."""
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        java.java.lang.Class.forName(WRITER, False, loader)
        return
    except Py4JJavaError:
        pass
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(SOURCE.read_text(encoding="utf-8"))
    directory = Path(tempfile.mkdtemp(prefix="tidegate-classes-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    for name, content in dict(compiler.getBytecodes()).items():
        file = directory / f"{name.replace('.', '/')}.class"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(content))
    # Spark's own loader, which spark-submit and pyspark start the driver with, takes more classes.
    loader.addURL(java.java.net.URL(f"{directory.as_uri()}/"))


def _cause(error: Exception) -> str:
    told = getattr(error, "java_exception", None)
    text = str(error) if told is None else str(told.toString())
    return text.strip().splitlines()[0][:300]
