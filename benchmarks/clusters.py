"""The demo's load on clusters: executors come and go, and a host is lost during the surge.

`hosts` is a standalone cluster whose workers are on four hosts of this machine: network namespaces
with their own addresses and directories (`spark/clusters/hosts.py`), and a checkpoint that all of
them have. At the top of the surge all processes of one host are killed; its worker is back after
half a minute. The demo's operators sleep, so that executors help on a machine with few cores.

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
    bodies: dict[str, Body] = {"hosts": _hosts}
    only = options.extra.get("only")
    if only is not None and only not in bodies:
        raise AskedWrongly(f"only={only}: give one of {', '.join(bodies)}")
    results = [
        {"cluster": name, **body(options, seconds, target_s)}
        for name, body in bodies.items()
        if only in (None, name)
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
        loss = Loss(hosts, cluster, 0.5 * seconds)
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


class Loss:
    """Kills a host that has an executor at a time of the run, and starts its worker again."""

    def __init__(self, hosts: Hosts, cluster: Standalone, after_s: float) -> None:
        self._hosts, self._cluster, self._after_s = hosts, cluster, after_s
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
        # The host with most processes has a worker and executors.
        host = max((self._hosts[n] for n in range(len(self._hosts))), key=lambda h: len(h.pids()))
        self.at_s = time.time()
        host.kill()
        self._back = threading.Timer(AWAY_S, self._cluster.start_worker, [host])
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
