"""A query or a pipeline on a cluster whose executors Tidegate scales, as a process of its own.

    python executors_driver.py attached|pipeline ROOT

Both read files, and their cost is waiting, 10 ms a row. The attached query knows nothing of
Tidegate. The load rises until all executors have come and falls until all but one have gone, and no
more rows are written while many wait, so that a slow machine takes longer and sees the same. What
happened goes to ROOT/report.json.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tidegate as tg
from tidegate.apps.waiting import waiting_map
from tidegate.control.record import Record
from tidegate.spark.loop.negotiate import ExecutorNegotiator, executors_up
from tidegate.spark.measure.query_meter import QueryMeter

LOW, HIGH = 10, 300
"""Rows per second; one executor does less than 100."""
MOST_WAITING = 800
EVERY_S = 0.5
PARTITIONS = 8
KEYS = 50
WAIT_S = 0.01
LEAST, MOST = 1, 4
OPTIONS = {"target": "30 seconds", "catch_up": "5 seconds", "scale_in_after": "2 seconds"}
PATIENCE_S = 540.0


class Feeder(threading.Thread):
    """Writes a file of rows every half second; `rate` may change at any time."""

    def __init__(self, directory: Path, query: StreamingQuery) -> None:
        super().__init__(daemon=True)
        self.rate = LOW
        self.rows = 0
        self.ended = threading.Event()
        self._directory = directory
        self._meter = QueryMeter(query)
        self._done = 0

    def run(self) -> None:
        while not self.ended.wait(EVERY_S):
            self._done += sum(batch.rows for batch in self._meter.read())
            if self.rows - self._done < MOST_WAITING:
                self.write(round(self.rate * EVERY_S))

    def write(self, count: int) -> None:
        numbers = range(self.rows, self.rows + count)
        table = pa.table(
            {
                "seq": pa.array(numbers, pa.int64()),
                "key": [f"key {number % KEYS}" for number in numbers],
                "at": pa.array([time.time_ns() // 1000] * count, pa.timestamp("us", "UTC")),
            }
        )
        aside = self._directory / f".{self.rows}"
        pq.write_table(table, aside)
        aside.rename(self._directory / f"{self.rows:09d}.parquet")
        self.rows += count


def slow(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for block in blocks:
        time.sleep(WAIT_S * block.num_rows)
        yield block


class Cluster:
    """Observes the executors through Spark's driver, to check what Tidegate reports."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext._jsc.sc()
        self.up: list[int] = []
        """The number of executors at each tick."""
        self.removals: list[dict[str, int]] = []
        """What was running each time executors were released."""

    def watch(self, negotiator: ExecutorNegotiator) -> Callable[[Record], None]:
        boundary = negotiator._release._boundary

        @contextmanager
        def spied(patience_s: float, needed: Callable[[], bool]) -> Iterator[bool]:
            with boundary(patience_s, needed) as reached:
                if reached:
                    self.removals.append(self._running())
                yield reached

        negotiator._release._boundary = spied
        return lambda record: self.up.append(len(negotiator._staying()))

    def _running(self) -> dict[str, int]:
        ids = self._context.getExecutorIds()
        scheduler = self._context.taskScheduler()
        busy = [scheduler.isExecutorBusy(ids.apply(place)) for place in range(ids.size())]
        return {"jobs": self._context.dagScheduler().activeJobs().size(), "busy": sum(busy)}

    def failed_tasks(self) -> int:
        """The number of tasks of all stages that failed or were killed."""
        store = self._context.statusStore()
        defaults = [getattr(store, f"stageList$default${place}")() for place in (2, 3, 4, 5)]
        stages = store.stageList(None, *defaults)
        listed = [stages.apply(number) for number in range(stages.size())]
        return sum(stage.numFailedTasks() + stage.numKilledTasks() for stage in listed)

    def stage_tries(self) -> int:
        """The highest attempt number of any stage; above 0 if shuffle files were missing."""
        store = self._context.statusStore()
        defaults = [getattr(store, f"stageList$default${place}")() for place in (2, 3, 4, 5)]
        stages = store.stageList(None, *defaults)
        return max(stages.apply(number).attemptId() for number in range(stages.size()))


def begin_with_one(spark: SparkSession) -> None:
    """Release all executors but one; a local-cluster starts with all of them."""
    wait_until(lambda: executors_up(spark) == MOST)
    negotiator = ExecutorNegotiator(spark, 1, LEAST, boundary=lambda *_: nullcontext(True))
    negotiator.let_go()
    wait_until(lambda: executors_up(spark) == LEAST)


def wait_until(condition: Callable[[], bool], query: StreamingQuery | None = None) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        if query is not None and not query.isActive:
            raise SystemExit(f"the query ended: {query.exception()}")
        if time.monotonic() > until_s:
            raise SystemExit(f"waited for {PATIENCE_S} s")
        time.sleep(0.05)


