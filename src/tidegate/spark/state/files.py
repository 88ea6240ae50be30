"""Files of the checkpoint, on HDFS and on any filesystem that `pyarrow.fs` can reach by URL.

A file becomes visible only with its whole content: a local file is written under a temporary name
and renamed, and object stores publish an object when its upload ends. A file that only one of
several drivers may write is created exclusively: by a hard link, by HDFS's rename, or on S3 by a
put under a condition.
"""

import errno
import functools
import json
import os
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tidegate import columns
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.hdfs.filesystem import hdfs_of
from tidegate.spark.s3.address import ONE_REQUEST, Address, is_s3
from tidegate.spark.s3.objects import objects_of

_PUBLISH_AT_ONCE = {"s3", "gcs", "abfs"}
"""Filesystems on which an object appears when its upload ends."""
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Errors of filesystems without hard links."""
_AT_ONCE = 8


class Missing(TidegateError):
    """A file of the checkpoint is missing."""


def missing(path: str) -> Missing:
    """The error for a missing file, with its path."""
    return Missing(f"the file {path} is missing; restore it from a copy of the checkpoint")


@functools.lru_cache(maxsize=64)
def _filesystem(url: str) -> tuple[fs.FileSystem, str]:
    if is_s3(url):
        filesystem, base = _bucket(Address.of(url).pyarrow_url)
    elif (hdfs := hdfs_of(url)) is not None:
        filesystem, base = fs.PyFileSystem(hdfs), hdfs.address.path
    elif "://" in url:
        filesystem, base = fs.FileSystem.from_uri(url)
    else:
        filesystem, base = fs.LocalFileSystem(), str(Path(url).absolute())
    return filesystem, base


def _bucket(url: str) -> tuple[fs.FileSystem, str]:
    try:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(url)
    except pa.ArrowInvalid as error:
        if ONE_REQUEST not in str(error):
            raise
        found = fs.FileSystem.from_uri(url.replace(f"{ONE_REQUEST}=true", ""))
    return found


@dataclass(frozen=True, slots=True)
class Durable:
    """A directory of the checkpoint. It holds only its URL, so that it can be sent to tasks."""

    url: str

    def below(self, name: str) -> "Durable":
        """A subdirectory."""
        if "://" not in self.url:
            return Durable(f"{self.url.rstrip('/')}/{name}")
        head, mark, query = self.url.partition("?")
        return Durable(f"{head.rstrip('/')}/{name}{mark}{query}")

    def path(self, name: str) -> str:
        """The path of a file on its filesystem."""
        return f"{_filesystem(self.url)[1].rstrip('/')}/{name}"

    @property
    def location(self) -> str:
        """The location for Spark. Without a scheme, Spark would use its default filesystem."""
        if is_s3(self.url):
            return Address.of(self.url).spark_url
        return f"file://{self.path('')}" if self.local else self.url.partition("?")[0]

    @property
    def local(self) -> bool:
        """Whether this is a directory on this machine."""
        return isinstance(_filesystem(self.url)[0], fs.LocalFileSystem)

    @property
    def replaces(self) -> bool:
        """Whether a file can be replaced in one step, so that a crash leaves the old or the new."""
        return self.local or self._publishes_at_once or hdfs_of(self.url) is not None

    @property
    def _fs(self) -> fs.FileSystem:
        return _filesystem(self.url)[0]

    def make(self) -> None:
        """Create the directory if the filesystem has directories."""
        if objects_of(self.url) is not None:
            return  # S3 has none; pyarrow would put an empty object in the place of each
        self._fs.create_dir(self.path(""), recursive=True)

    def exists(self, name: str) -> bool:
        """Whether a file exists."""
        return bool(self._fs.get_file_info(self.path(name)).type != fs.FileType.NotFound)

    def names(self) -> list[str]:
        """The names of the files in this directory, sorted; none if it does not exist."""
        selector = fs.FileSelector(self.path(""), allow_not_found=True)
        found = self._fs.get_file_info(selector)
        return sorted(i.base_name for i in found if i.is_file and not i.base_name.startswith("."))

    def sweep(self, live: Collection[str], until_batch: int) -> None:
        """Remove files of batches up to `until_batch` that are not live, and temporary files.

        The first ten digits of a file's name are its batch.
        """
        selector = fs.FileSelector(self.path(""), allow_not_found=True)
        gone = []
        for info in self._fs.get_file_info(selector):
            name = info.base_name
            batch = name.removeprefix(".")[:10]
            old = info.is_file and batch.isdigit() and int(batch) <= until_batch
            if old and name not in live:
                gone.append(name)
        self.remove_all(gone)

    def sizes(self) -> dict[str, int]:
        """The size in bytes of each file in this directory."""
        selector = fs.FileSelector(self.path(""), allow_not_found=True)
        return {i.base_name: i.size for i in self._fs.get_file_info(selector) if i.is_file}

    def size(self, name: str) -> int | None:
        """The size of one file in bytes; None if it does not exist.

        This asks for the file itself, so it is right even where a listing lags behind.
        """
        info = self._fs.get_file_info(self.path(name))
        return info.size if info.is_file else None

    def directories(self) -> list[str]:
        """The names of the subdirectories, sorted."""
        selector = fs.FileSelector(self.path(""), allow_not_found=True)
        found = self._fs.get_file_info(selector)
        return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)

    def read(self, name: str) -> bytes:
        """Read a whole file; the error for a missing one names it."""
        try:
            if (hdfs := hdfs_of(self.url)) is not None:
                return hdfs.content(self.path(name))
            with self._fs.open_input_file(self.path(name)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            raise missing(self.path(name)) from None

    def open(self, name: str) -> pa.NativeFile:
        """Open a file for random access."""
        try:
            return self._fs.open_input_file(self.path(name))
        except FileNotFoundError:
            raise missing(self.path(name)) from None

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        """Write a file atomically."""
        with self.writing(name) as stream:
            stream.write(content)

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """A stream for the content of a file, which appears when the stream is closed.

        If the block raises, no file appears. Object stores may show the part that was written, so
        a long file needs a name that nothing refers to before it is complete.
        """
        if not self.local:
            with self._published(name) as path, self._fs.open_output_stream(path) as stream:
                yield stream
            return
        aside = Path(self._aside(name))
        try:
            with aside.open("wb") as stream:
                yield stream
            aside.replace(self.path(name))
        except BaseException:
            aside.unlink(missing_ok=True)
            raise

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it exists; returns whether this call wrote it.

        Of several processes that try at once, one succeeds. A local directory tells them apart by
        a hard link, HDFS by its rename, S3 by a put under a condition.
        """
        if (objects := objects_of(self.url)) is not None:
            return objects.create(self.path(name), content)
        if self._publishes_at_once:
            raise AskedWrongly(
                f"{self.url} is on an object store on which two drivers cannot be told apart; give "
                "a checkpoint on S3, on HDFS or on a file system that all machines mount"
            )
        if self.exists(name):
            return False
        if self.local:
            return self._linked(name, content)
        aside = self._aside(name)
        with self._fs.open_output_stream(aside) as stream:
            stream.write(content)
        try:
            self._fs.move(aside, self.path(name))
        except OSError:
            if not self.exists(name):
                raise
            with suppress(FileNotFoundError):  # swept as a leftover, if this driver was paused
                self._fs.delete_file(aside)
            return False
        return True

    def _linked(self, name: str, content: bytes) -> bool:
        aside = Path(self._aside(name))
        try:
            aside.write_bytes(content)
            os.link(aside, self.path(name))
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            aside.replace(self.path(name))
        finally:
            aside.unlink(missing_ok=True)
        return True

    def adopt(self, local_file: Path, name: str) -> None:
        """Publish a finished local file: by a hard link if possible, else by a copy."""
        target = self.path(name)
        if not self.local:
            with (
                self._published(name) as path,
                local_file.open("rb") as source,
                self._fs.open_output_stream(path) as stream,
            ):
                while block := source.read(1 << 22):
                    stream.write(block)
            return
        aside = self._aside(name)
        try:
            os.link(local_file, aside)
        except OSError:
            shutil.copyfile(local_file, aside)  # in blocks: the file may be large
        Path(aside).replace(target)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        if (objects := objects_of(self.url)) is not None:
            objects.remove(self.path(name))
            return
        try:
            self._fs.delete_file(self.path(name))
        except FileNotFoundError:
            return

    def remove_all(self, names: Iterable[str]) -> None:
        """Remove files, several at a time where each one is a request over the network."""
        names = list(names)
        if not self.local and len(names) > 1:
            # While the process exits, Python starts no more threads.
            with suppress(RuntimeError), ThreadPoolExecutor(min(_AT_ONCE, len(names))) as pool:
                list(pool.map(self.remove, names))
                return
        for name in names:
            self.remove(name)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a JSON object; the error for an unreadable file names it."""
        content = self.read(name)
        try:
            document = json.loads(content)
        except ValueError:
            raise TidegateError(
                f"the file {self.path(name)} is not readable JSON; nothing was changed; "
                "restore it from a copy of the checkpoint"
            ) from None
        if not isinstance(document, dict):
            raise TidegateError(
                f"the file {self.path(name)} is not a JSON object; nothing was changed; "
                "restore it from a copy of the checkpoint"
            )
        return document

    def write_json(self, name: str, document: dict[str, Any]) -> None:
        """Write a JSON object atomically."""
        self.write(name, columns.dumps(document).encode())

    @contextmanager
    def _published(self, name: str) -> Iterator[str]:
        """The path to write to so that the file appears only with its whole content.

        Object stores publish at the end of an upload. Filesystems such as HDFS show a growing file,
        so there the file is written under a temporary name and renamed.
        """
        target = self.path(name)
        if self._publishes_at_once:
            yield target
            return
        aside = self._aside(name)
        yield aside
        if (hdfs := hdfs_of(self.url)) is not None:
            hdfs.replace(aside, target)
            return
        try:
            self._fs.move(aside, target)
        except OSError:
            # Some do not rename onto an existing file. What no start may miss is created once, and
            # never written here again: another driver may be paused between these two steps.
            if not self.exists(name):
                raise
            self.remove(name)
            self._fs.move(aside, target)

    @property
    def _publishes_at_once(self) -> bool:
        return self._fs.type_name.removeprefix("py::") in _PUBLISH_AT_ONCE

    def _aside(self, name: str) -> str:
        head, _, tail = self.path(name).rpartition("/")
        return f"{head}/.{tail}.{uuid.uuid4().hex[:8]}"
