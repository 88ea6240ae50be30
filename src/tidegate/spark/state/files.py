"""Files of the checkpoint, on any filesystem that `pyarrow.fs` can reach by URL.

A file becomes visible only with its whole content: a local file is written under a temporary name
and renamed, and object stores publish an object when its upload ends.
"""

import functools
import json
import os
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tidegate.errors import TidegateError

_PUBLISH_AT_ONCE = {"s3", "gcs", "abfs"}
"""Filesystems on which an object appears when its upload ends."""


class Missing(TidegateError):
    """A file of the checkpoint is missing."""


def missing(path: str) -> Missing:
    """The error for a missing file, with its path."""
    return Missing(f"the file {path} is missing; restore it from a copy of the checkpoint")


@functools.lru_cache(maxsize=64)
def _filesystem(url: str) -> tuple[fs.FileSystem, str]:
    if "://" in url:
        filesystem, base = fs.FileSystem.from_uri(url)
    else:
        filesystem, base = fs.LocalFileSystem(), str(Path(url).absolute())
    return filesystem, base


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
        """The location as Spark expects it: the URL, or the path of a local directory."""
        return self.path("") if self.local else self.url.partition("?")[0]

    @property
    def local(self) -> bool:
        """Whether this is a directory on this machine."""
        return isinstance(_filesystem(self.url)[0], fs.LocalFileSystem)

    @property
    def _fs(self) -> fs.FileSystem:
        return _filesystem(self.url)[0]

    def make(self) -> None:
        """Create the directory if the filesystem has directories."""
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
        for info in self._fs.get_file_info(selector):
            name = info.base_name
            batch = name.removeprefix(".")[:10]
            old = info.is_file and batch.isdigit() and int(batch) <= until_batch
            if old and name not in live:
                self.remove(name)

    def sizes(self) -> dict[str, int]:
        """The size in bytes of each file in this directory."""
        selector = fs.FileSelector(self.path(""), allow_not_found=True)
        return {i.base_name: i.size for i in self._fs.get_file_info(selector) if i.is_file}

    def directories(self) -> list[str]:
        """The names of the subdirectories, sorted."""
        selector = fs.FileSelector(self.path(""), allow_not_found=True)
        found = self._fs.get_file_info(selector)
        return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)

    def read(self, name: str) -> bytes:
        """Read a whole file; the error for a missing one names it."""
        try:
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
        target = self.path(name)
        if not self.local:
            with self._published(name) as path, self._fs.open_output_stream(path) as stream:
                stream.write(content)
            return
        aside = self._aside(name)
        with Path(aside).open("wb") as stream:
            stream.write(content)
        Path(aside).replace(target)

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
            Path(aside).write_bytes(local_file.read_bytes())
        Path(aside).replace(target)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        try:
            self._fs.delete_file(self.path(name))
        except FileNotFoundError:
            return

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
        self.write(name, json.dumps(document, separators=(",", ":")).encode())

    @contextmanager
    def _published(self, name: str) -> Iterator[str]:
        """The path to write to so that the file appears only with its whole content.

        Object stores publish at the end of an upload. Filesystems such as HDFS show a growing file,
        so there the file is written under a temporary name and renamed.
        """
        target = self.path(name)
        if self._fs.type_name in _PUBLISH_AT_ONCE:
            yield target
            return
        aside = self._aside(name)
        yield aside
        try:
            self._fs.move(aside, target)
        except OSError:
            # HDFS does not rename onto an existing file. Only a replayed batch writes a file
            # again, with the same content: after a crash in between, that batch is replayed again.
            if not self.exists(name):
                raise
            self.remove(name)
            self._fs.move(aside, target)

    def _aside(self, name: str) -> str:
        head, _, tail = self.path(name).rpartition("/")
        return f"{head}/.{tail}.{uuid.uuid4().hex[:8]}"
