"""The queries: each computes the average CPU use over all nodes, once a second.

All queries are the same, and each does its own work for every row, so twice the queries are twice
the load. Rows are shed before they are copied for the queries: every query sees the same rows.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.apps.collected import Collected
from tidegate.apps.planetlab.load import node_keys, node_rates, readings_of
from tidegate.apps.planetlab.noted_rows import NotedRows
from tidegate.apps.stretching import Stretched
from tidegate.pipelines.functions import aggregate, count, mean, window
from tidegate.pipelines.shedding import WEIGHT, ShedClass
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.sources.arrivals import arrivals
from tidegate.workload.cpu import Series

SHARDS = 64
WINDOW_S = 1
_SOURCE_PARTITIONS = 2


def readings(
    series: Series, queries: int, kept: NotedRows | None = None
) -> Callable[[pa.Table], pa.Table]:
    """A map that looks up the reading of each row, and copies it for every query."""

    def ask(rows: pa.Table) -> pa.Table:
        if kept is not None:
            kept.note(rows)
        stamps = rows["timestamp"].combine_chunks()
        cpu = readings_of(series, stamps.cast(pa.int64()).to_numpy(), rows["key"].to_numpy())
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
    spark: SparkSession,
    series: Series,
    queries: int,
    *,
    seed: int = 1,
    row_s: float | None = None,
    kept: NotedRows | None = None,
    answers: Collected | None = None,
) -> Stream:
    """The pipeline: rows of the nodes, a copy for each query, an average per query and second.

    A row takes `row_s` in each query, by waiting; None: as fast as it is. `kept` and `answers`
    collect what a check of the answers needs.
    """
    nodes = series.shape[1]
    stream = arrivals(
        spark,
        node_rates(nodes),
        keys=node_keys(nodes),
        seed=seed,
        partitions=_SOURCE_PARTITIONS,
    )
    average = window(
        aggregate(cpu=mean("cpu", weighted=True), rows=count()),
        every=f"{WINDOW_S} second",
        event_time="timestamp",
        emit="update",
    )
    flow = (
        pipeline("planetlab", stream, arrival="timestamp")
        .shed(by="key", classes={str(node): ShedClass() for node in range(nodes)}, weight=True)
        .map(
            readings(series, queries, kept),
            f"query long, cpu double, timestamp timestamp, {WEIGHT} double",
            name="ask",
        )
        .keyed("average", Stretched(average, row_s), key="query", shards=SHARDS)
    )
    return flow if answers is None else flow.to(answers)
