"""Measures the maximum sustainable throughput of a pipeline on one number of cores (MST II-A).

The source is always full, as the paper's Kafka is filled before. A sample is a micro-batch: its
rows over the time since the batch before ended. A larger batch has a higher throughput, because
planning and commit take about as long as before. So batches have to take a stated time, and their
rows are found first. At the end a few short ones show what a batch takes besides its rows.
"""

import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from tidegate.apps.batch_size import set_batch_rows
from tidegate.apps.capacity.batch_times import TimedBatch, TimedBatches
from tidegate.apps.capacity.full_flow import FullFlow
from tidegate.models.capacity.calibration_plan import CalibrationPlan
from tidegate.models.capacity.convergence import Convergence
from tidegate.spark.start import start

LOOKS = 4
"""Batches of one row per core, where nothing is known of the pipeline: they show the overhead."""
LEAST_BATCH = 2.0
"""A batch takes at least so many times as long as one without rows, or it says little of rows."""
MOST_LONGER = 8.0
"""Batches are to take at most so many times as long as stated, whatever their overhead is."""
WARM_BATCHES = 1
"""Batches behind the first one that are not looked at either, while Python workers start."""
ONE_BATCH, SEVERAL = 0.2, 0.1
"""Batches take the stated time if a single one, or the last N, are off by this share at most."""
MOST_STEP = 8.0
"""The rows of a batch change by this factor at most: a short batch says little of a long one."""
_FAR = 4.0
_MOST_CHANGES = 6
"""After so many changes by less than the factor before, the size stays as it is."""
_MOST_FAR = 10
"""After so many changes by more than it, too: some pipelines have no size that always fits, because
a batch in which a window closes takes many times as long as the one before it."""
SHORT_SHARE = 1 / 8
"""The rows of a short batch, as a share of a full one's."""
SHORT_BATCHES = 3
_PATIENCE = 30.0
"""A batch may take so many times as long as it should, and a minute more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What was measured on a number of cores."""

    samples: tuple[float, ...]
    """Rows per second of each micro-batch, oldest first."""
    converged: bool
    rows_per_s: float
    """The maximum sustainable throughput: that of the last N batches together."""
    batch_rows: int
    batch_s: float
    """The mean duration of these batches."""
    overhead_s: float
    """a(k): what a micro-batch takes besides its rows."""


@dataclass(frozen=True, slots=True)
class BatchGuess:
    """What is expected of the batches, before the first one."""

    rows: int
    overhead_s: float
    """a(k): what a micro-batch takes besides its rows."""


