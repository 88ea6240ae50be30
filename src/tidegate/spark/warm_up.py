"""Warms Spark up before a pipeline reads its first row.

On a cold JVM the first micro-batch takes many times as long as the next: Spark loads classes and
compiles code, and Python workers start and import modules. Rows that arrive meanwhile are late. So
before the queries start, a throw-away query of the same shape runs one micro-batch without rows
(`spark/sources/no_rows.py`), in which the operators are rehearsed (`spark/batch/rehearsal.py`). Its
checkpoint is a temporary directory. In an application that has been warmed up before, the operators
alone are rehearsed.

A warm-up cannot fail a start. It is given up after a while, and errors are logged at debug level.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tidegate.logs import PipelineLogger, reason
from tidegate.spark.batch.anchors import working_executors
from tidegate.spark.batch.rehearsal import Rehearsal
from tidegate.spark.batch.segment import with_our_settings
from tidegate.spark.python_workers import are_started
from tidegate.spark.sources.no_rows import NoRowsSource
from tidegate.units import format_duration

PATIENCE_S = 30.0
"""A warm-up that takes longer than this is given up."""
_LOOK_EVERY_S = 0.02
_warmed: set[str] = set()
"""The applications that have run a warm-up to its end."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What a warm-up did."""

    took_s: float
    executors: frozenset[str]
    """The executors that were up when it began, as Spark names them; empty in one process."""
    failed: str | None = None
    """Why it did not get to its end; None if it did."""

    @property
    def words(self) -> str:
        """What a person should know of it."""
        took = format_duration(round(self.took_s, 2))
        if self.failed is None:
            return f"warmed up for {took} before the first row"
        return f"the warm-up ended early after {took} ({self.failed}); first batches may be slow"


def warm_up(
    session: SparkSession, pipeline: str, rehearsals: Sequence[Rehearsal], cores: int
) -> WarmUp:
    """Run the operators of all segments on no rows, and wait for it, up to `PATIENCE_S`.

    `cores` is how many tasks can run at a time: each of them gets a Python worker.
    """
    log = PipelineLogger("start", pipeline)
    begun_s = time.monotonic()
    executors = working_executors(session)
    work = _Work(session, pipeline, rehearsals, max(cores, 1), log)
    thread = threading.Thread(target=work.run, name="tidegate-warm-up", daemon=True)
    thread.start()
    try:
        thread.join(PATIENCE_S)
    finally:
        hangs = thread.is_alive()
        if hangs:  # or Ctrl-C was pressed: what still runs is cancelled, and the thread ends soon
            work.give_up()
    failed = f"it took longer than {PATIENCE_S:g} s" if hangs else work.failed
    done = WarmUp(time.monotonic() - begun_s, executors, failed)
    log.info("%s", done.words)
    return done


class _Work:
    """One warm-up, in a thread of its own."""

    def __init__(
        self,
        session: SparkSession,
        pipeline: str,
        rehearsals: Sequence[Rehearsal],
        cores: int,
        log: PipelineLogger,
    ) -> None:
        self._session = session
        self._pipeline = pipeline
        self._rehearsals = rehearsals
        self._cores = cores
        self._log = log
        self._group = f"tidegate-warm-up-{id(self):x}"
        self._over = threading.Event()
        self.failed: str | None = None

    def run(self) -> None:
        """Warm up; an error is noted and raised to nobody."""
        application = str(self._session.sparkContext.applicationId)
        try:
            # A session of its own: its settings and its queries are not the user's.
            session = with_our_settings(self._session.newSession())
            self._session.sparkContext.setJobGroup(self._group, "warm up", True)
            if application in _warmed:
                self._rehearse(session, self._rehearsals)
            else:
                self._by_a_query(session)
            if self.failed is None and not self._over.is_set():
                _warmed.add(application)
                are_started(self._session)
        except Exception as error:
            self._note(error)

    def give_up(self) -> None:
        """Cancel what still runs."""
        self._over.set()
        self._session.sparkContext.cancelJobGroup(self._group)

    def _note(self, error: Exception) -> None:
        self.failed = reason(error)
        self._log.debug("the warm-up failed", exc_info=True)

    def _rehearse(self, session: SparkSession, rehearsals: Sequence[Rehearsal]) -> None:
        for one in rehearsals:
            if not self._over.is_set():
                frame = session.range(0, self._cores, 1, self._cores)
                one.run(one.empty_batch(frame))

    def _by_a_query(self, session: SparkSession) -> None:
        """Run one micro-batch of a streaming query whose source has no rows."""
        first, *others = self._rehearsals
        session.dataSource.register(NoRowsSource)
        place = Path(tempfile.mkdtemp(prefix="tidegate-warm-up-"))

        def rehearsed(batch: DataFrame, batch_id: int) -> None:
            try:
                inside = with_our_settings(batch.sparkSession)
                first.run(batch)
                self._rehearse(inside, others)
            except Exception as error:  # Spark would print it
                self._note(error)

        try:
            query = (
                session.readStream.format(NoRowsSource.name())
                .schema(first.columns)
                .option("tasks", self._cores)
                .load()
                .writeStream.queryName(f"{self._pipeline}: warm-up")
                .option("checkpointLocation", place.as_uri())
                .foreachBatch(rehearsed)
                .start()
            )
            try:
                while query.isActive and query.lastProgress is None and not self._over.is_set():
                    time.sleep(_LOOK_EVERY_S)
            finally:
                query.stop()
            failure = query.exception()
            if failure is not None and not self._over.is_set():
                raise failure
        finally:
            shutil.rmtree(place, ignore_errors=True)
