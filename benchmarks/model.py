"""The micro-batch model on Spark: predicted against measured latency, mean and p95.

Three pipelines whose operators wait instead of computing run at the points of a sweep over load,
tasks, skew and segments: even keys, skewed keys, and two segments with a cut between them. The
tasks change between two micro-batches, and the rate follows a profile. Each point is predicted from
the batches of the *other* points of its pipeline alone: their costs (a0, a1, w), their noise, and
the shares of the shards. Every point is visited three times, in another order each time, and
judged by the mean of its visits: a shared machine is faster in one minute than in the next, and
that is not the model's error. One point is visited ten times and more, which shows how far two
visits of the same point differ on this machine.

The model has a core for every task. Operators here wait, so tasks beyond the machine's cores speed
up all the same, but starting and ending a task, and planning a batch, need a real core. On two
cores the sweep therefore stays at 8 tasks: with 14, what a batch costs besides its rows was a third
higher than the line through the other points.
"""

import math
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession
from scipy.stats import spearmanr

from tidegate.apps.waiting import Waiting, waiting_map
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.control.batch_parts import BESIDE, SLOWEST, STARTING
from tidegate.control.learning.sojourn import BatchStamps, merged, sojourn
from tidegate.control.measurement import Latency
from tidegate.errors import TidegateError
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.batch_memory import BatchMemory, ToldParts
from tidegate.models.microbatch.imbalance import chance_spread, routed_imbalance
from tidegate.models.microbatch.sequence import total_sojourn
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import pipeline
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.batch_parts import batch_parts
from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.query_meter import QueryMeter
from tidegate.spark.measure.segment_batches import stage_imbalance
from tidegate.spark.run import Run
from tidegate.spark.session import session
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.start import start
from tidegate.workload.profile import steps

WAIT_S = 0.003
"""The time that each row takes in each of the two operators."""
DRAIN_S = 1.5
"""Between two points few rows arrive for so long, so that a point does not begin with a backlog."""
DRAIN_RATE = 20.0
VISITS = 3
"""How often each point is visited."""
REPEATED = (6, 6), 0.45
"""The point that is repeated to show the noise: tasks of both operators, and rho."""
_OUTLIER = 0.5
"""Batches off by more than this factor's logarithm tell of the machine, not of the model."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a sweep: tasks and load, and when they apply."""

    tasks: tuple[int, int]
    """Of the map and of the keyed operator."""
    rho: float
    rate: float
    begins_s: float
    seconds: float
    repeats: bool = False

    @property
    def settled_s(self) -> float:
        """From then on batches count: a batch is rho times as far off as the one before."""
        batches = 1.0 + math.log(0.04) / math.log(self.rho)
        return self.begins_s + DRAIN_S + min(0.7 * batches / (1.0 - self.rho), 0.5 * self.seconds)


@dataclass(frozen=True, slots=True)
class Sweep:
    """One pipeline, and the points at which it runs."""

    name: str
    keys: str
    cut: bool
    warm_s: float
    points: tuple[Point, ...]

    @property
    def end_s(self) -> float:
        """When the last point ends, since the first arrival."""
        return self.points[-1].begins_s + self.points[-1].seconds


def planned(
    name: str,
    keys: str,
    visited: Iterable["Visited"],
    *,
    warm_s: float,
    cut: bool = False,
    quick: bool = False,
) -> Sweep:
    """The sweep over these (tasks, rho); a point with a high rho takes longer to settle."""
    begins_s = warm_s
    found: list[Point] = []
    for tasks, rho in visited:
        seconds = 7.0 if quick else 10.0 if rho <= 0.3 else 13.0 if rho <= 0.5 else 20.0
        # In a segment of its own an operator has all cores of the segment to itself.
        rate = rho * min(tasks) / WAIT_S if cut else rho * tasks[0] / (2 * WAIT_S)
        repeats = not cut and (tasks, rho) == REPEATED
        found.append(Point(tasks, rho, rate, begins_s, seconds, repeats))
        begins_s += seconds
    return Sweep(name, keys, cut, warm_s, tuple(found))


