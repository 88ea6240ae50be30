"""A pipeline on a cluster that loses a host, as a process of its own.

    python cluster_driver.py hosts|s3|yarn ROOT

`hosts` is a standalone cluster on network namespaces with a checkpoint that all of them have, `s3`
the same with the checkpoint on a store, `yarn` Hadoop's YARN with the checkpoint on HDFS. The
pipeline has two segments, so that a channel is in the checkpoint as well. The load rises until
there are three executors, each on a host of its own. One is killed with its executor and comes
back. Another one is cut off for a while (`hosts`) or decommissioned (`yarn`). Then the load falls
until one executor is left. What happened goes to ROOT/report.json.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import tidegate as tg
from tests.helpers.executors_driver import HIGH, LOW, OPTIONS, WAIT_S, Cluster, Feeder, wait_until
from tidegate.apps.waiting import waiting_map
from tidegate.spark.clusters.hosts import Host, Hosts
from tidegate.spark.clusters.standalone import Standalone
from tidegate.spark.clusters.store import Store, new_bucket
from tidegate.spark.clusters.yarn import Yarn

LEAST, MOST = 1, 3
CUT_S = 30.0
BEGUN_S = time.monotonic()
SCHEMA = "seq long, key string, at timestamp"
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF: dict[str, Any] = {
    **{f"spark.{side}.extraJavaOptions": _LIGHT for side in ("driver", "executor")},
    "spark.decommission.enabled": True,
}


@dataclass
class Setting:
    """A cluster that is up, and what happens to its hosts."""

    spark: SparkSession
    place: str
    shared: bool
    lose: Callable[[], Callable[[], None]]
    """Kills a host with an executor; returns what brings it back."""
    trouble: Callable[[Callable[[], bool]], dict[str, Any]]
    """What happens to another host; it is told whether executors are missing."""


def tell(what: str) -> None:
    """Say on standard output what has been reached, and when."""
    print(f"{time.monotonic() - BEGUN_S:7.1f} s  {what}", flush=True)


@contextmanager
def yarn(root: Path) -> Iterator[Setting]:
    # The master of the application has the fourth NodeManager.
    with Yarn(MOST + 1, cores=1, memory_mb=1024) as cluster:
        tell("YARN and HDFS are up")
        conf = cluster.settings() | CONF | {"spark.yarn.am.extraJavaOptions": _LIGHT}

        def busy() -> list[int]:
            master = cluster.node_of_master()
            return [n for n in range(len(cluster)) if n != master and cluster.containers(n)]

        def lose() -> Callable[[], None]:
            number = busy()[0]
            cluster.kill(number)

            def back() -> None:
                wait_until(lambda: cluster.states()[number] == "LOST")
                tell("the killed NodeManager is lost")
                cluster.restart(number)

            return back

        def trouble(missing: Callable[[], bool]) -> dict[str, Any]:
            number = busy()[-1]
            cluster.decommission(number)
            wait_until(lambda: cluster.states()[number] == "DECOMMISSIONED")
            wait_until(missing)
            return {"state": cluster.states()[number]}

        yield Setting(
            tg.session("yarn", "yarn", **conf),
            f"{cluster.hdfs.url}/pipelines/slow",
            shared=False,
            lose=lose,
            trouble=trouble,
        )


@contextmanager
def hosts(root: Path, on_s3: bool = False) -> Iterator[Setting]:
    with ExitStack() as stack:
        machines = stack.enter_context(Hosts(MOST + 1))
        place = str(machines.directory / "shared")
        if on_s3:
            store = stack.enter_context(Store(root / "store.log", machines.address))
            os.environ.update(store.environment)
            place = f"s3://{new_bucket()}/slow"
        cluster = stack.enter_context(Standalone(machines, cores=1))
        tell("the hosts are up")
        spark = tg.session(cluster.url, "hosts", s3=on_s3, **(cluster.settings() | CONF))

        def busy() -> list[Host]:
            """Hosts with an executor, which has a Python daemon: more processes than a worker."""
            every = [machines[number] for number in range(len(machines))]
            return [host for host in every if len(host.pids()) > 2]

        def lose() -> Callable[[], None]:
            host = busy()[0]
            host.kill()
            return lambda: cluster.start_worker(host)

        def trouble(missing: Callable[[], bool]) -> dict[str, Any]:
            if on_s3:
                return {}
            host = busy()[0]
            host.cut_off()
            tell(f"{host.name} is cut off")
            begun_s = time.monotonic()
            wait_until(missing)
            wait_until(lambda: time.monotonic() > begun_s + CUT_S)
            host.join()
            tell("it is joined again")
            return {"cut_s": time.monotonic() - begun_s}

        yield Setting(spark, place, not on_s3, lose, trouble)


def setting(kind: str, root: Path) -> AbstractContextManager[Setting]:
    """The cluster of this name."""
    return yarn(root) if kind == "yarn" else hosts(root, kind == "s3")


def main(kind: str, root: Path) -> None:
    (root / "in").mkdir()
    with setting(kind, root) as on:
        spark = on.spark
        source = f"file://{root / 'in'}"
        flow = (
            tg.pipeline("slow", spark.readStream.schema(SCHEMA).parquet(source), arrival="at")
            .map(waiting_map(WAIT_S), name="wait", tasks=(1, MOST))
            .cut("counts")
            .keyed("totals", tg.aggregate(count=tg.count(), sum=tg.sum("seq")), key="key", shards=8)
        )
        shared: Any = {"shared_checkpoint": True} if on.shared else {}
        run = flow.start(on.place, cores=(LEAST, MOST), **OPTIONS, **shared)
        tell("the pipeline runs")
        query = run.queries["main"]
        cluster = Cluster(spark)
        loop: Any = run.loop
        loop.watchers.append(cluster.watch(loop.negotiator.pool.executors))
        feeder = Feeder(root / "in", query)
        feeder.write(LOW)
        wait_until(lambda: bool(cluster.up) and cluster.up[-1] == LEAST, query)
        tell("one executor is up")
        feeder.start()
        wait_until(lambda: (query.lastProgress or {"batchId": 0})["batchId"] >= 4, query)
        tell("the first batches are done")
        feeder.rate = HIGH
        wait_until(lambda: cluster.up[-1] == MOST, query)

        tell(f"{MOST} executors are up")
        back = on.lose()
        wait_until(lambda: cluster.up[-1] < MOST, query)
        tell("a host is lost")
        back()
        wait_until(lambda: cluster.up[-1] == MOST, query)
        tell("its executor is replaced")
        troubled = on.trouble(lambda: cluster.up[-1] < MOST)
        tell(f"another one was in trouble: {troubled}")

        feeder.rate = LOW
        wait_until(lambda: cluster.up[-1] == LEAST, query)
        tell(f"{LEAST} executor is left")
        feeder.ended.set()
        feeder.join()
        run.processAllAvailable()
        run.stop()
        rows = spark.read.parquet(source).groupBy("key").agg(F.count("*"), F.sum("seq"))
        found = tg.read_state(on.place, "totals").to_pylist()
        fetched = [o.durable_bytes for r in loop.records for o in r.measurement.operators]
        report = {
            "found": {row["key"]: [row["count"], row["sum"]] for row in found},
            "expected": {row[0]: [row[1], row[2]] for row in rows.collect()},
            "rows": feeder.rows,
            "executors": cluster.up,
            "fetched_bytes": sum(fetched),
            "failure": None if loop.failure is None else repr(loop.failure),
            **troubled,
        }
        spark.stop()
    (root / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
