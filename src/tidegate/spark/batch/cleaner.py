"""Cleans up behind the batches: in a thread of its own, and never a reason for a batch to fail.

What is not removed costs only space. The next cleaning finds it again.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_log = logging.getLogger("tidegate.cleaner")


class Cleaner:
    """Runs cleaning jobs in the background, by name.

    A job covers what earlier ones of its name would have removed, so one that has not begun when
    the next comes is dropped.
    """

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._jobs: dict[str, Callable[[], None]] = {}
        self._change = threading.Condition()
        self._closed = False
        self._holds = 0
        self._works = False
        self._failing = False
        self._thread = threading.Thread(target=self._work, name="tidegate-cleaner", daemon=True)
        self._thread.start()

    def later(self, name: str, job: Callable[[], None]) -> None:
        """Run this job soon; it replaces a job of this name that has not begun."""
        with self._change:
            self._jobs[name] = job
            self._change.notify_all()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within this, no job runs. One that runs already is waited for."""
        with self._change:
            self._holds += 1
            self._change.wait_for(lambda: not self._works)
        try:
            yield
        finally:
            with self._change:
                self._holds -= 1
                self._change.notify_all()

    def close(self, patience_s: float) -> None:
        """Finish the jobs that are there, and end the thread; return after `patience_s` anyway."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join(patience_s)

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: (self._jobs and not self._holds) or self._closed)
                if not self._jobs or self._holds:
                    return
                job = self._jobs.pop(next(iter(self._jobs)))
                self._works = True
            try:
                job()
            except Exception as error:  # whatever it is, no batch depends on it
                if not self._failing:
                    _log.warning(
                        "pipeline '%s': old files could not be removed (%s); that is tried again "
                        "after later batches",
                        self._pipeline,
                        error,
                    )
                self._failing = True
            else:
                self._failing = False
            finally:
                with self._change:
                    self._works = False
                    self._change.notify_all()