def sweeps(*, quick: bool) -> list[Sweep]:
    """The three sweeps. Light and heavy points alternate, as Spark gets faster for minutes."""
    if quick:
        even = [((4, 4), 0.3), REPEATED, ((12, 12), 0.3), REPEATED, ((4, 4), 0.5)]
        halves = [((4, 10), 0.5), ((10, 4), 0.4), ((3, 9), 0.45)]
        return [
            planned("even", "uniform:20000", even, warm_s=12.0, quick=True),
            planned("cut", "uniform:20000", halves, warm_s=8.0, cut=True, quick=True),
        ]
    grid = [((k, k), rho) for k in (3, 5, 6, 8) for rho in (0.25, 0.45, 0.65)]
    grid.remove(REPEATED)
    grid.sort(key=lambda point: (point[0][0] * 7 + point[1] * 100) % 11)
    even = []
    for number, point in enumerate(rounds(grid)):
        even += [REPEATED, point] if number % 3 == 0 else [point]
    skewed = [((k, k), rho) for rho in (0.25, 0.4) for k in (3, 5, 8)]
    # One of the segments is clearly slower. Where both take as long, the wait between them hangs on
    # a few milliseconds: it is nothing if the second is a little faster, and half a batch if not.
    pairs = [((2, 5), 0.5), ((3, 7), 0.6), ((2, 6), 0.45), ((3, 8), 0.55)]
    halves = [point for (a, b), rho in pairs for point in (((a, b), rho), ((b, a), rho))]
    return [
        planned("even", "uniform:20000", even, warm_s=120.0),
        planned("skewed", "zipf:2000,0.9", rounds(skewed), warm_s=25.0),
        planned("cut", "uniform:20000", rounds(halves), warm_s=60.0, cut=True),
    ]


Visited = tuple[tuple[int, int], float]
"""Tasks of both operators, and rho."""


def rounds(points: Sequence[Visited]) -> list[Visited]:
    """Each point `VISITS` times; every round begins elsewhere, and every second runs backwards."""
    found: list[Visited] = []
    for number in range(VISITS):
        first = number * len(points) // VISITS
        turned = [*points[first:], *points[:first]]
        found += turned[::-1] if number % 2 else turned
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """A finished micro-batch of one segment."""

    result: BatchResult
    progress: BatchProgress

    @property
    def begin_s(self) -> float:
        """When its trigger began."""
        return self.progress.start_us / 1e6

    @property
    def end_s(self) -> float:
        """When it ended."""
        return self.progress.end_us / 1e6

    @property
    def tasks(self) -> int:
        """The tasks of its widest operator."""
        return max(plan.tasks for plan in self.result.plan.operators.values())

    @property
    def imbalance(self) -> float:
        """delta: the slowest tasks over the mean, weighted over the stages."""
        return stage_imbalance(self.result.reports)

    def shard_rows(self, shards: int) -> npt.NDArray[np.float64]:
        """Rows of each shard of the keyed operator."""
        found = np.zeros(shards)
        for report in self.result.of("count"):
            if report.shard_rows is not None:
                found[report.shard_rows[0]] += report.shard_rows[1]
        return found


Segments = dict[str, list[Ran]]
"""The finished batches of each segment, in order."""


def visit(run: Run, sweep: Sweep, options: Options) -> Segments:
    """Visit all points of a sweep; return the batches that ended."""
    meters = {name: QueryMeter(query) for name, query in run.queries.items()}
    waiting: dict[str, dict[int, BatchProgress]] = {name: {} for name in meters}
    done: Segments = {name: [] for name in meters}
    began_s: float | None = None
    ahead = list(sweep.points)
    while True:
        for name, meter in meters.items():
            for ended in meter.read():
                waiting[name][ended.batch_id] = ended
            for result in run.results(name):
                progress = waiting[name].pop(result.plan.batch_id, None)
                if progress is not None:
                    done[name].append(Ran(result, progress))
        if began_s is None:
            began_s = first_arrival_s(done["main"])
        now_s = 0.0 if began_s is None else time.time() - began_s
        options.progress.within(now_s / sweep.end_s)
        if ahead and now_s >= ahead[0].begins_s + DRAIN_S - 0.7:
            point = ahead.pop(0)
            options.progress.doing(
                f"{sweep.name}: {point.tasks[0]} and {point.tasks[1]} tasks at rho"
                f" {point.rho:.2f}, {point.rate:,.0f} rows/s"
            )
            for operator, tasks in zip(("ask", "count"), point.tasks, strict=True):
                run.rescale(operator, tasks)
        if now_s >= sweep.end_s or run.awaitTermination(0.1):
            return done


