"""The time of a decision with 50 operators, including balance, bottleneck and record.

A run that has just begun has little to look at. So one case begins with what a week has taught: a
history of minutes, forecasters that work on it for a horizon of 90 s, and a loop.
"""

import dataclasses
import itertools
import math
import time
from typing import Any

import numpy as np

from tidegate.benching import Bench, Options, at_most
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.measurement import Measurement
from tidegate.control.target import Target
from tidegate.forecast.minute_rates import MINUTE_S
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World, keyed_weights
from tidegate.workload.keys import Keys
from tidegate.workload.profile import sine

OPERATORS = 50
POLICIES = ("latency", "flow")
BOUND_MS = 5.0
WARM_UP = 20
GRANT_S = 90.0
WEEK = 7 * 1440
"""Minutes."""
PERIOD_S = {False: 200.0, True: 1200.0}
"""Of the load. No cores that take 90 s could follow the shorter one."""
PASSES = 3.0
"""How often a row passes the loop of the last segment."""


def run(options: Options) -> Bench:
    """Simulate pipelines of 50 operators in 1, 5 and 10 segments, and time each tick."""
    results: list[dict[str, Any]] = []
    cases = [(*case, False) for case in itertools.product(POLICIES, (1, 5, 10))]
    cases += [("latency", 1, True), ("latency", 5, True)]
    told = options.progress.each(cases, lambda one: f"{one[0]}, {one[1]} segments")
    for policy, segments, week in told:
        result = _times(policy, segments, 120 if options.quick else 600, week=week)
        after = ", after a week, with a loop and cores in 90 s" if week else ""
        options.say(
            f"{policy}, {OPERATORS} operators in {segments} segments{after}:"
            f" median {result['median_ms']:.2f} ms, p99 {result['p99_ms']:.2f} ms"
        )
        results.append(result)
    worst = max(result["p99_ms"] for result in results)
    return Bench("decision", results, [at_most("ms at p99", worst, BOUND_MS, "ms")])


def _times(policy: str, segments: int, ticks: int, *, week: bool) -> dict[str, Any]:
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
        profile=sine(2000.0, 1500.0, PERIOD_S[week]),
        seconds=float(ticks),
        cores=20,
        poisson=True,
        grant_s=GRANT_S if week else 0.0,
    )
    assembly = Assembly(
        target=Target(1.5 * (segments + (PASSES - 1.0 if week else 0.0))),
        bounds=Bounds(1, 200),
        policy=policy,
        latency=LatencyOptions(assumed_grant_s=world.grant_s),
    )
    controller = after_a_week(world, assembly) if week else new_controller(assembly)
    body = PipelineSimulation(world)
    taken_s = []
    acted = 0
    for tick in range(1, ticks + 1):
        measurement = body.advance(float(tick))
        if week:
            measurement = looped(measurement)
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
        "after a week": week,
        "acted": acted,
        "median_ms": float(np.median(taken_ms)),
        "p99_ms": float(np.percentile(taken_ms, 99)),
    }


def after_a_week(world: World, assembly: Assembly) -> Controller:
    """A controller that begins with a week of minutes, and with all that follows from them."""
    first, body = new_controller(assembly), PipelineSimulation(world)
    for tick in range(1, 31):
        first.tick(looped(body.advance(float(tick))))
    learned = first.learned()
    newest = int(world.starts_s // MINUTE_S) - 1
    rates = [2000.0 + 1500.0 * math.sin(2 * math.pi * n / 1440.0) for n in range(WEEK)]
    minutes = learned["policy"]["forecast"]["minutes"]
    minutes.update({"first": newest - WEEK + 1, "rates": rates, "number": newest + 1})
    learned["policy"]["forecast"]["by_minute"]["last"] = [newest, rates[-1], 1]
    found = new_controller(assembly)
    found.recall({**learned, "at_s": world.starts_s}, world.starts_s)
    return found


def looped(measurement: Measurement) -> Measurement:
    """The measurement as if the last segment sent rows back to itself."""
    *before, last = measurement.segments
    batches = tuple(dataclasses.replace(one, rows=round(PASSES * one.rows)) for one in last.batches)
    last = dataclasses.replace(
        last, loops=True, arrival_rate=PASSES * last.arrival_rate, batches=batches
    )
    return dataclasses.replace(measurement, segments=(*before, last))
