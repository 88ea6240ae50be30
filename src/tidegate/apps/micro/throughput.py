"""Throughput while keys are shuffled, under several paradigms (Elasticutor 5.1, figures 6 and 7).

- `static`: the route never changes.
- `ours`: the control loop moves shards between two micro-batches; nothing stops.
- `ours-each-batch`: the same, but before every batch and by the rows of the last one alone, where
  the loop looks back over seconds. It follows a shuffle faster, and also follows chance.
- `resource-centric`: the same balancing, but each change of the route stops the query and starts it
  again, as systems do that repartition an operator's keys.

The source is always full and the tasks are fixed, so a second's rows are what the tasks can do.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from tidegate.apps.micro.application import CALCULATOR
from tidegate.apps.micro.full_run import FullRun
from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.turns import (
    Turn,
    longest_over_median,
    mean_latency_s,
    mean_rate,
    rows_per_second,
)
from tidegate.control.shards.balance import ShardLoads, balance
from tidegate.errors import AskedWrongly, nearest
from tidegate.spark.batch.result import BatchResult

STATIC, OURS, EACH_BATCH = "static", "ours", "ours-each-batch"
RESOURCE_CENTRIC = "resource-centric"
PARADIGMS = (STATIC, OURS, EACH_BATCH, RESOURCE_CENTRIC)
WARM_BATCHES = 6
"""Batches that are not judged, while Spark starts its Python workers and compiles."""
_EVERY_BATCHES = 2
_WORTH_IT = 0.97
"""When to balance, and which gain is worth a change: as the control loop has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What one paradigm got done."""

    paradigm: str
    tasks: int
    omega: float
    skew: float
    rows_per_s: tuple[float, ...]
    """Rows done in each second."""
    mean_rows_per_s: float
    mean_latency_s: float
    """From the end of the batch before a row's own, when its turn came, until it was done."""
    imbalance: float
    """delta of the batches, their mean."""
    moves: int
    """Shards that changed their task."""
    longest_over_median: float
    """The longest batch over the median one, with the time that it had to wait for its start."""
    breaks_s: tuple[float, ...]
    """The time without a batch, each time that the query was stopped and started."""
    exactly_once: bool

    def document(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "paradigm": self.paradigm,
            "tasks": self.tasks,
            "omega": self.omega,
            "skew": self.skew,
            "mean_rows_per_s": round(self.mean_rows_per_s, 1),
            "mean_latency_s": round(self.mean_latency_s, 3),
            "imbalance": round(self.imbalance, 3),
            "moves": self.moves,
            "longest_over_median": round(self.longest_over_median, 2),
            "restarts": len(self.breaks_s),
            "mean_break_s": round(float(np.mean(self.breaks_s)), 3) if self.breaks_s else None,
            "exactly_once": self.exactly_once,
            "rows_per_s": [round(rows, 1) for rows in self.rows_per_s],
        }


def measure_throughput(
    spark: SparkSession,
    paradigm: str,
    options: MicroOptions,
    *,
    tasks: int,
    seconds: float,
    batch_s: float = 0.5,
    seed: int = 1,
) -> Throughput:
    """Run for some seconds after the warm-up.

    `batch_s` is how long the rows of a batch take if they are spread evenly over the tasks.
    """
    if paradigm not in PARADIGMS:
        raise AskedWrongly(f"there is no paradigm '{paradigm}'{nearest(paradigm, PARADIGMS)}")
    if options.row_ms <= 0.0:
        raise AskedWrongly("a throughput is measured with row_ms above 0; give the paper's 1")
    control: dict[str, Any] = {}
    if paradigm == OURS:
        # No batch is as short as this target, so the loop decides between any two of them.
        half_ms = max(1, round(500 * batch_s))
        control = {"target": f"{half_ms} ms", "cores": tasks, "policy": STATIC}
    with tempfile.TemporaryDirectory(prefix="tidegate-micro-") as directory:
        full = FullRun(
            spark,
            options,
            Path(directory),
            tasks=tasks,
            batch_rows=max(1, round(tasks * batch_s / options.row_s)),
            seed=seed,
            options=control,
        )
        if paradigm == EACH_BATCH:
            _balance_each_batch(full, tasks)
        restarts: list[int] = []
        try:
            full.await_batches(WARM_BATCHES)
            until_s = full.results[-1].ended_s + seconds
            loads = ShardLoads()
            while full.results[-1].ended_s < until_s:
                fresh = full.await_batches(1 if paradigm != RESOURCE_CENTRIC else _EVERY_BATCHES)
                if paradigm == RESOURCE_CENTRIC:
                    moves = _wanted(loads, fresh, tasks)
                    if moves:
                        full.again()
                        restarts.append(len(full.results))
                        full.run.reroute(CALCULATOR, moves)
        finally:
            full.stop()
        judged = full.turns()[WARM_BATCHES - 1 :]
        breaks = [_break_s(full.results, at) for at in restarts if at < len(full.results)]
        right = full.exactly_once()
    return _summary(paradigm, tasks, options, judged, breaks, right)


def _wanted(loads: ShardLoads, fresh: list[BatchResult], tasks: int) -> dict[int, int]:
    """The moves that bring the tasks into balance, by the batches of the last seconds."""
    for result in fresh:
        loads.observe(shard_rows(result), result.ended_s)
    assert loads.loads is not None
    return _moves(loads.loads, fresh[-1], tasks)


def _moves(loads: npt.ArrayLike, last: BatchResult, tasks: int) -> dict[int, int]:
    """The moves for these loads; none if the tasks are balanced, or little would change."""
    found = balance(loads, last.plan.operators[CALCULATOR].route, tasks)
    return dict(found.moves) if found.after <= _WORTH_IT * found.before else {}


def _balance_each_batch(full: FullRun, tasks: int) -> None:
    """Balance before each batch is planned."""
    run = full.run
    (segment,) = run.segments.values()

    def before() -> None:
        if segment.results:
            last = segment.results[-1]
            run.reroute(CALCULATOR, _moves(shard_rows(last), last, tasks))

    segment.before = before


def shard_rows(result: BatchResult) -> npt.NDArray[np.int64]:
    """Rows of each shard in a batch."""
    total = np.zeros(len(result.plan.operators[CALCULATOR].route), dtype=np.int64)
    for report in result.of(CALCULATOR):
        if report.shard_rows is not None:
            total[report.shard_rows[0]] += report.shard_rows[1]
    return total


def _break_s(results: list[BatchResult], first: int) -> float:
    """From the last batch before a restart to the first one after it."""
    return results[first].started_s - results[first - 1].ended_s


def _summary(
    paradigm: str,
    tasks: int,
    options: MicroOptions,
    turns: list[Turn],
    breaks: list[float],
    right: bool,
) -> Throughput:
    return Throughput(
        paradigm=paradigm,
        tasks=tasks,
        omega=options.omega,
        skew=options.skew,
        rows_per_s=rows_per_second(turns),
        mean_rows_per_s=mean_rate(turns),
        mean_latency_s=mean_latency_s(turns),
        imbalance=float(np.mean([turn.imbalance for turn in turns])),
        moves=sum(turn.moves for turn in turns),
        longest_over_median=longest_over_median(turns),
        breaks_s=tuple(breaks),
        exactly_once=right,
    )
