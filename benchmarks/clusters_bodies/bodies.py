"""The clusters that the demo's load runs on, and how each of them loses a host."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clusters_bodies.first_batches import first_batches
from benchmarks.clusters_bodies.loss import Back, Loss, held_again_s, longest_gap_s
from pyspark.sql import SparkSession

from tidegate.apps.surge import WARM_S, Surge, peak_cores, run_surge
from tidegate.spark.clusters.hosts import Hosts
from tidegate.spark.clusters.standalone import Standalone
from tidegate.spark.clusters.store import Store, new_bucket
from tidegate.spark.clusters.yarn import Yarn
from tidegate.spark.session import session
from tidegate.view.summary import summarise

HOSTS, CORES_EACH = 4, 4
_APP = "bench-clusters"
SAID = "| "
"""Lines with it are for the person who waits."""


@dataclass(frozen=True, slots=True)
class Body:
    """A cluster that is up."""

    spark: SparkSession
    place: str
    """The directory of checkpoints."""
    lose: Callable[[], Back]
    shared: bool = False
    """Whether the directory is one that all hosts mount."""


def say(what: str) -> None:
    """Tell the person who waits what is being done."""
    print(f"{SAID}{what}", flush=True)


@contextmanager
def hosts() -> Iterator[Body]:
    """A standalone cluster on four hosts, and a directory that all of them have."""
    say(f"starting a master and {HOSTS} hosts with {CORES_EACH} cores each")
    with Hosts(HOSTS) as machines, Standalone(machines, cores=CORES_EACH) as cluster:
        spark = session(cluster.url, _APP, **cluster.settings())
        place = str(machines.directory / "shared")
        with _stopped(spark):
            yield Body(spark, place, lambda: _lose_host(machines, cluster), shared=True)


@contextmanager
def s3() -> Iterator[Body]:
    """A standalone cluster on four hosts, and a store that speaks S3's protocol."""
    say(f"starting a store, a master and {HOSTS} hosts with {CORES_EACH} cores each")
    with ExitStack() as stack:
        machines = stack.enter_context(Hosts(HOSTS))
        store = stack.enter_context(Store(machines.directory / "store.log", machines.address))
        os.environ.update(store.environment)  # this process is the body's own
        cluster = stack.enter_context(Standalone(machines, cores=CORES_EACH))
        spark = session(cluster.url, _APP, s3=True, **cluster.settings())
        stack.enter_context(_stopped(spark))
        yield Body(spark, f"s3://{new_bucket()}", lambda: _lose_host(machines, cluster))


@contextmanager
def yarn() -> Iterator[Body]:
    """YARN with four NodeManagers, and HDFS."""
    say(f"starting HDFS and YARN with {HOSTS} NodeManagers with {CORES_EACH} cores each")
    # A NodeManager has room for one executor, and for the master of the application beside it.
    with Yarn(HOSTS, cores=CORES_EACH + 1, memory_mb=2304) as cluster:
        settings = cluster.settings(executor_cores=CORES_EACH, executor_memory="1g")
        spark = session("yarn", _APP, **settings)
        with _stopped(spark):
            yield Body(spark, f"{cluster.hdfs.url}/bench", lambda: _lose_node(cluster))


BODIES: Mapping[str, Callable[[], Any]] = {"hosts": hosts, "yarn": yarn, "s3": s3}


def measured(name: str, seconds: float, target_s: float) -> dict[str, Any]:
    """Run the load on a cluster, lose a host in the middle, and say what it showed."""
    with BODIES[name]() as body:
        say("how much longer the first micro-batch on a new executor takes")
        place = f"{body.place}/first"
        first = first_batches(body.spark, place, CORES_EACH, shared=body.shared)
        loss = Loss(0.5 * seconds, body.lose)
        say(f"{seconds:.0f} s of load, a host is lost after {0.5 * seconds:.0f} s")
        try:
            surge = run_surge(
                body.spark,
                seconds,
                cores=(CORES_EACH, HOSTS * CORES_EACH),
                target_s=target_s,
                place=body.place,
                shared=body.shared,
                on_record=loss.watch,
            )
        finally:
            loss.end()
    if loss.failure is not None:
        raise loss.failure
    return _told(surge, seconds, target_s, loss.at_s) | first


@contextmanager
def _stopped(spark: SparkSession) -> Iterator[None]:
    try:
        yield
    finally:
        spark.stop()


def _lose_host(machines: Hosts, cluster: Standalone) -> Back:
    """Kill the host with most processes, which has a worker and executors."""
    host = max((machines[n] for n in range(len(machines))), key=lambda one: len(one.pids()))
    host.kill()
    return lambda: cluster.start_worker(host)


def _lose_node(cluster: Yarn) -> Back:
    """Kill a NodeManager that has an executor, and not the master of the application."""
    master = cluster.node_of_master()
    number = max((n for n in range(len(cluster)) if n != master), key=cluster.containers)
    cluster.kill(number)
    return lambda: cluster.restart(number)


def _told(surge: Surge, seconds: float, target_s: float, lost_s: float | None) -> dict[str, Any]:
    """What a run showed."""
    static = peak_cores(target_s=target_s)
    warm_s = min(WARM_S, seconds / 3)
    found = summarise(surge.records, warm_up_s=warm_s, static_cores=static).document()
    names = ("within_target", "p95_ms", "core_seconds", "cost_vs_static", "changes")
    return {
        **{name: found[name] for name in (*names, "state_fetched_bytes")},
        "longest_gap_s": longest_gap_s(surge.records),
        "lost": lost_s is not None,
        "held_again_s": held_again_s(surge.records, lost_s, target_s),
        "rows": surge.counted,
        "verified": surge.verified,
    }


def main(name: str, seconds: str, target_s: str, answer: str) -> None:
    """The process of one cluster."""
    found = measured(name, float(seconds), float(target_s))
    Path(answer).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
