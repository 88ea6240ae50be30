"""One micro-batch of a segment in simulated time: the rows that it takes and how long it lasts.

Its stages run one after the other on their tasks, with the imbalance that results from the route
and the keys' weights. Where all segments together have more tasks than there are cores, tasks run
in waves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tidegate.control.learning.outliers import FIRST, NEW_EXECUTORS
from tidegate.control.learning.told_rate import ToldRate
from tidegate.control.shards.balance import imbalance
from tidegate.control.shards.route import Route
from tidegate.sim.microbatch.cluster import NodeCores
from tidegate.sim.microbatch.kept_rows import KeptRows
from tidegate.sim.microbatch.queue import RowQueue
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, Vector, World


@dataclass(slots=True)
class SimulatedBatch:
    """A micro-batch that is running or has ended."""

    rows: float
    """Rows that it kept, and so processes."""
    offered: float
    by_class: dict[str, tuple[float, float]]
    """Rows offered and kept, by class."""
    arrived_s: Vector
    counts: Vector
    tasks: int
    imbalance: float
    started_s: float
    told_s: float
    """When its first stage ends: from then on, its number of rows is known to the meter."""
    ended_s: float
    busy_s: dict[str, float]
    shard_rows: dict[str, Vector]
    tasks_of: dict[str, int]
    imbalances: dict[str, float]
    slowest_s: float = 0.0
    """The time of the slowest tasks of its stages."""
    starting_s: float = 0.0
    """The time that its number of tasks costs."""
    since_s: Vector = field(default_factory=lambda: np.empty(0))
    """When its rows arrived at this segment."""
    routes_of: dict[str, Route] = field(default_factory=dict)
    on_nodes: bool = False
    """Whether it ran on the nodes of a simulated cluster, which may be slow."""
    executors_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The node of each task of its stages, on a simulated cluster."""
    rates_of: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Rows per second of each task of its stages while it worked, on a simulated cluster; 0 for a
    task without rows."""
    memory_of: dict[str, float] = field(default_factory=dict)
    """Memory of each node's workers for their rows, on a simulated cluster."""
    parts: int = 1
    """The most parts in which its tasks worked."""
    cold: str | None = None
    """Why it was longer than the next one will be; None: it was not."""

    def busy_within(self, begin_s: float, end_s: float) -> float:
        """Its core seconds of work within a span, if work is spread evenly over its duration."""
        overlap_s = min(self.ended_s, end_s) - max(self.started_s, begin_s)
        share = max(overlap_s, 0.0) / max(self.ended_s - self.started_s, 1e-9)
        return share * sum(self.busy_s.values())


@dataclass(slots=True)
class RunningSegment:
    """The state of a segment while the simulation runs."""

    segment: SimulatedSegment
    queue: RowQueue
    tasks: dict[str, int]
    routes: dict[str, Route]
    deals: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """The shares of the rows for the tasks of maps; a map that is not in it deals in turn."""
    parts: dict[str, int] = field(default_factory=dict)
    """In how many parts tasks of keyed stages work on their rows."""
    batch: SimulatedBatch | None = None
    free_s: float = 0.0
    batches: int = 0
    ended: list[tuple[int, SimulatedBatch]] = field(default_factory=list)
    arrived: ToldRate = field(default_factory=ToldRate)
    """Rows per second that it is offered by the segment before it, as Spark's meter tells them."""
    handed_s: float = 0.0
    """When its last batch ended, and handed its rows over to the segments behind it."""
    begun_s: float = 0.0
    """When its last batch began."""
    left_rows: float = 0.0
    """Rows that its last batch left in the source when it began."""
    behind_rows: float = 0.0
    """The same of its last batch that has ended, which is what a meter knows."""
    told_s: float = 0.0
    """Arrivals are known to the meter up to this time: the start of the newest batch whose first
    stage has ended."""
    warm_cores: int = 0
    """The most cores that there were during any of its batches: workers run on them already."""

    def start_up(self, world: World, cores: int) -> tuple[float, str | None]:
        """How much longer a batch that begins now on so many cores takes, and why."""
        before, self.warm_cores = self.warm_cores, max(cores, self.warm_cores)
        if before == 0 and world.cold_s > 0.0:
            return world.cold_s, FIRST
        if 0 < before < cores and world.cold_executor_s > 0.0:
            return world.cold_executor_s, NEW_EXECUTORS
        return 0.0, None


def task_times(stage: Stage, tasks: int, shares: Sequence[float]) -> Vector:
    """The time of each task of a stage for its part of a row of work 1, dealt by these shares.

    Without shares rows are dealt in turn. The times add up to 1 if all tasks have the speed 1.
    """
    parts = np.array(shares or [1.0 / tasks] * tasks, dtype=np.float64)
    speeds = np.resize(np.array(stage.speeds or (1.0,), dtype=np.float64), tasks)
    return np.asarray(parts / speeds, dtype=np.float64)


