"""Runs an application until all its rows are processed, and verifies its answers."""

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.apps.application import Application, Settings, Verdict
from tidegate.control.control_failure import ControlFailure
from tidegate.control.record import Record
from tidegate.errors import TidegateError
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.run import Run
from tidegate.spark.start import start

_LOOK_EVERY_S = 0.2
FIRST_BATCH_S = 600.0
"""How long the first batch is waited for: Spark may have to start its Python workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRun:
    """What happened in one run."""

    name: str
    seconds: float
    records: list[Record]
    arrived: int
    verdict: Verdict | None
    """None if it was ended before all rows were processed."""


def run_application(
    spark: SparkSession,
    application: Application,
    settings: Settings,
    *,
    target: str | None = None,
    cores: int | tuple[int, int] | None = None,
    policy: str = "latency",
    capacity: Path | None = None,
    split: Mapping[str, int] | None = None,
    between_changes: str | None = None,
    first_change: str | None = None,
    dry_run: bool = False,
    on_record: Callable[[Record], None] | None = None,
    on_failure: Callable[[ControlFailure], None] | None = None,
) -> ApplicationRun:
    """Run it from a split of cores on (tasks by operator) until all rows are processed.

    With `dry_run` the policy only recommends, and the split stays as it is. Ctrl-C ends the run at
    a batch boundary; then there is no verdict.
    """
    application.check()
    application.check_options(settings.extra)
    application.check_split(split or {}, settings.extra)
    with tempfile.TemporaryDirectory(prefix=f"tidegate-{application.name}-") as directory:
        flow = application.build(spark, settings, Path(directory) / "collected")
        checkpoint = str(Path(directory) / "checkpoint")
        run = start(
            flow.stream.graph,
            checkpoint=checkpoint,
            target=target or application.target,
            cores=cores or application.cores,
            policy=policy,
            capacity=capacity,
            between_changes=between_changes,
            first_change=first_change,
            dry_run=dry_run,
        )
        loop = run.loop
        assert isinstance(loop, ControlLoop)
        if on_record is not None:
            loop.watchers.append(on_record)
        if on_failure is not None:
            loop.failure_watchers.append(on_failure)
        verdict = None
        try:
            for operator, tasks in (split or {}).items():
                run.rescale(operator, tasks)
            _await_rows(run, loop, settings.seconds)
            run.stop()
            if loop.failure is None:
                verdict = flow.verify(checkpoint)
        except KeyboardInterrupt:
            if not loop.records:
                raise  # there is nothing to show yet
        finally:
            run.stop()
        if loop.failure is not None:
            raise TidegateError(f"the control loop failed: {loop.failure}") from loop.failure
        return ApplicationRun(
            name=application.name,
            seconds=settings.seconds,
            records=list(loop.records),
            arrived=settings.arrived,
            verdict=verdict,
        )


def _await_rows(run: Run, loop: ControlLoop, seconds: float) -> None:
    """Wait until rows have arrived for so long, and all of them are processed.

    It ends early if the control loop has failed, and fails if there is no first batch.
    """
    until: float | None = None
    given_up = time.monotonic() + FIRST_BATCH_S
    while until is None or time.monotonic() < until:
        if run.awaitTermination(_LOOK_EVERY_S) or loop.failure is not None:
            return
        if until is None and (ended := run.results()):
            # The first rows arrived before the first batch began.
            until = time.monotonic() + seconds - ended[0].duration_s
        if until is None and time.monotonic() > given_up:
            raise TidegateError(
                f"no batch of '{run.name}' ended within {FIRST_BATCH_S:g} s; look at Spark's log"
            )
    run.processAllAvailable()
