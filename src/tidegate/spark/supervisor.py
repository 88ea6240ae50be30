"""The thread of a run that watches its queries and ends all of them when one ends.

A pipeline runs as a whole or not at all: rows that one segment hands over are only processed if the
next segment runs. The thread asks Spark four times a second whether each query is active. It does
not use a listener of Spark's: those events come through a queue that drops events when it is full,
and a listener would have to decode every progress report as well.

The same thread stops the run, whoever asked for it. So any number of threads can ask at the same
time, each of them waits as long as it likes, and Ctrl-C interrupts no conversation with Spark.
"""

import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.control_failure import ControlFailure
from tidegate.errors import TidegateError
from tidegate.spark.batch.failure import RunFailed, failure_of
from tidegate.spark.batch.segment import SegmentRun, Stopping
from tidegate.spark.job import Job

log = logging.getLogger("tidegate")

_LOOK_EVERY_S = 0.25
_COMMIT_PATIENCE_S = 5.0


class Loop(Protocol):
    """The control loop of a run, as the run sees it."""

    failure: BaseException | None
    """The error that ended the loop early, if any."""
    control_failure: ControlFailure | None
    """The failure that control has not recovered from yet; None while it works."""
    page: str | None
    """The address of its live page, if it has one."""

    @property
    def ticks_here(self) -> bool:
        """Whether the calling thread is the one that ticks."""
        ...

    def change_settings(self, options: Mapping[str, Any]) -> None:
        """Change settings from the next tick on."""
        ...

    def stop(self) -> None:
        """Stop ticking."""
        ...

    def leave(self) -> None:
        """Give the run's cores back, because the run has ended."""
        ...


