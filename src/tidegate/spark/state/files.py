"""Files of the checkpoint, on any filesystem that `pyarrow.fs` reaches by URL.

A name becomes visible only with its whole content: a local file is written aside and renamed, and
object stores publish an object when its upload ends.
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
    """A file that should be there is not."""


def missing(path: str) -> Missing:
    """The error that names it."""
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
    """A directory of the checkpoint. Holds its URL only, so that it travels to tasks."""

    url: str

    def below(self, name: str) -> "Durable":
        """A directory in this one."""
        if "://" not in self.url:
            return Durable(f"{self.url.rstrip('/')}/{name}")
        head, mark, query = self.url.partition("?")
        return Durable(f"{head.rstrip('/')}/{name}{mark}{query}")

    def path(self, name: str) -> str:
        """The path of a name, as its filesystem spells it."""
        return f"{_filesystem(self.url)[1].rstrip('/')}/{name}"

    @property
    def location(self) -> str:
        """As Spark wants to hear it: the URL, or the path of a local directory."""
        return self.path("") if self.local else self.url.partition("?")[0]

    @property
    def local(self) -> bool:
        """Whether this is a directory of this machine."""
        return isinstance(_filesystem(self.url)[0], fs.LocalFileSystem)

    @property
    def _fs(self) -> fs.FileSystem:
        return _filesystem(self.url)[0]

    def make(self) -> None:
        """Create the directory where the filesystem has directories."""
        self._fs.create_dir(self.path(""), recursive=True)

    def exists(self, name: str) -> bool:
        """Whether the name is there."""
        return bool(self._fs.get_file_info(self.path(name)).type != fs.FileType.NotFound)

    def names(self) -> list[str]:
        """The names of the files in this directory, sorted; none when it is not there."""
        selector = fs.FileSelector(self.path(""), allow_not_found=True)
        found = self._fs.get_file_info(selector)
        return sorted(i.base_name for i in found if i.is_file and not i.base_name.startswith("."))

    def sweep(self, live: Collection[str], until_batch: int) -> None:
        """Remove files of batches up to one that are not live, and what was left half written.

        Every file that is swept bears its batch in the first ten digits of its name.
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
        """The names of the directories in this one, sorted."""
        selector = fs.FileSelector(self.path(""), allow_not_found=True)
        found = self._fs.get_file_info(selector)
        return sorted(i.base_name for i in found if i.type == fs.FileType.Directory)

    def read(self, name: str) -> bytes:
        """The whole content; a missing file is named."""
        try:
            with self._fs.open_input_file(self.path(name)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            raise missing(self.path(name)) from None

    def open(self, name: str) -> pa.NativeFile:
        """The file for reading any part of it."""
        try:
            return self._fs.open_input_file(self.path(name))
        except FileNotFoundError:
            raise missing(self.path(name)) from None

    def write(self, name: str, content: bytes | pa.Buffer) -> None:
        """Publish the whole content under the name, at once."""
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
        """Publish a finished local file: by a link where both are on one disk, else by a copy."""
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
        """Remove a file; one that is already gone is fine."""
        try:
            self._fs.delete_file(self.path(name))
        except FileNotFoundError:
            return

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON document; one that cannot be read is named and left alone."""
        content = self.read(name)
        try:
            document = json.loads(content)
        except ValueError:
            raise TidegateError(
                f"the file {self.path(name)} is not readable JSON; nothing was changed; "
                "restore it from a copy of the checkpoint"
            ) from None
        if not isinstance(document, dict):
            raise TidegateError(f"the file {self.path(name)} does not hold a JSON object")
        return document

    def write_json(self, name: str, document: dict[str, Any]) -> None:
        """Publish a JSON document at once."""
        self.write(name, json.dumps(document, separators=(",", ":")).encode())

    @contextmanager
    def _published(self, name: str) -> Iterator[str]:
        """Where to write so that the name appears with its whole content.

        Object stores publish at the end of the upload; filesystems such as HDFS show a growing
        file, so there it is written aside and renamed.
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
            # HDFS does not rename onto a file that is there. Only a replayed batch writes a name
            # again, and then the same content: a crash in between repeats that batch once more.
            if not self.exists(name):
                raise
            self.remove(name)
            self._fs.move(aside, target)

    def _aside(self, name: str) -> str:
        head, _, tail = self.path(name).rpartition("/")
        return f"{head}/.{tail}.{uuid.uuid4().hex[:8]}"