def measure_cores(
    spark: SparkSession,
    flow: FullFlow,
    cores: int,
    plan: CalibrationPlan,
    *,
    guess: BatchGuess | None = None,
    on_samples: Callable[[tuple[float, ...]], None] = lambda _: None,
) -> Throughput:
    """Start the pipeline with so many tasks, and sample until the plan's rule is met.

    `guess` is what is known of its batches; without it they begin small. `on_samples` is told of
    every sample.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-calibrate-") as directory:
        size_file = Path(directory) / "batch-rows"
        set_batch_rows(size_file, cores if guess is None else guess.rows)
        stream = flow.behind(spark, size_file, cores)
        run = start(stream.graph, checkpoint=str(Path(directory) / "checkpoint"), tasks=cores)
        try:
            batches = TimedBatches(run, 60.0 + _PATIENCE * plan.batch_s)
            for _ in range(WARM_BATCHES):
                batches.next()
            if guess is None:
                shortest_s = min(batches.next_of(cores).seconds for _ in range(LOOKS))
                guess = BatchGuess(cores, shortest_s)
                plan = replace(plan, batch_s=long_enough(plan.batch_s, shortest_s))
            sampled = _sampled(batches, size_file, guess, plan, on_samples)
            rows, batch_s = sampled[-1].rows, _mean_s(sampled, plan.rule)
            overhead_s = _overhead_s(batches, size_file, rows, batch_s)
        finally:
            run.stop()
    return Throughput(
        samples=tuple(one.rows_per_s for one in sampled),
        converged=_converged(sampled, plan.rule),
        rows_per_s=rows / batch_s,
        batch_rows=rows,
        batch_s=batch_s,
        overhead_s=overhead_s,
    )


def long_enough(batch_s: float, overhead_s: float) -> float:
    """How long batches are to take, if they take `overhead_s` besides their rows."""
    return max(batch_s, LEAST_BATCH * overhead_s)


def _sampled(
    batches: TimedBatches,
    size_file: Path,
    guess: BatchGuess,
    plan: CalibrationPlan,
    on_samples: Callable[[tuple[float, ...]], None],
) -> list[TimedBatch]:
    """Batches of one size until their throughput has converged, or there are too many.

    The size is right if one batch takes about the stated time, and so do the last N. Where it is
    not, samples begin anew with another size: a pipeline gets faster while it warms up. Where a
    much smaller batch is hardly shorter, the stated time is mostly overhead, which grows with the
    cores. Batches are then to take longer, or the size would shrink to a row.

    The first batch of another size is no sample: a watermark follows the rows of the batches
    before, so windows that those filled are closed in it.
    """
    sampled: list[TimedBatch] = []
    rows, changes, far = guess.rows, 0, 0
    overhead_s, batch_s = guess.overhead_s, plan.batch_s
    before: TimedBatch | None = None
    while not _converged(sampled, plan.rule) and len(sampled) < plan.most_samples:
        sampled.append(batches.next_of(rows))
        on_samples(tuple(one.rows_per_s for one in sampled))
        if len(sampled) > 1 and len(sampled) % plan.rule.latest:
            continue
        now = TimedBatch(rows, _mean_s(sampled, plan.rule))
        if before is not None and now.rows < before.rows:
            learned_s = overhead_of(now.rows, now.seconds, before.rows, before.seconds)
            overhead_s = max(overhead_s, min(learned_s, MOST_LONGER * plan.batch_s / LEAST_BATCH))
            batch_s = long_enough(batch_s, overhead_s)
        share = ONE_BATCH if len(sampled) == 1 else SEVERAL
        if abs(now.seconds / batch_s - 1.0) <= share:
            continue
        wanted = resized(now, overhead_s, batch_s)
        near = rows / _FAR < wanted < rows * _FAR
        changes, far = changes + near, far + (not near)
        if changes <= _MOST_CHANGES and far <= _MOST_FAR:
            before = now
            rows, sampled = wanted, []
            set_batch_rows(size_file, rows)
            batches.next_of(rows)
    return sampled


def resized(batch: TimedBatch, overhead_s: float, batch_s: float) -> int:
    """The rows of a batch that is to take `batch_s`, as far as one step may go.

    By D = a + N c with the overhead a. A batch that is hardly longer than a says nothing of c, so
    the next one has as many more rows as a step allows.
    """
    least_s = batch.seconds / batch.rows / MOST_STEP
    row_s = max((batch.seconds - overhead_s) / batch.rows, least_s)
    wanted = batch.rows + (batch_s - batch.seconds) / row_s
    return max(round(min(max(wanted, batch.rows / MOST_STEP), batch.rows * MOST_STEP)), 1)


def _mean_s(sampled: list[TimedBatch], rule: Convergence) -> float:
    """The mean duration of the last N batches."""
    judged = sampled[-rule.latest :]
    return sum(one.seconds for one in judged) / len(judged)


def _converged(sampled: list[TimedBatch], rule: Convergence) -> bool:
    return rule.reached([one.rows_per_s for one in sampled])


def _overhead_s(batches: TimedBatches, size_file: Path, rows: int, batch_s: float) -> float:
    """a of D = a + N c, from full batches and short ones."""
    few = max(round(rows * SHORT_SHARE), 1)
    if few == rows:
        return 0.0
    set_batch_rows(size_file, few)
    short_s = statistics.median(batches.next_of(few).seconds for _ in range(SHORT_BATCHES))
    return overhead_of(few, short_s, rows, batch_s)


def overhead_of(few: int, short_s: float, rows: int, batch_s: float) -> float:
    """Where the line through two batches has no rows; at least 0, and at most the short batch."""
    row_s = (batch_s - short_s) / (rows - few)
    return min(max(short_s - few * row_s, 0.0), short_s)
