"""HDFS as a filesystem of pyarrow, on top of WebHDFS."""

import functools
import io
import tempfile
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tidegate.spark.hdfs.address import HdfsAddress, is_hdfs
from tidegate.spark.hdfs.web import HdfsUnavailable, WebHdfs

_AT_ONCE_BYTES = 8 << 20
"""A file up to this size is written from memory."""
_AHEAD_BYTES = 64 << 10
"""A read that is shorter fetches this much: the next ones are likely to follow it."""
_SMALL_BYTES = 1 << 20
"""A file up to this size whose end was asked for is fetched whole: it is read from its end."""
_KINDS = {"FILE": fs.FileType.File, "DIRECTORY": fs.FileType.Directory}


@functools.lru_cache(maxsize=64)
def hdfs_of(url: str) -> "HdfsFiles | None":
    """The files of the HDFS that a URL names; None if it names another filesystem."""
    return HdfsFiles(HdfsAddress.of(url)) if is_hdfs(url) else None


class HdfsFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """The files of one HDFS behind pyarrow's interface.

    `move` refuses a target that exists, as HDFS does; `replace` takes its place.
    """

    def __init__(self, address: HdfsAddress) -> None:
        self.address = address
        self._web = WebHdfs(address)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HdfsFiles) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def get_type_name(self) -> str:
        """The name that pyarrow shows."""
        return "hdfs"

    def normalize_path(self, path: str) -> str:
        """The path without a slash at the end."""
        return path if path == "/" else path.rstrip("/")

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """What there is at these paths."""
        return [_info(self.normalize_path(path), self._web.status(_named(path))) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """What there is in a directory."""
        base = _named(selector.base_dir)
        try:
            entries = self._web.entries(base)
        except FileNotFoundError:
            if selector.allow_not_found:
                return []
            raise
        found = []
        for entry in entries:
            path = f"{base.rstrip('/')}/{entry['pathSuffix']}"
            found.append(_info(path, entry))
            if selector.recursive and entry["type"] == "DIRECTORY":
                below = fs.FileSelector(path, allow_not_found=True, recursive=True)
                found += self.get_file_info_selector(below)
        return found

    def create_dir(self, path: str, recursive: bool) -> None:
        """Create a directory; those above it are always created."""
        self._web.make_directory(_named(path))

    def delete_dir(self, path: str) -> None:
        """Remove a directory with all that is in it."""
        if not self._web.delete(_named(path), recursive=True):
            raise FileNotFoundError(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Remove all that is in a directory."""
        chosen = fs.FileSelector(path, allow_not_found=missing_dir_ok)
        for info in self.get_file_info_selector(chosen):
            self._web.delete(info.path, recursive=True)

    def delete_root_dir_contents(self) -> None:
        """Refuse: nothing of ours is the whole filesystem."""
        raise HdfsUnavailable("the root of HDFS is not emptied; name a directory")

    def delete_file(self, path: str) -> None:
        """Remove a file; FileNotFoundError if there is none."""
        if not self._web.delete(_named(path)):
            raise FileNotFoundError(path)

    def move(self, src: str, dest: str) -> None:
        """Rename a file; FileExistsError if there is one of that name."""
        if self._web.rename(_named(src), _named(dest)):
            return
        if self._web.status(_named(dest)) is not None:
            raise FileExistsError(dest)
        raise FileNotFoundError(src)

    def replace(self, source: str, target: str) -> None:
        """Rename a file in the place of one that may exist, in one step."""
        self._web.replace(_named(source), _named(target))

    def copy_file(self, src: str, dest: str) -> None:
        """Copy a file through this process."""
        with self.open_input_stream(src) as source, self.open_output_stream(dest, {}) as target:
            while block := source.read(1 << 22):
                target.write(block)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """Open a file for reading."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Open a file for random access. The first read asks for it, and may find none."""
        return pa.PythonFile(_Parts(self._web, _named(path)), mode="r")

    def content(self, path: str) -> bytes:
        """A whole file, without asking for its size first."""
        return self._web.read(_named(path))

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        """Write a file, which HDFS gets when the stream is closed."""
        return pa.PythonFile(_Upload(self._web, _named(path)), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        """Refuse: files of a checkpoint are written once."""
        raise HdfsUnavailable(f"files are not appended to: {path}")


class _Upload(tempfile.SpooledTemporaryFile[bytes]):
    """Keeps what is written until it is complete, in a temporary file if it is large."""

    def __init__(self, web: WebHdfs, path: str) -> None:
        super().__init__(max_size=_AT_ONCE_BYTES)
        self._web, self._path = web, path

    def close(self) -> None:
        """Send it. A second call does nothing."""
        if self.closed:
            return
        try:
            self._web.write(self._path, self, self.tell())
        finally:
            super().close()


class _Parts(io.RawIOBase):
    """A file of which only what is read is fetched: one request for each read, however long."""

    def __init__(self, web: WebHdfs, path: str) -> None:
        self._web, self._path = web, path
        self._at = 0
        self._size: int | None = None
        self._ahead, self._ahead_from = b"", 0
        """A little that was fetched beyond a short read, and where it begins."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            offset += self._length()
        elif whence == io.SEEK_CUR:
            offset += self._at
        self._at = offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            content = self._web.read(self._path, self._at)
        else:
            known = self._ahead_of(size)
            content = self._web.read(self._path, self._at, size) if known is None else known
        self._at += len(content)
        return content

    def _ahead_of(self, size: int) -> bytes | None:
        """The next bytes, if they were fetched before or are few; else None."""
        begin = self._at - self._ahead_from
        if not 0 <= begin <= begin + size <= len(self._ahead):
            small = self._size is not None and self._size <= _SMALL_BYTES
            if not small and size >= _AHEAD_BYTES:
                return None
            self._ahead_from = 0 if small else self._at
            length = _SMALL_BYTES if small else _AHEAD_BYTES
            self._ahead = self._web.read(self._path, self._ahead_from, length)
            begin = self._at - self._ahead_from
        return self._ahead[begin : begin + size]

    def _length(self) -> int:
        if self._size is None:
            status = self._web.status(self._path)
            if status is None:
                raise FileNotFoundError(self._path)
            self._size = int(status["length"])
        return self._size


def _named(path: str) -> str:
    """The path as WebHDFS takes it, which is picky about slashes."""
    return "/" + path.strip("/")


def _info(path: str, status: dict[str, Any] | None) -> fs.FileInfo:
    if status is None:
        return fs.FileInfo(path, fs.FileType.NotFound)
    kind = _KINDS.get(status["type"], fs.FileType.Unknown)
    size = int(status["length"]) if kind == fs.FileType.File else None
    changed_s = status["modificationTime"] / 1e3
    return fs.FileInfo(path, kind, size=size, mtime=changed_s)
