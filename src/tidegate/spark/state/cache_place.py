"""Where a node keeps its cache of state files: a private directory, chosen on the node itself.

Without `cache=` it lies below the first of Spark's local directories, which a Python worker reads
from its environment. Spark gives each executor a directory of its own there. The cache lies above
those, so that all executors of a host share it. It is open to its owner only. A directory of that
name that somebody else made is not used; each executor then has a cache inside its own directory.
"""

import functools
import logging
import os
import re
import shutil
import stat
import tempfile
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.errors import AskedWrongly

LOCAL_DIRECTORIES = "SPARK_LOCAL_DIRS"
"""Set by the JVM for its Python workers: the executor's own directories, separated by commas."""
_OF_ONE_EXECUTOR = re.compile(r"(blockmgr|executor|spark)-[0-9a-f-]{36}")
_REMOVAL_PATIENCE_S = 10.0

_log = logging.getLogger("tidegate")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A cache directory on this node, which exists and is private."""

    directory: str
    shared: bool
    """Whether all executors of the host use it."""


@dataclass(frozen=True, slots=True)
class CachePlace:
    """Where the nodes are to keep the state files of a pipeline. It is resolved on each node."""

    mark: str
    """The subdirectory of this pipeline."""
    asked: str | None = None
    """The directory that was asked for; a relative one gives each executor a cache of its own."""

    @property
    def shared(self) -> bool:
        """Whether the executors of a host are to share it."""
        return self.asked is None or Path(self.asked).is_absolute()

    def resolve(self) -> Resolved:
        """The directory on this node; it is created, or an OSError says why it cannot be."""
        return _resolved(self, os.environ.get(LOCAL_DIRECTORIES, ""))

    def again(self) -> Resolved:
        """Resolve it anew, because the directory has vanished."""
        _resolved.cache_clear()
        return self.resolve()

    def remove(self, local_directories: str | None = None) -> None:
        """Remove it on this node, as far as that is possible."""
        if local_directories is None:
            local_directories = os.environ.get(LOCAL_DIRECTORIES, "")
        try:
            directory = Path(_resolved(self, local_directories).directory)
            shutil.rmtree(directory, ignore_errors=True)
            if self.asked is None:
                directory.parent.rmdir()
        except OSError:
            return  # other pipelines use the parent, or there is no directory to remove
        finally:
            _resolved.cache_clear()


@functools.lru_cache(maxsize=64)
def _resolved(place: CachePlace, local_directories: str) -> Resolved:
    if place.asked is not None:
        base = Path(place.asked)
        base.mkdir(parents=True, exist_ok=True)
        try:
            return Resolved(str(own(base / place.mark)), place.shared)
        except PermissionError as error:
            raise AskedWrongly(
                f"the cache directory {base / place.mark} cannot be used: {error}; expected a "
                "directory that only you can write to; remove it, or give another cache="
            ) from None
    mine = [Path(path) for path in local_directories.split(",") if path]
    first = min(mine, key=lambda path: str(above_executors(path)), default=None)
    base = Path(tempfile.gettempdir()) if first is None else above_executors(first)
    try:
        folder = own(base / f"tidegate-{os.geteuid()}")
        return Resolved(str(own(folder / place.mark)), True)
    except OSError as error:
        if first is None:
            raise
        _log.warning("the cache is in %s, because %s", first, error)
    return Resolved(str(own(own(first / "tidegate") / place.mark)), False)


def above_executors(path: Path) -> Path:
    """The local directory that Spark was given, from the one that it made for an executor in it.

    A mounted directory is not left: on Kubernetes it is the executor's volume.
    """
    while _OF_ONE_EXECUTOR.fullmatch(path.name) and not path.is_mount():
        path = path.parent
    return path


def own(directory: Path) -> Path:
    """Create a directory that only its owner can enter; refuse one that somebody else prepared."""
    above = directory.parent.stat()
    anyone = above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX
    if anyone and above.st_uid != os.geteuid():
        raise PermissionError(f"anyone may replace directories in {directory.parent}")
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise PermissionError(f"{directory} is not a directory, but a link or a file") from None
        if found.st_uid != os.geteuid():
            raise PermissionError(f"{directory} belongs to another user") from None
        if found.st_mode & 0o077:
            directory.chmod(0o700)
    return directory


def check_cache(session: SparkSession, place: CachePlace) -> None:
    """Before a start, refuse a directory that was asked for and cannot be used on this machine.

    On a cluster the nodes' own disks decide, which the driver cannot see.
    """
    if place.asked is None or not session.sparkContext._jsc.sc().isLocal():
        return
    try:
        place.resolve()
    except OSError as error:
        raise AskedWrongly(
            f"the cache directory '{place.asked}' cannot be used ({error}); give another cache=, "
            "or leave it out"
        ) from None


def remove_caches(session: SparkSession, place: CachePlace) -> None:
    """Remove the caches of a pipeline that has ended from all nodes, as far as they can be reached.

    On a cluster a small job does it, one task per core. It is given up after some seconds.
    """
    context = session.sparkContext
    try:
        if context._jsc.sc().isLocal():
            place.remove(",".join(local_directories(session)))
            return
        tasks = context.defaultParallelism
    except Exception as error:  # Spark has been stopped
        _log.debug("the caches were not removed: %s", error)
        return
    group = f"tidegate-{uuid.uuid4().hex}"

    def job() -> None:
        try:
            context.setJobGroup(group, "remove the caches of state files")
            context.parallelize(range(tasks), tasks).foreachPartition(lambda _: place.remove())
        except Exception as error:
            _log.debug("the caches were not removed: %s", error)

    thread = threading.Thread(target=job, name="tidegate-caches", daemon=True)
    thread.start()
    thread.join(_REMOVAL_PATIENCE_S)
    if thread.is_alive():
        context.cancelJobGroup(group)


def local_directories(session: SparkSession) -> list[str]:
    """The driver's local directories; in local mode its Python workers have theirs in them."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    conf = session.sparkContext._jsc.sc().conf()
    return [str(path) for path in jvm.org.apache.spark.util.Utils.getConfiguredLocalDirs(conf)]
