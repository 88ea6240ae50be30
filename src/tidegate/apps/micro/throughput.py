"""Throughput while keys are shuffled, under several paradigms (Elasticutor 5.1, figures 6 and 7).

`apps/paradigms.py` has the paradigms. The source is always full and the tasks are fixed, so a
second's rows are what the tasks can do.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidegate.apps.micro.full_run import FullRun
from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.paradigms import (
    EACH_BATCH,
    balance_each_batch,
    breaks_s,
    check_paradigm,
    control_of,
    follow,
)
from tidegate.apps.work_done import WorkDone, work_done
from tidegate.errors import AskedWrongly
from tidegate.pipelines.task_bounds import Tasks

WARM_BATCHES = 6
"""Batches that are not judged, while Spark starts its Python workers and compiles."""


def measure_throughput(
    spark: SparkSession,
    paradigm: str,
    micro: MicroOptions,
    *,
    tasks: int,
    seconds: float,
    batch_s: float = 0.5,
    seed: int = 1,
    warm_batches: int = WARM_BATCHES,
    batches: int = 0,
    options: Mapping[str, Any] | None = None,
    generator_tasks: Tasks = None,
) -> WorkDone:
    """Run for some seconds after the warm-up, and for at least so many `batches`.

    `batch_s` is how long the rows of a batch take if they are spread evenly over the tasks.
    `options` are further ones of `start`. `generator_tasks` are the tasks in front of the
    calculator; without them the generator runs where the source does.
    """
    check_paradigm(paradigm)
    if micro.row_ms <= 0.0:
        raise AskedWrongly("a throughput is measured with row_ms above 0; give the paper's 1")
    with tempfile.TemporaryDirectory(prefix="tidegate-micro-") as directory:
        full = FullRun(
            spark,
            micro,
            Path(directory),
            tasks=tasks,
            batch_rows=max(1, round(tasks * batch_s / micro.row_s)),
            seed=seed,
            options={**control_of(paradigm, tasks, batch_s), **(options or {})},
            generator_tasks=generator_tasks,
        )
        restarts: list[int] = []
        try:
            if paradigm == EACH_BATCH:
                balance_each_batch(full)
            full.await_batches(warm_batches)
            restarts = follow(full, paradigm, seconds, batches)
        finally:
            full.stop()
        return work_done(
            full,
            paradigm,
            tasks,
            warm_batches=warm_batches,
            breaks=breaks_s(full, restarts),
            exactly_once=full.exactly_once(),
        )