def rise_and_fall(feeder: Feeder, query: StreamingQuery, cluster: Cluster) -> None:
    wait_until(lambda: cluster.up and cluster.up[-1] == LEAST, query)
    feeder.start()
    wait_until(lambda: (query.lastProgress or {"batchId": 0})["batchId"] >= 4, query)
    feeder.rate = HIGH
    wait_until(lambda: max(cluster.up) == MOST, query)
    feeder.rate = LOW
    wait_until(lambda: cluster.up[-1] == LEAST, query)
    batch = query.lastProgress["batchId"]
    wait_until(lambda: query.lastProgress["batchId"] >= batch + 3, query)
    feeder.ended.set()
    feeder.join()
    query.processAllAvailable()


def attached(spark: SparkSession, root: Path, cluster: Cluster) -> dict[str, Any]:
    begin_with_one(spark)
    query = (
        spark.readStream.schema("seq long, key string, at timestamp")
        .parquet(str(root / "in"))
        .repartition(PARTITIONS)
        .mapInArrow(slow, "seq long, key string, at timestamp")
        .groupBy("key")
        .agg(F.count("*").alias("count"), F.sum("seq").alias("sum"))
        .writeStream.queryName("slow")
        .outputMode("complete")
        .format("memory")
        .option("checkpointLocation", str(root / "checkpoint"))
        .start()
    )
    feeder = Feeder(root / "in", query)
    attachment = tg.attach(spark, executors=(LEAST, MOST), records=root / "records", **OPTIONS)
    with attachment:
        attachment.watchers.append(cluster.watch(attachment.negotiator))
        rise_and_fall(feeder, query, cluster)
    found = {row["key"]: [row["count"], row["sum"]] for row in spark.table("slow").collect()}
    error = query.exception()
    query.stop()
    return {
        "found": found,
        "rows": feeder.rows,
        "error": None if error is None else str(error),
        "failure": None if attachment.failure is None else repr(attachment.failure),
        "released": attachment.negotiator.released,
        "measuring_ms_per_tick": 1000.0 * attachment.meter.spent_s / len(attachment.records),
    }


def pipeline(spark: SparkSession, root: Path, cluster: Cluster) -> dict[str, Any]:
    begin_with_one(spark)
    stream = spark.readStream.schema("seq long, key string, at timestamp").parquet(str(root / "in"))
    flow = (
        tg.pipeline("slow", stream, arrival="at")
        .map(waiting_map(WAIT_S), name="wait", tasks=(1, MOST))
        .keyed("totals", tg.aggregate(count=tg.count(), sum=tg.sum("seq")), key="key", shards=16)
    )
    checkpoint = root / "records"
    run = flow.start(str(checkpoint), cores=(LEAST, MOST), **OPTIONS)
    query = run.queries["main"]
    feeder = Feeder(root / "in", query)
    run.loop.watchers.append(cluster.watch(run.loop.negotiator.pool.executors))
    feeder.write(LOW)
    rise_and_fall(feeder, query, cluster)
    run.processAllAvailable()
    run.stop()
    error = query.exception()
    state = tg.read_state(str(checkpoint), "totals").to_pylist()
    return {
        "found": {row["key"]: [row["count"], row["sum"]] for row in state},
        "rows": feeder.rows,
        "error": None if error is None else str(error),
        "failure": None if run.loop.failure is None else repr(run.loop.failure),
        "released": run.loop.negotiator.released,
        "measuring_ms_per_tick": 1000.0 * run.loop.meter.spent_s / len(run.loop.records),
    }


def main(kind: str, root: Path) -> None:
    begun_s = time.monotonic()
    (root / "in").mkdir()
    conf = {"spark.ui.retainedStages": 100_000, "spark.ui.retainedTasks": 1_000_000}
    # Five JVMs share few cores: in a short run the optimising compiler costs more than it saves.
    light = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    conf |= {f"spark.{side}.extraJavaOptions": light for side in ("driver", "executor")}
    spark = tg.session(f"local-cluster[{MOST},1,1024]", kind, **conf)
    cluster = Cluster(spark)
    report = {"attached": attached, "pipeline": pipeline}[kind](spark, root, cluster)
    rows = spark.read.parquet(str(root / "in")).groupBy("key").agg(F.count("*"), F.sum("seq"))
    report |= {
        "expected": {row[0]: [row[1], row[2]] for row in rows.collect()},
        "executors": cluster.up,
        "removals": cluster.removals,
        "failed_tasks": cluster.failed_tasks(),
        "stage_tries": cluster.stage_tries(),
        "seconds": time.monotonic() - begun_s,
    }
    (root / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
