"""Body 2 for pipelines: micro-batch segments in simulated time, driven by the same controller.

A segment takes all rows that wait as one batch, its stages run one after the other on k tasks with
the imbalance that the route and the keys' weights give, and the next batch follows. Arrivals are a
rate profile in buckets of 10 ms (Poisson when asked for), so that sojourns have percentiles. Cores
that are asked for come after `grant_s`; cores given back go at once. When a decision says what to
keep, batches that read a source shed the rest before their first stage; a row that is shed has been
gathered all the same (c_s of the overload paper).
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.measurement import (
    BatchMeasurement,
    Latency,
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount
from tidegate.control.shards.balance import imbalance
from tidegate.control.shards.route import Route, even_route, rerouted, rescaled
from tidegate.control.shedding.next_batch import keep_over, time_gathering_s
from tidegate.errors import AskedWrongly
from tidegate.workload.keys import Keys
from tidegate.workload.profile import Profile

Vector = npt.NDArray[np.float64]

BUCKET_S = 0.01
_KEYS_SAMPLED = 20_000


class ShardWeights(Protocol):
    """How rows spread over the shards of a keyed stage at a time since the start."""

    def __call__(self, at_s: float, /) -> Vector:
        """One weight per shard, adding up to 1."""
        ...


def keyed_weights(keys: Keys, shards: int, seed: int = 0) -> ShardWeights:
    """Weights of a key distribution whose hot keys may change, hashed to shards."""
    eras = (0, *keys.changes_ms)
    rows = np.arange(_KEYS_SAMPLED, dtype=np.int64)
    weights: list[Vector] = []
    for begin_ms in eras:
        arrival_us = np.full(_KEYS_SAMPLED, begin_ms * 1000, np.int64)
        chosen = keys.at(rows, arrival_us, seed)
        hashed = (chosen.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        counts = np.bincount((hashed % np.uint64(shards)).astype(np.int64), minlength=shards)
        weights.append(np.asarray(counts / counts.sum(), np.float64))

    def at(at_s: float) -> Vector:
        return weights[int(np.searchsorted(np.array(eras[1:]), at_s * 1000, side="right"))]

    return at


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """An operator of a segment."""

    name: str
    work_s: float
    """Core seconds per row of the segment."""
    shards: int = 0
    """0: a map, which is always even."""
    weights: ShardWeights | None = None
    most_tasks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One streaming query: what its batches cost, and where its rows come from."""

    name: str = "main"
    fixed_s: float
    per_task_s: float = 0.0
    gather_s: float = 0.0
    """c_s: core seconds per row that comes from the source, kept or shed."""
    stages: tuple[Stage, ...]
    trigger_s: float = 0.0
    after: str | None = None
    """The segment that feeds it; None: the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the simulated machines and load are like."""

    segments: tuple[Segment, ...]
    profile: Profile
    seconds: float
    cores: int
    """Cores at the start."""
    tick_s: float = 1.0
    grant_s: float = 0.0
    noise: float = 0.05
    """Spread of a batch's duration, as a share of it."""
    poisson: bool = False
    odd_batches: float = 0.0
    """Share of batches that take three times as long (garbage collection)."""
    prompt: bool = True
    """Whether arrivals are known as they come; else as Spark's meter tells them: those of a batch
    once its first stage is over."""
    stalls: tuple[tuple[float, float], ...] = ()
    """Spans (begin, end) in which nothing is measured: the ticks are stale."""
    seed: int = 1
    starts_s: float = 1_700_000_000.0
    """The epoch second of the start."""


