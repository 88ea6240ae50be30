"""The overload paper's load in two simulated bodies: its own engine, and micro-batches.

Every shedder under the same load; how far mean latency is off its target, and how much was kept.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.benching import Bench, Options, at_least, at_most
from tidegate.control.assemble import new_shedder
from tidegate.control.names import DEFAULT_SHEDDER, SHEDDERS
from tidegate.models.shedding.estimate import estimated_count, estimated_mean, estimated_sum
from tidegate.sim.sharing.many_pipelines import Crowd, crowd
from tidegate.sim.shedding.engine import simulate_engine
from tidegate.sim.shedding.experiment import (
    BODIES,
    INTERVAL_S,
    Series,
    TargetVerdict,
    engine_world,
    judge,
    overload,
    pooled,
)
from tidegate.sim.shedding.until_cores_come import TARGET_S, UntilCoresOutcome, shed_until_cores
from tidegate.view.pages.svg import Line, Panel, write_svg

TARGETS_S = (0.5, 1.0, 2.0, 3.0)
LOWEST = (1.1, 2.0, 5.0)
"""The lowest step of the load relative to the capacity; the highest is three times that."""
QUERIES = (20, 60, 80, 120, 160, 200)
PICTURE_TARGET_S = 2.0


def simulated_body(options: Options) -> Bench:
    """All shedders, both bodies, all targets and loads; then many pipelines, and late cores."""
    targets = (0.5, 3.0) if options.quick else TARGETS_S
    lowest = (1.1, 5.0) if options.quick else LOWEST
    seconds, seeds = (100.0, 2) if options.quick else (180.0, 3)
    results: list[dict[str, Any]] = []
    verdicts: dict[str, list[TargetVerdict]] = {name: [] for name in SHEDDERS}
    unaccounted = 0.0
    cases = len(BODIES) * len(lowest) * len(targets) * len(SHEDDERS)
    queries = QUERIES[::3] if options.quick else QUERIES
    crowds = (20,) if options.quick else (20, 80, 200)
    options.progress.expect(cases + len(queries) + len(crowds) + 1)
    for body in BODIES:
        for low in lowest:
            for target_s in targets:
                for name in SHEDDERS:
                    options.progress.step(f"{body}, {name}, target {target_s:g} s, load {low:g}")
                    series = _pooled(body, name, target_s, low, seconds, seeds)
                    found = judge(series, target_s, seconds)
                    verdicts[name].append(found)
                    unaccounted = max(unaccounted, abs(series.balance))
                    results.append(_row(body, name, target_s, low, found))
        options.say(f"{body}: {len(targets) * len(lowest)} cases with {len(SHEDDERS)} shedders")
    results += _queries(queries, options)
    many = _together(crowds, options)
    results += [
        {
            "body": "together",
            "shedder": DEFAULT_SHEDDER,
            "load": load,
            "latency": found.latency_over_target,
            "kept": found.kept,
            "least_kept": found.least_kept,
        }
        for load, found in many
    ]
    options.progress.step("cores that come late, and the stated errors")
    slow = shed_until_cores(DEFAULT_SHEDDER)
    results += _until_cores(slow, shed_until_cores(None))
    covered = _coverage(200 if options.quick else 1000)
    ours = verdicts[DEFAULT_SHEDDER]
    return Bench(
        "shed",
        results,
        [
            at_most("mean latency off its target, worst case, %", _off(ours), 3.0),
            at_least("kept over capacity, worst case", _least_kept(ours), 0.97),
            at_least("steps settled within 5 targets", _settled(ours), 1.0),
            at_least(
                "times closer than the paper's q = 0.1", _off(verdicts["paper"]) / _off(ours), 1.0
            ),
            at_least(
                "steps settled over feedback's", _settled(ours) / _settled(verdicts["feedback"]), 1
            ),
            at_most("rows not accounted for", unaccounted, 0.5),
            at_most("s until nothing is shed after cores came", slow.over_s, 2.0),
            at_least("windows within their stated error (95 %)", covered, 0.94),
            at_most(
                "pipelines that share cores: off their own targets, %",
                max(found.off for _, found in many) * 100.0,
                10.0,
            ),
        ],
    )


def _pooled(
    body: str, name: str, target_s: float, low: float, seconds: float, seeds: int
) -> Series:
    return pooled(
        [
            overload(body, name, target_s=target_s, lowest=low, seconds=seconds, seed=seed)
            for seed in range(1, seeds + 1)
        ]
    )


def _row(body: str, name: str, target_s: float, low: float, found: TargetVerdict) -> dict[str, Any]:
    return {
        "body": body,
        "shedder": name,
        "target_s": target_s,
        "load": f"{low:g} to {3 * low:.3g}",
        "latency": found.latency_over_target,
        "p99": found.worst_over_target,
        "kept": found.kept_over_capacity,
        "settled": found.settled,
        "settling": found.settling_targets,
    }


def _off(verdicts: list[TargetVerdict]) -> float:
    return max(abs(found.latency_over_target - 1.0) for found in verdicts) * 100.0


def _least_kept(verdicts: list[TargetVerdict]) -> float:
    return min(found.kept_over_capacity for found in verdicts)


def _settled(verdicts: list[TargetVerdict]) -> float:
    return float(np.mean([found.settled for found in verdicts]))


def _queries(numbers: Sequence[int], options: Options) -> list[dict[str, Any]]:
    """The paper's figures 5 and 6: increasing numbers of queries, with and without a 1 s target."""
    rows = []
    for queries in numbers:
        options.progress.step(f"{queries} queries")
        world = engine_world(queries, 80.0)
        for name in (DEFAULT_SHEDDER, None):
            found = simulate_engine(world, None if name is None else new_shedder(name, 1.0))
            rows.append(
                {
                    "body": "engine",
                    "shedder": name or "none",
                    "target_s": 1.0,
                    "load": f"{queries} queries",
                    "latency": found.mean_latency_s(20.0),
                    "p99": float(np.percentile(found.latency_s[found.ended_s > 20.0], 99)),
                }
            )
    return rows


