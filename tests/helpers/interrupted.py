"""A driver that is paused before one of its operations, replaced meanwhile, and killed later."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyarrow import fs

from tests.unit.spark.state.test_other_filesystems import Remote


class Killed(BaseException):
    """The driver ends here."""


class Interrupted(Remote):
    """Lets a successor go on before an operation, and kills the driver some operations later.

    A rename does not replace a file here.
    """

    def __init__(self, at: int, more: int, successor: Callable[[], None]) -> None:
        super().__init__()
        self.at, self.end, self.successor = at, at + more, successor
        self.done = 0
        self.watching = False
        self.behind = fs.PyFileSystem(self)

    def by_url(self, url: str) -> tuple[fs.FileSystem, str]:
        """In place of `spark.state.files._filesystem`."""
        return self.behind, url.removeprefix("slow://")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Within this, the operations are those of the driver that is paused and killed."""
        self.watching = True
        with suppress(Killed):
            yield
        self.watching = False

    def _reached(self) -> None:
        if not self.watching:
            return
        if self.done == self.at:
            self.watching = False
            self.successor()
            self.watching = True
        if self.done == self.end:
            raise Killed
        self.done += 1

    def get_file_info(self, paths):
        self._reached()
        return super().get_file_info(paths)

    def get_file_info_selector(self, selector):
        self._reached()
        return super().get_file_info_selector(selector)

    def move(self, src, dest):
        self._reached()
        super().move(src, dest)

    def delete_file(self, path):
        self._reached()
        super().delete_file(path)

    def open_input_file(self, path):
        self._reached()
        return super().open_input_file(path)

    def open_output_stream(self, path, metadata):
        self._reached()
        return super().open_output_stream(path, metadata)