def first_arrival_s(done: Sequence[Ran]) -> float | None:
    """When the first row arrived, which is when the profile began."""
    for ran in done:
        slots = [
            r.stamps.slots[0] for r in ran.result.reports if r.stamps is not None and r.rows_in
        ]
        if slots:
            return float(min(slots)) / 1000.0
    return None


def within(done: Sequence[Ran], point: Point, began_s: float) -> list[Ran]:
    """Batches that began and ended during a point, after it had settled."""
    return [
        ran
        for ran in done
        if ran.begin_s >= began_s + point.settled_s
        and ran.end_s <= began_s + point.begins_s + point.seconds
        and ran.progress.rows > 0
    ]


@dataclass(frozen=True, slots=True)
class Learned:
    """What the batches of other points tell of a segment."""

    cost: BatchCost
    noise: float
    keyed: float
    """The keyed operator's share of the work; only its rows fall on tasks by their keys."""
    shards: npt.NDArray[np.float64] = field(repr=False)
    chance: float
    """c: the imbalance by chance of tasks that are dealt their rows evenly."""
    factor: float
    """How much more uneven a batch's tasks are than its numbers of rows, where keys decide."""

    def imbalance(self, route: Sequence[int], tasks: int, rows: float) -> float:
        """delta of a batch of so many rows."""
        if self.keyed > 0.0:
            return 1.0 + self.factor * self.keyed * _uneven(self.shards, route, tasks, rows)
        return 1.0 + self.chance * float(chance_spread(tasks)) / math.sqrt(max(rows, 1.0))


def _uneven(
    shards: npt.NDArray[np.float64], route: Sequence[int], tasks: int, rows: float
) -> float:
    loads = np.bincount(np.asarray(route), shards, tasks)
    return routed_imbalance(loads / loads.sum(), rows) - 1.0


def learn(batches: Sequence[Ran], near_s: float) -> Learned:
    """Learn from batches as the control loop does; those near in time count most."""
    memory = BatchMemory()
    rows, busy_s, keyed_s = 0, 0.0, 0.0
    routes = [ran.result.plan.operators["count"] for ran in batches if "count" in _names(ran)]
    shards = np.zeros(len(routes[0].route) if routes else 1)
    for ran in sorted(batches, key=lambda one: -abs(one.end_s - near_s)):
        rows += ran.progress.rows
        busy_s += sum(report.busy_s for report in ran.result.reports)
        if routes:
            keyed_s += sum(report.busy_s for report in ran.result.of("count"))
            shards += ran.shard_rows(len(shards))
        memory.observe(
            rows=ran.progress.rows,
            tasks=ran.tasks,
            duration_s=ran.progress.duration_s,
            imbalance=ran.imbalance,
            at_s=-abs(ran.end_s - near_s),
            told=_told(ran),
        )
    cost = memory.fit(0.0, busy_s / rows if rows else None)
    if cost is None:
        raise TidegateError("no batch of another point was measured; the run was too short")
    off = np.log(
        [
            ran.progress.duration_s / cost.duration_s(ran.progress.rows, ran.tasks, ran.imbalance)
            for ran in batches
        ]
    )
    near = np.abs(off - np.median(off)) < _OUTLIER
    keyed = keyed_s / busy_s if busy_s > 0.0 else 0.0
    more = []
    for ran in batches:
        plan = ran.result.plan.operators.get("count")
        if plan is not None and plan.tasks > 1:
            uneven = _uneven(shards, plan.route, plan.tasks, ran.progress.rows)
            more.append((ran.imbalance - 1.0) / (keyed * uneven))
    factor = float(np.median(more)) if more else 1.0
    return Learned(cost, float(np.std(off[near])), keyed, shards, memory.chance(0.0), factor)


def _names(ran: Ran) -> Iterable[str]:
    return ran.result.plan.operators


