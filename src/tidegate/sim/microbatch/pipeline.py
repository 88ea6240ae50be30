"""Simulates a pipeline of micro-batch segments, driven by the same controller as on Spark.

A segment takes its whole backlog as one batch, and the next batch follows at once. Arrivals follow
a rate profile in short buckets (Poisson if requested), so that sojourns have percentiles. Cores
that are asked for are granted after `grant_s`, or as a simulated cluster grants them; cores that
are released go at once. When a decision sheds, batches that read the source drop rows before their
first stage; a shed row still costs its reading (c_s of the overload paper).
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.learning.outliers import WAITING_TASKS
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.shards.route import even_route, rerouted, rescaled
from tidegate.control.shedding.keep import KEEP_ALL
from tidegate.control.shedding.next_batch import time_gathering_s
from tidegate.sim.microbatch.batch import RunningSegment, SimulatedBatch, begun_batch
from tidegate.sim.microbatch.cluster import NodeCores, SimulatedCluster
from tidegate.sim.microbatch.done_rows import DoneInputs, DoneRows
from tidegate.sim.microbatch.kept_rows import KeptRows, kept_rows
from tidegate.sim.microbatch.measure import (
    as_foreign,
    executor_measurements,
    latency_of,
    operator_measurements,
    segment_measurement,
    source_count,
    source_name,
)
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.queue import RowQueue
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, Vector, World
from tidegate.workload.profile import Profile

_SHARED = ""
"""The source of all segments that have none of their own; no segment has this name."""
_TICKS_A_REPORT = 50
"""After so many ticks it is told how far a simulation is."""
_SHORTEST_S = 0.1
"""A rate is counted over at least so long, as on Spark (`spark/measure/arrivals.py`)."""


def simulate(
    world: World, controller: Controller, *, on_share: Callable[[float], None] | None = None
) -> Outcome:
    """Run the simulated world to its end under the controller.

    `on_share` is told now and then which share of the time has been simulated.
    """
    return PipelineSimulation(world).run(controller.tick, on_share=on_share)


class PipelineSimulation:
    """A simulated pipeline; `run` drives it with any function from measurements to records."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = np.random.default_rng(world.seed)
        self._asked = self._granted = world.cores
        self.cluster: SimulatedCluster | None = None
        """The cluster that it runs on; None: cores are alike and never fail."""
        if world.cluster is not None:
            self.cluster = SimulatedCluster(world.cluster, world.cores)
            self._asked, self._granted = self.cluster.asked, self.cluster.cores
        self._grants: list[tuple[float, int]] = []
        at_once = world.cluster is None and world.grant_s <= 0.0
        self._observed_grant_s: float | None = 0.0 if at_once else None
        self._now_s = 0.0
        self._core_seconds = 0.0
        self._moves = 0
        self._arrivals = self._queue(world.profile, world.backlog_rows)
        self._own = {
            one.name: self._queue(one.profile, one.backlog_rows)
            for one in world.segments
            if one.profile is not None
        }
        """The arrivals of segments that have a source of their own."""
        self._running = [self._start(segment) for segment in world.segments]
        self._completed = 0.0
        self._shed = 0.0
        self._offered: dict[str, float] = {}
        """Rows that the last batch was offered, by class."""
        self._keep = KEEP_ALL
        self._done = DoneInputs(world.segments)
        self._recent: list[DoneRows] = []
        """The last inputs that were done, as far as the latency window reaches."""

    def _queue(self, profile: Profile, backlog_rows: float) -> RowQueue:
        """All rows of a source, in the order of their arrival."""
        world = self._world
        grid = np.arange(round(world.seconds / world.bucket_s) + 1)
        grown = np.diff(profile.cumulative(grid * round(world.bucket_s * 1000)))
        if world.poisson:
            grown = self._random.poisson(grown).astype(np.float64)
        edges: Vector = np.asarray(grid * world.bucket_s, np.float64)
        arrived_s, ready_s = edges[:-1] + 0.5 * world.bucket_s, edges[1:]
        if backlog_rows > 0.0:
            arrived_s, ready_s = np.append(0.0, arrived_s), np.append(0.0, ready_s)
            grown = np.append(backlog_rows, grown)
        return RowQueue(arrived_s, ready_s, grown)

    def _start(self, segment: SimulatedSegment) -> RunningSegment:
        empty = np.empty(0)
        queue = RowQueue(empty, empty, empty)
        if segment.after is None:
            queue = dataclasses.replace(self._own.get(segment.name, self._arrivals))
        tasks = {stage.name: self._limited(stage, self._world.cores) for stage in segment.stages}
        routes = {
            stage.name: even_route(stage.shards, tasks[stage.name])
            for stage in segment.stages
            if stage.shards
        }
        return RunningSegment(segment, queue, tasks, routes)

    def _limited(self, stage: Stage, tasks: int) -> int:
        most = min(limit for limit in (tasks, stage.most_tasks, stage.shards or tasks) if limit)
        return max(most, 1)

    def run(
        self,
        tick: Callable[[Measurement], Record],
        *,
        on_share: Callable[[float], None] | None = None,
    ) -> Outcome:
        """Run tick by tick: advance, measure, decide, act."""
        records = []
        ticks = int(self._world.seconds / self._world.tick_s + 1e-9)
        for number in range(1, ticks + 1):
            record = tick(self.advance(number * self._world.tick_s))
            if record.acted:
                self.act(record.decision)
            records.append(record)
            if on_share is not None and number % _TICKS_A_REPORT == 0:
                on_share(number / ticks)
        return self.outcome(records)

    def outcome(self, records: Sequence[Record]) -> Outcome:
        """The result so far, with the records of its ticks."""
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
        """Act on a decision: cores after `grant_s`, the rest from each segment's next batch on."""
        self._keep = self._keep.decided(decision).promised(self._world.worths)
        if decision.cores is not None and self.cluster is not None:
            self.cluster.ask(decision.cores, self._now_s, decision.release_first)
            self._asked, self._granted = self.cluster.asked, max(self.cluster.cores, 1)
        elif decision.cores is not None:
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
                    self._rescale(one, stage, decision.tasks[stage.name])
                if stage.name in decision.parts:
                    one.parts[stage.name] = decision.parts[stage.name]
                shares = decision.deal.get(stage.name)
                if shares is not None and len(shares) in (0, one.tasks[stage.name]):
                    one.deals[stage.name] = shares
                moves = decision.moves.get(stage.name, {})
                if moves:
                    route = rerouted(one.routes[stage.name], moves, one.tasks[stage.name])
                    one.routes[stage.name] = route
                    self._moves += len(moves)

    def _rescale(self, one: RunningSegment, stage: Stage, tasks: int) -> None:
        """Give a stage so many tasks from its segment's next batch on."""
        one.tasks[stage.name] = wanted = self._limited(stage, tasks)
        one.deals.pop(stage.name, None)
        if stage.shards:
            one.routes[stage.name] = rescaled(one.routes[stage.name], wanted)

    def advance(self, until_s: float) -> Measurement:
        """Let time pass up to the end of a tick, and measure the tick."""
        begin_s = self._now_s
        if self.cluster is None:
            self._let_grants_come(begin_s, until_s)
            if self._world.foreign:
                for stage in self._running[0].segment.stages:
                    self._rescale(self._running[0], stage, self._granted)
            for one in self._running:
                self._advance(one, until_s)
        else:
            self._advance_on(self.cluster, begin_s, until_s)
        self._now_s = until_s
        return self._measure(begin_s, until_s)

    def _advance_on(self, cluster: SimulatedCluster, begin_s: float, until_s: float) -> None:
        """Let time pass on a cluster, from one event to the next."""
        while True:
            at_s = min(max(cluster.next_s, begin_s), until_s)
            for one in self._running:
                self._advance(one, at_s)
            self._core_seconds += cluster.cores * (at_s - begin_s)
            if cluster.next_s > until_s:
                return
            begin_s = at_s
            before, is_lost = self._granted, cluster.step()
            self._granted = max(cluster.cores, 1)
            for one in self._running:
                self._share_cores(one, at_s, before)
            self._observed_grant_s = cluster.observed_grant_s
            if is_lost:
                for one in self._running:
                    self._begin_again(one, at_s)

    def _share_cores(self, one: RunningSegment, at_s: float, before: int) -> None:
        """Tasks of a batch that wait for a core run on those that have just come."""
        batch = one.batch
        if batch is None or self._granted <= before or batch.tasks <= before:
            return
        left_s = (batch.ended_s - at_s) * before / min(self._granted, batch.tasks)
        batch.ended_s = at_s + left_s
        batch.told_s = min(batch.told_s, batch.ended_s)

    def _begin_again(self, one: RunningSegment, at_s: float) -> None:
        """A batch that has lost a node runs again from its start, by its own plan."""
        batch, world = one.batch, self._world.cluster
        if batch is None or world is None:
            return
        taken = KeptRows(batch.arrived_s, batch.counts, batch.offered, batch.by_class)
        planned = dataclasses.replace(one, tasks=batch.tasks_of, routes=batch.routes_of)
        again = self._batch(planned, taken, at_s + world.detect_s)
        again.started_s, again.since_s = batch.started_s, batch.since_s
        one.batch = again

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

    def _advance(self, one: RunningSegment, until_s: float) -> None:
        while True:
            if one.batch is None:
                at_s = self._next_begin_s(one)
                if at_s > until_s:
                    return
                one.batch = self._begin(one, at_s)
            if one.batch.ended_s > until_s:
                return
            self._end(one, one.batch)
            one.batch = None

    def _next_begin_s(self, one: RunningSegment) -> float:
        """When the next batch begins: once there are rows, and at a multiple of a fixed interval.

        A batch that outlasts its interval is followed at once, as on Spark.
        """
        ready_s = one.queue.next_ready_s()
        every_s = one.segment.trigger_s
        if every_s <= 0.0 or ready_s == math.inf:
            return max(one.free_s, ready_s)
        due_s = (math.floor(one.begun_s / every_s + 1e-9) + 1) * every_s if one.batches else 0.0
        at_s = max(one.free_s, due_s)
        return at_s if ready_s <= at_s else math.ceil(ready_s / every_s - 1e-9) * every_s

    def _begin(self, one: RunningSegment, at_s: float) -> SimulatedBatch:
        ready_s = one.queue.ready_until(at_s)
        limit = one.segment.limit_rows
        arrived_s, counts = one.queue.take(at_s, math.inf if limit is None else float(limit))
        one.left_rows = one.queue.waiting(at_s)
        taken = KeptRows(arrived_s, counts, float(counts.sum()))
        if one.segment.after is None:
            taken = self._shed_rows(one, taken, at_s)
        one.begun_s = at_s
        self._shed += taken.offered - float(taken.counts.sum())
        batch = self._batch(one, taken, at_s)
        batch.since_s = batch.arrived_s if one.segment.after is None else ready_s
        return batch

    def _batch(self, one: RunningSegment, taken: KeptRows, at_s: float) -> SimulatedBatch:
        """A batch that begins now, on the cores that are there."""
        crowd = sum(max(other.tasks.values()) for other in self._running) / self._granted
        cores = None
        if self.cluster is not None and self._world.cluster is not None and self.cluster.cores:
            speculation = self._world.cluster.speculation
            cores = NodeCores(self.cluster.speeds, speculation, self.cluster.names)
        return begun_batch(
            one,
            taken,
            at_s,
            world=self._world,
            waves=max(crowd, 1.0),
            random=self._random,
            cores=cores,
            cold=self._cold(one),
        )

    def _cold(self, one: RunningSegment) -> tuple[float, str | None]:
        """How much longer its next batch takes because workers start, and why it is no example."""
        start_up_s, why = one.start_up(self._world, self._granted)
        waits = max(one.tasks.values()) > self._granted
        if why is None and waits and self.cluster is not None:
            why = WAITING_TASKS
        return start_up_s, why

    def _shed_rows(self, one: RunningSegment, taken: KeptRows, at_s: float) -> KeptRows:
        """The rows that a batch keeps of its source, by the same rule as a batch plan on Spark."""
        since_s = time_gathering_s(one.begun_s, one.free_s, at_s)
        keep = self._keep.of_batch(since_s, self._offered, self._world.worths)
        kept = kept_rows(
            taken.arrived_s,
            taken.counts,
            keep,
            self._world.class_shares,
            self._random if self._world.poisson else None,
        )
        self._offered = {name: offered for name, (offered, _) in kept.by_class.items()}
        return kept

    def _end(self, one: RunningSegment, batch: SimulatedBatch) -> None:
        one.ended.append((one.batches, batch))
        one.batches += 1
        one.free_s = batch.ended_s
        one.told_s = batch.started_s
        one.behind_rows = one.left_rows
        for other in self._followers(one):
            other.queue.put(batch.arrived_s, batch.ended_s, batch.counts)
            other.arrived.add(batch.rows, one.handed_s, batch.ended_s)
        one.handed_s = batch.ended_s

    def _followers(self, one: RunningSegment) -> list[RunningSegment]:
        return [other for other in self._running if other.segment.after == one.segment.name]

    def _feeder(self, one: RunningSegment) -> str:
        """The operator or source whose rows a segment gets."""
        before = [other for other in self._running if other.segment.name == one.segment.after]
        return before[0].segment.stages[-1].name if before else source_name(one)

    # ------------------------------------------------------------------ measuring

    def _measure(self, begin_s: float, end_s: float) -> Measurement:
        world = self._world
        span_s = end_s - begin_s
        rates = self._rates(begin_s, end_s)
        nodes = () if self.cluster is None else self.cluster.names
        operators, segments = [], []
        ended_by: dict[str, list[SimulatedBatch]] = {}
        sources = []
        busy_s = 0.0
        behind = False
        backlog = 0.0
        for one in self._running:
            ended, one.ended = one.ended, []
            if one.segment.after is None:
                rate = rates[one.segment.name if one.segment.name in self._own else _SHARED]
            else:
                rate = one.arrived.tell(span_s)
            in_batch = 0.0 if one.batch is None else one.batch.rows
            waiting = one.queue.waiting(end_s) + in_batch
            backlog += waiting
            rows = sum(batch.rows for _, batch in ended)
            if one.segment.after is None:
                sources.append(source_count(one, ended))
            ended_by[one.segment.name] = [batch for _, batch in ended]
            followers = [other.segment.name for other in self._followers(one)]
            told = segment_measurement(one, ended, rate, waiting, world.starts_s, followers)
            if world.foreign:
                told = as_foreign(told, ended, self._granted)
            else:
                operators += operator_measurements(one, ended, rate, self._feeder(one), nodes)
            segments.append(told)
            running = [] if one.batch is None else [one.batch]
            busy_s += sum(
                batch.busy_within(begin_s, end_s)
                for batch in [*running, *(batch for _, batch in ended)]
            )
            # The next batch will be more than twice as large as the last: it does not keep up.
            size = max((batch.rows for _, batch in ended), default=in_batch)
            behind |= waiting > 2.2 * size and waiting > rows
        last = self._done.add(ended_by)
        done = sum(rows.rows for rows in last)
        self._completed += done
        silent_s = [end_s - a for a, b in world.stalls if a < end_s <= b]
        stale = f"no batch was measured for {silent_s[0]:.0f} s" if silent_s else None
        return Measurement(
            at_s=world.starts_s + end_s,
            interval_s=span_s,
            arrival_rate=sum(rates.values()),
            processed_rate=done / span_s,
            backlog_rows=backlog,
            cores_asked=self._asked,
            cores_granted=self._granted,
            saturated=behind,
            cores_busy=min(busy_s / span_s, float(self._granted)),
            latency=latency_of(self._in_window(last, end_s)),
            operators=tuple(operators),
            segments=tuple(segments),
            stale=stale,
            grant_s=self._observed_grant_s,
            keep=self._keep.fraction,
            keep_by_class=self._keep.by_class,
            sources=tuple(sources),
            executors=()
            if world.cluster is None
            else executor_measurements(
                [batch for batches in ended_by.values() for batch in batches], world.cluster
            ),
        )

    def _in_window(self, ended: list[DoneRows], end_s: float) -> list[DoneRows]:
        """The inputs that the tick's latency is taken over."""
        window_s = self._world.latency_window_s
        recent = [one for one in self._recent if one.ended_s > end_s - window_s]
        self._recent = [*recent, *ended]
        return self._recent if window_s > 0.0 else ended

    def _rates(self, begin_s: float, end_s: float) -> dict[str, float]:
        """Rows per second that arrived in a tick, or are told to have arrived, by their source."""
        readers: dict[str, list[RunningSegment]] = {}
        for one in self._running:
            if one.segment.after is None:
                own = one.segment.name in self._own
                readers.setdefault(one.segment.name if own else _SHARED, []).append(one)
        found = {}
        for source, segments in readers.items():
            rows = self._own.get(source, self._arrivals)
            if self._world.prompt:
                found[source] = rows.offered(begin_s, end_s) / (end_s - begin_s)
            else:
                found[source] = self._told_rate(rows, segments, end_s)
        return found

    def _told_rate(self, rows: RowQueue, segments: Sequence[RunningSegment], at_s: float) -> float:
        """The rate of a source in the newest second whose arrivals are known to the meter.

        As on Spark, the time before the first row is no part of a rate.
        """
        newest_s = 0.0
        for one in segments:
            if one.batch is not None and one.batch.told_s <= at_s:
                one.told_s = one.batch.started_s
            newest_s = max(newest_s, one.told_s)
        first_s = rows.first_s - self._world.bucket_s
        begin_s = max(newest_s - 1.0, min(first_s, newest_s), 0.0)
        return rows.offered(begin_s, newest_s) / max(newest_s - begin_s, _SHORTEST_S)
