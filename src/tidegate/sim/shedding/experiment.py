"""The overload paper's experiment in two simulators, with the same measures.

The load is the paper's: each source sends 50, 100, 150, 100 rows a second and so on, for ten
seconds each, so every step brings a new overload. One simulator is the paper's engine
(sim/shedding/engine.py). The other is a pipeline of micro-batches under the control loop
(sim/microbatch), as it runs on Spark. Both decide every 250 ms.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.control.assemble import new_controller, new_shedder
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.names import DEFAULT_POLICY
from tidegate.control.shedding.classes import refuse_below_floor
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.sim.shedding.engine import ROW_S, EngineWorld, simulate_engine
from tidegate.workload.profile import Profile, steps

Vector = npt.NDArray[np.float64]

BODIES = ("engine", "micro-batch")
STEP_S = 10.0
PATTERN = (1.0, 2.0, 3.0, 2.0)
"""The steps as multiples of the lowest rate: 50, 100, 150, 100 rows a second per source."""
SOURCES = 10
LOWEST_RATE = 50.0
WARM_UP_S = 20.0
"""The first seconds are not evaluated: meters and models are still learning."""
INTERVAL_S = 0.25
BAND = 0.15
"""The latency has settled when no mean over `MEAN_S` is off by more than this share of the target
until the next step."""
MEAN_S = 2.0
"""Means are taken over this time, or over the target if that is longer: one round is too noisy."""
SETTLED_WITHIN = 5.0
"""It settled in time if it took at most this many times the target after a step."""

CORES = 4
COST = BatchCost(fixed_s=0.08, work_s=1e-3)
GATHER_S = 2e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The course of a run; the first three columns have an entry for each time with results."""

    at_s: Vector
    latency_s: Vector
    kept: Vector
    offered_rate: Vector
    """Rows per second that arrived in each interval of the run."""
    keep: Vector
    """The share to keep, as decided at the end of each interval."""
    capacity: float
    """Rows per second that could be kept at the target, over the evaluated time."""
    balance: float
    """Rows offered minus kept, shed and left: zero if every row is accounted for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetVerdict:
    """How well a target was held."""

    latency_over_target: float
    """Mean latency of the kept rows, divided by the target."""
    kept_over_capacity: float
    settled: float
    """The share of the load's steps after which the latency settled in time."""
    settling_targets: float
    """Mean time to settle after a step, as a multiple of the target; a step without settling counts
    as ten seconds."""
    worst_over_target: float
    """The 99th percentile of the results' latencies, divided by the target."""


def paper_load(lowest: float, seconds: float) -> Profile:
    """The paper's load pattern, with this rate in its lowest step."""
    count = int(np.ceil(seconds / STEP_S))
    rates = [lowest * PATTERN[step % len(PATTERN)] for step in range(count)]
    return steps([(STEP_S * step, rate) for step, rate in enumerate(rates)])


def overload(
    body: str, by: str | None, *, target_s: float, lowest: float, seconds: float, seed: int = 1
) -> Series:
    """One run; the load's lowest step is `lowest` times the machine's capacity.

    `by` names the shedder; with None nothing is shed.
    """
    if body == "engine":
        return _engine(by, target_s, lowest, seconds, seed)
    if body == "micro-batch":
        return _micro_batch(by, target_s, lowest, seconds, seed)
    raise AskedWrongly(f"there is no simulator '{body}'; known: {', '.join(BODIES)}")


def engine_world(queries: int, seconds: float, *, seed: int = 1, speed: float = 1.0) -> EngineWorld:
    """The paper's sources with this many queries; 100 just fill the machine on average."""
    profile = paper_load(SOURCES * LOWEST_RATE, seconds)
    return EngineWorld(
        profile=profile,
        queries=queries,
        seconds=seconds,
        interval_s=INTERVAL_S,
        seed=seed,
        speed=speed,
    )


def _engine(by: str | None, target_s: float, lowest: float, seconds: float, seed: int) -> Series:
    full = 1.0 / (SOURCES * LOWEST_RATE * ROW_S)
    world = engine_world(round(lowest * full), seconds, seed=seed)
    outcome = simulate_engine(world, None if by is None else new_shedder(by, target_s))
    rates = [
        world.queries * world.profile.rate(at_s - 0.5 * world.interval_s)
        for at_s in outcome.decided_s
    ]
    judged = [
        world.capacity(rate, target_s)
        for rate, at_s in zip(rates, outcome.decided_s, strict=True)
        if at_s > WARM_UP_S
    ]
    shed = float((outcome.offered - outcome.kept).sum())
    return Series(
        at_s=outcome.ended_s,
        latency_s=outcome.latency_s,
        kept=outcome.kept,
        offered_rate=np.array(rates),
        keep=outcome.keep,
        capacity=float(np.mean(judged)),
        balance=outcome.arrived - float(outcome.kept.sum()) - shed - outcome.left,
    )


