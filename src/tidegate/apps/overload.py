"""More rows than can be carried: a pipeline whose cost is waiting, far above its capacity.

The operator waits for every row (see `waiting`), so that its capacity is known beforehand: tasks
over the wait. Above it nothing but shedding holds a target; without it latency grows as long as the
load lasts.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from tidegate.apps.waiting import waiting_map
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount
from tidegate.errors import TidegateError
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.run import Run
from tidegate.spark.session import session
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.start import start
from tidegate.spark.state.read import read_state

TASKS = 4
WAIT_S = 0.008
CAPACITY = TASKS / WAIT_S
"""Rows per second with every task always at work, and nothing between two batches."""
KEYS = 100
_SETTLING_TARGETS = 5.0
"""So many target times after the start are not judged."""
_WARM_S = 8.0
_WARM_BATCHES, _PATIENCE_S = 25, 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """What happened."""

    target_s: float
    factor: float
    """Offered load over `CAPACITY`."""
    counts: SourceCount
    stored: int
    """Rows in the state: what the pipeline says it has counted."""
    ticks_s: NDArray[np.float64]
    """Times of the judged ticks that had results."""
    latency_s: NDArray[np.float64]
    """Mean latency of the rows that were completed around each of them."""
    kept_rate: float
    """Rows per second kept, over the judged time."""
    fixed_s: float
    """a: what a batch cost besides its rows in this run (D = a + c N)."""

    @property
    def mean_latency_s(self) -> float:
        """Over the judged ticks."""
        return float(self.latency_s.mean()) if len(self.latency_s) else float("nan")

    @property
    def exact(self) -> bool:
        """Offered is kept and shed, and what was kept is what is in the state, to the row."""
        return self.counts.offered == self.counts.kept + self.counts.shed and (
            self.counts.kept == self.stored
        )

    @property
    def growth(self) -> float:
        """Mean latency of the last third of the judged ticks over that of the first."""
        third = max(len(self.latency_s) // 3, 1)
        return float(self.latency_s[-third:].mean() / self.latency_s[:third].mean())


def run_overload(
    spark: SparkSession,
    *,
    target_s: float,
    factor: float,
    seconds: float,
    shed: bool | str,
    seed: int = 1,
    told_apart: bool = True,
) -> Overload:
    """So many times the capacity for some seconds; with no `shed` nothing is dropped."""
    with tempfile.TemporaryDirectory(prefix="tidegate-overload-") as directory:
        checkpoint = str(Path(directory) / "checkpoint")
        flow = overload_flow(spark, factor * CAPACITY, WAIT_S, seed, told_apart)
        run = start(
            flow.graph,
            checkpoint=checkpoint,
            tasks=1,
            target=f"{target_s * 1000:.0f} ms",
            cores=TASKS,
            policy="static",
            shed=shed,
            tick="500 ms",
        )
        try:
            run_for(run, seconds)
        finally:
            run.stop()
        loop = run.loop
        assert isinstance(loop, ControlLoop)
        counts = run.counts()["source"]
        stored = sum(read_state(checkpoint, "count")["count"].to_pylist())
    return judged(list(loop.records), counts, stored, target_s, factor)


def overload_flow(
    spark: SparkSession,
    rate: float,
    wait_s: float,
    seed: int = 1,
    told_apart: bool = True,
    *,
    name: str = "overload",
    tasks: tuple[int, int] = (TASKS, TASKS),
) -> Stream:
    """A map that waits for every row and may be shed before, and a count behind it.

    The map has tasks of its own, so what is kept is dealt to them evenly: a partition's share of
    the kept rows is left to chance. Rows that are `told_apart` have a number that Spark draws by;
    others need a Python stage before the map's shuffle.
    """
    stream = arrivals(spark, f"constant:{rate!r}", keys=f"uniform:{KEYS}", seed=seed, partitions=2)
    return (
        pipeline(name, stream, arrival="timestamp")
        .shed(unique="seq" if told_apart else ())
        .map(waiting_map(wait_s), name="ask", tasks=tasks)
        .keyed("count", count(), key="key", shards=16, tasks=1)
    )


def warm_up(spark: SparkSession) -> None:
    """Some batches that shed and cost nothing: starts the Python workers, lets the JVM compile."""
    with tempfile.TemporaryDirectory(prefix="tidegate-overload-") as directory:
        flow = overload_flow(spark, 0.5 * CAPACITY, 0.0)
        run = start(flow.graph, checkpoint=str(Path(directory) / "warm-up"), tasks=1)
        try:
            run.shed(0.8)
            until = time.monotonic() + _PATIENCE_S
            while len(run.results()) < _WARM_BATCHES and time.monotonic() < until:
                if run.awaitTermination(0.2):
                    break
        finally:
            run.stop()


def run_for(run: Run, seconds: float) -> None:
    """Let a pipeline run for some seconds from its first results on: starting Spark is no load."""
    until: float | None = None
    while until is None or time.monotonic() < until:
        if run.awaitTermination(0.2):
            return
        if run.loop is not None and run.loop.failure is not None:
            raise TidegateError(f"the control loop failed: {run.loop.failure}")
        if until is None and run.results():
            until = time.monotonic() + seconds


def judged(
    records: list[Record], counts: SourceCount, stored: int, target_s: float, factor: float
) -> Overload:
    """The figures of a run, from its records."""
    first_s = next((r.measurement.at_s for r in records if r.measurement.latency), 0.0)
    begin_s = first_s + max(_SETTLING_TARGETS * target_s, _WARM_S)
    seen = [r.measurement for r in records if r.measurement.at_s >= begin_s]
    told = [(m.at_s, m.latency.mean_s) for m in seen if m.latency is not None]
    batches = [
        batch
        for measurement in seen
        for segment in measurement.segments
        for batch in segment.batches
        if batch.outlier is None
    ]
    if not told or not batches:
        raise TidegateError("too few batches ended after the warm-up; let it run for longer")
    rows = np.array([batch.rows for batch in batches], dtype=np.float64)
    spent_s = np.array([batch.duration_s for batch in batches])
    return Overload(
        target_s=target_s,
        factor=factor,
        counts=counts,
        stored=stored,
        ticks_s=np.array([at_s for at_s, _ in told]) - first_s,
        latency_s=np.array([mean_s for _, mean_s in told]),
        kept_rate=float(rows.sum() / spent_s.sum()),
        fixed_s=max(float(np.mean(spent_s - rows / CAPACITY)), 0.0),
    )


def sustainable_rate(target_s: float, fixed_s: float) -> float:
    """tau(T): the most rows per second within a target, (1 - 1.5 a / T) / c.

    a comes from a run of its own that sheds nothing: from the run that is judged it would follow
    from its latency, and whatever shedding costs would excuse itself.
    """
    return max(1.0 - 1.5 * fixed_s / target_s, 0.0) * CAPACITY


def spark_body(options: Options) -> Bench:
    """Targets of 1, 2 and 3 s at 1.2 to 3 times the capacity, and one run that sheds nothing.

    What is kept is judged against what the target allows, with a batch's fixed cost taken from a
    calm run of its own right before the runs of that target: machines drift.
    """
    factors = (1.5,) if options.quick else (1.2, 2.0, 3.0)
    # The tightest last: the JVM goes on getting faster for minutes, and what a batch costs besides
    # its rows is a third of a second's target.
    targets_s = (2.0,) if options.quick else (3.0, 2.0, 1.0)
    spark = session(f"local[{TASKS}]", "bench-shed")
    options.say("warming up")
    warm_up(spark)
    results: list[dict[str, Any]] = []
    everything: list[Overload] = []
    runs: list[Overload] = []
    allowed: list[float] = []
    for target_s in targets_s:
        options.say("what a batch costs besides its rows: 25 s at 0.4 times capacity")
        calm = run_overload(spark, target_s=2.0, factor=0.4, seconds=25.0, shed=False)
        everything.append(calm)
        results.append(_row("none", calm, calm.fixed_s))
        for factor in factors:
            seconds = 25.0 + 10.0 * target_s
            options.say(f"target {target_s:g} s at {factor:g} times capacity: {seconds:.0f} s")
            found = run_overload(
                spark, target_s=target_s, factor=factor, seconds=seconds, shed=True
            )
            runs.append(found)
            everything.append(found)
            allowed.append(sustainable_rate(target_s, calm.fixed_s))
            results.append(_row("shedding", found, calm.fixed_s))
            options.say(
                f"  mean latency {found.mean_latency_s:.2f} s, {found.kept_rate:.0f} rows/s kept "
                f"of {allowed[-1]:.0f} that the target allows"
            )
    if not options.quick:
        options.say("target 1 s at 2 times capacity, rows not told apart: 35 s")
        staged = run_overload(
            spark, target_s=1.0, factor=2.0, seconds=35.0, shed=True, told_apart=False
        )
        everything.append(staged)
        results.append(_row("shedding in a Python stage", staged, calm.fixed_s))
    options.say("without shedding at 1.5 times capacity: 40 s")
    unshed = run_overload(spark, target_s=2.0, factor=1.5, seconds=40.0, shed=False)
    everything.append(unshed)
    results.append(_row("none", unshed, calm.fixed_s))
    spark.stop()
    off = [abs(found.mean_latency_s / found.target_s - 1.0) for found in runs]
    kept = [
        found.kept_rate / rate if rate > 0.0 else 0.0
        for found, rate in zip(runs, allowed, strict=True)
    ]
    exact = sum(found.exact for found in everything)
    return Bench(
        "shed",
        results,
        [
            at_most("mean latency off its target, worst run", max(off), 0.10),
            at_least("kept over what the target allows, worst run", min(kept), 0.90),
            Aim(
                "runs whose rows are counted exactly",
                exact,
                f"= {len(everything)}",
                exact == len(everything),
            ),
            at_least("latency's growth without shedding", unshed.growth, 1.5),
        ],
    )


def _row(remedy: str, found: Overload, fixed_s: float) -> dict[str, Any]:
    return {
        "remedy": remedy,
        "target_s": found.target_s,
        "offered_over_capacity": found.factor,
        "mean_latency_s": round(found.mean_latency_s, 3),
        "last_latency_s": round(float(found.latency_s[-1]), 3),
        "kept_rate": round(found.kept_rate, 1),
        "sustainable_rate": round(sustainable_rate(found.target_s, fixed_s), 1),
        "fixed_s": round(found.fixed_s, 3),
        "offered": found.counts.offered,
        "kept": found.counts.kept,
        "shed": found.counts.shed,
        "exact": found.exact,
    }
