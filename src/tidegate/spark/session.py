"""Builds Spark sessions, in the same way on a laptop and on a cluster."""

import atexit
import functools
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

import tidegate
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.java import use_java
from tidegate.spark.java_log import QUIET_LOG4J
from tidegate.spark.kafka.connector import add_connector, connector_settings
from tidegate.spark.master import Master, parse_master, require_answer
from tidegate.spark.s3 import connector as s3_connector

DEFAULT_MASTER = "local[*]"
DEFAULT_APP = "tidegate"
_LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Executors that fill this machine share its cores with the batches that wait for them, and start
in half the CPU time without an optimising compiler. Where cores are free, they have one: what runs
for long in the JVM is faster with it. The caller's own options replace this."""


def session(
    master: str | None = None,
    app: str = DEFAULT_APP,
    *,
    kafka: bool = False,
    s3: bool = False,
    **conf: str | int | float | bool,
) -> SparkSession:
    """The active session, or a new one on `master` (default: `local[*]`).

    Under spark-submit, its master and settings are kept, and Tidegate only sets what they leave
    open. `conf` overrides Tidegate's settings: `session("local[2]", **{"spark.ui.enabled": True})`.
    With `kafka`, the session can read and write Kafka: it gets Spark's connector, also if it runs
    already. With `s3`, a new session can read and write `s3a://`, and checkpoints can be on S3.
    The JVM's output goes to a file in the session's temporary directory. Set TIDEGATE_SPARK_LOG to
    a path to keep it, or to `-` to see it on the terminal.
    """
    asked = {key: _text(value) for key, value in conf.items()}
    place = None if master is None else parse_master(master)
    if is_remote():
        raise AskedWrongly(
            "this process uses Spark Connect, whose driver is another process; Tidegate runs "
            "inside the driver, so build the session in a process without Spark Connect"
        )
    if (active := SparkSession.getActiveSession()) is not None:
        _check_same_place(active, place)
        if s3:
            s3_connector.require_connector(active)
        for key, value in asked.items():
            active.conf.set(key, value)
        return _with_kafka(active, kafka)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        submitted = _with_kafka(_submitted(place, app, asked), kafka)
        if s3:
            s3_connector.require_connector(submitted)
        return submitted
    if kafka:
        asked |= connector_settings(asked.get("spark.jars", ""))
    if s3:
        asked = s3_connector.connector_settings(asked.get("spark.jars", "")) | {
            key: value for key, value in asked.items() if key != "spark.jars"
        }
    return _with_kafka(_launched(place or parse_master(DEFAULT_MASTER), app, asked), kafka)


def _with_kafka(running: SparkSession, wanted: bool) -> SparkSession:
    """The session with the connector: a JVM that ran before it was asked for has none yet."""
    if wanted:
        add_connector(running)
    return running


def settings(place: Master, directory: Path) -> dict[str, str]:
    """Tidegate's Spark settings for this master; the caller's settings override them."""
    common = {
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": "tidegate.spark.python_daemon",
        # Spark's three seconds are half of a usual target. Readers of Kafka prefer an executor that
        # is still starting or is about to exit, and a whole micro-batch would wait for it.
        "spark.locality.wait": "500ms",
    }
    if place.replaces_executors:
        # Spark ends an application that has lost more executors than a few in all its life, unless
        # they count for a while only. A streaming query lives for months.
        common["spark.executor.failuresValidityInterval"] = "1h"
    if not place.on_this_machine:
        return common
    here = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
        # The default class is slow on a local disk; `tidegate bench checkpoint` measures it.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileSystemBasedCheckpointFileManager"
        ),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(import_roots()),
        "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
    }
    if place.fills_this_machine:
        here["spark.executor.extraJavaOptions"] = _LIGHT
    if place.cores is not None:
        here["spark.sql.shuffle.partitions"] = str(max(2, min(place.cores, 16)))
    return common | here


