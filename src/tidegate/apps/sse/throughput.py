"""Throughput of the stock exchange under several paradigms (Elasticutor 5.4, figure 16, table 2).

The source is always full, so time in the market passes with the orders that were processed: at
`ORDERS_PER_S` a stock keeps its popularity for so many orders that a pipeline can follow. Every run
is verified against a sequential replay of its orders.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidegate.apps.full_pipeline import FullPipeline
from tidegate.apps.full_source import full_source
from tidegate.apps.paradigms import (
    EACH_BATCH,
    balance_each_batch,
    breaks_s,
    check_paradigm,
    control_of,
    follow,
)
from tidegate.apps.sse.application import (
    EVENTS,
    MOST_TASKS,
    STATISTICS,
    STRETCHED_S,
    TRANSACTOR,
    ExchangeSinks,
    sse_stream,
)
from tidegate.apps.sse.market import Market
from tidegate.apps.work_done import WorkDone, work_done
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.workload.keys import Keys
from tidegate.workload.parse import parse_profile

ORDER_S = 0.01
"""What the transactor takes for an order here. As in the paper it is to be the bottleneck: with the
application's own 1 ms, the eleven analytics and the fixed cost of a batch would be most of it."""
TIMES_S = {**STRETCHED_S, TRANSACTOR: ORDER_S}
MOST_MEASURED_TASKS = {**MOST_TASKS, **dict.fromkeys((*STATISTICS, *EVENTS), 1)}
"""One task of each analytic is enough behind such a transactor."""
ORDERS_PER_S = 1_600
"""Orders in a second of the market. A stock keeps its popularity for five such seconds, which is a
few batches."""
BATCH_S = 4.0
MEASURED_STOCKS = 1_000
WARM_BATCHES = 4
"""Batches that are not judged, while Spark starts its Python workers and compiles."""


def measure_exchange(
    spark: SparkSession,
    paradigm: str,
    *,
    tasks: int,
    seconds: float,
    batch_s: float = BATCH_S,
    stocks: int = MEASURED_STOCKS,
    seed: int = 1,
    warm_batches: int = WARM_BATCHES,
    options: Mapping[str, Any] | None = None,
) -> WorkDone:
    """Run for some seconds after the warm-up, with so many tasks of the transactor.

    `batch_s` is how long the orders of a batch take if they are spread evenly over its tasks.
    `options` are further ones of `start`. `exactly_once` of the result is the verifier's verdict.
    """
    check_paradigm(paradigm)
    market = Market(parse_profile(f"constant:{ORDERS_PER_S}"), seed, stocks)
    batch_rows = max(1, round(tasks * batch_s / ORDER_S))
    with tempfile.TemporaryDirectory(prefix="tidegate-sse-") as directory:
        sinks = ExchangeSinks.below(Path(directory) / "collected")

        def build() -> Stream:
            rows = full_source(spark, Keys(1), seed=seed, batch_rows=batch_rows)
            source = pipeline("sse", rows, arrival="timestamp")
            return sse_stream(source, market, sinks, times=TIMES_S, most_tasks=MOST_MEASURED_TASKS)

        full = FullPipeline(
            spark,
            build,
            str(Path(directory) / "checkpoint"),
            operator=TRANSACTOR,
            tasks=tasks,
            options={**control_of(paradigm, tasks, batch_s), **(options or {})},
        )
        restarts: list[int] = []
        try:
            if paradigm == EACH_BATCH:
                balance_each_batch(full)
            full.await_batches(warm_batches)
            restarts = follow(full, paradigm, seconds)
        finally:
            full.stop()
        verdict = sinks.verdict(market, full.rows, full.checkpoint)
        return work_done(
            full,
            paradigm,
            tasks,
            warm_batches=warm_batches,
            breaks=breaks_s(full, restarts),
            exactly_once=verdict.correct,
        )