def _told(ran: Ran) -> ToldParts:
    parts = batch_parts(ran.result, ran.progress)
    return ToldParts(parts[SLOWEST], parts[BESIDE], parts[STARTING])


def predict(learned: Sequence[Learned], point: Point, routes: Sequence[Sequence[int]]) -> Latency:
    """Predict a point; the rows of a batch and their imbalance depend on each other."""
    cores = list(point.tasks) if len(learned) > 1 else [max(point.tasks)]
    deltas = [1.0] * len(learned)
    for _ in range(20):
        stations = [
            MicroBatchStation(
                cost=one.cost, arrival_rate=point.rate, imbalance=delta, noise=one.noise
            )
            for one, delta in zip(learned, deltas, strict=True)
        ]
        gathered_s = 0.0
        for number, (station, tasks) in enumerate(zip(stations, cores, strict=True)):
            gathered_s = max(gathered_s, min(station.duration_s(tasks), 60.0))
            found = learned[number].imbalance(routes[number], tasks, point.rate * gathered_s)
            deltas[number] += 0.5 * (found - deltas[number])
    total = total_sojourn(stations, cores)
    if total is None:
        return Latency(mean_s=math.inf, p50_s=math.inf, p95_s=math.inf, p99_s=math.inf)
    p50_s, p95_s, p99_s = (total.percentile(share) for share in (0.50, 0.95, 0.99))
    return Latency(mean_s=total.mean_s, p50_s=p50_s, p95_s=p95_s, p99_s=p99_s)


def measure(done: Segments, inside: Sequence[Ran]) -> Latency | None:
    """The sojourn through all segments of the rows that these batches of the first one took.

    A row is done when the batch of the last segment that it is in ends. Operators keep the number
    and order of rows, so the batch is found by counting rows.
    """
    ends_us = {ran.progress.batch_id: ran.progress.end_us for ran in inside}
    for name in list(done)[1:]:
        first = np.cumsum([ran.progress.rows for ran in done["main"]])
        last = np.cumsum([ran.progress.rows for ran in done[name]])
        places = {ran.progress.batch_id: n for n, ran in enumerate(done["main"])}
        for batch_id in list(ends_us):
            found = int(np.searchsorted(last, first[places[batch_id]]))
            if found < len(last):
                ends_us[batch_id] = done[name][found].progress.end_us
            else:
                del ends_us[batch_id]
    stamped = []
    for ran in inside:
        parts = [r.stamps for r in ran.result.reports if r.stamps is not None]
        if ran.progress.batch_id in ends_us:
            stamped.append(BatchStamps(merged(parts), ends_us[ran.progress.batch_id]))
    return sojourn(stamped)


def compare(sweep: Sweep, done: Segments) -> list[dict[str, Any]]:
    """Predict each point from all others, and compare with what was measured there."""
    began_s = first_arrival_s(done["main"])
    assert began_s is not None
    held = {name: [within(ran, p, began_s) for p in sweep.points] for name, ran in done.items()}
    results: list[dict[str, Any]] = []
    for number, point in enumerate(sweep.points):
        same = [
            n for n, p in enumerate(sweep.points) if (p.tasks, p.rho) == (point.tasks, point.rho)
        ]
        near_s = began_s + point.begins_s + point.seconds / 2.0
        inside = held["main"][number]
        measured = measure(done, inside)
        if measured is None or not all(held[name][number] for name in held):
            continue
        learned, routes = [], []
        for name, points in held.items():
            others = [ran for n, batches in enumerate(points) if n not in same for ran in batches]
            learned.append(learn(others, near_s))
            plan = held[name][number][-1].result.plan.operators.get("count")
            routes.append(() if plan is None else plan.route)
        predicted = predict(learned, point, routes)
        results.append(
            {
                "pipeline": sweep.name,
                "tasks": "+".join(map(str, point.tasks if sweep.cut else point.tasks[:1])),
                "rho": point.rho,
                "rows_per_s": round(point.rate),
                "batches": len(inside),
                "predicted_s": round(predicted.mean_s, 3),
                "measured_s": round(measured.mean_s, 3),
                "error": round(predicted.mean_s / measured.mean_s - 1.0, 3),
                "predicted_p95_s": round(predicted.p95_s, 3),
                "measured_p95_s": round(measured.p95_s, 3),
                "p95_error": round(predicted.p95_s / measured.p95_s - 1.0, 3),
                "a0_ms": [round(one.cost.fixed_s * 1e3) for one in learned],
                "a1_ms": [round(one.cost.per_task_s * 1e3, 1) for one in learned],
                "w_ms": [round(one.cost.work_s * 1e3, 2) for one in learned],
                "repeated": point.repeats,
            }
        )
    return results


