"""The node's cache of state files: where a task finds the pieces that it needs.

A piece is looked for among those that the process has open, then in the node's directory, then in
the durable files. Bytes from a file are compared with the piece's checksum before they are used: a
damaged piece in the cache is fetched again, and a damaged durable one is an error that names it.
"""

import functools
import logging
import zlib
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from tidegate.errors import TidegateError
from tidegate.spark.state.cache_place import CachePlace
from tidegate.spark.state.files import Durable, missing
from tidegate.spark.state.layer import Layer, layer_of
from tidegate.spark.state.open_layers import Mark, OpenLayers
from tidegate.spark.state.packed_version import PackedVersion
from tidegate.spark.state.piece_bytes import (
    PieceBytes,
    aside_of,
    bytes_at,
    described,
    intact,
    mapped,
    record_batch,
    write_pieces,
    write_whole,
)
from tidegate.spark.state.version import StateFile, Version

_log = logging.getLogger("tidegate")
open_layers = OpenLayers()


@dataclass(frozen=True, slots=True)
class NodeCache:
    """The node's local directory of state files, a cache of the durable ones."""

    name: str
    """The directory, relative to the place if there is one. Empty: nothing is cached, and nothing
    stays open; pieces come from the durable files."""
    durable: Durable
    shards: int
    place: CachePlace | None = None
    """The private directory of the pipeline, which is resolved on the node."""
    earlier: tuple[pa.Schema, ...] = ()
    """The layouts that older files were written in, the oldest first (`state.evolution`)."""

    @property
    def directory(self) -> str:
        """The directory on this node; empty if there is none and the node has no room for one."""
        if self.place is None:
            return self.name
        try:
            return f"{self.place.resolve().directory}/{self.name}"
        except OSError as error:
            _no_room(self.name, str(error))
            return ""

    @property
    def shared(self) -> bool:
        """Whether all executors of the host use it, rather than this one alone."""
        if self.place is None:
            return Path(self.name).is_absolute()
        try:
            return self.place.resolve().shared
        except OSError:
            return False

    def path(self, name: str) -> Path:
        """The path of a whole file in the cache."""
        return Path(self.directory) / name

    def make(self) -> None:
        """Create the directory; without one, state is read from and written to the durable part."""
        try:
            if self.place is None:
                Path(self.directory).mkdir(parents=True, exist_ok=True)
                return
            directory = Path(self.place.resolve().directory) / self.name
            if not directory.is_dir():
                (Path(self.place.again().directory) / self.name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            _no_room(self.name, str(error))

    def layer(self, file: StateFile, index: int, schema: pa.Schema) -> tuple[Layer, bool]:
        """A piece, and whether it was read on this node rather than from the durable files."""
        directory = self.directory
        through: tuple[pa.Schema, ...] = ()
        if file.layout < len(self.earlier):
            through = (*self.earlier[file.layout + 1 :], schema)
            schema = self.earlier[file.layout]
        if not directory:
            content, is_mapped = self._durable_bytes(file, index)
            rows = _rows(file, index, content, schema)
            return replace(layer_of(rows, is_mapped), through=through), False
        mark = (directory, file.name, index)
        layer = open_layers.get(mark)
        if (
            layer is not None
        ):  # perhaps since before the last layout: the process is older than that
            return layer if layer.through == through else replace(layer, through=through), True
        table, is_mapped, own = self._cached(file, index, schema, mark), True, True
        if table is None:
            own = False
            table, is_mapped = self._fetched(file, index, schema)
            open_layers.note_checked(mark)
        layer = replace(layer_of(table, is_mapped), through=through)
        open_layers.put(mark, layer)
        return layer, own

    def write(self, name: str, batches: list[pa.RecordBatch]) -> tuple[int, list[PieceBytes]]:
        """Write a new state file on the node and publish it; return its size and its pieces.

        If the node's disk is full, or the directory has vanished, the file is written to the
        durable part alone.
        """
        directory = self.directory
        spans = self._written(self.path(name), batches) if directory else None
        if spans is None or not self._published(name):
            return self._write_through(name, batches)
        try:
            content = mapped(self.path(name))
        except OSError:  # the cache has vanished meanwhile, and takes nothing with it
            return self._write_through(name, batches)
        for index in range(len(spans)):
            open_layers.note_checked((directory, name, index))
        return content.size, described(content, spans)

    def _written(self, path: Path, batches: list[pa.RecordBatch]) -> list[tuple[int, int]] | None:
        """Where the pieces lie in the new file of the cache; None if it cannot be written."""
        aside = aside_of(path)
        try:
            with pa.OSFile(str(aside), "wb") as stream:
                spans = write_pieces(stream, batches)
            aside.replace(path)
        except OSError as error:
            _no_room(str(path.parent), error.strerror or str(error))
            _drop(aside)
            return None
        return spans

    def _published(self, name: str) -> bool:
        """Whether the file was published; False if it has vanished from the cache."""
        path = self.path(name)
        try:
            self.durable.adopt(path, name)
        except OSError:
            if path.exists():
                raise
            return False
        return True

    def _write_through(
        self, name: str, batches: list[pa.RecordBatch]
    ) -> tuple[int, list[PieceBytes]]:
        """Write a new state file to the durable part alone."""
        buffer = pa.BufferOutputStream()
        spans = write_pieces(buffer, batches)
        content = buffer.getvalue()
        self.durable.write(name, content)
        return content.size, described(content, spans)

    def _cached(
        self, file: StateFile, index: int, schema: pa.Schema, mark: Mark
    ) -> pa.RecordBatch | None:
        """A piece from the node; None if it is missing, or was damaged and is now dropped."""
        piece = file.pieces[index]
        whole, part = self.path(file.name), self.path(f"{file.name}.{index}")
        for path, is_part in ((whole, False), (part, True)):
            try:
                content = mapped(path)
                if piece.length is None:
                    return pa.ipc.open_file(content).get_batch(0 if is_part else index)
                if not is_part:
                    content = bytes_at(content, piece)
                if open_layers.was_checked(mark) or intact(content, piece):
                    open_layers.note_checked(mark)
                    return record_batch(content, schema)
            except FileNotFoundError:
                continue
            except (pa.ArrowInvalid, OSError):
                pass
            _log.warning("the cached state file %s is damaged; it is fetched again", path)
            _drop(path)
        return None

    def _fetched(
        self, file: StateFile, index: int, schema: pa.Schema
    ) -> tuple[pa.RecordBatch, bool]:
        """A piece from the durable file, cached for the next task; and whether it is mapped.

        Only its bytes are fetched. The piece is mapped from the cache, so that it does not stay on
        this process's heap and is shared with the node's other processes.
        """
        content, is_mapped = self._durable_bytes(file, index)
        alone = file.pieces[index].length is not None
        path = self.path(f"{file.name}.{index}" if alone else file.name)
        try:
            write_whole(path, content)
            content, is_mapped = mapped(path), True
        except OSError as error:
            _no_room(str(path.parent), error.strerror or str(error))
        return _rows(file, index, content, schema), is_mapped

    def _durable_bytes(self, file: StateFile, index: int) -> tuple[pa.Buffer, bool]:
        """The bytes of a piece in the durable file, checked, and whether they are mapped.

        Files of earlier versions of Tidegate have one checksum for the whole file; then these are
        the bytes of the whole file.
        """
        piece, path = file.pieces[index], self.durable.path(file.name)
        try:
            if self.durable.local:
                content = bytes_at(mapped(Path(path)), piece)
            else:
                with self.durable.open(file.name) as stream:
                    if piece.offset is None or piece.length is None:
                        content = stream.read_buffer()
                    else:
                        stream.seek(piece.offset)
                        content = stream.read_buffer(piece.length)
        except FileNotFoundError:
            raise missing(path) from None
        except (pa.ArrowInvalid, OSError) as error:
            if not self.durable.exists(file.name):  # removed while it was read
                raise missing(path) from None
            raise _unreadable(path, error) from None
        if piece.checksum is not None:
            right = intact(content, piece)
        else:
            right = file.checksum is None or zlib.crc32(content) == file.checksum
        if not right:
            raise _unreadable(path, "its checksum differs")
        return content, self.durable.local

    def forget(self, version: Version | PackedVersion, batch_id: int) -> None:
        """From time to time, close pieces that no version needs, and remove their files.

        Each process does so for itself, and not each task: on a node with many tasks, all of them
        would look at the files of all. Files of the last batches may not be named by a version yet,
        and stay.
        """
        directory = self.directory
        if open_layers.is_time(directory, batch_id):
            live = version.names
            open_layers.forget(directory, live, batch_id - 2)
            self.prune(live, batch_id - 2)

    def prune(self, live: AbstractSet[str], before_batch: int) -> None:
        """Remove files of old batches, whole or partial, that no committed version needs."""
        directory = self.directory
        try:
            paths = list(Path(directory).iterdir()) if directory else []
        except OSError:
            return  # it has vanished, and all its files with it
        for path in paths:
            name = path.name.removeprefix(".").split(".arrow")[0] + ".arrow"
            if name in live or not name[:10].isdigit() or int(name[:10]) >= before_batch:
                continue
            _drop(path)


def _rows(file: StateFile, index: int, content: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a piece from its bytes, or from those of a file of an earlier version."""
    if file.pieces[index].length is not None:
        return record_batch(content, schema)
    return pa.ipc.open_file(content).get_batch(index)


@functools.lru_cache(maxsize=64)
def _no_room(directory: str, why: str) -> None:
    """Say once in a process that the cache cannot be written to, and why."""
    _log.warning(
        "state cannot be cached in '%s' on this node (%s); it is read from and written to the "
        "checkpoint instead",
        directory,
        why,
    )


def _drop(path: Path) -> None:
    """Remove a file from the cache, if that is possible."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("the file %s of the cache could not be removed: %s", path, error)


def _unreadable(path: str, why: object) -> TidegateError:
    return TidegateError(
        f"the state file {path} cannot be read ({why}); nothing was overwritten; "
        "restore it from a copy of the checkpoint"
    )
