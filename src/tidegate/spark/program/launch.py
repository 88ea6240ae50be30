"""What must be set before a program starts its JVM: Java, master and settings.

PySpark hands the arguments in PYSPARK_SUBMIT_ARGS to spark-submit when it starts the JVM. What the
program itself sets comes after them and wins. Under spark-submit the JVM runs already.
"""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from tidegate.errors import AskedWrongly
from tidegate.spark.java import use_java
from tidegate.spark.master import Master, parse_master, require_answer
from tidegate.spark.program.hooks import uses_connect
from tidegate.spark.program.settings import ProgramSettings

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_SHELL = "pyspark-shell"


def under_spark_submit() -> bool:
    """Whether spark-submit started this process, so that its JVM and settings are there."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def prepare_launch(settings: ProgramSettings, directory: Path) -> None:
    """Prepare the environment in which the program starts Spark; `directory` outlives it."""
    if uses_connect({}):
        raise AskedWrongly(
            "SPARK_REMOTE or another variable of Spark Connect is set, whose driver is another"
            " process; Tidegate runs inside the driver, so unset it"
        )
    if under_spark_submit():
        if settings.master is not None or settings.conf:
            raise AskedWrongly(
                "spark-submit has started Spark already; give --master and --conf to spark-submit,"
                " before the path of Tidegate's script"
            )
        return
    use_java(directory)
    if settings.master is None and not settings.conf:
        return
    if settings.master is not None:
        master = parse_master(settings.master)
        require_answer(master)
        _prepare_place(master, directory)
    before = os.environ.get(SUBMIT_ARGUMENTS)
    os.environ[SUBMIT_ARGUMENTS] = submit_arguments(before, settings.master, settings.conf)


def submit_arguments(before: str | None, master: str | None, conf: Mapping[str, str]) -> str:
    """The arguments for spark-submit: those of the environment, then ours, which win."""
    kept = shlex.split(before) if before else [_SHELL]
    at = kept.index(_SHELL) if _SHELL in kept else len(kept)
    ours = [] if master is None else ["--master", master]
    for key, value in conf.items():
        ours += ["--conf", f"{key}={value}"]
    return shlex.join([*kept[:at], *ours, *kept[at:]])


def _prepare_place(master: Master, directory: Path) -> None:
    """On one machine: loopback, which always answers, and executors outside of the package."""
    if master.on_this_machine:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_WORKER_DIR", str(directory / "workers"))
