"""A backtest of the controller that runs on Spark: the same assembly, on a simulated pipeline.

The pipeline has one segment. On m cores it sustains what m machines of the application do, with the
same noise from cycle to cycle as for the policies that count machines by the minute; its batches
take some time besides. Cores are granted after U minutes. The load is constant within a minute. So
QoS and cost are those of the other policies (MST eq. 22-24), counted by ticks instead of minutes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.measurement import Measurement
from tidegate.control.names import policy_name
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity
from tidegate.sim.capacity.applications import CapacityCase
from tidegate.sim.capacity.cluster import CYCLE_MINUTES, STARTUP_MINUTES, Cluster, ClusterRun
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import Profile

Vector = NDArray[np.float64]

BUCKET_S = 0.25
"""Arrivals are counted by this much time: a week has two million of these."""
_CALIBRATED_BATCH_S = 60.0
"""The length of a calibration's batches, so that they show what cores sustain for ever."""
_MIDNIGHT_S = 1_699_920_000.0
"""Midnight (UTC) of a day, at which the trace begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """What a pipeline has that machines by the minute do not."""

    target_s: float = 10.0
    """The target for the mean latency."""
    tick_s: float = 10.0
    """How often the controller measures and decides. On Spark it is a second by default; a week of
    seconds takes ten times as long to simulate."""

    def __post_init__(self) -> None:
        ticks = 60.0 / self.tick_s
        if not ticks >= 1.0 or abs(ticks - round(ticks)) > 1e-9:
            raise AskedWrongly(
                f"a tick of {self.tick_s:g} s does not divide a minute; give for example 10s or 1s"
            )


def assembly_for(policy: str, body: Cluster, settings: PipelineSettings) -> Assembly:
    """What the controller is built from, with the samples of the application's calibration."""
    return Assembly(
        target=Target(settings.target_s),
        bounds=Bounds(1, body.max_machines),
        policy=policy_name(policy),
        tick_s=settings.tick_s,
        cores=int(body.needed().max()),
        capacity=_calibrated(body),
    )


def _calibrated(body: Cluster) -> MeasuredCapacity:
    app = body.application
    return MeasuredCapacity(
        pipeline=app.name,
        samples=tuple(
            CapacitySample(
                cores=m,
                rows_per_s=throughput * app.rows_per_unit * _working(app, m),
                batch_s=_CALIBRATED_BATCH_S,
            )
            for m, throughput in body.training
        ),
        fixed_s=app.fixed_s,
        per_task_s=app.per_task_s,
    )


def _working(app: CapacityCase, cores: int) -> float:
    """The share of a calibration's batch that is work on rows."""
    overhead_s = app.fixed_s + app.per_task_s * cores
    return max(1.0 - overhead_s / _CALIBRATED_BATCH_S, 0.1)


def pipeline_world(body: Cluster, settings: PipelineSettings) -> World:
    """The application as a pipeline, under its load."""
    app, mean = body.application, body.mean_capacity.tolist()
    rows = body.load * app.rows_per_unit
    starts_ms = 60_000 * np.arange(len(rows), dtype=np.int64)
    cycle_s = 60.0 * CYCLE_MINUTES
    return World(
        segments=(
            SimulatedSegment(
                fixed_s=app.fixed_s,
                per_task_s=app.per_task_s,
                stages=(
                    Stage(
                        name=app.name,
                        work_s=1.0 / (mean[0] * app.rows_per_unit),
                        speedup=lambda tasks: mean[min(tasks, len(mean)) - 1] / mean[0],
                        most_tasks=body.max_machines,
                    ),
                ),
            ),
        ),
        profile=Profile(starts_ms, rows),
        seconds=60.0 * len(rows),
        cores=int(body.needed()[0]),
        tick_s=settings.tick_s,
        bucket_s=BUCKET_S,
        grant_s=60.0 * STARTUP_MINUTES,
        prompt=False,
        paces=tuple(
            (cycle_s * place, 1.0 / factor)
            for place, factor in enumerate(body.capacity_noise.tolist())
        ),
        seed=body.seed + 1,
        starts_s=_MIDNIGHT_S,
    )


class _Judge:
    """Whether each tick was within the target, also where no batch ended in it."""

    def __init__(self, target_s: float, starts_s: float) -> None:
        self._target_s = target_s
        self._last_s, self._last_at_s = 0.0, starts_s
        self.judged = self.within = 0

    def add(self, tick: Measurement) -> None:
        """A tick that completes nothing has the last latency or the time since, if longer."""
        if tick.latency is not None:
            self._last_s, self._last_at_s = tick.latency.mean_s, tick.at_s
        elif tick.backlog_rows <= 0.0:
            self._last_s, self._last_at_s = 0.0, tick.at_s
            return
        self.judged += 1
        self.within += max(self._last_s, tick.at_s - self._last_at_s) <= self._target_s


def run_on_pipeline(
    policy: str,
    body: Cluster,
    settings: PipelineSettings | None = None,
    *,
    on_minute: Callable[[int], None] = lambda _: None,
) -> ClusterRun:
    """Run a policy's controller over the whole trace; `on_minute` is told of every minute."""
    settings = settings or PipelineSettings()
    world = pipeline_world(body, settings)
    simulation = PipelineSimulation(world)
    controller = new_controller(assembly_for(policy, body, settings))
    judge = _Judge(settings.target_s, world.starts_s)
    ticks = round(60.0 / settings.tick_s)
    minutes = len(body.load)
    cores = np.empty((minutes, ticks), dtype=np.int64)
    backlog = np.empty(minutes)
    scalings = started = 0
    for minute in range(minutes):
        for tick in range(ticks):
            measurement = simulation.advance(60.0 * minute + (tick + 1) * settings.tick_s)
            cores[minute, tick] = measurement.cores_granted
            judge.add(measurement)
            record = controller.tick(measurement)
            if record.acted:
                simulation.act(record.decision)
                wanted = record.decision.cores
                if wanted is not None:
                    scalings += 1
                    started += max(wanted - measurement.cores_asked, 0)
        backlog[minute] = measurement.backlog_rows / body.application.rows_per_unit
        on_minute(minute)
    capacity = _capacity(body, cores)
    return ClusterRun(
        machines=cores.mean(axis=1),
        capacity=capacity.mean(axis=1),
        backlog=backlog,
        satisfied=(capacity > body.load[:, None]).mean(axis=1),
        scalings=scalings,
        started=started,
        within_target=judge.within / max(judge.judged, 1),
    )


def _capacity(body: Cluster, cores: NDArray[np.int64]) -> Vector:
    """tau_tru at each tick with these cores, one row per minute."""
    return np.stack([body.capacity(column) for column in cores.T], axis=1)
