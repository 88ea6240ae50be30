"""Ctrl-C stops a pipeline between two batches and leaves one line on the terminal.

On Ctrl-C, PySpark cancels all jobs of the application before it raises `KeyboardInterrupt`. That
would make the batch that runs fail. While pipelines run, a handler of ours only raises
`KeyboardInterrupt`, so the batch can be finished and committed. The Java process ignores Ctrl-C,
and so do the Python workers that it starts.
"""

import logging
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

log = logging.getLogger("tidegate")

_CLEAN = "tidegate_stopped_cleanly"


def leave_batches_alone(any_active: Callable[[], bool]) -> None:
    """Replace PySpark's handler of Ctrl-C, which cancels all jobs, while pipelines are active.

    Another handler than PySpark's is somebody's choice and stays.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # Python sets handlers in the main thread only
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or not str(getattr(before, "__module__", "")).startswith("pyspark."):
        return

    def handle(number: int, frame: FrameType | None) -> Any:
        if any_active():
            raise KeyboardInterrupt
        return before(number, frame)

    signal.signal(signal.SIGINT, handle)


def stopped_by(interrupt: KeyboardInterrupt, pipeline: str, how_far: str) -> KeyboardInterrupt:
    """The interrupt to raise again after a pipeline was stopped; `how_far` says after which batch.

    If nobody catches it, Python prints one line instead of a traceback through our code.
    """
    message = f"pipeline '{pipeline}' was stopped by Ctrl-C, {how_far}; start it again to go on"
    log.info("%s", message)
    setattr(interrupt, _CLEAN, message)
    if sys.excepthook is not _print_one_line:
        global _hook
        _hook = sys.excepthook
        sys.excepthook = _print_one_line
    return interrupt


_hook: Callable[..., Any] = sys.excepthook


def _print_one_line(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    message = getattr(error, _CLEAN, None)
    if message is None:
        _hook(kind, error, trace)
    else:
        print(message, file=sys.stderr)
