"""The demo's load on clusters: executors come and go, and a host is lost during the surge.

`hosts` is a standalone cluster whose workers are on four hosts of this machine: network namespaces
with their own addresses and directories (`spark/clusters/hosts.py`), and a checkpoint that all of
them have. At the top of the surge all processes of one host are killed; its worker is back after
half a minute.

`yarn` is Hadoop's YARN with four NodeManagers on addresses of the loopback, and the checkpoint on
HDFS (`spark/clusters/yarn.py`). A NodeManager is killed with its executor, and is back after half a
minute.

The demo's operators sleep, so that executors help on a machine with few cores.

Options: `--seconds 180`, `--only hosts`, `--target '4 seconds'`.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tidegate.apps.surge import WARM_S, Surge, peak_cores, run_surge
from tidegate.benching import Aim, Bench, Options, at_least
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.spark.clusters.hosts import Hosts
from tidegate.spark.clusters.standalone import Standalone
from tidegate.spark.clusters.yarn import Yarn
from tidegate.spark.session import session
from tidegate.units import parse_duration
from tidegate.view.summary import summarise

HOSTS, CORES_EACH = 4, 4
TARGET = "4 seconds"
AWAY_S = 30.0
"""How long the worker of the lost host is gone."""

Body = Callable[[Options, float, float], dict[str, Any]]


def run(options: Options) -> Bench:
    """Run the load on each cluster."""
    seconds = float(options.extra.get("seconds", 90.0 if options.quick else 180.0))
    target_s = parse_duration(options.extra.get("target", TARGET))
    bodies: dict[str, Body] = {"hosts": _hosts, "yarn": _yarn}
    only = options.extra.get("only")
    if only is not None and only not in bodies:
        raise AskedWrongly(f"only={only}: give one of {', '.join(bodies)}")
    wanted = [name for name in bodies if only in (None, name)]
    results = [
        {"cluster": name, **bodies[name](options, seconds, target_s)}
        for name in options.progress.each(wanted, lambda name: f"the cluster '{name}'")
    ]
    aims: list[Aim] = []
    for row in results:
        within = row["within_target"]
        aims.append(at_least(f"{row['cluster']}: seconds within target", within, 0.9))
        name = f"{row['cluster']}: counts equal to a recomputation"
        aims.append(Aim(name, float(row["verified"]), "= 1", row["verified"]))
    return Bench("clusters", results, aims)


def _hosts(options: Options, seconds: float, target_s: float) -> dict[str, Any]:
    """A standalone cluster on four hosts, one of which is lost."""
    options.say(f"starting a master and {HOSTS} hosts with {CORES_EACH} cores each")
    with Hosts(HOSTS) as hosts, Standalone(hosts, cores=CORES_EACH) as cluster:
        shared = hosts.directory / "shared"
        spark = session(cluster.url, "bench-clusters", **cluster.settings())
        loss = Loss(0.5 * seconds, lambda: _lose_host(hosts, cluster))
        try:
            options.say(f"{seconds:.0f} s of load, a host is lost after {0.5 * seconds:.0f} s")
            surge = run_surge(
                spark,
                seconds,
                cores=(CORES_EACH, HOSTS * CORES_EACH),
                target_s=target_s,
                place=str(shared),
                shared=True,
                on_record=loss.watch,
            )
        finally:
            loss.end()
            spark.stop()
    return told(surge, seconds, target_s, loss.at_s)


def _lose_host(hosts: Hosts, cluster: Standalone) -> Callable[[], None]:
    """Kill the host with most processes, which has a worker and executors."""
    host = max((hosts[n] for n in range(len(hosts))), key=lambda h: len(h.pids()))
    host.kill()
    return lambda: cluster.start_worker(host)


def _yarn(options: Options, seconds: float, target_s: float) -> dict[str, Any]:
    """YARN and HDFS, a NodeManager of which is lost."""
    options.say(f"starting HDFS and YARN with {HOSTS} NodeManagers with {CORES_EACH} cores each")
    # A NodeManager has room for one executor, and for the master of the application beside it.
    with Yarn(HOSTS, cores=CORES_EACH + 1, memory_mb=2304) as cluster:
        settings = cluster.settings(executor_cores=CORES_EACH, executor_memory="1g")
        spark = session("yarn", "bench-clusters", **settings)
        loss = Loss(0.5 * seconds, lambda: _lose_node(cluster))
        try:
            options.say(f"{seconds:.0f} s of load, a host is lost after {0.5 * seconds:.0f} s")
            surge = run_surge(
                spark,
                seconds,
                cores=(CORES_EACH, HOSTS * CORES_EACH),
                target_s=target_s,
                place=f"{cluster.hdfs.url}/bench",
                on_record=loss.watch,
            )
        finally:
            loss.end()
            spark.stop()
    return told(surge, seconds, target_s, loss.at_s)


def _lose_node(cluster: Yarn) -> Callable[[], None]:
    """Kill a NodeManager that has an executor, and not the master of the application."""
    master = cluster.node_of_master()
    number = max(
        (n for n in range(len(cluster)) if n != master), key=lambda n: cluster.containers(n)
    )
    cluster.kill(number)
    return lambda: cluster.restart(number)


class Loss:
    """Loses a host at a time of the run, and brings it back."""

    def __init__(self, after_s: float, lose: Callable[[], Callable[[], None]]) -> None:
        """`lose` kills a host with executors, and returns what brings it back."""
        self._after_s, self._lose = after_s, lose
        self._began_s: float | None = None
        self.at_s: float | None = None
        """When the host was lost, by the clock of the records."""
        self._back: threading.Timer | None = None

    def watch(self, record: Record) -> None:
        """Look at the time of every record."""
        now_s = record.measurement.at_s
        if self._began_s is None and record.measurement.arrival_rate > 0.0:
            self._began_s = now_s
        if self._began_s is None or self.at_s is not None or now_s < self._began_s + self._after_s:
            return
        self.at_s = time.time()
        self._back = threading.Timer(AWAY_S, self._lose())
        self._back.start()

    def end(self) -> None:
        """Bring nothing back any more."""
        if self._back is not None:
            self._back.cancel()
            self._back.join()


def told(surge: Surge, seconds: float, target_s: float, lost_s: float | None) -> dict[str, Any]:
    """What a run showed."""
    static = peak_cores(target_s=target_s)
    warm_s = min(WARM_S, seconds / 3)
    found = summarise(surge.records, warm_up_s=warm_s, static_cores=static).document()
    names = ("within_target", "p95_ms", "core_seconds", "cost_vs_static", "changes")
    ends = batch_ends_s(surge.records)
    return {
        **{name: found[name] for name in (*names, "state_fetched_bytes")},
        "longest_gap_s": round(float(np.diff(ends).max(initial=0.0)), 2),
        "held_again_s": held_again_s(surge.records, lost_s, target_s),
        "rows": surge.counted,
        "verified": surge.verified,
    }


def batch_ends_s(records: list[Record]) -> list[float]:
    """When micro-batches ended, in order."""
    return sorted(
        batch.ended_s
        for record in records
        for segment in record.measurement.segments
        for batch in segment.batches
    )


def held_again_s(records: list[Record], lost_s: float | None, target_s: float) -> float | None:
    """How long after the loss the target was held for good; None if there was no loss."""
    if lost_s is None:
        return None
    late = [
        record.measurement.at_s
        for record in records
        if record.measurement.at_s >= lost_s
        and record.measurement.latency is not None
        and record.measurement.latency.mean_s > target_s
    ]
    return round(max(late) - lost_s, 1) if late else 0.0