def begun_batch(
    one: RunningSegment,
    taken: KeptRows,
    at_s: float,
    *,
    world: World,
    waves: float,
    random: np.random.Generator,
    cores: NodeCores | None = None,
    cold: tuple[float, str | None] = (0.0, None),
) -> SimulatedBatch:
    """A batch of a segment that begins now, with the rows that are left after shedding.

    `cores` are those of a simulated cluster; without them all cores are alike. `cold` is how much
    longer it takes because workers start, and why.
    """
    segment = one.segment
    rows = float(taken.counts.sum())
    widest = max(one.tasks.values())
    duration_s = segment.fixed_s + segment.per_task_s * widest
    busy_s, shard_rows, imbalances = {}, {}, {}
    executors_of: dict[str, tuple[str, ...]] = {}
    rates_of: dict[str, tuple[float, ...]] = {}
    memory_of: dict[str, float] = {}
    first_s = 0.0
    reading_s = taken.offered * segment.gather_s / widest if segment.after is None else 0.0
    mean_s = slowest_s = reading_s
    for stage in segment.stages:
        tasks = one.tasks[stage.name]
        if segment.partitions is not None and stage is segment.stages[0]:
            tasks = min(tasks, segment.partitions)
        delta = 1.0
        weights = None
        if stage.shards and stage.weights is not None:
            weights = stage.weights(at_s)
            shard_rows[stage.name] = rows * weights
            if world.by_chance and rows >= 1.0:
                drawn = random.multinomial(round(rows), weights).astype(np.float64)
                shard_rows[stage.name] = drawn
                weights = drawn / drawn.sum()
            delta = imbalance(weights, one.routes[stage.name], tasks)
        spent = 1.0
        if stage.speeds:
            times = task_times(stage, tasks, one.deals.get(stage.name, ()))
            delta, spent = float(times.max() / times.mean()), float(times.sum())
        imbalances[stage.name] = delta
        if cores is not None:
            shares = one.deals.get(stage.name, ())
            loads = np.array(shares if len(shares) == tasks else [1.0 / tasks] * tasks)
            if weights is not None:
                loads = np.bincount(one.routes[stage.name], weights, tasks)
            times = cores.times(loads)
            worked_s = np.where(times > 0.0, times * stage.row_s(tasks), 1.0)
            rates_of[stage.name] = tuple((loads / worked_s).tolist())
            executors_of[stage.name] = cores.places(tasks)
            needed: dict[str, float] = {}
            for place, load in zip(executors_of[stage.name], loads.tolist(), strict=False):
                own = rows * load * stage.row_bytes / one.parts.get(stage.name, 1)
                needed[place] = needed.get(place, 0.0) + own
            for place, own in needed.items():
                memory_of[place] = max(own, memory_of.get(place, 0.0))
            # As on Spark, the imbalance of an operator is one of rows, and that of a batch of time.
            delta, spent = float(times.max() / times.mean()), float(times.sum())
        work_s = rows * stage.row_s(tasks) * spent
        busy_s[stage.name] = work_s
        mean_s += work_s / tasks
        slowest_s += work_s * delta / tasks
        first_s = first_s or duration_s + slowest_s * waves
    if world.residuals:
        noise = math.exp(world.residuals[random.integers(len(world.residuals))])
    else:
        noise = math.exp(random.normal(0.0, world.noise)) if world.noise else 1.0
    noise *= world.pace(at_s)
    if world.odd_batches and random.random() < world.odd_batches:
        noise *= 3.0
    start_up_s, why = cold
    duration_s = (duration_s + max(slowest_s * waves, segment.least_s)) * noise + start_up_s
    return SimulatedBatch(
        rows=rows,
        offered=taken.offered,
        by_class=taken.by_class,
        arrived_s=taken.arrived_s,
        counts=taken.counts,
        tasks=widest,
        imbalance=slowest_s / mean_s if mean_s > 0.0 else 1.0,
        started_s=at_s,
        told_s=at_s + first_s * noise + start_up_s,
        ended_s=at_s + duration_s,
        busy_s=busy_s,
        shard_rows=shard_rows,
        tasks_of=dict(one.tasks),
        imbalances=imbalances,
        slowest_s=slowest_s * waves * noise,
        starting_s=segment.per_task_s * widest * noise,
        routes_of=dict(one.routes),
        on_nodes=cores is not None,
        executors_of=executors_of,
        rates_of=rates_of,
        memory_of=memory_of,
        parts=max(one.parts.values(), default=1),
        cold=why,
    )
