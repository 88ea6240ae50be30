"""Ends this process as Python would end it after the program: traceback, exit code, signal."""

import atexit
import os
import signal
import sys
from typing import NoReturn

from tidegate.spark.program.script import own_frames

FAILED = 1
INTERRUPTED = 128 + signal.SIGINT


class ProgramEnded(SystemExit):
    """The end of somebody's program: its exit code is not ours to explain."""


def end_of(error: BaseException) -> NoReturn:
    """End with what the program ended with; an error is shown as Python shows it."""
    if isinstance(error, SystemExit):
        raise ProgramEnded(error.code) from None
    _show(error)
    if isinstance(error, KeyboardInterrupt):
        # Shells look at how a process ended to learn of Ctrl-C, so Python ends itself by the
        # signal, after everybody's functions at exit. Ours was registered before theirs.
        _interrupted.append(True)
        raise ProgramEnded(INTERRUPTED) from None
    raise ProgramEnded(FAILED) from None


def prepare_end() -> None:
    """To be called before the program begins, so that this is the last function at exit."""
    atexit.register(_end_by_signal, os.getpid())


_interrupted: list[bool] = []


def _end_by_signal(owner: int) -> None:
    if not _interrupted or os.getpid() != owner:
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(owner, signal.SIGINT)


def _show(error: BaseException) -> None:
    """Show an error that nobody handled, by the program's own hook if it has set one."""
    error.__traceback__ = trace = own_frames(error.__traceback__)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.excepthook(type(error), error, trace)
