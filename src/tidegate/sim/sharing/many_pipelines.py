"""Many pipelines on far too few cores: the overload paper's 20 to 200 queries."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from tidegate.control.bounds import Bounds
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.sim.sharing.pipelines import Member, simulate_together
from tidegate.workload.profile import steps

TARGETS_S = (1.0, 2.0, 4.0)
CORES_EACH = 3
"""Cores for each pipeline on average; keeping all rows would take three times as many."""
CALM, BUSY = 800.0, 4500.0
SECONDS, BUSY_S, JUDGED_S = 50.0, 15.0, 30.0
_WORK_S = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """The result of many pipelines in one application, after they have settled."""

    cores: int
    latency_over_target: float
    """Latency over target, as a mean over the pipelines."""
    off: float
    """Mean distance of the latencies from their targets, as a share of the target."""
    kept: float
    """Share of all rows that was kept."""
    least_kept: float
    """The share that the worst-off pipeline kept, over the mean of all pipelines."""


def crowd(count: int) -> Crowd:
    """Simulate so many pipelines; their load jumps to about three times what the cores carry."""
    world = World(
        segments=(
            SimulatedSegment(
                fixed_s=0.2, per_task_s=0.002, stages=(Stage(name="work", work_s=_WORK_S),)
            ),
        ),
        profile=steps([(0.0, CALM), (BUSY_S, BUSY)]),
        seconds=SECONDS,
        cores=2,
        poisson=True,
    )
    cores = CORES_EACH * count
    members = {
        f"{number}": Member(
            world=dataclasses.replace(world, seed=number + 1),
            target_s=TARGETS_S[number % len(TARGETS_S)],
            bounds=Bounds(1, cores),
        )
        for number in range(count)
    }
    outcomes = simulate_together(members, cores)
    latency = np.array(
        [_latency_s(outcomes[name]) / member.target_s for name, member in members.items()]
    )
    kept = np.array([_kept(outcome) for outcome in outcomes.values()])
    return Crowd(
        cores=cores,
        latency_over_target=float(latency.mean()),
        off=float(np.abs(latency - 1.0).mean()),
        kept=float(kept.mean()),
        least_kept=float(kept.min() / kept.mean()),
    )


def _latency_s(outcome: Outcome) -> float:
    """Mean latency of the rows completed after the pipelines have settled."""
    done = [
        (tick.latency.mean_s, sum(batch.rows for batch in tick.segments[0].batches))
        for record in outcome.records
        if (tick := record.measurement).latency is not None and _judged(outcome, tick.at_s)
    ]
    return sum(mean_s * rows for mean_s, rows in done) / max(sum(rows for _, rows in done), 1)


def _kept(outcome: Outcome) -> float:
    sources = [
        source
        for record in outcome.records
        if _judged(outcome, record.measurement.at_s)
        for source in record.measurement.sources
    ]
    offered = sum(source.offered for source in sources)
    return sum(source.kept for source in sources) / offered if offered else 1.0


def _judged(outcome: Outcome, at_s: float) -> bool:
    return at_s - outcome.records[0].measurement.at_s >= JUDGED_S