@dataclass(slots=True)
class _Queue:
    """Rows that wait: when each bucket arrived outside, when it is ready here, and its rows."""

    arrived_s: Vector
    ready_s: Vector
    rows: Vector
    taken: int = 0

    def take(self, until_s: float) -> tuple[Vector, Vector]:
        end = int(np.searchsorted(self.ready_s, until_s, side="right"))
        part = slice(self.taken, end)
        self.taken = max(end, self.taken)
        return self.arrived_s[part], self.rows[part]

    def next_ready_s(self) -> float:
        later = self.rows[self.taken :] > 0.0
        found = int(np.argmax(later)) if later.any() else -1
        return float(self.ready_s[self.taken + found]) if found >= 0 else math.inf

    def put(self, arrived_s: Vector, ready_s: float, rows: Vector) -> None:
        self.arrived_s = np.concatenate([self.arrived_s[self.taken :], arrived_s])
        ready = np.full(len(rows), ready_s)
        self.ready_s = np.concatenate([self.ready_s[self.taken :], ready])
        self.rows = np.concatenate([self.rows[self.taken :], rows])
        self.taken = 0

    def waiting(self, at_s: float) -> float:
        end = int(np.searchsorted(self.ready_s, at_s, side="right"))
        return float(self.rows[self.taken : end].sum())

    def offered(self, begin_s: float, end_s: float) -> float:
        first = int(np.searchsorted(self.ready_s, begin_s, side="right"))
        last = int(np.searchsorted(self.ready_s, end_s, side="right"))
        return float(self.rows[first:last].sum())


@dataclass(slots=True)
class _Batch:
    rows: float
    """Kept, so worked on."""
    offered: float
    arrived_s: Vector
    counts: Vector
    tasks: int
    imbalance: float
    started_s: float
    told_s: float
    """When its first stage is over, so that its rows are known."""
    ended_s: float
    busy_s: dict[str, float]
    shard_rows: dict[str, Vector]
    tasks_of: dict[str, int]
    imbalances: dict[str, float]

    def busy_within(self, begin_s: float, end_s: float) -> float:
        """Its core seconds of work in a span, spread evenly over its duration."""
        overlap_s = min(self.ended_s, end_s) - max(self.started_s, begin_s)
        share = max(overlap_s, 0.0) / max(self.ended_s - self.started_s, 1e-9)
        return share * sum(self.busy_s.values())


@dataclass(slots=True)
class _Running:
    """A segment's state."""

    segment: Segment
    queue: _Queue
    tasks: dict[str, int]
    routes: dict[str, Route]
    batch: _Batch | None = None
    free_s: float = 0.0
    batches: int = 0
    ended: list[tuple[int, _Batch]] = field(default_factory=list)
    offered: float = 0.0
    begun_s: float = 0.0
    """When its last batch began."""
    told_s: float = 0.0
    """Until when arrivals are known: to the start of the newest batch that has told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run: its records, and what it came to."""

    records: tuple[Record, ...]
    sojourns: tuple[Latency | None, ...]
    """Of the rows completed in each tick."""
    cores: tuple[int, ...]
    """Granted in each tick."""
    core_seconds: float
    rows: float
    """Completed."""
    shed: float
    """Dropped before the first stage."""
    moves: int

    def within(self, target_s: float, *, after_s: float = 0.0) -> float:
        """Share of ticks, with rows completed, whose mean sojourn was within the target."""
        begin_s = self.records[0].measurement.at_s + after_s
        judged = [
            latency.mean_s <= target_s
            for record, latency in zip(self.records, self.sojourns, strict=True)
            if latency is not None and record.measurement.at_s >= begin_s
        ]
        return sum(judged) / max(len(judged), 1)

    def changes(self) -> list[int]:
        """Cores asked for, one entry per change: +n out, -n in."""
        asked = [record.measurement.cores_asked for record in self.records]
        return [b - a for a, b in itertools.pairwise(asked) if a != b]

    def reversals(self) -> int:
        """Changes of direction."""
        signs = [change > 0 for change in self.changes()]
        return sum(a != b for a, b in itertools.pairwise(signs))


def simulate(world: World, controller: Controller) -> Outcome:
    """Runs the world for its seconds under the controller."""
    return PipelineSimulation(world).run(controller.tick)


