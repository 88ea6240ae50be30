"""The overload paper's experiment (section 4): average CPU use, for growing numbers of queries.

Each of ten nodes reports its CPU use, at 50, 100, 150, 100 and again 50 rows per second, ten
seconds at a time. Every query computes the average over the nodes once a second. All queries are
the same, and each does its own work for every row, so twice the queries are twice the load.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.apps.running import run_for
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions import mean, window
from tidegate.pipelines.shedding import WEIGHT, ShedClass
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.run import Run
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.start import start
from tidegate.workload.cpu import Series
from tidegate.workload.profile import Profile, steps

RATES = (50.0, 100.0, 150.0, 100.0)
"""Rows per second of each node, `STEP_S` each, repeated."""
STEP_S = 10.0
SAMPLE_S = 1.0
"""Time between samples. The real series has one every five minutes, too few for a short run."""
WARM_S = 10.0
"""Seconds at the start that are not judged."""
SHARDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Planetlab:
    """What happened in one run."""

    queries: int
    records: list[Record]
    counts: SourceCount
    """Rows offered, kept and shed; its classes are the nodes."""
    latency_s: tuple[float, ...]
    """Mean latency at each tick after the warm-up, oldest first."""

    @property
    def mean_latency_s(self) -> float:
        """Mean latency over the ticks after the warm-up."""
        return float(np.mean(self.latency_s)) if self.latency_s else float("nan")

    def document(self) -> dict[str, Any]:
        """The figures, for a table or a JSON document."""
        told = bool(self.latency_s)
        return {
            "queries": self.queries,
            "mean_latency_s": round(self.mean_latency_s, 3) if told else None,
            "last_latency_s": round(self.latency_s[-1], 3) if told else None,
            "offered": self.counts.offered,
            "kept": self.counts.kept,
            "shed": self.counts.shed,
            "nodes": {
                part.name: {"offered": part.offered, "kept": part.kept, "shed": part.shed}
                for part in self.counts.classes
            },
        }


def node_rates(nodes: int) -> Profile:
    """The rate profile of all nodes together."""
    changes = [(number * STEP_S, nodes * rate) for number, rate in enumerate(RATES)]
    return steps(changes, period_s=len(RATES) * STEP_S)


def readings(series: Series, queries: int) -> Callable[[pa.Table], pa.Table]:
    """A map that looks up the reading of each row, and copies it for every query."""
    samples, nodes = series.shape

    def ask(rows: pa.Table) -> pa.Table:
        stamps = rows["timestamp"].combine_chunks()
        at_us = stamps.cast(pa.int64()).to_numpy()
        sample = (at_us // round(SAMPLE_S * 1e6)) % samples
        cpu = series[sample, rows["key"].to_numpy() % nodes]
        place = pa.array(np.tile(np.arange(rows.num_rows), queries))
        return pa.table(
            {
                "query": np.repeat(np.arange(queries), rows.num_rows),
                "cpu": np.tile(cpu, queries),
                "timestamp": stamps.take(place),
                WEIGHT: rows[WEIGHT].combine_chunks().take(place),
            }
        )

    return ask


def averages(
    spark: SparkSession, series: Series, queries: int, *, seconds: float | None, seed: int = 1
) -> Stream:
    """The pipeline: rows of the nodes, a copy for each query, an average per query and second."""
    nodes = series.shape[1]
    stream = arrivals(
        spark,
        node_rates(nodes),
        keys=f"uniform:{nodes}",
        seed=seed,
        seconds=seconds,
        partitions=2,
    )
    classes = {str(node): ShedClass() for node in range(nodes)}
    average = window(
        mean("cpu", weighted=True, as_="cpu"), every="1 second", event_time="timestamp"
    )
    return (
        pipeline("planetlab", stream, arrival="timestamp")
        .shed(by="key", classes=classes, weight=True)
        .map(
            readings(series, queries),
            f"query long, cpu double, timestamp timestamp, {WEIGHT} double",
            name="ask",
        )
        .keyed("average", average, key="query", shards=SHARDS)
    )


def start_planetlab(
    spark: SparkSession,
    series: Series,
    checkpoint: str,
    *,
    queries: int,
    target_s: float,
    shed: bool | str,
    cores: int = 2,
    seed: int = 1,
) -> Run:
    """Start the queries. Without `shed` no row is dropped, and too many queries fall behind."""
    if queries < 1:
        raise AskedWrongly(f"{queries} queries are not possible; give 1 or more")
    return start(
        averages(spark, series, queries, seconds=None, seed=seed).graph,
        checkpoint=checkpoint,
        tasks=cores,
        target=f"{target_s * 1000:.0f} ms",
        cores=cores,
        policy="static",
        shed=shed,
    )


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
) -> Planetlab:
    """Run the queries for some seconds after their first results."""
    with tempfile.TemporaryDirectory(prefix="tidegate-planetlab-") as directory:
        run = start_planetlab(
            spark,
            series,
            str(Path(directory) / "checkpoint"),
            queries=queries,
            target_s=target_s,
            shed=shed,
            cores=cores,
            seed=seed,
        )
        try:
            run_for(run, seconds)
        finally:
            run.stop()
        assert isinstance(run.loop, ControlLoop)
        records = list(run.loop.records)
        counts = run.counts()["source"]
    begin_s = records[0].measurement.at_s + min(WARM_S, seconds / 3) if records else 0.0
    latency_s = tuple(
        record.measurement.latency.mean_s
        for record in records
        if record.measurement.latency is not None and record.measurement.at_s >= begin_s
    )
    return Planetlab(queries=queries, records=records, counts=counts, latency_s=latency_s)
