"""A surge on a cluster that takes time to grant cores: shedding bridges the gap, then must end."""

from dataclasses import dataclass

import numpy as np

from tidegate.control.bounds import Bounds
from tidegate.control.latency.options import LatencyOptions
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.sim.shedding.experiment import shed_world
from tidegate.workload.profile import steps

TARGET_S = 2.0
LOW, HIGH = 3000.0, 12_000.0
SURGE_S = 40.0
GRANT_S = 20.0
BOUNDS = Bounds(4, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class UntilCoresOutcome:
    """The result of a run."""

    outcome: Outcome
    shed_s: float
    """Seconds in which rows were shed."""
    over_s: float
    """Seconds for which rows were still shed after the last cores had been granted."""
    mean_latency_s: float
    """Mean latency of the rows completed since the surge began."""
    worst_latency_s: float
    """The highest mean latency of a tick since the surge began."""


def shed_until_cores(by: str | None, *, seconds: float = 120.0, seed: int = 1) -> UntilCoresOutcome:
    """Simulate a fourfold surge, with cores that are granted 20 s after the request."""
    segment = SimulatedSegment(
        fixed_s=0.25, per_task_s=0.005, gather_s=2e-5, stages=(Stage(name="work", work_s=1e-3),)
    )
    world = World(
        segments=(segment,),
        profile=steps([(0.0, LOW), (SURGE_S, HIGH)]),
        seconds=seconds,
        cores=BOUNDS.least,
        tick_s=0.5,
        grant_s=GRANT_S,
        poisson=True,
        seed=seed,
    )
    options = LatencyOptions(assumed_grant_s=GRANT_S)
    outcome = shed_world(world, by, TARGET_S, BOUNDS, options=options)
    ticks = [record.measurement for record in outcome.records]
    came_s = next(
        (later.at_s for later in reversed(ticks) if later.cores_granted < ticks[-1].cores_granted),
        ticks[0].at_s,
    )
    shedding = [tick.at_s for tick in ticks if tick.keep < 1.0]
    surge = [tick for tick in ticks if tick.at_s > world.starts_s + SURGE_S]
    done = [
        (tick.latency.mean_s, sum(source.kept for source in tick.sources))
        for tick in surge
        if tick.latency is not None
    ]
    latencies_s, rows = zip(*done, strict=True)
    return UntilCoresOutcome(
        outcome=outcome,
        shed_s=len(shedding) * world.tick_s,
        over_s=max(shedding[-1] - came_s, 0.0) if shedding else 0.0,
        mean_latency_s=float(np.average(latencies_s, weights=rows)),
        worst_latency_s=max(latencies_s),
    )
