"""Writing offset and commit logs: the session's checkpoint manager against Spark's default."""

import tempfile
import time
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from tidegate.benching import Bench, Options, at_least
from tidegate.spark.measure.query_meter import QueryMeter
from tidegate.spark.session import session
from tidegate.spark.sources.arrivals import arrivals

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_DEFAULT = "FileContextBasedCheckpointFileManager"


def run(options: Options) -> Bench:
    """Alternate between the two in one session, so that a busy machine slows both."""
    rounds, batches = (2, 15) if options.quick else (4, 30)
    spark = session("local[*]", "tidegate bench checkpoint")
    ours = str(spark.conf.get(_MANAGER))
    managers = [ours, f"{ours.rpartition('.')[0]}.{_DEFAULT}"]
    log_s: dict[str, list[float]] = {manager: [] for manager in managers}
    options.progress.expect((rounds + 1) * len(managers))
    for turn in range(rounds + 1):
        for manager in managers:
            spark.conf.set(_MANAGER, manager)
            options.progress.step(f"round {turn} of {rounds}: {manager.rpartition('.')[2]}")
            measured = _log_s(spark, batches)
            if turn > 0:  # the first round warms up
                log_s[manager] += measured
    spark.stop()
    results = [
        {"manager": manager.rpartition(".")[2], "log_ms_per_batch": 1000 * median(log_s[manager])}
        for manager in managers
    ]
    ratio = median(log_s[managers[1]]) / median(log_s[ours])
    aim = at_least("time for the logs, default over ours", ratio, 1.5, "times")
    return Bench(bench="checkpoint", results=results, aims=[aim])


def _log_s(spark: SparkSession, wanted: int) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as checkpoint:
        writer = arrivals(spark, "constant:2000").writeStream.format("noop")
        query = writer.option("checkpointLocation", str(Path(checkpoint) / "logs")).start()
        meter, seen = QueryMeter(query), list[float]()
        try:
            while len(seen) < wanted:
                if (failure := query.exception()) is not None:
                    raise failure
                seen += [batch.log_s for batch in meter.read()]
                time.sleep(0.05)
        finally:
            query.stop()
        return seen
