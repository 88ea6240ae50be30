"""Whether the machines of a cluster see the same checkpoint as the driver.

A directory that is mounted here and is an empty local one there, or a bucket that executors have no
credentials for, would show in the middle of a batch. So tasks on all executors that are up read a
file that the driver has just written.
"""

import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.hdfs.address import is_hdfs, plain
from tidegate.spark.loop.negotiate import executors_up
from tidegate.spark.master import on_this_machine
from tidegate.spark.s3.address import is_s3
from tidegate.spark.state.files import Durable, Missing

_PATIENCE_S = 20.0
"""Executors may still be on their way; then nothing is known, and nothing is refused. It is not
long: in a full cluster every start would wait for it."""
_LOOK_EVERY_S = 0.1

_log = logging.getLogger("tidegate")


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What a task found in the place of a file that the driver wrote."""

    host: str
    problem: str = ""
    """What is wrong there; empty if it read the file."""


def look(place: Durable, name: str, expected: bytes) -> HostAnswer:
    """Read a file where this runs, and compare it with what the driver wrote."""
    host = socket.gethostname()
    try:
        found = place.read(name)
    except Missing:
        return HostAnswer(host, "the file is not there")
    except (OSError, TidegateError, pa.ArrowException) as error:
        return HostAnswer(host, (str(error).strip() or type(error).__name__).splitlines()[0])
    return HostAnswer(host, "" if found == expected else "another file is there")


def check_shared(session: SparkSession, place: Durable) -> None:
    """Refuse a checkpoint that some machine of the cluster does not share with the driver."""
    if on_this_machine(str(session.sparkContext.master)):
        return
    name, content = f".probe-{uuid.uuid4().hex[:12]}", uuid.uuid4().bytes
    place.make()
    place.write(name, content)
    try:
        looks = _on_all_executors(session, lambda: look(place, name, content))
    finally:
        place.remove(name)
    refuse_unshared(place, looks)


def refuse_unshared(place: Durable, looks: Iterable[HostAnswer]) -> None:
    """Raise if a machine could not read the file, and name the machines."""
    wrong = sorted({one.host: one.problem for one in looks if one.problem}.items())
    if not wrong:
        return
    hosts = ", ".join(host for host, _ in wrong)
    if is_s3(place.url):
        remedy = "give the executors credentials for it, and the driver's AWS_ENDPOINT_URL"
    elif is_hdfs(place.url):
        remedy = "let the executors reach the web servers of the NameNodes and of all DataNodes"
    else:
        remedy = "mount one directory on all machines, or give a URL such as s3://... or hdfs://..."
    raise AskedWrongly(
        f"the checkpoint {plain(place.url)} is not shared by all machines: {hosts} could not read "
        f"a file that the driver wrote ({wrong[0][1]}); {remedy}"
    )


def _on_all_executors(session: SparkSession, ask: Callable[[], HostAnswer]) -> list[HostAnswer]:
    """What tasks answer, one for each core that is up; nothing if they do not run in time."""
    context = session.sparkContext
    until_s = time.monotonic() + _PATIENCE_S
    while not executors_up(session) and time.monotonic() < until_s:
        time.sleep(_LOOK_EVERY_S)
    group = f"tidegate-{uuid.uuid4().hex}"
    answers: list[HostAnswer] = []

    def job() -> None:
        try:
            context.setJobGroup(group, "look at the checkpoint from all executors")
            tasks = context.defaultParallelism
            answers.extend(context.parallelize(range(tasks), tasks).map(lambda _: ask()).collect())
        except Exception as error:
            _log.debug("the checkpoint was not looked at from the executors: %s", error)

    thread = threading.Thread(target=job, name="tidegate-look", daemon=True)
    thread.start()
    thread.join(max(0.0, until_s - time.monotonic()))
    if thread.is_alive():
        context.cancelJobGroup(group)
        _log.warning(
            "no executor looked at the checkpoint within %.0f s, so it is not known whether all "
            "machines share it",
            _PATIENCE_S,
        )
    return answers
