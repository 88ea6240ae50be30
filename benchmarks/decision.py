"""The time of a decision with 50 operators, including balance, bottleneck and record."""

import itertools
import time
from typing import Any

import numpy as np

from tidegate.benching import Bench, Options, at_most
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World, keyed_weights
from tidegate.workload.keys import Keys
from tidegate.workload.profile import sine

OPERATORS = 50
POLICIES = ("latency", "flow")
BOUND_MS = 5.0
WARM_UP = 20


def run(options: Options) -> Bench:
    """Simulate pipelines of 50 operators in 1, 5 and 10 segments, and time each tick."""
    results: list[dict[str, Any]] = []
    for policy, segments in itertools.product(POLICIES, (1, 5, 10)):
        result = _times(policy, segments, 120 if options.quick else 600)
        options.say(
            f"{policy}, {OPERATORS} operators in {segments} segments:"
            f" median {result['median_ms']:.2f} ms, p99 {result['p99_ms']:.2f} ms"
        )
        results.append(result)
    worst = max(result["p99_ms"] for result in results)
    return Bench("decision", results, [at_most("ms at p99", worst, BOUND_MS, "ms")])


def _times(policy: str, segments: int, ticks: int) -> dict[str, Any]:
    keys = keyed_weights(Keys(5000, 0.8, (ticks * 500,)), 256)
    per_segment = OPERATORS // segments
    chain = tuple(
        SimulatedSegment(
            name=f"s{number}",
            fixed_s=0.2,
            per_task_s=0.005,
            after=None if number == 0 else f"s{number - 1}",
            stages=tuple(
                Stage(
                    name=f"s{number}.{stage}",
                    work_s=4e-3 / OPERATORS,
                    shards=256 if stage % 2 else 0,
                    weights=keys if stage % 2 else None,
                )
                for stage in range(per_segment)
            ),
        )
        for number in range(segments)
    )
    world = World(
        segments=chain,
        profile=sine(2000.0, 1500.0, 200.0),
        seconds=float(ticks),
        cores=20,
        poisson=True,
    )
    bounds = Bounds(1, 200)
    target_s = 1.5 * segments
    controller = new_controller(Assembly(target=Target(target_s), bounds=bounds, policy=policy))
    body = PipelineSimulation(world)
    taken_s = []
    acted = 0
    for tick in range(1, ticks + 1):
        measurement = body.advance(float(tick))
        begin_s = time.perf_counter()
        record = controller.tick(measurement)
        taken_s.append(time.perf_counter() - begin_s)
        if record.acted:
            acted += 1
            body.act(record.decision)
    taken_ms = 1e3 * np.array(taken_s[WARM_UP:])
    return {
        "policy": policy,
        "operators": OPERATORS,
        "segments": segments,
        "ticks": ticks,
        "acted": acted,
        "median_ms": float(np.median(taken_ms)),
        "p99_ms": float(np.percentile(taken_ms, 99)),
    }
