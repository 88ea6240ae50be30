"""Calls what belongs to others, or to a disk, without failing because of it."""

from collections.abc import Callable

from tidegate.logs import PipelineLogger, reason


class Isolated:
    """A part of the loop that may fail by itself: a writer of records, or a watcher.

    Its first failure and its recovery are logged, and failures in between are only counted.
    """

    def __init__(self, what: str, log: PipelineLogger) -> None:
        self._what = what
        self._log = log
        self.failed = 0
        """How many calls in a row have failed."""

    def call(self, function: Callable[[], object]) -> None:
        """Call the function. An exception is logged, if it is the first one, and dropped."""
        try:
            function()
        except Exception as error:
            self.failed += 1
            if self.failed == 1:
                self._log.warning("%s failed and is tried again: %s", self._what, reason(error))
            return
        if self.failed:
            self._log.info("%s works again after %d failures", self._what, self.failed)
            self.failed = 0