def _launched(place: Master, app: str, asked: Mapping[str, str]) -> SparkSession:
    """Start a context in a new JVM, or in the JVM that an earlier session left running."""
    directory = _work_directory()
    log_configuration = directory / "log4j2.properties"
    log_configuration.write_text(QUIET_LOG4J)
    quiet = f"-Dlog4j2.configurationFile={log_configuration.as_uri()}"
    conf = SparkConf(loadDefaults=False).setMaster(place.url).setAppName(app)
    for key, value in (settings(place, directory) | dict(asked)).items():
        conf.set(key, value)
    options = ["spark.driver.extraJavaOptions"]
    if place.on_this_machine:
        options.append("spark.executor.extraJavaOptions")
    for option in options:
        conf.set(option, f"{quiet} {conf.get(option, '')}".strip())
    _prepare_environment(place, directory)
    if SparkContext._gateway is None:
        use_java(directory)
    require_answer(place)
    try:
        context = SparkContext(conf=conf, gateway=SparkContext._gateway or _gateway(conf))
    except Exception as error:
        raise TidegateError(
            f"Spark did not start on '{place.url}': {_first_line(error)}{_last_words()}"
        ) from error
    return SparkSession(context)


def _submitted(place: Master | None, app: str, asked: Mapping[str, str]) -> SparkSession:
    """Start a context in the JVM that spark-submit started; its settings override Tidegate's."""
    # A SparkConf is empty until the JVM is connected; then it has spark-submit's settings.
    SparkContext._ensure_initialized()
    given = SparkConf()
    url = given.get("spark.master")
    if place is not None and url is not None and url != place.url:
        raise AskedWrongly(
            f"spark-submit chose master '{url}', so '{place.url}' is not available; leave the "
            "master out."
        )
    where = parse_master(url) if url is not None else place or parse_master(DEFAULT_MASTER)
    given.setMaster(where.url)
    if app != DEFAULT_APP:
        given.setAppName(app)
    for key, value in settings(where, _work_directory()).items():
        given.setIfMissing(key, value)
    for key, value in asked.items():
        given.set(key, value)
    return SparkSession(SparkContext(conf=given))


def _prepare_environment(place: Master, directory: Path) -> None:
    """Set the configuration that Spark reads only from environment variables."""
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # A SPARK_HOME of another release would start jars that do not match this pyspark.
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    if not place.on_this_machine:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_WORKER_DIR"] = str(directory / "workers")
    # The JVM passes this to every Python worker, including those that plan a Python source.
    os.environ["PYTHONPATH"] = os.pathsep.join(import_roots())


def _gateway(conf: SparkConf) -> object:
    """Launch the JVM. Its output goes to a log file, to keep the terminal readable."""
    if os.environ.get("TIDEGATE_SPARK_LOG") == "-":
        return launch_gateway(conf)  # type: ignore[no-untyped-call]
    with _log_file().open("ab") as log:
        output = {"stdout": log, "stderr": log}
        return launch_gateway(conf, popen_kwargs=output)  # type: ignore[no-untyped-call]


def _log_file() -> Path:
    return Path(os.environ.get("TIDEGATE_SPARK_LOG") or _work_directory() / "spark.log")


def _last_words() -> str:
    """The last lines of the JVM's log, the only hint when the JVM did not start."""
    log = _log_file()
    if not log.is_file():
        return ""
    return "\n" + "\n".join(log.read_text(errors="replace").splitlines()[-8:])


def _check_same_place(active: SparkSession, place: Master | None) -> None:
    running = active.sparkContext.master
    if place is not None and place.url != running:
        raise AskedWrongly(
            f"a Spark session on '{running}' is running, so '{place.url}' is not available; stop "
            "it first or leave the master out."
        )


@functools.cache
def _work_directory() -> Path:
    """A temporary directory for Spark's files, removed at exit."""
    directory = Path(tempfile.mkdtemp(prefix="tidegate-"))
    atexit.register(_clean, directory, os.getpid())
    return directory


def _clean(directory: Path, owner: int) -> None:
    """Stop Spark and remove its directory; a forked child does neither."""
    if os.getpid() != owner:
        return
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
    shutil.rmtree(directory, ignore_errors=True)


def import_roots() -> list[str]:
    """The module search path of Python workers on this machine: Tidegate's and the driver's.

    A function from a module beside the user's script is pickled by name, so the worker has to be
    able to import that module. Directories of the interpreter itself are left out.
    """
    ours = Path(tidegate.__file__).resolve().parent.parent
    given = [Path(entry).resolve() for entry in sys.path if Path(entry).is_dir()]
    brought = {"site-packages", "dist-packages", "lib-dynload"}
    library = Path(sysconfig.get_path("stdlib")).resolve()
    own = [path for path in given if path != library and not brought & set(path.parts)]
    return [str(path) for path in dict.fromkeys([ours, *own])]


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