class PipelineSimulation:
    """Holds the simulated pipeline; `run` drives it with any function of a measurement."""

    def __init__(self, world: World) -> None:
        if not world.segments or world.seconds < world.tick_s:
            raise AskedWrongly("a simulated pipeline needs a segment and at least one tick")
        self._world = world
        self._random = np.random.default_rng(world.seed)
        self._asked = self._granted = world.cores
        self._grants: list[tuple[float, int]] = []
        self._observed_grant_s: float | None = None
        self._now_s = 0.0
        self._core_seconds = 0.0
        self._moves = 0
        grid = np.arange(round(world.seconds / BUCKET_S) + 1)
        grown = np.diff(world.profile.cumulative(grid * round(BUCKET_S * 1000)))
        if world.poisson:
            grown = self._random.poisson(grown).astype(np.float64)
        edges: Vector = np.asarray(grid * BUCKET_S, np.float64)
        self._arrivals = _Queue(edges[:-1] + 0.5 * BUCKET_S, edges[1:], grown)
        self._running = [self._start(segment) for segment in world.segments]
        self._completed = 0.0
        self._shed = 0.0
        self._keep = 1.0
        self._span_s: float | None = None

    def _start(self, segment: Segment) -> _Running:
        empty = np.empty(0)
        source = segment.after is None
        queue = dataclasses.replace(self._arrivals) if source else _Queue(empty, empty, empty)
        tasks = {stage.name: self._limited(stage, self._world.cores) for stage in segment.stages}
        routes = {
            stage.name: even_route(stage.shards, tasks[stage.name])
            for stage in segment.stages
            if stage.shards
        }
        return _Running(segment, queue, tasks, routes)

    def _limited(self, stage: Stage, tasks: int) -> int:
        most = min(limit for limit in (tasks, stage.most_tasks, stage.shards or tasks) if limit)
        return max(most, 1)

    def run(self, tick: Callable[[Measurement], Record]) -> Outcome:
        """Tick by tick: advance, measure, decide, act."""
        records = []
        for number in range(1, int(self._world.seconds / self._world.tick_s + 1e-9) + 1):
            record = tick(self.advance(number * self._world.tick_s))
            if record.acted:
                self.act(record.decision)
            records.append(record)
        return self.outcome(records)

    def outcome(self, records: Sequence[Record]) -> Outcome:
        """What has come of it."""
        return Outcome(
            records=tuple(records),
            sojourns=tuple(record.measurement.latency for record in records),
            cores=tuple(record.measurement.cores_granted for record in records),
            core_seconds=self._core_seconds,
            rows=self._completed,
            shed=self._shed,
            moves=self._moves,
        )

    def act(self, decision: Decision) -> None:
        """Cores after their time; tasks, moves and keep from each segment's next batch on."""
        if decision.keep is not None:
            self._keep, self._span_s = decision.keep, decision.keep_span_s
        if decision.cores is not None:
            self._asked = decision.cores
            self._grants = [grant for grant in self._grants if grant[1] <= decision.cores]
            if decision.cores <= self._granted:
                self._granted = decision.cores
                self._grants = []
            else:
                self._grants.append((self._now_s + self._world.grant_s, decision.cores))
        for one in self._running:
            for stage in one.segment.stages:
                if stage.name in decision.tasks:
                    wanted = self._limited(stage, decision.tasks[stage.name])
                    one.tasks[stage.name] = wanted
                    if stage.shards:
                        one.routes[stage.name] = rescaled(one.routes[stage.name], wanted)
                moves = decision.moves.get(stage.name, {})
                if moves:
                    route = rerouted(one.routes[stage.name], moves, one.tasks[stage.name])
                    one.routes[stage.name] = route
                    self._moves += len(moves)

    def advance(self, until_s: float) -> Measurement:
        """Lets time pass up to the end of a tick, and measures it."""
        begin_s = self._now_s
        self._let_grants_come(begin_s, until_s)
        for one in self._running:
            self._advance(one, until_s)
        self._now_s = until_s
        return self._measure(begin_s, until_s)

    def _let_grants_come(self, begin_s: float, until_s: float) -> None:
        at_s = begin_s
        for due_s, cores in sorted(self._grants):
            if due_s <= until_s:
                moment = max(due_s, at_s)
                self._core_seconds += self._granted * (moment - at_s)
                at_s = moment
                self._granted = cores
                self._observed_grant_s = self._world.grant_s
        self._grants = [grant for grant in self._grants if grant[0] > until_s]
        self._core_seconds += self._granted * (until_s - at_s)

    def _advance(self, one: _Running, until_s: float) -> None:
        while True:
            if one.batch is None:
                at_s = max(one.free_s, one.queue.next_ready_s())
                if one.segment.trigger_s > 0.0 and at_s < math.inf:
                    at_s = math.ceil(at_s / one.segment.trigger_s - 1e-9) * one.segment.trigger_s
                if at_s > until_s:
                    return
                one.batch = self._begin(one, at_s)
            if one.batch.ended_s > until_s:
                return
            self._end(one, one.batch)
            one.batch = None

    def _begin(self, one: _Running, at_s: float) -> _Batch:
        segment = one.segment
        arrived_s, counts = one.queue.take(at_s)
        offered = float(counts.sum())
        if segment.after is None and self._keep < 1.0:
            since_s = time_gathering_s(one.begun_s, one.free_s, at_s)
            counts = self._kept(counts, keep_over(self._keep, self._span_s, since_s))
        one.begun_s = at_s
        rows = float(counts.sum())
        self._shed += offered - rows
        widest = max(one.tasks.values())
        crowd = sum(max(other.tasks.values()) for other in self._running) / self._granted
        waves = max(crowd, 1.0)
        duration_s = segment.fixed_s + segment.per_task_s * widest
        busy_s, shard_rows, imbalances = {}, {}, {}
        first_s = 0.0
        gathering_s = offered * segment.gather_s / widest if segment.after is None else 0.0
        mean_s = slowest_s = gathering_s
        for stage in segment.stages:
            tasks = one.tasks[stage.name]
            delta = 1.0
            if stage.shards and stage.weights is not None:
                weights = stage.weights(at_s)
                delta = imbalance(weights, one.routes[stage.name], tasks)
                shard_rows[stage.name] = rows * weights
            work_s = rows * stage.work_s
            busy_s[stage.name] = work_s
            imbalances[stage.name] = delta
            mean_s += work_s / tasks
            slowest_s += work_s * delta / tasks
            first_s = first_s or duration_s + slowest_s * waves
        noise = math.exp(self._random.normal(0.0, self._world.noise)) if self._world.noise else 1.0
        if self._world.odd_batches and self._random.random() < self._world.odd_batches:
            noise *= 3.0
        duration_s = (duration_s + slowest_s * waves) * noise
        return _Batch(
            rows=rows,
            offered=offered,
            arrived_s=arrived_s,
            counts=counts,
            tasks=widest,
            imbalance=slowest_s / mean_s if mean_s > 0.0 else 1.0,
            started_s=at_s,
            told_s=at_s + first_s * noise,
            ended_s=at_s + duration_s,
            busy_s=busy_s,
            shard_rows=shard_rows,
            tasks_of=dict(one.tasks),
            imbalances=imbalances,
        )

    def _kept(self, counts: Vector, keep: float) -> Vector:
        """A random choice among the rows; in fluid, where there are no single rows, its mean."""
        if not self._world.poisson:
            return counts * keep
        return self._random.binomial(counts.astype(np.int64), keep).astype(np.float64)

    def _end(self, one: _Running, batch: _Batch) -> None:
        one.ended.append((one.batches, batch))
        one.batches += 1
        one.free_s = batch.ended_s
        one.told_s = batch.started_s
        followers = [other for other in self._running if other.segment.after == one.segment.name]
        for other in followers:
            other.queue.put(batch.arrived_s, batch.ended_s, batch.counts)
            other.offered += batch.rows

    # ------------------------------------------------------------------ measuring

    def _measure(self, begin_s: float, end_s: float) -> Measurement:
        world = self._world
        span_s = end_s - begin_s
        arrived = self._arrivals.offered(begin_s, end_s)
        if not world.prompt:
            arrived = self._told_rate(end_s) * span_s
        operators, segments, last = [], [], []
        sources = []
        busy_s = 0.0
        behind = False
        fed = {one.segment.after for one in self._running}
        backlog = 0.0
        for one in self._running:
            ended, one.ended = one.ended, []
            offered = arrived if one.segment.after is None else one.offered
            one.offered = 0.0
            in_batch = 0.0 if one.batch is None else one.batch.rows
            waiting = one.queue.waiting(end_s) + in_batch
            backlog += waiting
            rows = sum(batch.rows for _, batch in ended)
            if one.segment.after is None:
                offers = sum(batch.offered for _, batch in ended)
                name = f"source of {one.segment.name}"
                sources.append(SourceCount(name=name, offered=round(offers), kept=round(rows)))
            if one.segment.name not in fed:
                last += [batch for _, batch in ended]
            segments.append(self._segment(one, ended, offered / span_s, waiting))
            operators += self._operators(one, ended, offered / span_s)
            running = [] if one.batch is None else [one.batch]
            busy_s += sum(
                batch.busy_within(begin_s, end_s)
                for batch in [*running, *(batch for _, batch in ended)]
            )
            # The next batch is to be larger than twice the last: it does not keep up.
            size = max((batch.rows for _, batch in ended), default=in_batch)
            behind |= waiting > 2.2 * size and waiting > rows
        done = sum(batch.rows for batch in last)
        self._completed += done
        silent_s = [end_s - a for a, b in world.stalls if a < end_s <= b]
        stale = f"no batch was measured for {silent_s[0]:.0f} s" if silent_s else None
        return Measurement(
            at_s=world.starts_s + end_s,
            interval_s=span_s,
            arrival_rate=arrived / span_s,
            processed_rate=done / span_s,
            backlog_rows=backlog,
            cores_asked=self._asked,
            cores_granted=self._granted,
            saturated=behind,
            cores_busy=min(busy_s / span_s, float(self._granted)),
            latency=_latency(last),
            operators=tuple(operators),
            segments=tuple(segments),
            stale=stale,
            grant_s=self._observed_grant_s,
            keep=self._keep,
            sources=tuple(sources),
        )

    def _told_rate(self, at_s: float) -> float:
        """Rows per second of the newest second that batches have told of."""
        newest_s = 0.0
        for one in self._running:
            if one.segment.after is None:
                if one.batch is not None and one.batch.told_s <= at_s:
                    one.told_s = one.batch.started_s
                newest_s = max(newest_s, one.told_s)
        begin_s = max(newest_s - 1.0, 0.0)
        return self._arrivals.offered(begin_s, newest_s) / max(newest_s - begin_s, BUCKET_S)

    def _segment(
        self, one: _Running, ended: Sequence[tuple[int, _Batch]], rate: float, waiting: float
    ) -> SegmentMeasurement:
        return SegmentMeasurement(
            name=one.segment.name,
            arrival_rate=rate,
            backlog_rows=waiting,
            tasks=max(one.tasks.values()),
            trigger_s=one.segment.trigger_s,
            batches=tuple(
                BatchMeasurement(
                    batch_id=number,
                    rows=round(batch.rows),
                    tasks=batch.tasks,
                    imbalance=batch.imbalance,
                    duration_s=batch.ended_s - batch.started_s,
                    ended_s=self._world.starts_s + batch.ended_s,
                    shed_rows=round(batch.offered - batch.rows),
                )
                for number, batch in ended
            ),
        )

    def _operators(
        self, one: _Running, ended: Sequence[tuple[int, _Batch]], rate: float
    ) -> list[OperatorMeasurement]:
        found = []
        for stage in one.segment.stages:
            name = stage.name
            counts: tuple[int, ...] = ()
            if stage.shards and ended:
                per_shard = [batch.shard_rows[name] for _, batch in ended if batch.shard_rows]
                if per_shard:
                    counts = tuple(int(count) for count in np.rint(np.sum(per_shard, axis=0)))
            found.append(
                OperatorMeasurement(
                    name=name,
                    arrival_rate=rate,
                    service_rate=1.0 / stage.work_s,
                    tasks=one.tasks[name],
                    imbalance=ended[-1][1].imbalances[name] if ended else 1.0,
                    segment=one.segment.name,
                    rows=round(sum(batch.rows for _, batch in ended)),
                    busy_s=sum(batch.busy_s[name] for _, batch in ended),
                    most_tasks=stage.most_tasks or stage.shards or None,
                    route=one.routes.get(name, ()),
                    shard_rows=counts,
                )
            )
        return found


def _latency(batches: Sequence[_Batch]) -> Latency | None:
    """Over the rows of batches that ended, weighted by the buckets' rows."""
    rows = sum(batch.rows for batch in batches)
    if rows <= 0.0:
        return None
    waits = np.concatenate([batch.ended_s - batch.arrived_s for batch in batches])
    counts = np.concatenate([batch.counts for batch in batches])
    order = np.argsort(waits)
    reached = np.cumsum(counts[order])
    p50_s, p95_s, p99_s = (
        float(waits[order][min(np.searchsorted(reached, share * reached[-1]), len(order) - 1)])
        for share in (0.50, 0.95, 0.99)
    )
    mean_s = float(waits @ counts / counts.sum())
    return Latency(mean_s=mean_s, p50_s=p50_s, p95_s=p95_s, p99_s=p99_s)
