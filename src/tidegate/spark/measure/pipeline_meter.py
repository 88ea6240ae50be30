"""The meter of a running pipeline: batches and task reports folded into one `Measurement` a tick.

Nothing here runs in tasks: they report anyway (rows, busy time, shards, stamps of every N_m-th
row), and the meter pulls the reports every T_m (DRS IV-A).
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.lag import Lag
from tidegate.control.measurement import (
    BatchMeasurement,
    ExecutorMeasurement,
    Latency,
    Measurement,
    SegmentMeasurement,
)
from tidegate.control.row_counts import SourceCount, added
from tidegate.pipelines.graph import Segment, Source
from tidegate.pipelines.walks import looped, mixed_readers
from tidegate.spark.batch.batch_clock import TickClock
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.plan import OperatorPlan
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.segment import SegmentRun
from tidegate.spark.loop.negotiate import Negotiator
from tidegate.spark.master import parse_master
from tidegate.spark.measure.arrivals import Arrivals, decayed
from tidegate.spark.measure.busy_cores import BusyCores, active_tasks
from tidegate.spark.measure.executor_clocks import with_clocks
from tidegate.spark.measure.executor_memory import executor_memory
from tidegate.spark.measure.handed_over import HandedOver
from tidegate.spark.measure.lag_meter import LagMeter
from tidegate.spark.measure.memory_settings import python_limit_bytes
from tidegate.spark.measure.operator_meter import OperatorMeter
from tidegate.spark.measure.query_meter import QueryMeter, has_started, trigger_interval_s
from tidegate.spark.measure.read_limits import read_limits
from tidegate.spark.measure.segment_batches import FinishedBatch, SegmentBatches
from tidegate.spark.measure.staleness import stale
from tidegate.spark.measure.traces import SojournMeter
from tidegate.spark.run import Run

_SATURATED_BATCHES = 2.5
_SHORTEST_BATCH_S = 0.2
_DISTRUST_S = 60.0
"""How long after the wall clock was set back rows from before that still come."""


@dataclass(slots=True)
class _SegmentView:
    """The meters of one segment."""

    part: SegmentRun
    batches: SegmentBatches
    operators: OperatorMeter
    trigger_s: float
    arrivals: Arrivals
    outside_rate: float = 0.0
    """Rows per second from outside, by the rows that its batches took; for rows without stamps."""
    waits: bool = False
    """Whether a batch is about to be planned and waits for a decision."""
    idle: bool = False
    """Whether Spark has nothing to do for it: all that has arrived is done."""
    started: bool = False
    """Whether it has looked at its sources for the first time."""

    @property
    def name(self) -> str:
        return self.part.segment.name

    @property
    def sources(self) -> bool:
        """Whether it reads from outside."""
        return any(isinstance(node, Source) for node in self.part.segment.reads)

    @property
    def main(self) -> bool:
        """Whether it is the segment of the first source."""
        return self.name == "main"

    @property
    def limited(self) -> bool:
        """Whether its newest batch left rows in a source that tells offsets: it has a read limit.

        The newest stamps are then those of old rows, which say nothing about what arrives now.
        """
        return self.batches.behind_rows > 0

    @property
    def rate(self) -> float:
        """Rows per second from outside: by their own stamps, or else by what its batches took.

        Behind a read limit it is the growth of the source's newest offsets.
        """
        stamped = None if self.limited else self.arrivals.rate()
        return self.outside_rate if stamped is None else stamped

    def backlog_rows(self, rate: float, lag: Lag | None, now_s: float) -> float:
        """Rows from outside that have arrived and are not completed."""
        if not self.limited:
            return rate * self.arrivals.silent_s(now_s) + self.arrivals.running_rows
        behind = self.batches.behind_rows
        if lag is not None and lag.partitions:
            behind = lag.reachable_rows
        began_s = self.batches.began_s
        return behind + rate * (0.0 if began_s is None else max(now_s - began_s, 0.0))


def _view(
    part: SegmentRun,
    query: StreamingQuery,
    since_s: float,
    handed: HandedOver,
    segments: Sequence[Segment],
) -> _SegmentView:
    name = part.segment.name
    batches = SegmentBatches(
        QueryMeter(query),
        main=name == "main",
        since_s=since_s,
        mixed=mixed_readers(part.segment),
        old_rows=lambda progress: handed.old_rows(name, progress),
        lag=LagMeter(lambda: read_limits(query)),
    )
    operators = OperatorMeter(part.segment, batches.window_s, segments)
    return _SegmentView(part, batches, operators, trigger_interval_s(query), Arrivals(since_s))


def _handed_over(run: Run) -> HandedOver:
    """The channels of a run, with what their readers had not read when measuring began."""
    segments = {name: part.segment for name, part in run.segments.items()}
    return HandedOver(
        segments,
        {
            write.channel.name: Log(part.checkpoint.channel(write.channel.name)).unread()
            for part in run.segments.values()
            for write in part.segment.writes
        },
    )


class PipelineMeter:
    """Looks at a run once a tick."""

    def __init__(
        self,
        run: Run,
        negotiator: Negotiator,
        *,
        window_s: float = 3.0,
        tick_s: float | None = None,
    ) -> None:
        self._run = run
        self._tick_s = tick_s
        self.negotiator = negotiator
        """Knows of cores; another one when a dry run ends."""
        self._window_s = window_s
        self._sojourns = self._new_sojourns()
        since_s = time.time()
        self._handed = _handed_over(run)
        segments = [part.segment for part in run.segments.values()]
        self._views = {
            name: _view(part, run.queries[name], since_s, self._handed, segments)
            for name, part in run.segments.items()
        }
        self._looped = looped(part.segment for part in run.segments.values())
        self._busy = BusyCores()
        self._clock = TickClock(since_s)
        self._ended_s = since_s
        """When the newest batch ended, or measuring began."""
        self._distrusts_until_s = -math.inf
        """Until then, stamps of the future are taken to be from before the clock was set back."""
        self.spent_s = 0.0
        """Time that measuring took on the driver, in all."""

    def measure(self, now_s: float) -> Measurement:
        """The tick that ends now."""
        clock = time.perf_counter()
        if self._clock.tick(now_s, self._tick_s or 1.0):
            self._forget(now_s)
        interval_s, shift_s = self._clock.interval_s, self._clock.shift_s
        for view in self._views.values():
            view.waits = view.part.waits
        granted = self.negotiator.granted()
        awaited = granted if granted < self.negotiator.asked else None
        finished = self._read(now_s)
        results = [batch.result for batches in finished.values() for batch in batches]
        plan, previews = self._run.allocation(), self._run.previews()
        parts = self._run.parts()
        latency = self._sojourns.latency(round(now_s * 1e6))
        segments = self._segments(finished, plan, awaited, now_s, latency)
        operators = tuple(
            operator
            for name, view in self._views.items()
            for operator in view.operators.measure(
                finished[name], plan, interval_s, now_s if view.idle else None, previews, parts
            )
        )
        keep = self._run.keep()
        measurement = Measurement(
            at_s=now_s + shift_s,
            interval_s=interval_s,
            tick_s=self._tick_s,
            arrival_rate=sum(view.rate for view in self._views.values()),
            processed_rate=sum(
                view.batches.completed.tell(interval_s, quiet=view.idle)
                for view in self._views.values()
                if view.main
            ),
            backlog_rows=sum(
                segment.backlog_rows for segment in segments if self._views[segment.name].sources
            ),
            cores_asked=self.negotiator.asked,
            cores_granted=granted,
            saturated=any(self._saturated(segment) for segment in segments),
            cores_busy=self._cores_busy(finished, granted),
            latency=latency,
            operators=operators,
            segments=segments,
            stale=self._stale(now_s),
            grant_s=self.negotiator.grant_s,
            keep=keep.fraction,
            keep_by_class=keep.by_class,
            sources=_sources(results),
            executors=self._executors(results),
            overdue=self.negotiator.overdue(),
        )
        self.spent_s += time.perf_counter() - clock
        return measurement

    def _executors(self, results: Sequence[BatchResult]) -> tuple[ExecutorMeasurement, ...]:
        """The memory of executors; none where all is one process, which Spark cannot scale."""
        if not results:
            return ()
        session = next(iter(self._run.segments.values())).anchors.session
        master = str(session.sparkContext.master)
        if parse_master(master).in_one_process:
            return ()
        conf = session.sparkContext.getConf()
        limit = python_limit_bytes(master, lambda key: conf.get(key))
        memory = executor_memory((one for result in results for one in result.reports), limit)
        return with_clocks(memory, results)

    def _new_sojourns(self) -> SojournMeter:
        segments = {name: part.segment for name, part in self._run.segments.items()}
        traced = [part.compiler.traced for part in self._run.segments.values()]
        return SojournMeter(segments, frozenset[str]().union(*traced), self._window_s)

    def _forget(self, now_s: float) -> None:
        """Forget times of the wall clock, which was set back: they are in the future now."""
        self._sojourns = self._new_sojourns()
        for view in self._views.values():
            view.arrivals = Arrivals()
            view.batches.forget_times()
            view.operators.forget_times()
        self._handed.forget_times()
        self._ended_s = now_s
        self._distrusts_until_s = now_s + _DISTRUST_S

    def _trusts(self, newest_us: int, now_s: float) -> bool:
        """Whether a time may be true: not one from before the clock was set back."""
        return now_s > self._distrusts_until_s or newest_us / 1e6 <= now_s + 1.0

    def _read(self, now_s: float) -> dict[str, list[FinishedBatch]]:
        """The batches that finished since the last tick, and what unfinished ones have told."""
        finished = {
            name: view.batches.finished(self._run.results(name))
            for name, view in self._views.items()
        }
        trusted: dict[str, list[FinishedBatch]] = {name: [] for name in finished}
        for name, batch in ((name, b) for name, batches in finished.items() for b in batches):
            if not self._trusts(batch.progress.end_us, now_s):
                continue
            if batch.offered is not None and not self._trusts(batch.offered.newest_us, now_s):
                continue
            self._ended_s = max(self._ended_s, batch.progress.end_us / 1e6)
            trusted[name].append(batch)
            if batch.offered is not None:
                self._views[name].arrivals.add(batch.offered)
        self._sojourns.add(trusted, round(now_s * 1e6))
        self._handed.add(trusted)
        for name, view in self._views.items():
            status = self._run.queries[name].status
            view.idle = not status["isTriggerActive"] and not status["isDataAvailable"]
            view.started = has_started(str(status["message"]))
            view.arrivals.look_ahead(
                view.part, view.batches.newest, lambda newest_us: self._trusts(newest_us, now_s)
            )
        return finished

    def _segments(
        self,
        finished: Mapping[str, list[FinishedBatch]],
        plan: Mapping[str, OperatorPlan],
        awaited: int | None,
        now_s: float,
        latency: Latency | None,
    ) -> tuple[SegmentMeasurement, ...]:
        found: list[SegmentMeasurement] = []
        idle = [name for name, view in self._views.items() if view.idle]
        handed = self._handed.rates(self._clock.interval_s, idle, now_s)
        for name, view in self._views.items():
            batches = view.batches.measured(finished[name], awaited)
            if view.idle:
                view.batches.nothing(now_s)
                if view.batches.newest >= 0:
                    view.arrivals.caught_up()
            told = view.batches.arrived.tell(self._clock.interval_s, quiet=view.idle)
            view.outside_rate = told if view.sources else 0.0
            more_rate = handed.get(name, 0.0)
            one = self._segment(view, batches, plan, more_rate, now_s, latency)
            found.append(replace(one, handed=self._handed.by_reader(finished[name])))
        return tuple(found)

    def _segment(
        self,
        view: _SegmentView,
        batches: tuple[BatchMeasurement, ...],
        plan: Mapping[str, OperatorPlan],
        more_rate: float,
        now_s: float,
        latency: Latency | None,
    ) -> SegmentMeasurement:
        """One segment; `more_rate` are rows per second from channels."""
        shift_s = self._clock.shift_s
        if shift_s:
            batches = tuple(replace(batch, ended_s=batch.ended_s + shift_s) for batch in batches)
        rate, silent_s = view.rate, view.arrivals.silent_s(now_s)
        lag = view.batches.lag.tell(now_s, rate, view.batches.age_s) if view.sources else None
        backlog_rows = view.backlog_rows(rate, lag, now_s)
        if view.idle:
            rate, backlog_rows = decayed(rate, silent_s), 0.0
        rate += more_rate
        backlog_rows += self._handed.waiting(view.name)
        tasks = [plan[node.name].tasks for node in view.part.segment.nodes if node.name in plan]
        return SegmentMeasurement(
            name=view.name,
            arrival_rate=rate,
            backlog_rows=backlog_rows,
            tasks=max(tasks, default=1),
            batches=batches,
            trigger_s=view.trigger_s,
            apart=not view.main and view.sources,
            loops=view.name in self._looped,
            between=view.waits,
            lag=lag,
            latency=self._sojourns.of_segment(view.name, latency, round(now_s * 1e6)),
            idle=view.idle and view.started and backlog_rows <= 0.0,
        )

    def _saturated(self, segment: SegmentMeasurement) -> bool:
        """Whether rows waited all the time: the backlog is more than two batches' worth."""
        usual_s = self._views[segment.name].batches.usual_s
        last_s = segment.batches[-1].duration_s if segment.batches else usual_s
        batch_s = max(usual_s, last_s, _SHORTEST_BATCH_S)
        return segment.backlog_rows > _SATURATED_BATCHES * segment.arrival_rate * batch_s

    def _cores_busy(
        self, finished: Mapping[str, list[FinishedBatch]], granted: int
    ) -> float | None:
        """Cores at work in the newest batches; while a long one runs, the tasks at work now."""
        running = [view.part for view in self._views.values() if view.part.running is not None]
        if running and not any(finished.values()):
            return float(min(active_tasks(running[0].anchors.session), granted))
        idle = [name for name, view in self._views.items() if view.idle]
        busy = self._busy.measure(finished, idle)
        # Segments run side by side, and a budget of cores holds for the next batch, not for this.
        return None if busy is None else min(busy, float(granted))

    def _stale(self, now_s: float) -> str | None:
        longest_s = max((view.batches.longest_s for view in self._views.values()), default=0.0)
        running = any(view.part.running is not None for view in self._views.values())
        return stale(now_s - self._ended_s, longest_s, running)


def _sources(results: list[BatchResult]) -> tuple[SourceCount, ...]:
    """The counts of some batches, added up per source."""
    totals: dict[str, SourceCount] = {}
    for result in results:
        for count in result.sources:
            known = totals.get(count.name)
            totals[count.name] = count if known is None else added(known, count)
    return tuple(totals.values())