def _together(crowds: Sequence[int], options: Options) -> list[tuple[str, Crowd]]:
    """20 to 200 pipelines with targets of 1, 2 and 4 s, at three times the cores' capacity."""
    found = []
    for count in crowds:
        options.progress.step(f"{count} pipelines that share cores")
        one = crowd(count)
        found.append((f"{count} pipelines", one))
        options.say(f"{count} pipelines on {one.cores} cores: {one.kept:.0%} kept")
    return found


def _until_cores(slow: UntilCoresOutcome, without: UntilCoresOutcome) -> list[dict[str, Any]]:
    """A fourfold surge with cores that are granted after 20 s; latencies since the surge."""
    return [
        {
            "body": "micro-batch",
            "shedder": name,
            "target_s": TARGET_S,
            "load": "leap, late cores",
            "latency": found.mean_latency_s / TARGET_S,
            "p99": found.worst_latency_s / TARGET_S,
        }
        for name, found in ((DEFAULT_SHEDDER, slow), ("none", without))
    ]


def _coverage(windows: int) -> float:
    """How often the truth lies within the stated error: windows of 500 rows, half of them shed."""
    random = np.random.default_rng(7)
    inside = 0
    for _ in range(windows):
        values = random.lognormal(3.0, 0.6, 500)
        kept = values[random.random(500) < 0.5]
        weights = np.full(len(kept), 2.0)
        for estimate, truth in (
            (estimated_count(weights), 500.0),
            (estimated_sum(kept, weights), values.sum()),
            (estimated_mean(kept, weights), values.mean()),
        ):
            inside += abs(estimate.value - truth) <= estimate.within(0.95)
    return inside / (3 * windows)


def draw(path: Path) -> None:
    """Draw micro-batches at 0.7 to 2.1 times the capacity: below, above and below it again."""
    seconds, low, target_s = 90.0, 0.7, PICTURE_TARGET_S
    runs = {
        name or "nothing shed": overload(
            "micro-batch", name, target_s=target_s, lowest=low, seconds=seconds
        )
        for name in (DEFAULT_SHEDDER, "paper", None)
    }
    ours = runs[DEFAULT_SHEDDER]
    at_s = INTERVAL_S * np.arange(1, len(ours.keep) + 1)
    offered = Line(name="offered", at_s=at_s, values=ours.offered_rate, stairs=True)
    kept = Line(name="kept", at_s=at_s, values=ours.offered_rate * ours.keep, stairs=True)
    latency = [
        Line(name=name, at_s=series.at_s, values=series.latency_s) for name, series in runs.items()
    ]
    write_svg(
        [
            Panel(title="rows/s", lines=[kept, offered], most=10_000.0),
            Panel(title="mean latency, s", lines=latency, most=6.0, mark=target_s),
        ],
        path,
    )
