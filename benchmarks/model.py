"""The micro-batch model on Spark: predicted against measured latency over load and tasks.

A pipeline whose operators sleep runs at every point of a sweep: the tasks change between two
micro-batches, and the rate follows a profile. The cost (a0, a1, w) is learned from the batches of a
few calibration points spread over the sweep. All other points are predicted from that cost alone:
E[T] = 1.5 (a0 + a1 k) / (1 - lambda w delta / k), with the imbalance delta of rows that fall on
tasks at random.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from tidegate.apps.waiting import Waiting, waiting_map
from tidegate.benching import Aim, Bench, Options, at_most
from tidegate.control.learning.sojourn import BatchStamps, merged, sojourn
from tidegate.errors import TidegateError
from tidegate.models.microbatch.batch_cost import BatchCost, chance_imbalance
from tidegate.models.microbatch.batch_memory import BatchMemory
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import pipeline
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.query_meter import QueryMeter
from tidegate.spark.run import Run
from tidegate.spark.session import session
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.start import start
from tidegate.workload.profile import steps

WAIT_S = 0.003
"""The time that each row takes in each of the two operators."""
WORK_S = 2 * WAIT_S
CALIBRATION = ((4, 0.3), (4, 0.7), (12, 0.3), (12, 0.6))
"""The calibration points, as (tasks, rho)."""
SWEEP = tuple((tasks, rho) for tasks in (3, 6, 9, 14) for rho in (0.25, 0.45, 0.65))
_SETTLE = 0.35
"""The share of a point's time before the measurement begins."""
_WARM_S = 45.0


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the sweep: tasks and load, and when they apply."""

    tasks: int
    rho: float
    begins_s: float
    seconds: float

    @property
    def rate(self) -> float:
        """Rows per second that keep this share of the tasks busy."""
        return self.rho * self.tasks / WORK_S


def points(seconds: float) -> list[Point]:
    """The sweep, mixing light and heavy points, with a calibration point before every third.

    Spark keeps getting faster for minutes, so a cost learned at one time only would be wrong later.
    """
    sweep = sorted(SWEEP, key=lambda point: (point[0] * 7 + point[1] * 100) % 11)
    order = []
    for number, point in enumerate(sweep):
        if number % 3 == 0:
            order.append(CALIBRATION[number // 3])
        order.append(point)
    return [
        Point(tasks, rho, _WARM_S + number * seconds, seconds)
        for number, (tasks, rho) in enumerate(order)
    ]


Finished = tuple[BatchResult, BatchProgress]


def visit(run: Run, stops: list[Point], options: Options) -> list[Finished]:
    """Visit all points; return the batches that ended, in order."""
    meter = QueryMeter(run.queries["main"])
    waiting: dict[int, BatchProgress] = {}
    done: list[Finished] = []
    began_s: float | None = None
    ahead = list(stops)
    end_s = stops[-1].begins_s + stops[-1].seconds
    while True:
        for ended in meter.read():
            waiting[ended.batch_id] = ended
        for result in run.results("main"):
            progress = waiting.pop(result.plan.batch_id, None)
            if progress is not None:
                done.append((result, progress))
        if began_s is None and done:
            began_s = first_arrival_s(done)
        now_s = 0.0 if began_s is None else time.time() - began_s
        if ahead and now_s >= ahead[0].begins_s - 0.3:
            point = ahead.pop(0)
            options.say(f"{point.tasks} tasks at rho {point.rho:.2f}: {point.rate:,.0f} rows/s")
            for operator in ("ask", "count"):
                run.rescale(operator, point.tasks)
        if now_s >= end_s or run.awaitTermination(0.1):
            return done


def first_arrival_s(done: list[Finished]) -> float | None:
    """When the first row arrived, which is when the profile began."""
    for result, _ in done:
        slots = [r.stamps.slots[0] for r in result.reports if r.stamps is not None and r.rows_in]
        if slots:
            return float(min(slots)) / 1000.0
    return None


def within(done: list[Finished], point: Point, began_s: float) -> list[Finished]:
    """Batches that began and ended during a point, after it had settled."""
    first_s = began_s + point.begins_s + _SETTLE * point.seconds
    last_s = began_s + point.begins_s + point.seconds
    return [
        (result, progress)
        for result, progress in done
        if result.started_s >= first_s
        and progress.end_us / 1e6 <= last_s
        and result.plan.operators["count"].tasks == point.tasks
        and progress.rows > 0
    ]


def imbalance(result: BatchResult) -> float:
    """delta of a batch: the slowest task over the mean, weighted over the stages."""
    busy = [[r.busy_s for r in result.of(name)] for name in ("ask", "count")]
    return float(sum(max(b) for b in busy) / sum(np.mean(b) for b in busy))


def learn(done: list[Finished], stops: list[Point], began_s: float) -> BatchCost:
    """The cost of a batch from the calibration points, as the control loop learns it."""
    memory = BatchMemory()
    rows, busy_s, at_s = 0, 0.0, 0.0
    for point in stops:
        for result, progress in within(done, point, began_s):
            at_s = progress.end_us / 1e6
            rows += progress.rows
            busy_s += sum(report.busy_s for report in result.reports)
            memory.observe(
                rows=progress.rows,
                tasks=point.tasks,
                duration_s=progress.duration_s,
                imbalance=imbalance(result),
                at_s=at_s,
            )
    cost = memory.fit(at_s, busy_s / rows if rows else None)
    if cost is None:
        raise TidegateError("no batch of a calibration point was measured; the run was too short")
    return cost


def predict_s(cost: BatchCost, point: Point) -> float:
    """Predict E[T] of a point; the rows of a batch and their imbalance depend on each other.

    Only the keyed half of the work falls on tasks at random; a map's rows are distributed evenly.
    """
    delta = 1.0
    for _ in range(30):
        station = MicroBatchStation(cost=cost, arrival_rate=point.rate, imbalance=delta)
        rows = point.rate * min(station.duration_s(point.tasks), 60.0)
        delta = 0.5 * (1.0 + chance_imbalance(rows, point.tasks))
    return station.latency(point.tasks)


def measured_s(batches: list[Finished]) -> float:
    """Mean sojourn time of the rows of these batches."""
    stamped = []
    for result, progress in batches:
        parts = [r.stamps for r in result.reports if r.stamps is not None]
        stamped.append(BatchStamps(merged(parts), progress.end_us))
    latency = sojourn(stamped)
    return float("nan") if latency is None else latency.mean_s


def run(options: Options) -> Bench:
    """Run one pipeline through all points."""
    stops = points(8.0 if options.quick else 16.0)
    end_s = stops[-1].begins_s + stops[-1].seconds
    profile = steps([(0.0, 200.0), *((point.begins_s, point.rate) for point in stops)])
    spark = session("local[16]", "bench-model")
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        stream = arrivals(spark, profile, keys="uniform:20000", seconds=end_s + 5.0, partitions=2)
        flow = (
            pipeline("model", stream, arrival="timestamp")
            .map(waiting_map(WAIT_S), name="ask", tasks=(1, 16))
            .keyed("count", Waiting(count(), WAIT_S), key="key")
            .to("noop")
        )
        options.say(f"warming up for {_WARM_S:.0f} s")
        live = start(flow.graph, checkpoint=str(Path(scratch) / "ck"), tasks=8)
        try:
            done = visit(live, stops, options)
        finally:
            live.stop()
    began_s = first_arrival_s(done)
    assert began_s is not None
    calibration = [stop for stop in stops if (stop.tasks, stop.rho) in CALIBRATION]
    sweep = [stop for stop in stops if stop not in calibration]
    cost = learn(done, calibration, began_s)
    results: list[dict[str, Any]] = []
    for point in sweep:
        found = within(done, point, began_s)
        predicted, measured = predict_s(cost, point), measured_s(found)
        results.append(
            {
                "tasks": point.tasks,
                "rho": point.rho,
                "rows_per_s": round(point.rate),
                "predicted_s": round(predicted, 3),
                "measured_s": round(measured, 3),
                "error": round(predicted / measured - 1.0, 3),
                "batches": len(found),
            }
        )
    errors = np.abs([row["error"] for row in results])
    order = spearmanr(
        [row["predicted_s"] for row in results], [row["measured_s"] for row in results]
    ).statistic
    options.say(
        f"learned: a0 {cost.fixed_s * 1000:.0f} ms, a1 {cost.per_task_s * 1000:.1f} ms a task,"
        f" w {cost.work_s * 1000:.2f} ms a row"
    )
    return Bench(
        "model",
        results,
        [
            Aim("points", len(results), ">= 12", len(results) >= 12),
            at_most("median error", float(np.median(errors)), 0.10),
            at_most("largest error", float(np.max(errors)), 0.25),
            Aim("rank correlation", float(order), ">= 0.9", bool(order >= 0.9)),
        ],
    )
