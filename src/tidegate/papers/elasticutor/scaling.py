"""Figures 10 and 11: how far one operator scales out, and its tail latency while it does.

Up to 24 tasks run on Spark. What 256 cores would do is simulated.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.throughput import measure_throughput
from tidegate.apps.paradigms import OURS
from tidegate.apps.work_done import WorkDone
from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.elasticutor.dynamics import all_right
from tidegate.papers.elasticutor.one_executor import (
    CORES_EACH,
    NODES,
    QUICK_NODES,
    Load,
    simulate,
)
from tidegate.papers.elasticutor.rotation import warm_up
from tidegate.papers.elasticutor.sessions import LOCAL, TASKS, spark_on
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.view.pages.paper import Curve, Picture

LOADS = (
    Load(row_ms=1.0),
    Load(row_ms=0.1),
    Load(row_ms=10.0),
    Load(row_ms=1.0, tuple_bytes=2048),
    Load(row_ms=1.0, tuple_bytes=8192),
)
LIGHTEST = Load(row_ms=0.01)
"""The paper's lightest tuples, for the simulation alone."""
USUAL = LOADS[0]
SEVERAL_TASKS, FEW_TASKS, FEWEST_TASKS = (1, 2, 4, 8, 16, TASKS), (1, 8, TASKS), (1, TASKS)
SECONDS, QUICK_SECONDS = 4.0, 2.0
TAIL_BATCH_S = 0.1
TAIL_BATCHES, QUICK_TAIL_BATCHES = 120, 20
"""A 99th percentile needs a hundred batches, so they are short ones."""
LEAST_BATCHES = 100
BATCH_S, WARM = 0.5, 3
LEAST_OF_LINEAR = 0.7
MOST_TAIL = 1.5


@dataclass(frozen=True, slots=True)
class Scaled:
    """One run: a load on so many tasks."""

    load: Load
    tasks: int


Found = Mapping[Scaled, WorkDone]
Simulated = Mapping[tuple[Load, int], float]
"""Rows per second by load and cores."""


def points(*, quick: bool, tail: bool = False) -> list[Scaled]:
    """The runs: all numbers of tasks for the paper's usual load, fewer for the others."""
    if quick:
        loads = (USUAL, LOADS[-1])
        return [Scaled(load, tasks) for load in loads for tasks in FEWEST_TASKS]
    others = FEWEST_TASKS if tail else FEW_TASKS
    usual = FEW_TASKS if tail else SEVERAL_TASKS
    return [Scaled(load, tasks) for load in LOADS for tasks in (usual if load == USUAL else others)]


def run_throughput(asked: Asked) -> Findings:
    """Figure 10."""
    found = _measured(asked, points(quick=asked.quick))
    simulated: dict[tuple[Load, int], float] = {}
    loads = (*dict.fromkeys(one.load for one in found), LIGHTEST)
    sizes = QUICK_NODES if asked.quick else NODES
    asked.progress.expect(len(loads) * len(sizes))
    for load in loads:
        for nodes in sizes:
            asked.progress.step(f"simulating {title(load)} on {nodes * CORES_EACH} cores")
            rate = simulate(load, nodes).throughput
            simulated[load, nodes * CORES_EACH] = rate
            asked.say(f"simulated, {title(load)}, {nodes * CORES_EACH} cores: {rate:,.0f} rows/s")
    return Findings(
        compared=tuple(throughput_rows(found, simulated)),
        aims=(*throughput_aims(found), all_right(found.values())),
        pictures=(_measured_picture(found), _simulated_picture(simulated)),
        notes=(
            "Time per tuple is waited. Making, sending and reading tuples is real work on the two"
            " cores of this machine, and bounds the throughput of 0.1 ms and of 8 KB, as the"
            " network of one node does in the paper.",
            f"{title(LIGHTEST)} is simulated alone: {_TOO_LIGHT}",
            "Beyond 24 tasks it is simulated: one executor of 8192 shards on nodes of 8 cores and"
            " 1 Gbit/s. The hottest of 10,000 keys keeps it below what all 256 cores could do.",
        ),
    )


def run_tail(asked: Asked) -> Findings:
    """Figure 11."""
    batches = QUICK_TAIL_BATCHES if asked.quick else TAIL_BATCHES
    found = _measured(asked, points(quick=asked.quick, tail=True), batches)
    return Findings(
        compared=tuple(tail_rows(found)),
        aims=(*tail_aims(found), all_right(found.values())),
        pictures=(Picture(tail_name(found), "tasks", "seconds", _lines(found, tail=True)),),
        notes=(
            "The source is always full, so a row's latency is the length of its micro-batch: a"
            " tenth of a second of work and the batch's fixed cost. The paper's tuples pass one by"
            " one.",
            f"{title(LIGHTEST)} is left out: {_TOO_LIGHT}",
            f"Each point has at least {batches} batches. Of fewer than {LEAST_BATCHES} the 99th"
            " percentile is the longest one, and is called so.",
            "The simulator has no tail: its tuples are a fluid. So 256 cores are left out.",
        ),
    )


