"""Several pipelines in one Spark application, each with its own target, and too few cores for all.

Their operator sleeps for every row (see `waiting`), so a core is a task, and two pipelines slow
each other down only by the fixed cost of their batches. Tidegate divides the cores by the targets
(`tidegate.control.sharing.division`), and each pipeline sheds what its share cannot process.
"""

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from tidegate.apps.overload import WAIT_S, overload_flow
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount
from tidegate.errors import TidegateError
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.run import Run
from tidegate.spark.start import start

CORES = 8
_JUDGED = 0.5
"""The share of a run that is judged: its end, when the pipelines have settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRun:
    """What happened to one of the pipelines."""

    name: str
    target_s: float
    records: list[Record]
    counts: SourceCount

    @property
    def _seen(self) -> list[Record]:
        return self.records[round(len(self.records) * (1.0 - _JUDGED)) :]

    @property
    def mean_latency_s(self) -> float:
        """Mean latency over the judged ticks."""
        told = [r.measurement.latency for r in self._seen]
        return float(np.mean([latency.mean_s for latency in told if latency is not None]))

    @property
    def kept(self) -> float:
        """The share of its rows that it kept, over the judged ticks."""
        sources = [source for r in self._seen for source in r.measurement.sources]
        offered = sum(source.offered for source in sources)
        return sum(source.kept for source in sources) / offered if offered else 1.0

    @property
    def cores(self) -> float:
        """The mean number of cores it asked for, over the judged ticks."""
        return float(np.mean([r.measurement.cores_asked for r in self._seen]))

    @property
    def exact(self) -> bool:
        """Whether every offered row was either kept or shed."""
        return self.counts.offered == self.counts.kept + self.counts.shed > 0


def run_together(
    spark: SparkSession, targets_s: Sequence[float], *, factor: float, seconds: float
) -> list[SharedRun]:
    """Run the pipelines at `factor` times the capacity of all cores, each with the same rate."""
    rate = factor * CORES / WAIT_S / len(targets_s)
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-together-") as directory,
        ExitStack() as open_,
    ):
        runs: list[tuple[str, float, Run]] = []
        for number, target_s in enumerate(targets_s):
            name = f"target-{target_s:g}"
            run = start(
                overload_flow(spark, rate, WAIT_S, number, name=name, tasks=(1, CORES)).graph,
                checkpoint=str(Path(directory) / name),
                target=f"{target_s * 1000:.0f} ms",
                cores=(1, CORES),
                shed=True,
            )
            open_.callback(run.stop)
            runs.append((name, target_s, run))
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            for name, _, run in runs:
                if run.awaitTermination(0.1):
                    raise TidegateError(f"the pipeline '{name}' ended by itself")
                if run.loop is not None and run.loop.failure is not None:
                    raise TidegateError(f"a control loop failed: {run.loop.failure}")
        for _, _, run in runs:
            run.stop()
        return [_shared(name, target_s, run) for name, target_s, run in runs]


def _shared(name: str, target_s: float, run: Run) -> SharedRun:
    loop = run.loop
    assert isinstance(loop, ControlLoop)
    return SharedRun(
        name=name,
        target_s=target_s,
        records=list(loop.records),
        counts=run.counts()["source"],
    )
