"""Let a pipeline run for some seconds, or for some batches."""

import time

from tidegate.errors import TidegateError
from tidegate.spark.run import Run

_LOOK_EVERY_S = 0.2


def run_for(run: Run, seconds: float) -> None:
    """Let a pipeline run for some seconds after its first results; starting up does not count."""
    until: float | None = None
    while until is None or time.monotonic() < until:
        if run.awaitTermination(_LOOK_EVERY_S):
            return
        if run.loop is not None and run.loop.failure is not None:
            raise TidegateError(f"the control loop failed: {run.loop.failure}")
        if until is None and run.results():
            until = time.monotonic() + seconds


def run_batches(run: Run, batches: int, patience_s: float) -> None:
    """Let a pipeline run some batches, for at most `patience_s`, then stop it."""
    try:
        until = time.monotonic() + patience_s
        while len(run.results()) < batches and time.monotonic() < until:
            if run.awaitTermination(_LOOK_EVERY_S):
                break
    finally:
        run.stop()
