"""A filesystem in memory that fails in every way that real ones do, when the world says so."""

import errno
import io
from collections.abc import Callable

import pyarrow as pa
from pyarrow import fs

from tests.faults.turns import Killed, Turns

INJECTED = "injected fault"


class Disk(fs.FileSystemHandler):
    """Files in memory behind pyarrow's interface.

    `manner` is "s3" (an object appears when its upload ends and replaces what was there, unless it
    was put under a condition; see `Objects`) or "hdfs" (a file grows before everybody's eyes, and a
    rename does not replace one).
    """

    def __init__(
        self, turns: Turns, manner: str, fault: Callable[[str, str], str | None], trace: list[str]
    ) -> None:
        self.turns, self.manner, self.fault, self.trace = turns, manner, fault, trace
        self.files: dict[str, bytes] = {}
        self.made_at: dict[str, int] = {}
        """When each file was made: a listing that lags behind leaves out the newest."""

    def get_type_name(self):
        return self.manner

    def normalize_path(self, path):
        return path

    def _act(self, what: str, path: str, effect: Callable[[], object]):
        """One operation: others may go on before it, and it may fail before or after its effect."""
        actor = self.turns.current
        if actor is not None and actor.killed:
            raise Killed
        kind = self.fault(what, path)
        if kind == "wait":
            self.turns.give_way()
        if kind == "before":
            self._note(what, path, "fails before")
            raise OSError(errno.EIO, INJECTED, path)
        if kind == "full":
            self._note(what, path, "finds the disk full")
            raise OSError(errno.ENOSPC, INJECTED, path)
        result = effect()
        self._note(what, path, "")
        if kind == "after":
            self._note(what, path, "fails after")
            raise OSError(errno.EIO, INJECTED, path)
        return result

    def _note(self, what: str, path: str, how: str) -> None:
        actor = self.turns.current
        name = "world" if actor is None else actor.name
        self.trace.append(f"{self.turns.now:5d} {name:12s} {what:6s} {path} {how}".rstrip())

    def get_file_info(self, paths):
        return [self._act("look", path, lambda p=path: self._info(p.rstrip("/"))) for path in paths]

    def _info(self, path: str) -> fs.FileInfo:
        if path in self.files:
            return fs.FileInfo(path, fs.FileType.File, size=len(self.files[path]))
        return fs.FileInfo(path, fs.FileType.NotFound)

    def get_file_info_selector(self, selector):
        base = selector.base_dir.rstrip("/") + "/"
        kind = self.fault("list", base)
        if kind == "wait":
            self.turns.give_way()
        if kind in ("before", "after"):
            self._note("list", base, "fails")
            raise OSError(errno.EIO, INJECTED, base)
        names = [n for n in self.files if n.startswith(base) and "/" not in n[len(base) :]]
        if kind == "stale":
            names = sorted(names, key=lambda name: self.made_at[name])[: max(0, len(names) - 2)]
            self._note("list", base, "lags behind")
        else:
            self._note("list", base, "")
        folders = {n[len(base) :].split("/")[0] for n in self.files if n.startswith(base)}
        below = [f"{base}{folder}" for folder in sorted(folders) if f"{base}{folder}" not in names]
        made = [
            fs.FileInfo(path, fs.FileType.Directory) for path in below if path not in self.files
        ]
        return [*(self._info(name) for name in names), *made]

    def create_dir(self, path, recursive):
        return None

    def _publish(self, path: str, content: bytes) -> None:
        self.files[path] = content
        self.made_at.setdefault(path, self.turns.now)

    def move(self, src, dest):
        def effect() -> None:
            if self.manner == "hdfs" and dest in self.files:
                raise OSError(errno.EEXIST, f"{dest} exists")
            if src not in self.files:
                raise FileNotFoundError(src)
            self._publish(dest, self.files.pop(src))

        self._act("move", dest, effect)

    def delete_file(self, path):
        def effect() -> None:
            if path not in self.files:
                raise FileNotFoundError(path)
            del self.files[path]

        self._act("delete", path, effect)

    def open_input_file(self, path):
        def effect() -> pa.NativeFile:
            if path not in self.files:
                raise FileNotFoundError(path)
            return pa.BufferReader(self.files[path])

        return self._act("read", path, effect)

    open_input_stream = open_input_file

    def open_output_stream(self, path, metadata):
        disk = self
        if self.manner == "hdfs":
            self._publish(path, b"")

        owner = self.turns.current

        class Upload(io.BytesIO):
            def write(self, data):
                if disk.manner == "hdfs":
                    disk.files[path] = self.getvalue()
                return super().write(data)

            def close(self):
                if self.closed:
                    return
                content = self.getvalue()
                super().close()
                if disk.turns.current is not owner:
                    return  # what a killed process left is collected by somebody else
                disk._act("write", path, lambda: disk._publish(path, content))

        return pa.PythonFile(Upload(), mode="w")

    def unused(self, *arguments):
        raise AssertionError("the protocol does not do this")

    copy_file = delete_dir = delete_dir_contents = delete_root_dir_contents = unused
    open_append_stream = unused


class Objects:
    """The puts under a condition of a disk with S3's manners, as `spark.s3.objects` has them."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def create(self, path: str, content: bytes) -> bool:
        def effect() -> bool:
            if path not in self.disk.files:
                self.disk._publish(path, content)
            return self.disk.files[path] == content

        return self.disk._act("write", path, effect)

    def remove(self, path: str) -> None:
        self.disk._act("delete", path, lambda: self.disk.files.pop(path, None))
