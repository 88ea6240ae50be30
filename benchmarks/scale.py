"""A day on a cluster of 1,000 nodes that fail, are slow, or come late or never (simulated).

The default policy steers up to 4,000 cores of a pipeline with a map and a keyed operator of 8,192
shards. Nodes take 90 s to come up; some take five times as long, some never come. Nodes fail, and
the running batch begins again. Nodes are ten times slower for ten minutes. For two hours the
cluster has only part of the nodes to give. Cost is compared with the oracle's, which knows the
future and has cores that come at once and never fail. `--nodes`, `--hours`, `--shards` and
`--speculation off` change that, `--faults late` leaves only nodes that come late or never,
`--faults other` only the rest, and `--faults off` nothing but the 90 s.
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.benching import Bench, Options, at_least, at_most
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly, nearest
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.sim.microbatch.cluster import ClusterCounts, ClusterWorld, Shortage
from tidegate.sim.microbatch.oracle import OracleSegment, oracle
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World, keyed_weights
from tidegate.view.summary import Summary, summarise
from tidegate.workload.keys import Keys
from tidegate.workload.profile import Profile, steps
from tidegate.workload.weeks import office_like

TICK_S = 10.0
TARGET_S = 30.0
CORES_EACH = 4
FIXED_S, PER_TASK_S = 1.0, 0.0005
"""Of a batch. Spark's scheduler starts some two thousand tasks a second."""
MAP_S, KEYED_S = 0.009, 0.001
"""Core seconds of a row in the map and in the keyed operator."""
ROWS_A_CORE = 62.0
"""The load is scaled so that its highest minute has this many rows per second and core of the
cluster, which keeps about two thirds of the cores busy."""
SPECULATION = 1.5
_FINE_S = 10
_MONDAY_S = 1_699_833_600.0
"""Midnight (UTC) of a Monday."""
_HOUR_S = 3600.0
_KNOWN = ("nodes", "hours", "shards", "speculation", "faults")
_FAULTS = ("on", "off", "late", "other")


@dataclass(frozen=True, slots=True)
class Day:
    """What a controller did with the load, and how long its decisions took."""

    summary: Summary
    counts: ClusterCounts
    decision_ms: tuple[float, ...]
    most_cores: int


def load_of(nodes: int, hours: float, first_hour: float = 0.0) -> Profile:
    """A load with a daily shape for a cluster of so many nodes, without steps between minutes."""
    counts = office_like()[: 24 * 60]
    rates = np.maximum(counts, 0.0) * ROWS_A_CORE * CORES_EACH * nodes / counts.max()
    at_s = np.arange(0, int(_HOUR_S * hours), _FINE_S)
    minute = (_HOUR_S * first_hour + at_s) / 60.0
    fine = np.interp(minute, np.arange(len(rates)) + 0.5, rates)
    return steps(list(zip(at_s.astype(float).tolist(), fine.tolist(), strict=True)))


