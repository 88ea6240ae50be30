"""Figure 13: executors per operator (y) and shards per executor (z), simulated on 256 cores."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidegate.benching import Aim, at_least
from tidegate.papers.elasticutor.measured_costs import SYNCHRONISED_S, nodes_of
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.sim.placement.elastic import micro
from tidegate.sim.placement.elastic import run as simulate
from tidegate.sim.placement.paradigms import Paradigm
from tidegate.view.pages.paper import Curve, Picture

EXECUTORS, QUICK_EXECUTORS = (1, 8, 32, 256), (1, 32)
SHARDS_EACH, QUICK_SHARDS_EACH = (4, 16, 64, 256), (16, 256)
BASELINES: tuple[Paradigm, ...] = ("static", "resource-centric")
SECONDS, WARM_UP_S = 45.0, 15.0
USUAL = (32, 256)
"""The paper's y and z."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One of the figure's three workloads."""

    name: str
    tuple_bytes: float
    omega: float


WORKLOADS = (
    Workload("default", 128.0, 2.0),
    Workload("data-intensive", 8192.0, 2.0),
    Workload("highly dynamic", 128.0, 16.0),
)
Grid = Mapping[tuple[str, int, int], float]
"""Tuples per second by workload, executors and shards."""


def run(asked: Asked) -> Findings:
    """Simulate the grid, and the paradigms without executors beside it."""
    workloads = WORKLOADS[:1] if asked.quick else WORKLOADS
    grid: dict[tuple[str, int, int], float] = {}
    beside: dict[tuple[str, str], float] = {}
    each = QUICK_SHARDS_EACH if asked.quick else SHARDS_EACH
    counts = QUICK_EXECUTORS if asked.quick else EXECUTORS
    asked.progress.expect(len(workloads) * (len(BASELINES) + len(counts) * len(each)))
    for load in workloads:
        for paradigm in BASELINES:
            asked.progress.step(f"{load.name}, {paradigm}")
            beside[load.name, paradigm] = _rate(load, paradigm)
        for executors in counts:
            for shards in each:
                asked.progress.step(f"{load.name}, {executors} executors, {shards} shards each")
                rate = _rate(load, "executor-centric", executors, shards)
                grid[load.name, executors, shards] = rate
            asked.say(f"{load.name}, {executors} executors: {rate:,.0f} tuples/s at most shards")
    return Findings(
        compared=tuple(compared(grid, beside)),
        aims=tuple(aims(grid, beside)),
        pictures=tuple(_picture(grid, beside, load.name) for load in workloads),
        notes=(
            "A Spark application cannot choose the cores of its nodes, and an operator's shards may"
            " move to any task: it has one executor in the paper's sense. So this is simulated.",
            f"The network is the paper's. The shards that a decision moves stand still for"
            f" {1000 * SYNCHRONISED_S:g} ms, the time between two batches that was measured on"
            " Spark; the paper's executors synchronise in 2 ms, for one shard after the other.",
        ),
    )


def _rate(load: Workload, paradigm: Paradigm, executors: int = 32, shards: int = 256) -> float:
    experiment = micro(load.omega, paradigm, tuple_bytes=load.tuple_bytes)
    return simulate(
        replace(
            experiment,
            nodes=nodes_of(experiment.nodes.count),
            executors=executors,
            shards_each=shards,
            seconds=SECONDS,
            warm_up_s=WARM_UP_S,
        )
    ).throughput


def compared(grid: Grid, beside: Mapping[tuple[str, str], float]) -> list[Compared]:
    """The paper draws this figure and prints no value of it."""
    rows = [
        Compared(f"{load}, y = {executors}, z = {shards}: tuples/s", None, round(rate))
        for (load, executors, shards), rate in grid.items()
    ]
    rows += [
        Compared(f"{load}, {paradigm}: tuples/s", None, round(rate))
        for (load, paradigm), rate in beside.items()
    ]
    return rows


def aims(grid: Grid, beside: Mapping[tuple[str, str], float]) -> list[Aim]:
    """One executor per node beats static under every workload, and more shards help."""
    least = min(
        grid[load, *USUAL] / max(rate, 1e-9)
        for (load, paradigm), rate in beside.items()
        if paradigm == "static"
    )
    load = next(iter(grid))[0]
    fewest = min(shards for _, _, shards in grid)
    finer = grid[load, *USUAL] / max(grid[load, USUAL[0], fewest], 1e-9)
    return [
        at_least("y = 32, z = 256 over static, least of all workloads", least, 1.0),
        at_least(f"y = 32: z = 256 over z = {fewest}", finer, 1.0),
    ]


def _picture(grid: Grid, beside: Mapping[tuple[str, str], float], load: str) -> Picture:
    shards = tuple(dict.fromkeys(str(one) for _, _, one in grid))
    lines = [
        Curve(
            f"y = {executors}",
            shards,
            tuple(grid[load, executors, int(one)] for one in shards),
        )
        for executors in dict.fromkeys(executors for _, executors, _ in grid)
    ]
    lines += [
        Curve(paradigm, shards, (beside[load, paradigm],) * len(shards)) for paradigm in BASELINES
    ]
    return Picture(f"{load}, 256 cores", "shards per executor", "tuples per second", tuple(lines))
