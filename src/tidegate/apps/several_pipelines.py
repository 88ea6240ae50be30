"""Several pipelines in one Spark application, each with its own target, and too few cores for all.

Their operator waits for every row (see `waiting`), so cores are tasks and two pipelines do not
slow each other down but by what a batch costs besides its rows. Tidegate divides the cores by the
targets (`tidegate.control.sharing.division`) and each pipeline sheds what its part does not carry.
"""

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from tidegate.apps.overload import WAIT_S, overload_flow
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount
from tidegate.errors import TidegateError
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.run import Run
from tidegate.spark.session import session
from tidegate.spark.start import start

CORES = 8
_JUDGED = 0.5
"""The last part of a run, once its pipelines have settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One pipeline beside the others."""

    name: str
    target_s: float
    records: list[Record]
    counts: SourceCount

    @property
    def _seen(self) -> list[Record]:
        return self.records[round(len(self.records) * (1.0 - _JUDGED)) :]

    @property
    def mean_latency_s(self) -> float:
        """Over the judged ticks."""
        told = [r.measurement.latency for r in self._seen]
        return float(np.mean([latency.mean_s for latency in told if latency is not None]))

    @property
    def kept(self) -> float:
        """Share of its rows that it kept, over the judged ticks."""
        sources = [source for r in self._seen for source in r.measurement.sources]
        offered = sum(source.offered for source in sources)
        return sum(source.kept for source in sources) / offered if offered else 1.0

    @property
    def cores(self) -> float:
        """Mean, over the judged ticks."""
        return float(np.mean([r.measurement.cores_asked for r in self._seen]))

    @property
    def exact(self) -> bool:
        """Offered is kept and shed."""
        return self.counts.offered == self.counts.kept + self.counts.shed > 0


def run_together(
    spark: SparkSession, targets_s: Sequence[float], *, factor: float, seconds: float
) -> list[Shared]:
    """Pipelines that are offered `factor` times what all cores carry, each the same part of it."""
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


def _shared(name: str, target_s: float, run: Run) -> Shared:
    loop = run.loop
    assert isinstance(loop, ControlLoop)
    return Shared(
        name=name,
        target_s=target_s,
        records=list(loop.records),
        counts=run.counts()["source"],
    )


def together_body(options: Options) -> Bench:
    """Two pipelines with targets of 2 and 4 s, twice as many rows as all cores carry."""
    spark = session(f"local[{CORES}]", "bench-shed")
    options.say("warming up: 30 s")
    run_together(spark, (2.0, 4.0), factor=0.3, seconds=30.0)
    seconds = 40.0 if options.quick else 90.0
    options.say(f"2 pipelines, targets of 2 and 4 s, 2 times capacity: {seconds:.0f} s")
    found = run_together(spark, (2.0, 4.0), factor=2.0, seconds=seconds)
    spark.stop()
    off = max(abs(one.mean_latency_s / one.target_s - 1.0) for one in found)
    kept = [one.kept for one in found]
    return Bench(
        "shed",
        [_row(one) for one in found],
        [
            at_most("mean latency off its own target, worst pipeline", off, 0.15),
            at_least("share kept, least over most", min(kept) / max(kept), 0.6),
            at_most("cores asked for over those there are", sum(o.cores for o in found) / CORES, 1),
            at_least(
                "cores of the tighter target over the other's", found[0].cores / found[1].cores, 1
            ),
            Aim(
                "pipelines whose rows are counted exactly",
                sum(one.exact for one in found),
                f"= {len(found)}",
                all(one.exact for one in found),
            ),
        ],
    )


def _row(one: Shared) -> dict[str, Any]:
    return {
        "pipeline": one.name,
        "target_s": one.target_s,
        "mean_latency_s": round(one.mean_latency_s, 3),
        "cores": round(one.cores, 2),
        "kept": round(one.kept, 3),
        "offered": one.counts.offered,
        "shed": one.counts.shed,
        "exact": one.exact,
    }
