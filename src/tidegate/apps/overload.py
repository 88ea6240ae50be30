"""An overload: a pipeline that is offered more rows than it can process.

Its operator sleeps for every row (see `waiting`), so its capacity is known in advance: the number
of tasks over the sleep. Above that capacity only shedding holds a target; without it, latency grows
for as long as the overload lasts.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from tidegate.apps.running import run_batches, run_for
from tidegate.apps.waiting import waiting_map
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount
from tidegate.errors import TidegateError
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.start import start
from tidegate.spark.state.read import read_state

TASKS = 4
WAIT_S = 0.008
CAPACITY = TASKS / WAIT_S
"""Rows per second if every task always works, with no pause between batches."""
KEYS = 100
_SETTLING_TARGETS = 5.0
"""The run is judged from this many target latencies after its first results on."""
_WARM_S = 8.0
_WARM_BATCHES, _PATIENCE_S = 25, 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """What happened in one run."""

    target_s: float
    factor: float
    """The offered load as a multiple of `CAPACITY`."""
    counts: SourceCount
    stored: int
    """Rows counted by the pipeline, according to its state."""
    ticks_s: NDArray[np.float64]
    """Times of the judged ticks that completed rows."""
    latency_s: NDArray[np.float64]
    """Mean latency of the rows completed around each of those ticks."""
    kept_rate: float
    """Rows per second kept, over the judged time."""
    fixed_s: float
    """a: the fixed cost of a batch in this run (D = a + c N)."""

    @property
    def mean_latency_s(self) -> float:
        """Mean latency over the judged ticks."""
        return float(self.latency_s.mean()) if len(self.latency_s) else float("nan")

    @property
    def exact(self) -> bool:
        """Whether every offered row was kept or shed, and every kept row is in the state."""
        return self.counts.offered == self.counts.kept + self.counts.shed and (
            self.counts.kept == self.stored
        )

    @property
    def growth(self) -> float:
        """The mean latency of the last third of the judged ticks over that of the first third."""
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
    """Run at `factor` times the capacity for some seconds; without `shed` no row is dropped."""
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
    """A map that sleeps for every row, with shedding before it, and a count behind it.

    The map has tasks of its own, so the kept rows are spread over them evenly; their source
    partitions have uneven shares. Rows that are `told_apart` carry a unique number, by which Spark
    itself decides which to shed; others need a Python stage for that.
    """
    stream = arrivals(spark, f"constant:{rate!r}", keys=f"uniform:{KEYS}", seed=seed, partitions=2)
    return (
        pipeline(name, stream, arrival="timestamp")
        .shed(unique="seq" if told_apart else ())
        .map(waiting_map(wait_s), name="ask", tasks=tasks)
        .keyed("count", count(), key="key", shards=16, tasks=1)
    )


def warm_up(spark: SparkSession) -> None:
    """Run cheap batches that shed, to start the Python workers and let the JVM compile."""
    with tempfile.TemporaryDirectory(prefix="tidegate-overload-") as directory:
        flow = overload_flow(spark, 0.5 * CAPACITY, 0.0)
        run = start(flow.graph, checkpoint=str(Path(directory) / "warm-up"), tasks=1)
        run.shed(0.8)
        run_batches(run, _WARM_BATCHES, _PATIENCE_S)


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
