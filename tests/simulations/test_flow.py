"""The Flink-ER policy on a rising load, with four standby cores beside six, as in the paper's 4.1.

Three operators in a row, each a segment of its own, so that every task takes a core. The middle one
is ten times as much work as the others. Whoever finds the cut before it gives it all the standby
cores.
"""

import pytest

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.target import Target
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import PipelineSimulation, simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import ramp

SECONDS = 180.0
TARGET_S = 3.0
CORES, STANDBY = 6, 4
WORKS = {"parse": 2e-4, "match": 2e-3, "store": 2e-4}
STATIC_RATE = 4 / 2e-3
"""What six cores carry at best: four of them at the operator that does the work."""


def rising(seed: int = 1, **changes: float) -> World:
    """From 600 to 3,600 rows a second; six cores carry 2,000 at most, ten carry 4,000."""
    names = list(WORKS)
    segments = tuple(
        SimulatedSegment(
            name=name,
            fixed_s=0.2,
            per_task_s=0.005,
            stages=(Stage(name=name, work_s=WORKS[name] * changes.get(name, 1.0)),),
            after=None if number == 0 else names[number - 1],
        )
        for number, name in enumerate(names)
    )
    return World(
        segments=segments,
        profile=ramp(600.0, 3600.0, SECONDS),
        seconds=SECONDS,
        cores=CORES,
        seed=seed,
    )


def flowing(world: World) -> Outcome:
    assembly = Assembly(
        target=Target(TARGET_S), bounds=Bounds(CORES, CORES + STANDBY), policy="flow"
    )
    return simulate(world, new_controller(assembly))


class Holding:
    """A policy that never changes anything."""

    name = "holding"

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        return hold("static")


def static(world: World, tasks: dict[str, int]) -> Outcome:
    """Six cores, divided once and for all."""
    simulation = PipelineSimulation(world)
    simulation.act(Decision(reason="the division", tasks=tasks))
    return simulation.run(Controller(Holding(), bounds=Bounds(CORES, CORES)).tick)


def tasks_at_the_end(outcome: Outcome) -> dict[str, int]:
    return {one.name: one.tasks for one in outcome.records[-1].measurement.operators}


def throughput(outcome: Outcome, last: int = 30) -> float:
    """Rows per second that came out during the last ticks."""
    return sum(r.measurement.processed_rate for r in outcome.records[-last:]) / last


def latencies(outcome: Outcome, last: int = 30) -> list[float]:
    told = (record.measurement.latency for record in outcome.records[-last:])
    return [latency.mean_s for latency in told if latency is not None]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_four_standby_cores_raise_the_throughput(seed: int) -> None:
    """Static is the best division of six cores that there is, known beforehand."""
    fixed = static(rising(seed), {"parse": 1, "match": 4, "store": 1})
    flow = flowing(rising(seed))
    assert throughput(flow) >= 1.5 * STATIC_RATE and flow.rows >= 1.2 * fixed.rows
    assert max(fixed.cores) == CORES and max(flow.cores) == CORES + STANDBY
    assert tasks_at_the_end(flow) == {"parse": 1, "match": 8, "store": 1}
    assert min(latencies(fixed)) > 3.0 * max(latencies(flow))


def test_the_cores_follow_a_bottleneck_that_is_elsewhere() -> None:
    """The same cores, but the last operator does the work."""
    world = rising(match=0.1, store=10.0)
    fixed, flow = static(world, {"parse": 1, "match": 1, "store": 4}), flowing(world)
    assert tasks_at_the_end(flow) == {"parse": 1, "match": 1, "store": 8}
    assert throughput(flow) >= 1.5 * STATIC_RATE and flow.rows >= 1.2 * fixed.rows


def test_each_standby_core_goes_where_it_is_of_use() -> None:
    """Two operators limit in turn: what they get is what no other division betters."""
    world = rising(parse=5.0, match=0.6)
    flow = flowing(world)
    tasks = tasks_at_the_end(flow)
    assert sum(tasks.values()) == CORES + STANDBY
    capacity = min(tasks[name] / stage.work_s for name, stage in stages(world).items())
    best = max(
        min(some[name] / stage.work_s for name, stage in stages(world).items())
        for some in divisions(CORES + STANDBY)
    )
    assert capacity == pytest.approx(best)


def stages(world: World) -> dict[str, Stage]:
    return {stage.name: stage for segment in world.segments for stage in segment.stages}


def divisions(cores: int) -> list[dict[str, int]]:
    """Every way to divide the cores among the three."""
    return [
        {"parse": a, "match": b, "store": cores - a - b}
        for a in range(1, cores - 1)
        for b in range(1, cores - a)
    ]
