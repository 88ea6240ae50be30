"""Views per ad in windows of ten seconds, written so that `tidegate calibrate` can measure it.

    python examples/ad_views.py                                          # records a sample, runs
    tidegate calibrate examples/ad_views.py --rows ad_views.parquet      # how much do n cores do?

`flow(rows)` builds the pipeline on any stream with the same columns: the real one, or the recorded
rows that a calibration repeats.
"""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

import tidegate as tg


def viewed(table: pa.Table) -> pa.Table:
    """Only what was looked at for a second or longer."""
    return table.filter(pc.greater_equal(table["seconds"], 1.0))


def flow(rows: DataFrame) -> tg.Stream:
    """The pipeline, without its source."""
    return (
        tg.pipeline("ad_views", rows, arrival="at")
        .map(viewed)
        .keyed("per_ad", tg.window(tg.count(), every="10 seconds", event_time="at"), key="ad")
        .to("console")
    )


def source(spark, seconds: float) -> DataFrame:
    """Stands for Kafka: 2,000 rows a second."""
    rows = tg.arrivals(spark, "constant:2000", keys="zipf:500,1.1", seconds=seconds)
    return rows.selectExpr("concat('ad-', key) AS ad", "10 * value AS seconds", "timestamp AS at")


def record(rows: DataFrame, path: str) -> None:
    """Write what a stream has now to Parquet: a sample for a calibration."""
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = rows.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        query = writer.start(path)
        query.processAllAvailable()
        query.stop()


def main(spark=None, seconds: float = 10, sample: str = "ad_views.parquet") -> None:
    spark = spark or tg.session("local[4]")
    record(source(spark, 2), sample)
    print(f"recorded a sample: {sample}")
    with tempfile.TemporaryDirectory() as directory:
        run = flow(source(spark, seconds)).start(str(Path(directory) / "checkpoint"), tasks=2)
        run.awaitTermination(seconds)
        run.stop()


if __name__ == "__main__":
    main()