def faulty(nodes: int, hours: float, *, speculation: float | None, seed: int = 1) -> ClusterWorld:
    """A cluster on which things go wrong.

    Of 1,000 nodes, some ten fail in a day and twenty are slow for a while. From 55 % to 63 % of the
    time on, which is the afternoon of a day, no more than three fifths of the nodes can be had.
    """
    seconds = _HOUR_S * hours
    return ClusterWorld(
        nodes=nodes,
        cores_each=CORES_EACH,
        late=0.05,
        lost=0.02,
        failures_a_day=0.01,
        slow_a_day=0.02,
        speculation=speculation,
        shortages=(
            Shortage(begin_s=0.55 * seconds, end_s=0.63 * seconds, nodes=max(3 * nodes // 5, 1)),
        ),
        seed=seed,
    )


def perfect(nodes: int) -> ClusterWorld:
    """A cluster on which nodes come after 90 s, and nothing goes wrong."""
    return ClusterWorld(nodes=nodes, cores_each=CORES_EACH, spread=0.0)


def run_day(
    load: Profile,
    seconds: float,
    cluster: ClusterWorld,
    *,
    shards: int = 8192,
    on_second: Callable[[float], None] = lambda _: None,
) -> Day:
    """Drive the default policy through the load."""
    most = cluster.nodes * cluster.cores_each
    keys = keyed_weights(Keys(20 * shards, 0.0, ()), shards)
    world = World(
        segments=(
            SimulatedSegment(
                fixed_s=FIXED_S,
                per_task_s=PER_TASK_S,
                stages=(
                    Stage(name="parse", work_s=MAP_S),
                    Stage(name="count", work_s=KEYED_S, shards=shards, weights=keys),
                ),
            ),
        ),
        profile=load,
        seconds=seconds,
        cores=max(most // 4, cluster.cores_each),
        tick_s=TICK_S,
        bucket_s=0.1,
        noise=0.05,
        prompt=False,
        cluster=cluster,
        starts_s=_MONDAY_S,
    )
    assembly = Assembly(
        target=Target(TARGET_S),
        bounds=Bounds(cluster.cores_each, most),
        tick_s=TICK_S,
        cores_per_executor=cluster.cores_each,
    )
    body, controller = PipelineSimulation(world), new_controller(assembly)
    assert body.cluster is not None
    records: list[Record] = []
    decision_ms = []
    for tick in range(1, int(seconds / TICK_S) + 1):
        measurement = body.advance(tick * TICK_S)
        on_second(tick * TICK_S)
        begun_s = time.thread_time()
        record = controller.tick(measurement)
        decision_ms.append(1e3 * (time.thread_time() - begun_s))
        if record.acted:
            body.act(record.decision)
        # A day of records with the rows of every shard would not fit into memory.
        slim = dataclasses.replace(measurement, operators=())
        records.append(dataclasses.replace(record, measurement=slim))
    return Day(
        summarise(records),
        body.cluster.counts,
        tuple(decision_ms),
        max(record.measurement.cores_granted for record in records),
    )


def least(load: Profile, seconds: float, most: int) -> float:
    """The oracle's core-seconds."""
    cost = BatchCost(fixed_s=FIXED_S, per_task_s=PER_TASK_S, work_s=MAP_S + KEYED_S)
    segment = OracleSegment(cost=cost, imbalances=np.ones(most))
    cores = range(CORES_EACH, most + 1, CORES_EACH)
    return oracle(load, seconds, [segment], Target(TARGET_S), cores).core_seconds


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of the benchmark."""

    nodes: int
    hours: float
    shards: int
    speculation: float | None
    faults: str

    @property
    def cluster(self) -> ClusterWorld:
        """The cluster with the faults that were asked for."""
        if self.faults == "off":
            return perfect(self.nodes)
        world = faulty(self.nodes, self.hours, speculation=self.speculation)
        if self.faults == "late":
            return dataclasses.replace(world, failures_a_day=0.0, slow_a_day=0.0, shortages=())
        return dataclasses.replace(world, late=0.0, lost=0.0) if self.faults == "other" else world


def asked_of(options: Options) -> Asked:
    """Read the options, and refuse what cannot be simulated."""
    for name in options.extra:
        if name not in _KNOWN:
            raise AskedWrongly(f"bench scale has no option '--{name}'{nearest(name, _KNOWN)}")

    def number(name: str, usual: float, low: float, high: float) -> float:
        text = options.extra.get(name, str(usual))
        try:
            found = float(text)
        except ValueError:
            found = -1.0
        if not low <= found <= high:
            raise AskedWrongly(f"--{name} {text} is not possible; give {low:g} to {high:g}")
        return found

    def one_of(name: str, choices: tuple[str, ...]) -> str:
        text = options.extra.get(name, "on")
        if text not in choices:
            raise AskedWrongly(f"--{name} {text} is not possible; give {' or '.join(choices)}")
        return text

    return Asked(
        nodes=int(number("nodes", 1000, 2, 4000)),
        hours=number("hours", 2.0 if options.quick else 24.0, 0.25, 24.0),
        shards=int(number("shards", 8192, 256, 65536)),
        speculation=SPECULATION if one_of("speculation", ("on", "off")) == "on" else None,
        faults=one_of("faults", _FAULTS),
    )


def run(options: Options) -> Bench:
    """Run the day (a quick run: two hours from eight in the morning on)."""
    asked = asked_of(options)
    seconds = _HOUR_S * asked.hours
    load = load_of(asked.nodes, asked.hours, 0.0 if asked.hours > 16.0 else 8.0)
    options.progress.expect(seconds)
    options.progress.doing(f"{asked.hours:g} hours on {asked.nodes} nodes")
    day = run_day(
        load, seconds, asked.cluster, shards=asked.shards, on_second=options.progress.reached
    )
    options.progress.doing("the oracle")
    bound = least(load, seconds, asked.nodes * CORES_EACH)
    ms = np.array(day.decision_ms)
    result: dict[str, Any] = {
        "nodes": asked.nodes,
        "hours": asked.hours,
        "within_target": round(day.summary.within_target or 0.0, 4),
        "core_hours": round(day.summary.core_seconds / _HOUR_S, 1),
        "oracle_core_hours": round(bound / _HOUR_S, 1),
        "cost_over_oracle": round(day.summary.core_seconds / bound, 4),
        "most_cores": day.most_cores,
        "changes": day.summary.changes,
        "decision_ms_median": round(float(np.median(ms)), 2),
        "decision_ms_p99": round(float(np.percentile(ms, 99)), 2),
        **{f"nodes_{name}": count for name, count in dataclasses.asdict(day.counts).items()},
    }
    return Bench(
        "scale",
        [result],
        [
            at_least("seconds within target", result["within_target"], 0.95),
            at_most("cost over the oracle's", result["cost_over_oracle"], 1.3),
            at_most("ms of a decision, p99", result["decision_ms_p99"], 100.0, "ms"),
        ],
    )