def _micro_batch(
    by: str | None, target_s: float, lowest: float, seconds: float, seed: int
) -> Series:
    refuse_below_floor(target_s, COST.floor_s(CORES))
    most_rate = CORES / COST.work_s
    stage = Stage(name="work", work_s=COST.work_s)
    segment = SimulatedSegment(fixed_s=COST.fixed_s, gather_s=GATHER_S, stages=(stage,))
    world = World(
        segments=(segment,),
        profile=paper_load(lowest * most_rate, seconds),
        seconds=seconds,
        cores=CORES,
        tick_s=INTERVAL_S,
        poisson=True,
        seed=seed,
    )
    outcome = shed_world(world, by, target_s, Bounds(CORES, CORES), policy="static")
    rates = np.array([record.measurement.arrival_rate for record in outcome.records])
    judged = rates[round(WARM_UP_S / INTERVAL_S) :]
    free = 1.0 - COST.floor_s(CORES) / target_s - judged * GATHER_S / CORES
    capacity = float(np.minimum(np.maximum(free, 0.0) * most_rate, judged).mean())
    last = outcome.records[-1].measurement
    arrived = float(rates.sum()) * INTERVAL_S
    at_s, latency_s, kept = _results(outcome, world)
    return Series(
        at_s=at_s,
        latency_s=latency_s,
        kept=kept,
        offered_rate=rates,
        keep=np.array([record.beliefs.get("keep", 1.0) for record in outcome.records]),
        capacity=capacity,
        balance=arrived - outcome.rows - outcome.shed - last.backlog_rows,
    )


def shed_world(
    world: World,
    by: str | None,
    target_s: float,
    bounds: Bounds,
    *,
    policy: str = DEFAULT_POLICY,
    percentile: int | None = None,
    options: LatencyOptions | None = None,
) -> Outcome:
    """Simulate a pipeline of micro-batches under a policy, with shedding if `by` names one."""
    assembly = Assembly(
        target=Target(target_s, percentile),
        bounds=bounds,
        policy=policy,
        latency=options or LatencyOptions(),
        tick_s=world.tick_s,
        shed=by,
    )
    return simulate(world, new_controller(assembly))


def _results(outcome: Outcome, world: World) -> tuple[Vector, Vector, Vector]:
    found = [
        (record.measurement.at_s - world.starts_s, latency.mean_s, source.kept)
        for record, latency in zip(outcome.records, outcome.sojourns, strict=True)
        for source in record.measurement.sources
        if latency is not None
    ]
    columns = np.array(found, np.float64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


def pooled(runs: Sequence[Series]) -> Series:
    """Pool runs of the same load with different seeds, so that their noise averages out."""
    at_s = np.concatenate([run.at_s for run in runs])
    order = np.argsort(at_s, kind="stable")
    first = runs[0]
    return Series(
        at_s=at_s[order],
        latency_s=np.concatenate([run.latency_s for run in runs])[order],
        kept=np.concatenate([run.kept for run in runs])[order] / len(runs),
        offered_rate=first.offered_rate,
        keep=first.keep,
        capacity=float(np.mean([run.capacity for run in runs])),
        balance=max((run.balance for run in runs), key=abs),
    )


def judge(series: Series, target_s: float, seconds: float) -> TargetVerdict:
    """Evaluate a run after its warm-up."""
    inside = (series.at_s > WARM_UP_S) & (series.kept > 0.0)
    latency_s, kept = series.latency_s[inside], series.kept[inside]
    settled = list(_settling_s(series, target_s, seconds))
    in_time = [SETTLED_WITHIN * target_s >= taken for taken in settled if taken is not None]
    taken_s = [STEP_S if taken is None else taken for taken in settled]
    return TargetVerdict(
        latency_over_target=float(np.average(latency_s, weights=kept)) / target_s,
        kept_over_capacity=float(kept.sum()) / (seconds - WARM_UP_S) / series.capacity,
        settled=sum(in_time) / max(len(settled), 1),
        settling_targets=float(np.mean(taken_s)) / target_s,
        worst_over_target=float(np.percentile(latency_s, 99)) / target_s,
    )


def _settling_s(series: Series, target_s: float, seconds: float) -> Iterator[float | None]:
    """For every step of the load, the time until its moving means stay in the band, or None."""
    over_s = max(target_s, MEAN_S)
    total = np.concatenate([[0.0], np.cumsum(series.kept * series.latency_s)])
    rows = np.concatenate([[0.0], np.cumsum(series.kept)])
    for begin_s in np.arange(WARM_UP_S, seconds - STEP_S + 1e-9, STEP_S):
        starts_s = begin_s + np.arange(0.0, STEP_S - over_s + 1e-9, 0.05)
        first = np.searchsorted(series.at_s, starts_s, side="left")
        last = np.searchsorted(series.at_s, starts_s + over_s, side="left")
        count = rows[last] - rows[first]
        some = count > 0.0
        means = (total[last] - total[first])[some] / count[some]
        off = np.flatnonzero(np.abs(means / target_s - 1.0) > BAND)
        if len(off) == 0:
            yield 0.0
        elif off[-1] + 1 < len(means):
            yield float(starts_s[some][off[-1] + 1] - begin_s)
        else:
            yield None
