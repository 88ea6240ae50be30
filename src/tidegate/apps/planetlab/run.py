"""Runs the queries for some seconds, and checks their answers against the rows that were kept."""

import tempfile
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from tidegate.apps.collected import Collected
from tidegate.apps.planetlab.noted_rows import NotedRows
from tidegate.apps.planetlab.outcome import Planetlab
from tidegate.apps.planetlab.queries import averages
from tidegate.apps.planetlab.reference import QueryAnswers, judged
from tidegate.apps.planetlab.watch import Watch
from tidegate.apps.running import run_for
from tidegate.errors import AskedWrongly
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.run import Run
from tidegate.spark.start import start
from tidegate.workload.cpu import Series

WARM_S = 10.0
"""Seconds at the start that are not judged."""
TICK = "250 ms"
"""The paper's controller decides this often. A rate that doubles is then answered in the next batch
and not in the one after it."""
_PATIENCE_S = 600.0
"""How long a run may take to end: without shedding its last batch can take minutes."""


def start_planetlab(
    spark: SparkSession,
    series: Series,
    directory: Path,
    *,
    queries: int,
    target_s: float,
    shed: bool | str,
    cores: int = 2,
    seed: int = 1,
    row_s: float | None = None,
) -> Run:
    """Start the queries. Without `shed` no row is dropped, and too many queries fall behind.

    The directory gets the checkpoint, the kept rows and the answers.
    """
    if queries < 1:
        raise AskedWrongly(f"{queries} queries are not possible; give 1 or more")
    flow = averages(
        spark,
        series,
        queries,
        seed=seed,
        row_s=row_s,
        kept=_kept(directory),
        answers=_answers(directory),
    )
    return start(
        flow.graph,
        checkpoint=str(directory / "checkpoint"),
        tasks=cores,
        target=f"{target_s * 1000:.0f} ms",
        cores=cores,
        policy="static",
        shed=shed,
        tick=TICK,
    )


def _kept(directory: Path) -> NotedRows:
    return NotedRows(directory / "kept")


def _answers(directory: Path) -> Collected:
    return Collected(directory / "answers")


def run_planetlab(
    spark: SparkSession,
    series: Series,
    *,
    queries: int,
    seconds: float,
    target_s: float,
    shed: bool | str,
    cores: int = 2,
    seed: int = 1,
    row_s: float | None = None,
) -> Planetlab:
    """Run the queries for some seconds after their first results."""
    with tempfile.TemporaryDirectory(prefix="tidegate-planetlab-") as made:
        directory = Path(made)
        run = start_planetlab(
            spark,
            series,
            directory,
            queries=queries,
            target_s=target_s,
            shed=shed,
            cores=cores,
            seed=seed,
            row_s=row_s,
        )
        loop = run.loop
        assert isinstance(loop, ControlLoop)
        watch = Watch(run, min(WARM_S, seconds / 3))
        loop.watchers.append(watch)
        try:
            run_for(run, seconds)
        finally:
            run.stop(_PATIENCE_S)
        counts = run.counts()["source"]
        answers = QueryAnswers.of(_answers(directory).rows())
        verdict = judged(series, seed, queries, counts, _kept(directory).rows(), answers)
    return Planetlab(
        queries=queries,
        records=list(loop.records),
        judged_from_s=watch.judged_from_s or 0.0,
        counts=counts,
        kept_per_query=tuple(np.asarray(answers.rows_per_query(queries)).tolist()),
        ages=watch.ages,
        cpu_percent=watch.cpu_percent,
        verdict=verdict,
    )
