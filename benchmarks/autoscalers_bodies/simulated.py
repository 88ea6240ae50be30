"""A run of the contest in simulated time, under the very controller that runs on Spark."""

import time
from collections.abc import Sequence
from functools import lru_cache

from benchmarks.autoscalers_bodies.contest import (
    CORES,
    POLICIES,
    STATIC,
    TARGET_S,
    WARM_S,
)
from benchmarks.autoscalers_bodies.kept import Asked, Result
from benchmarks.autoscalers_bodies.worlds import setting_of

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.sim.microbatch.oracle import Oracle, oracle
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.view.summary import summarise


def run_simulated(asked: Asked) -> tuple[Result, Sequence[Record]]:
    """Run one policy under one load, and judge it."""
    begun_s = time.perf_counter()
    setting = setting_of(asked.query, asked.load, asked.seconds, asked.minute_s, asked.seed)
    bounds = Bounds(*CORES)
    if asked.policy == STATIC:
        bounds = Bounds(setting.peak_cores, setting.peak_cores)
    assembly = Assembly(target=Target(TARGET_S), bounds=bounds, policy=POLICIES[asked.policy])
    records = simulate(setting.world(bounds.least), new_controller(assembly)).records
    least = _least(asked.query, asked.load, asked.seconds, asked.minute_s, asked.seed)
    return result_of(asked, records, least, None, time.perf_counter() - begun_s), records


def result_of(
    asked: Asked,
    records: Sequence[Record],
    least: Oracle,
    verified: bool | None,
    took_s: float,
) -> Result:
    """What is kept of a run, from its records."""
    found = summarise(records, warm_up_s=min(WARM_S, asked.seconds / 3.0))
    return Result(
        asked=asked,
        within=0.0 if found.within_target is None else found.within_target,
        core_seconds=found.core_seconds,
        changes=found.changes,
        p95_ms=None if found.p95_s is None else round(1000.0 * found.p95_s, 1),
        oracle_core_seconds=least.core_seconds,
        oracle_within=least.within,
        verified=verified,
        took_s=took_s,
    )


@lru_cache(maxsize=2)
def _least(query: str, load: str, seconds: float, minute_s: float, seed: int) -> Oracle:
    """The oracle of a load, which is the same for all policies."""
    there = setting_of(query, load, seconds, minute_s, seed)
    cores = range(CORES[0], CORES[1] + 1)
    return oracle(there.load, seconds, [there.oracle_segment], Target(TARGET_S), cores)
