"""Simulated pipelines and hand-made measurements that several tests decide on."""

from typing import Any

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.limits import Limits
from tidegate.control.measurement import (
    BatchMeasurement,
    Latency,
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.control.target import Target
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World, keyed_weights
from tidegate.workload.keys import Keys
from tidegate.workload.profile import Profile, steps

BOUNDS = Bounds(1, 12)
TARGET_S = 1.5
SURGE = steps([(0, 1000.0), (30, 4000.0), (60, 1000.0)])
HOT_KEYS_CHANGE_S = 45
MEASURED = MeasuredCapacity(
    pipeline="world",
    samples=tuple(
        CapacitySample(cores=m, rows_per_s=500.0 * m * noise)
        for m in (1, 2, 4, 8, 12)
        for noise in (0.98, 1.02)
    ),
)
"""What cores process within `TARGET_S`, about, for policies that do not learn it."""


def world(profile: Profile = SURGE, *, seconds: float = 120.0, **changes: Any) -> World:
    """A map and a skewed keyed stage whose hot keys change; 1 ms of work a row."""
    keys = Keys(1000, 0.8, (HOT_KEYS_CHANGE_S * 1000,))
    stages = (
        Stage(name="parse", work_s=2e-4),
        Stage(name="count", work_s=8e-4, shards=256, weights=keyed_weights(keys, 256, 3)),
    )
    segment = SimulatedSegment(fixed_s=0.30, per_task_s=0.01, stages=stages)
    settings: dict[str, Any] = {"cores": 2, "noise": 0.05, "seed": 1, **changes}
    return World(segments=(segment,), profile=profile, seconds=seconds, **settings)


def controller(
    target_s: float = TARGET_S,
    *,
    bounds: Bounds = BOUNDS,
    options: LatencyOptions | None = None,
    limits: Limits | None = None,
) -> Controller:
    """A controller with the default policy."""
    return new_controller(
        Assembly(
            target=Target(target_s),
            bounds=bounds,
            latency=options or LatencyOptions(),
            limits=limits or Limits(),
        )
    )


def measured(
    tick: int,
    *,
    rate: float = 1000.0,
    cores: int = 2,
    granted: int | None = None,
    backlog: float = 500.0,
    duration_s: float = 0.7,
    latency_s: float | None = 1.0,
    batches: bool = True,
    rows: int | None = None,
    saturated: bool = False,
    stale: str | None = None,
    grant_s: float | None = 0.0,
) -> Measurement:
    """A measurement of one segment with one map operator and one batch per tick."""
    at_s = 1_700_000_000.0 + tick
    batch = BatchMeasurement(
        batch_id=tick,
        rows=round(rate * duration_s) if rows is None else rows,
        tasks=cores,
        imbalance=1.0,
        duration_s=duration_s,
        ended_s=at_s,
    )
    done = batch.rows if batches else 0
    operator = OperatorMeasurement(
        name="work",
        arrival_rate=rate,
        service_rate=1000.0,
        tasks=cores,
        rows=done,
        busy_s=done * 1e-3,
    )
    segment = SegmentMeasurement(
        name="main",
        arrival_rate=rate,
        backlog_rows=backlog,
        tasks=cores,
        batches=(batch,) if batches else (),
    )
    latency = None
    if latency_s is not None:
        latency = Latency(
            mean_s=latency_s, p50_s=latency_s, p95_s=1.3 * latency_s, p99_s=1.33 * latency_s
        )
    return Measurement(
        at_s=at_s,
        interval_s=1.0,
        arrival_rate=rate,
        processed_rate=rate,
        backlog_rows=backlog,
        cores_asked=cores,
        cores_granted=cores if granted is None else granted,
        saturated=saturated,
        cores_busy=min(rate * 1e-3, float(cores)),
        latency=latency,
        operators=(operator,),
        segments=(segment,),
        stale=stale,
        grant_s=grant_s,
    )
