"""A query on a cluster that Tidegate is attached to, as a process of its own.

    python attach_driver.py ROOT

The query knows nothing of Tidegate: its cost is waiting, 10 ms a row. Load rises five-fold and
falls again. What happened goes to ROOT/report.json.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.spark.negotiate import ExecutorNegotiator, executors_up
from tidegate.workload.parse import parse_profile

PROFILE = "step:40@0,200@10,40@32"
SECONDS = 64.0
PARTITIONS = 8
WAIT_S = 0.01
TARGET = "3 seconds"
EXECUTORS = (1, 4)


def slow(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for block in blocks:
        time.sleep(WAIT_S * block.num_rows)
        yield block


def begin_with_one(spark: SparkSession) -> None:
    """A local-cluster starts all its executors; let go all but one."""
    while executors_up(spark) < EXECUTORS[1]:
        time.sleep(0.05)
    negotiator = ExecutorNegotiator(spark, 1, EXECUTORS[0])
    while executors_up(spark) > EXECUTORS[0]:
        negotiator.granted()
        time.sleep(0.05)


def failures(spark: SparkSession) -> int:
    """Tasks that failed or were killed, by Spark's own count of all stages."""
    store = spark.sparkContext._jsc.sc().statusStore()
    defaults = [getattr(store, f"stageList$default${place}")() for place in (2, 3, 4, 5)]
    stages = store.stageList(None, *defaults)
    listed = [stages.apply(number) for number in range(stages.size())]
    return sum(stage.numFailedTasks() + stage.numKilledTasks() for stage in listed)


def main(root: Path) -> None:
    spark = tg.session("local-cluster[4,1,1024]", "attach")
    begin_with_one(spark)
    expected = parse_profile(PROFILE).count(round(SECONDS * 1000))
    query = (
        tg.arrivals(spark, PROFILE, seconds=SECONDS, partitions=PARTITIONS)
        .mapInArrow(slow, "key long, value double, seq long, timestamp timestamp")
        .writeStream.queryName("slow")
        .format("parquet")
        .option("path", str(root / "out"))
        .option("checkpointLocation", str(root / "checkpoint"))
        .start()
    )
    ups: list[int] = []
    with tg.attach(
        spark,
        target=TARGET,
        executors=EXECUTORS,
        records=root / "records",
        scale_in_after="6 seconds",
    ) as attachment:
        attachment.watchers.append(lambda record: ups.append(executors_up(spark)))
        done = 0
        until_s = time.monotonic() + SECONDS + 30.0
        while time.monotonic() < until_s and query.isActive:
            done = sum(entry["numInputRows"] for entry in query.recentProgress)
            in_again = max(ups, default=0) > 1 and ups[-1] == EXECUTORS[0]
            if done >= expected and in_again:
                break
            time.sleep(0.1)
        released = list(attachment.negotiator.released)
        measuring_s, ticks = attachment.meter.spent_s, len(attachment.records)
    error = query.exception()
    query.stop()
    rows = spark.read.parquet(str(root / "out")).select("seq")
    report = {
        "expected": expected,
        "rows": rows.count(),
        "distinct": rows.distinct().count(),
        "executors": ups,
        "released": released,
        "failed_tasks": failures(spark),
        "error": None if error is None else str(error),
        "failure": None if attachment.failure is None else repr(attachment.failure),
        "measuring_ms_per_tick": 1000.0 * measuring_s / max(ticks, 1),
        "grant_s": attachment.negotiator.grant_s,
    }
    (root / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
