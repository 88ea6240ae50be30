"""A query on a cluster that Tidegate is attached to, as a process of its own.

    python attach_driver.py ROOT

The query knows nothing of Tidegate: it reads files, and its cost is waiting, 10 ms a row. The load
rises until executors have come and falls until they have gone, so that a slow machine takes longer
and sees the same. What happened goes to ROOT/report.json.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.spark.negotiate import ExecutorNegotiator, executors_up

LOW, HIGH = 20, 160
"""Rows per second; one executor does less than 100."""
EVERY_S = 0.5
PARTITIONS = 6
WAIT_S = 0.01
TARGET = "4 seconds"
EXECUTORS = (1, 4)
PATIENCE_S = 240.0


class Feeder(threading.Thread):
    """Writes a file of rows every half second; `rate` may change at any time."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self.rate = LOW
        self.rows = 0
        self.ended = threading.Event()
        self._directory = directory
        directory.mkdir()

    def run(self) -> None:
        while not self.ended.wait(EVERY_S):
            count = round(self.rate * EVERY_S)
            table = pa.table({"seq": pa.array(range(self.rows, self.rows + count), pa.int64())})
            aside = self._directory / f".{self.rows}"
            pq.write_table(table, aside)
            aside.rename(self._directory / f"{self.rows:09d}.parquet")
            self.rows += count


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
    begun_s = time.monotonic()
    spark = tg.session("local-cluster[4,1,1024]", "attach")
    begin_with_one(spark)
    feeder = Feeder(root / "in")
    query = (
        spark.readStream.schema("seq long")
        .parquet(str(root / "in"))
        .repartition(PARTITIONS)
        .mapInArrow(slow, "seq long")
        .writeStream.queryName("slow")
        .format("parquet")
        .option("path", str(root / "out"))
        .option("checkpointLocation", str(root / "checkpoint"))
        .start()
    )
    ups: list[int] = []

    def until(condition: Callable[[], bool]) -> None:
        while not condition():
            if not query.isActive or time.monotonic() > begun_s + PATIENCE_S:
                raise SystemExit(f"gave up: {ups}, {feeder.rows} rows, {query.exception()}")
            time.sleep(0.05)

    attachment = tg.attach(
        spark,
        target=TARGET,
        executors=EXECUTORS,
        records=root / "records",
        scale_in_after="5 seconds",
    )
    with attachment:
        attachment.watchers.append(lambda record: ups.append(executors_up(spark)))
        until(lambda: len(query.recentProgress) >= 2)
        feeder.start()
        until(lambda: len(query.recentProgress) >= 8)
        feeder.rate = HIGH
        until(lambda: max(ups) >= 3)
        feeder.rate = LOW
        until(lambda: ups[-1] == EXECUTORS[0])
        feeder.ended.set()
        feeder.join()
        query.processAllAvailable()
    failed = failures(spark)
    error = query.exception()
    query.stop()
    rows = spark.read.parquet(str(root / "out")).select("seq")
    report = {
        "seconds": time.monotonic() - begun_s,
        "expected": feeder.rows,
        "rows": rows.count(),
        "distinct": rows.distinct().count(),
        "executors": ups,
        "released": attachment.negotiator.released,
        "failed_tasks": failed,
        "error": None if error is None else str(error),
        "failure": None if attachment.failure is None else repr(attachment.failure),
        "measuring_ms_per_tick": 1000.0 * attachment.meter.spent_s / len(attachment.records),
        "grant_s": attachment.negotiator.grant_s,
    }
    (root / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
