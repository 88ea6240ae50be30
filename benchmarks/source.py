"""Our source of arrivals against Spark's built-in rate source: rows per second, smoothness."""

import tempfile
import time
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession

from tidegate.benching import Bench, Options, at_least
from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.query_meter import QueryMeter
from tidegate.spark.session import session
from tidegate.spark.sources.arrivals import arrivals

_FULL_RATE = 500_000
_LIGHT_RATE = 1_000


def run(options: Options) -> Bench:
    """Measure throughput at full load in 2-second triggers, and smoothness at light load."""
    batches = 4 if options.quick else 12
    light_s = 6.0 if options.quick else 20.0
    spark = session("local[*]", "tidegate bench source")
    results = []
    options.progress.expect(4)
    for name in ("tidegate arrivals", "spark rate"):
        options.progress.step(f"{name}: {_FULL_RATE:,d} rows/s in triggers of 2 s")
        full = _batches(spark, _rows(spark, name, _FULL_RATE), "2 seconds", wanted=batches)
        options.progress.step(f"{name}: {_LIGHT_RATE:,d} rows/s, as fast as batches go")
        light = _batches(spark, _rows(spark, name, _LIGHT_RATE), "0 seconds", for_s=light_s)
        results.append(
            {
                "source": name,
                "rows_per_s": median(batch.rows / batch.duration_s for batch in full),
                "rows_per_batch": int(median(batch.rows for batch in full)),
                "light_batches_per_s": len(light) / light_s,
                "light_rows_per_batch": median(batch.rows for batch in light),
            }
        )
    spark.stop()
    ours, rate = results
    return Bench(
        bench="source",
        results=results,
        aims=[
            at_least("our source, rows per second", ours["rows_per_s"], 300_000, "rows/s"),
            at_least(
                "batches per second at 1,000 rows/s, ours over Spark's",
                ours["light_batches_per_s"] / rate["light_batches_per_s"],
                1.5,
                "times",
            ),
        ],
    )


def _rows(spark: SparkSession, name: str, rate: int) -> DataFrame:
    if name == "spark rate":
        return spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    return arrivals(spark, f"constant:{rate}", keys="zipf:100000,1.1")


def _batches(
    spark: SparkSession,
    rows: DataFrame,
    trigger: str,
    wanted: int | None = None,
    for_s: float | None = None,
) -> list[BatchProgress]:
    """Batches with rows, after three to warm up: a given number, or all within a given time."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as checkpoint:
        writer = rows.writeStream.format("noop").trigger(processingTime=trigger)
        query = writer.option("checkpointLocation", str(Path(checkpoint) / "source")).start()
        meter, batches, since_s = QueryMeter(query), [], None
        try:
            while True:
                if (failure := query.exception()) is not None:
                    raise failure
                batches += [batch for batch in meter.read() if batch.rows]
                warm = batches[3:]
                if since_s is None and len(batches) >= 3:
                    since_s = time.monotonic()
                if wanted is not None and len(warm) >= wanted:
                    return warm[:wanted]
                if for_s is not None and since_s and time.monotonic() >= since_s + for_s:
                    return warm
                time.sleep(0.02)
        finally:
            query.stop()
