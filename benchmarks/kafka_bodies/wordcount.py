"""Spark's own `structured_kafka_wordcount.py`, unchanged, with Tidegate attached.

    python -m benchmarks.kafka_bodies.wordcount ROOT SERVERS TOPIC TARGET EXECUTORS

Writes ROOT/ready once the program reads the topic. When ROOT/produced says how many records there
are, it waits until all of them are processed, and ends the program's query.
"""

import json
import runpy
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tidegate as tg
from tidegate.spark.loop.negotiate import ExecutorNegotiator, executors_up
from tidegate.spark.measure.query_meter import QueryMeter

PROGRAM = (
    Path(pyspark.__file__).parent
    / "examples/src/main/python/sql/streaming/structured_kafka_wordcount.py"
)
_LOOK_S = 0.1
_SHUFFLE_PARTITIONS = 24
"""Spark's default is 200. As many tasks as that, one after the other, are what a second executor
speeds up, so a stateful program with few rows needs executors, too."""


class Watch(threading.Thread):
    """Follows the program's query from its first trigger to its last record."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        super().__init__(daemon=True)
        self.spark, self.root = spark, root
        self.found: dict[str, Any] = {}

    def run(self) -> None:
        """Until all that was produced is processed."""
        while not (queries := self.spark.streams.active):
            time.sleep(_LOOK_S)
        (query,) = queries
        while "Waiting" not in query.status["message"] and query.lastProgress is None:
            time.sleep(_LOOK_S)
        (self.root / "ready").write_text("yes")
        self._follow(query)
        error = query.exception()
        self.found["error"] = None if error is None else str(error)
        query.stop()

    def _follow(self, query: StreamingQuery) -> None:
        meter, produced = QueryMeter(query), self.root / "produced"
        rows, batches = 0, []
        while query.isActive:
            for batch in meter.read():
                rows += batch.rows
                batches.append(batch.batch_id)
            self.found |= {
                "rows": rows,
                "batches": len(set(batches)),
                "last": max(batches, default=-1),
            }
            if produced.exists() and rows >= int(produced.read_text()):
                return
            time.sleep(_LOOK_S)


def begin_with_one(spark: SparkSession, most: int) -> None:
    """Release all executors but one; a local-cluster starts with all of them."""
    while executors_up(spark) < most:
        time.sleep(_LOOK_S)
    ExecutorNegotiator(spark, 1, 1, boundary=lambda *_: nullcontext(True)).let_go()
    while executors_up(spark) > 1:
        time.sleep(_LOOK_S)


def main(root: Path, servers: str, topic: str, target: str, most: int) -> None:
    """Attach to the session, then run the program in it."""
    conf = {"spark.sql.shuffle.partitions": _SHUFFLE_PARTITIONS}
    spark = tg.session(f"local-cluster[{most},1,1024]", "wordcount", kafka=True, **conf)
    begin_with_one(spark, most)
    watch = Watch(spark, root)
    watch.start()
    records = root / "records"
    with tg.attach(spark, target=target, executors=(1, most), records=records) as attachment:
        sys.argv = [str(PROGRAM), servers, "subscribe", topic]
        runpy.run_path(str(PROGRAM), run_name="__main__")
        watch.join()
    failure = attachment.failure
    watch.found["control"] = None if failure is None else repr(failure)
    (root / "report.json").write_text(json.dumps(watch.found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