class Supervisor:
    """Watches the queries of one run, stops them together, and keeps the failure that ended it."""

    def __init__(
        self,
        name: str,
        segments: Mapping[str, SegmentRun],
        spark_is_up: Callable[[], bool] = lambda: True,
        clean_up: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self.loop: Loop | None = None
        self.failure: RunFailed | None = None
        """Why the run ended by itself; None while it runs and after a clean stop."""
        self.job: Job | None = None
        """Set if the run ends by itself, when it has processed what its sources had."""
        self.heard = False
        """Whether a call has raised the failure, so that somebody knows of it."""
        self._segments = segments
        self._queries: dict[str, StreamingQuery] = {}
        self._spark_is_up = spark_is_up
        self._clean_up = clean_up
        self._done = False
        self._asked = threading.Event()
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._doing: Callable[[], str] = lambda: "it has not begun to stop"

    @property
    def queries(self) -> dict[str, StreamingQuery]:
        """The query of each segment that has been started."""
        return dict(self._queries)

    @property
    def ended(self) -> bool:
        """Whether everything that the run had started is stopped."""
        return self._ended.is_set()

    @property
    def unheard(self) -> RunFailed | None:
        """The failure, if no call has raised it yet."""
        return None if self.heard else self.failure

    def add(self, segment: str, query: StreamingQuery) -> None:
        """Take charge of a query. All of them are added before `watch`."""
        self._queries[segment] = query

    def watch(self) -> None:
        """Start the thread, unless it runs already."""
        with self._guard:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._supervise, name="tidegate-run", daemon=True
                )
                self._thread.start()

    def ask(self) -> None:
        """Ask for a stop at the next batch boundary, without waiting for it."""
        self._asked.set()
        self.watch()

    def abort(self, error: TidegateError) -> None:
        """End the run as failed, without waiting for its batches."""
        self._failed(RunFailed(self.name, str(error), error))
        for segment in self._segments.values():
            segment.stopping = True
        self.ask()
        for query in self.queries.values():
            self._try(query.stop)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until everything is stopped; False if that takes longer than the timeout."""
        return self._ended.wait(timeout_s)

    def hanging(self) -> str:
        """What the stop waits for at this moment."""
        return self._doing()

    def _supervise(self) -> None:
        try:
            while not self._asked.wait(_LOOK_EVERY_S):
                if self._a_query_has_ended():
                    break
            self._end()
        except Exception as error:  # a thread of ours prints no traceback; the run raises this
            self._failed(RunFailed(self.name, f"it could not be stopped: {error!r}", error))
        finally:
            self._ended.set()

    def _a_query_has_ended(self) -> bool:
        try:
            ended = [name for name, query in self._queries.items() if not query.isActive]
            return bool(ended) and (self.job is None or self._job_is_over(self.job, ended))
        except Exception as error:
            if self._spark_is_up():
                what = f"Spark does not answer any more ({type(error).__name__}: {error})"
                again = "start Spark and the pipeline again; an unfinished batch is repeated"
                self._failed(RunFailed(self.name, f"{what}; {again}", error))
            return True

    def _job_is_over(self, job: Job, ended: list[str]) -> bool:
        """Whether a job is done, or cannot go on."""
        if job.broken(ended) or any(self._has_failed(name) for name in ended):
            return True
        self._done = job.done(ended)
        return self._done

    def _has_failed(self, name: str) -> bool:
        failed = self._segments[name].failure is not None
        return failed or self._queries[name].exception() is not None

    def _end(self) -> None:
        """Stop everything at a batch boundary. What fails here does not keep the rest running."""
        self._note_failures()
        self._note_a_stop_from_outside()
        for segment in self._segments.values():
            segment.stopping = True
        if self.loop is not None:
            self._doing = lambda: "the control loop has not finished its last tick"
            self._try(self.loop.stop)
        for name in self._queries:
            self._try(lambda name=name: self._stop_query(name))  # type: ignore[misc]
        self._note_failures()
        for segment in self._segments.values():
            self._try(segment.anchors.release)
        self._doing = lambda: "its cores and its cache have not been released"
        if self.loop is not None:
            self._try(self.loop.leave)
        self._try(self._clean_up)

    def _stop_query(self, name: str) -> None:
        segment, query = self._segments[name], self._queries[name]
        self._doing = lambda: _busy_with(segment)
        with segment.busy:
            pass
        self._doing = lambda: f"Spark has not ended the query of segment '{name}'"
        self._await_commit(segment, query)
        query.stop()

    def _await_commit(self, segment: SegmentRun, query: StreamingQuery) -> None:
        """Wait a moment for Spark to log the last batch, so that a restart does not repeat it."""
        until = time.monotonic() + _COMMIT_PATIENCE_S
        while segment.results and query.isActive and time.monotonic() < until:
            progress = query.lastProgress
            if progress is not None and progress["batchId"] >= segment.results[-1].plan.batch_id:
                return
            time.sleep(0.01)

    def _note_failures(self) -> None:
        """Keep the first failure of a segment and log it; one that was told to stop has none."""
        for name, segment in self._segments.items():
            if self.failure is not None or name not in self._queries:
                continue
            if not isinstance(segment.failure, Stopping):
                self._try(lambda name=name: self._note_failure(name))  # type: ignore[misc]

    def _note_failure(self, name: str) -> None:
        segment = self._segments[name]
        if not self._spark_is_up():
            return  # whatever failed did so because Spark was stopped
        found = failure_of(name, segment.failure, self._queries[name].exception())
        if found is not None:
            self._failed(RunFailed(self.name, *found))

    def _failed(self, failure: RunFailed) -> None:
        if self.failure is None:
            self.failure = failure
            log.error("%s", failure)
            log.debug("pipeline '%s': the original error", self.name, exc_info=failure.original)

    def _note_a_stop_from_outside(self) -> None:
        if self._asked.is_set() or self.failure is not None:
            return
        if self._done:
            log.info("pipeline '%s' has processed all that its sources had", self.name)
            return
        if not self._spark_is_up():
            log.warning(
                "Spark was stopped while pipeline '%s' ran; an unfinished batch is repeated at the"
                " next start",
                self.name,
            )
            return
        log.warning(
            "a query of pipeline '%s' was stopped from outside, so the pipeline ends; use"
            " run.stop() to stop it as a whole",
            self.name,
        )

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception:
            log.debug("pipeline '%s': an error while it was stopped", self.name, exc_info=True)


def _not_of_a_batch(record: logging.LogRecord) -> bool:
    """Keep py4j from logging a traceback of 20 lines for an error that the run reports itself."""
    frames = traceback.walk_tb(record.exc_info[2]) if record.exc_info else ()
    return all(frame.f_code is not SegmentRun.__call__.__code__ for frame, _ in frames)


logging.getLogger("py4j.clientserver").addFilter(_not_of_a_batch)


def _busy_with(segment: SegmentRun) -> str:
    """The batch and the step that a segment is in, and since when."""
    name, steps = segment.segment.name, segment.steps
    if steps is None:
        return f"segment '{name}' is held between two batches"
    since = time.strftime("%H:%M:%S", time.gmtime(steps.started_s))
    last = next(reversed(steps.took_s), None)
    after = "its first step" if last is None else f"the step after '{last.value}'"
    return (
        f"segment '{name}' is in {after} of batch {steps.batch_id}, which began"
        f" {time.time() - steps.started_s:.0f} s ago ({since} UTC)"
    )