def ran_sweep(spark: SparkSession, sweep: Sweep, options: Options) -> Segments:
    """Run one pipeline through all points of its sweep."""
    levels = [(0.0, 200.0)]
    for point in sweep.points:
        levels += [(point.begins_s, DRAIN_RATE), (point.begins_s + DRAIN_S, point.rate)]
    stream = arrivals(
        spark, steps(levels), keys=sweep.keys, seconds=sweep.end_s + 5.0, partitions=2
    )
    asked = pipeline(f"model-{sweep.name}", stream, arrival="timestamp").map(
        waiting_map(WAIT_S), name="ask", tasks=(1, 16)
    )
    if sweep.cut:
        asked = asked.cut("between")
    flow = asked.keyed("count", Waiting(count(), WAIT_S), key="key").to("noop")
    options.progress.step(f"{sweep.name}: warming up for {sweep.warm_s:.0f} s", sweep.end_s)
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        live = start(flow.graph, checkpoint=str(Path(scratch) / "ck"), tasks=6)
        try:
            return visit(live, sweep, options)
        finally:
            live.stop()


def run(options: Options) -> Bench:
    """Run the three pipelines through their points, one pipeline after the other."""
    spark = session("local[16]", "bench-model")
    results: list[dict[str, Any]] = []
    asked = sweeps(quick=options.quick)
    total_s = sum(sweep.end_s for sweep in asked)
    options.progress.expect(total_s, takes_s=total_s)
    for sweep in asked:
        results += compare(sweep, ran_sweep(spark, sweep, options))
    again = np.array([row["measured_s"] for row in results if row["repeated"]])
    floor = float(np.std(again) / np.mean(again)) if len(again) > 1 else float("nan")
    points = _once(results)
    errors = np.abs([row["error"] for row in points])
    tails = np.abs([row["p95_error"] for row in points])
    ranks = ([row["predicted_s"] for row in points], [row["measured_s"] for row in points])
    order = spearmanr(*ranks).statistic
    options.say(
        f"the repeated point: {len(again)} times, {np.mean(again):.3f} s on average, a deviation"
        f" of {100 * floor:.1f} %, at most {100 * np.max(np.abs(again / np.mean(again) - 1)):.1f} %"
    )
    return Bench(
        "model",
        points,
        [
            at_least("points", len(points), 6 if options.quick else 24),
            at_most("median error", float(np.median(errors)), 0.05),
            at_most("largest error", float(np.max(errors)), 0.20),
            at_most("median error of p95", float(np.median(tails)), 0.10),
            Aim("rank correlation", float(order), ">= 0.9", bool(order >= 0.9)),
            at_most("noise: deviation of the repeated point", floor, 0.05),
        ],
    )


def _once(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """All points, each with the means of its visits."""
    visits: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    for row in results:
        visits.setdefault((row["pipeline"], row["tasks"], row["rho"]), []).append(row)
    found = []
    for (name, tasks, rho), rows in visits.items():
        point: dict[str, Any] = {"pipeline": name, "tasks": tasks, "rho": rho, "visits": len(rows)}
        for what in ("predicted_s", "measured_s", "predicted_p95_s", "measured_p95_s"):
            point[what] = round(float(np.mean([row[what] for row in rows])), 3)
        point["error"] = round(point["predicted_s"] / point["measured_s"] - 1.0, 3)
        point["p95_error"] = round(point["predicted_p95_s"] / point["measured_p95_s"] - 1.0, 3)
        spread = [abs(row["measured_s"] / point["measured_s"] - 1.0) for row in rows]
        point["visits_differ"] = round(float(np.mean(spread)), 3)
        found.append(point)
    return found
