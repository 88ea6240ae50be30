"""What becomes of pipelines when the process ends.

A run that is still active is stopped at a batch boundary, before Spark is. A run that has failed
without any call raising its failure is reported once more, and the process exits with 120 instead
of 0. Python documents that code for an error in the cleanup at exit, and it is the only one that a
function can set at exit without `os._exit`, which would skip the cleanup of everybody else. A
program that has handled the failure, or that ends by an exception, keeps its own exit code.
"""

import atexit
import functools
import io
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.spark.supervisor import Supervisor

log = logging.getLogger("tidegate")

_PATIENCE_S = 30.0
"""How long the end of the process waits for a batch."""


_runs: "list[Supervisor]" = []


def look_after(run: "Supervisor") -> None:
    """Stop this run when the process ends, and report its failure if nobody has heard of it."""
    _register(os.getpid())
    _runs[:] = [one for one in _runs if not one.ended or one.unheard is not None]
    _runs.append(run)


def any_active() -> bool:
    """Whether a pipeline of this process is running."""
    return any(not run.ended for run in _runs)


@functools.cache
def _register(owner: int) -> None:
    atexit.register(_end, owner)


def _end(owner: int) -> None:
    """End all runs of this process; a forked child has none."""
    if os.getpid() != owner:
        return
    for run in _runs:
        run.ask()
    for run in _runs:
        if not run.wait(_PATIENCE_S):
            log.warning(
                "pipeline '%s' did not stop before the process ended: %s; the batch repeats at the"
                " next start",
                run.name,
                run.hanging(),
            )
    unheard = [run.unheard for run in _runs if run.unheard is not None]
    for failure in unheard:
        log.error("the process ends with a failed pipeline: %s", failure)
    if unheard and getattr(sys, "last_value", None) is None:
        sys.stdout = _FailsAtTheEnd(sys.stdout)
        sys.unraisablehook = functools.partial(_quietly, sys.unraisablehook)


class _CleanupFailed(Exception):
    """Tells Python that the cleanup at exit failed."""


class _FailsAtTheEnd(io.TextIOBase):
    """Standard output whose last flush fails, which makes the exit code 120."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def write(self, text: str) -> int:
        """Write to the real standard output."""
        written: int = self._real.write(text)
        return written

    def flush(self) -> None:
        """Flush the real standard output, then fail."""
        if self._real is not None:
            self._real.flush()
        raise _CleanupFailed


def _quietly(before: Any, unraisable: Any) -> None:
    """Print nothing about the flush that is meant to fail."""
    if unraisable.exc_type is not _CleanupFailed:
        before(unraisable)