def _measured(asked: Asked, wanted: list[Scaled], tail_batches: int = 0) -> dict[Scaled, WorkDone]:
    """Measure the points; with `tail_batches`, so many short batches of each."""
    found: dict[Scaled, WorkDone] = {}
    with spark_on(LOCAL) as spark:
        warm_up(spark)
        told = asked.progress.each(wanted, lambda one: f"{title(one.load)}, {one.tasks} tasks")
        for one in told:
            seconds = QUICK_SECONDS if asked.quick else SECONDS
            found[one] = done = _measure(spark, one, seconds, tail_batches)
            asked.say(
                f"{title(one.load)}, {one.tasks} tasks: {done.mean_rows_per_s:,.0f} rows/s,"
                f" p99 of {done.batches} batches {done.p99_latency_s:.2f} s"
            )
    return found


def _measure(spark: SparkSession, one: Scaled, seconds: float, tail_batches: int) -> WorkDone:
    load = one.load
    micro = MicroOptions(row_ms=load.row_ms, payload=load.tuple_bytes, omega=load.omega)
    return measure_throughput(
        spark,
        OURS,
        micro,
        tasks=one.tasks,
        seconds=seconds,
        batch_s=TAIL_BATCH_S if tail_batches else BATCH_S,
        warm_batches=WARM,
        batches=tail_batches,
    )


def title(load: Load) -> str:
    """A load in a few words."""
    return f"{load.row_ms:g} ms, {load.tuple_bytes} B"


_TOO_LIGHT = (
    f"{TASKS} tasks would have {TASKS / LIGHTEST.row_ms / 1e3:.1f} million tuples a second, more"
    " than two cores can make."
)


def of_linear(found: Found, load: Load) -> float:
    """The throughput on all tasks over that of one task, as a share of linear."""
    one, many = found[Scaled(load, 1)], found[Scaled(load, TASKS)]
    return many.mean_rows_per_s / max(one.mean_rows_per_s, 1e-9) / TASKS


def throughput_rows(found: Found, simulated: Simulated) -> list[Compared]:
    """The paper draws these values and prints none."""
    rows = [
        Compared(f"{title(one.load)}, {one.tasks} tasks: rows/s", None, round(done.mean_rows_per_s))
        for one, done in found.items()
    ]
    for load in dict.fromkeys(one.load for one in found):
        share = round(of_linear(found, load), 2)
        name = f"{title(load)}: share of linear at {TASKS} tasks"
        rows.append(Compared(name, _said(load), share))
    rows += [
        Compared(f"{title(load)}, {cores} cores, simulated: rows/s", _said(load), round(rate))
        for (load, cores), rate in simulated.items()
    ]
    return rows


def _said(load: Load) -> str | None:
    """How far the paper's text says that a load scales."""
    if load.tuple_bytes == 8192 or load == LIGHTEST:
        return "no more than 16 cores"
    return "scales to 256 cores" if load.tuple_bytes == 128 and load.row_ms >= 1.0 else None


def throughput_aims(found: Found) -> list[Aim]:
    """The paper's usual load scales out."""
    name = f"{title(USUAL)}: share of linear at {TASKS} tasks"
    return [at_least(name, of_linear(found, USUAL), LEAST_OF_LINEAR)]


def tail_name(found: Found) -> str:
    """What the tail is: a percentile needs enough batches."""
    enough = min(done.batches for done in found.values()) >= LEAST_BATCHES
    return "99th percentile of latency" if enough else "longest batch"


def tail_growth(found: Found, load: Load) -> float:
    """The tail on all tasks over that on one."""
    one, many = found[Scaled(load, 1)], found[Scaled(load, TASKS)]
    return many.p99_latency_s / max(one.p99_latency_s, 1e-9)


def tail_rows(found: Found) -> list[Compared]:
    """The paper draws these values; its text says where the tail grows."""
    what = tail_name(found)
    rows = [
        Compared(
            f"{title(one.load)}, {one.tasks} tasks: {what}, s", None, round(done.p99_latency_s, 3)
        )
        for one, done in found.items()
    ]
    for load in dict.fromkeys(one.load for one in found):
        intensive = load.row_ms <= 0.1 or load.tuple_bytes >= 2048
        said = "grows greatly, beyond a point" if intensive else "not noticeably more"
        grown = round(tail_growth(found, load), 2)
        rows.append(Compared(f"{title(load)}: {TASKS} tasks over 1", said, grown))
    return rows


def tail_aims(found: Found) -> list[Aim]:
    """The tail does not grow with the tasks."""
    name = f"{title(USUAL)}: {tail_name(found)} at {TASKS} tasks over 1 task"
    return [at_most(name, tail_growth(found, USUAL), MOST_TAIL)]


def _lines(found: Found, *, tail: bool) -> tuple[Curve, ...]:
    made = []
    for load in dict.fromkeys(one.load for one in found):
        mine = {one.tasks: done for one, done in found.items() if one.load == load}
        values = [done.p99_latency_s if tail else done.mean_rows_per_s for done in mine.values()]
        made.append(Curve(title(load), tuple(float(tasks) for tasks in mine), tuple(values)))
    return tuple(made)


def _measured_picture(found: Found) -> Picture:
    lines = _lines(found, tail=False)
    return Picture("On Spark", "tasks", "rows per second", lines, logarithmic=True)


def _simulated_picture(simulated: Simulated) -> Picture:
    lines = []
    for load in dict.fromkeys(load for load, _ in simulated):
        mine = {float(cores): rate for (one, cores), rate in simulated.items() if one == load}
        lines.append(Curve(title(load), tuple(mine), tuple(mine.values())))
    return Picture("Simulated", "cores", "rows per second", tuple(lines), logarithmic=True)
