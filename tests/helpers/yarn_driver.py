"""A pipeline on YARN and HDFS that loses a host, as a process of its own.

    python yarn_driver.py ROOT

The pipeline has two segments, so that a channel is on HDFS as well. The load rises until there are
three executors, each on a NodeManager of its own. One is killed with its executor and comes back,
another one is decommissioned, and the load falls until one executor is left. What happened goes to
ROOT/report.json.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import functions as F

import tidegate as tg
from tests.helpers.executors_driver import HIGH, LOW, OPTIONS, WAIT_S, Cluster, Feeder, wait_until
from tidegate.apps.waiting import waiting_map
from tidegate.spark.clusters.yarn import Yarn
from tidegate.spark.loop.negotiate import executors_up

LEAST, MOST = 1, 3
BEGUN_S = time.monotonic()
SCHEMA = "seq long, key string, at timestamp"


def tell(what: str) -> None:
    """Say on standard output what has been reached, and when."""
    print(f"{time.monotonic() - BEGUN_S:7.1f} s  {what}", flush=True)


def main(root: Path) -> None:
    (root / "in").mkdir()
    # The master of the application has the fourth NodeManager.
    with Yarn(MOST + 1, cores=1, memory_mb=1024) as yarn:
        tell("YARN and HDFS are up")
        light = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        conf = {f"spark.{side}.extraJavaOptions": light for side in ("driver", "executor")}
        conf |= {"spark.decommission.enabled": True, "spark.yarn.am.extraJavaOptions": light}
        spark = tg.session("yarn", "yarn", **yarn.settings(), **conf)
        wait_until(lambda: executors_up(spark) == LEAST)
        tell("the first executor is up")
        source = f"file://{root / 'in'}"
        flow = (
            tg.pipeline("slow", spark.readStream.schema(SCHEMA).parquet(source), arrival="at")
            .map(waiting_map(WAIT_S), name="wait", tasks=(1, MOST))
            .cut("counts")
            .keyed("totals", tg.aggregate(count=tg.count(), sum=tg.sum("seq")), key="key", shards=8)
        )
        checkpoint = f"{yarn.hdfs.url}/pipelines/slow"
        run = flow.start(checkpoint, cores=(LEAST, MOST), **OPTIONS)
        query = run.queries["main"]
        cluster = Cluster(spark)
        run.loop.watchers.append(cluster.watch(run.loop.negotiator.pool.executors))
        feeder = Feeder(root / "in", query)
        feeder.write(LOW)
        wait_until(lambda: bool(cluster.up) and cluster.up[-1] == LEAST, query)
        feeder.start()
        wait_until(lambda: (query.lastProgress or {"batchId": 0})["batchId"] >= 4, query)
        tell("the first batches are done")
        feeder.rate = HIGH
        wait_until(lambda: cluster.up[-1] == MOST, query)

        tell(f"{MOST} executors are up")
        master = yarn.node_of_master()
        hosts = [n for n in range(len(yarn)) if n != master and yarn.containers(n)]
        yarn.kill(hosts[0])
        wait_until(lambda: cluster.up[-1] < MOST, query)
        wait_until(lambda: yarn.states()[hosts[0]] == "LOST", query)
        tell("the killed NodeManager is lost")
        yarn.restart(hosts[0])
        wait_until(lambda: cluster.up[-1] == MOST, query)
        tell("its executor is replaced")
        yarn.decommission(hosts[1])
        wait_until(lambda: yarn.states()[hosts[1]] == "DECOMMISSIONED", query)
        wait_until(lambda: cluster.up[-1] < MOST, query)
        states = yarn.states()
        tell("another one is decommissioned")

        feeder.rate = LOW
        wait_until(lambda: cluster.up[-1] == LEAST, query)
        tell(f"{LEAST} executor is left")
        feeder.ended.set()
        feeder.join()
        run.processAllAvailable()
        run.stop()
        rows = spark.read.parquet(source).groupBy("key").agg(F.count("*"), F.sum("seq"))
        found = tg.read_state(checkpoint, "totals").to_pylist()
        report = {
            "found": {row["key"]: [row["count"], row["sum"]] for row in found},
            "expected": {row[0]: [row[1], row[2]] for row in rows.collect()},
            "rows": feeder.rows,
            "executors": cluster.up,
            "hosts": len(hosts),
            "states": [states[host] for host in hosts],
            "failure": None if run.loop.failure is None else repr(run.loop.failure),
        }
        spark.stop()
    (root / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
