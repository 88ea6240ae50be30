"""The meter of a running pipeline: batches and task reports folded into one `Measurement` a tick.

Nothing here runs in tasks: they report anyway (rows, busy time, shards, stamps of every N_m-th
row), and this is pulled every T_m (DRS IV-A). A batch counts when Spark has told its duration.
"""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from tidegate.control.learning.outliers import NEW_TASKS
from tidegate.control.learning.sojourn import (
    SLOT_US,
    BatchStamps,
    SojournWindow,
    Stamps,
    mean_sojourn_s,
    merged,
)
from tidegate.control.measurement import (
    BatchMeasurement,
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.control.row_counts import SourceCount, added
from tidegate.pipelines.graph import Keyed, Map, Segment, TaskBounds
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.segment import SegmentRun
from tidegate.spark.loop.negotiate import Negotiator
from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.query_meter import QueryMeter, trigger_interval_s
from tidegate.spark.measure.running_batch import Early, early, early_of, offered_stamps
from tidegate.spark.run import Run

STALE_S = 10.0
"""Without a finished batch for so long (and five times the usual batch) there is nothing new."""
STUCK_S = 60.0
"""The same for a batch that runs (and ten times the longest one): it hangs."""
_RATE_WINDOW_S = 1.0
_REMEMBERED = 64


@dataclass(slots=True)
class _SegmentView:
    """What is known of one segment's batches."""

    segment: Segment
    meter: QueryMeter
    trigger_s: float
    waiting: dict[int, BatchProgress] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    last_tasks: Mapping[str, int] = field(default_factory=dict)
    durations_s: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    rows: deque[tuple[float, int, float]] = field(default_factory=lambda: deque(maxlen=256))
    """(end, rows, duration) of the last batches."""
    ahead: dict[int, Early] = field(default_factory=dict)
    """Batches that are not over, by id, as far as they have told of their rows."""
    idle: bool = False
    """Whether Spark has nothing to do for it: what has arrived is done."""
    busy: float | None = None
    """Cores at work in the last batches that ended."""
    seen_tasks: dict[str, int] = field(default_factory=dict)
    """Of each operator: the tasks that told of themselves in its last batches."""
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of each keyed operator: the node of each task in the last batch."""


@dataclass(frozen=True, slots=True, eq=False)
class _Finished:
    """A batch that both we and Spark are done with."""

    result: BatchResult
    progress: BatchProgress
    kept: BatchStamps
    """When the rows that were worked on had arrived."""


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
        self._negotiator = negotiator
        self._window = SojournWindow(window_s)
        self._views = {
            name: _SegmentView(
                part.segment, QueryMeter(run.queries[name]), trigger_interval_s(run.queries[name])
            )
            for name, part in run.segments.items()
        }
        self._last_s = time.time()
        self._ended_s = self._last_s
        self._newest_us = 0
        """The newest arrival among finished rows."""
        self._awaited: int | None = None
        """Cores that are up while more are on their way."""
        self._oldest_us = 0
        """The first arrival of all: no rate is counted over the time before it."""
        self._arrivals: deque[Stamps] = deque(maxlen=_REMEMBERED)
        self.spent_s = 0.0
        """Time that measuring took on the driver, in all."""

    def measure(self, now_s: float) -> Measurement:
        """The tick that ends now."""
        clock = time.perf_counter()
        interval_s = max(now_s - self._last_s, 1e-3)
        self._last_s = now_s
        waits = {name: part.waits for name, part in self._run.segments.items()}
        granted = self._negotiator.granted()
        self._awaited = granted if granted < self._negotiator.asked else None
        finished = {name: self._finished(view) for name, view in self._views.items()}
        for batches in finished.values():
            for batch in batches:
                self._stamp(batch)
        for name, view in self._views.items():
            status = self._run.queries[name].status
            view.idle = not status["isTriggerActive"] and not status["isDataAvailable"]
            self._look_ahead(view, self._run.segments[name])
        arrival_rate = self._arrival_rate(now_s)
        segments = tuple(
            replace(self._segment(view, finished[name], arrival_rate, now_s), between=waits[name])
            for name, view in self._views.items()
        )
        operators = tuple(
            operator
            for name, view in self._views.items()
            for operator in self._operators(view, [b.result for b in finished[name]], interval_s)
        )
        rows = sum(
            batch.rows
            for segment in segments
            if segment.name == "main"
            for batch in segment.batches
        )
        keep, keep_by_class = self._run.keep()
        main_s = sum(b.duration_s for s in segments if s.name == "main" for b in s.batches)
        backlog = segments[0].backlog_rows if segments else 0.0
        measurement = Measurement(
            at_s=now_s,
            interval_s=interval_s,
            tick_s=self._tick_s,
            arrival_rate=arrival_rate,
            processed_rate=rows / main_s if main_s > 0.0 else 0.0,
            backlog_rows=backlog,
            cores_asked=self._negotiator.asked,
            cores_granted=granted,
            saturated=self._saturated(segments),
            cores_busy=self._busy(finished),
            latency=self._window.latency(round(now_s * 1e6)),
            operators=operators,
            segments=segments,
            stale=self._stale(now_s),
            grant_s=self._negotiator.grant_s,
            keep=keep,
            keep_by_class=keep_by_class,
            sources=_sources([b.result for batches in finished.values() for b in batches]),
        )
        self.spent_s += time.perf_counter() - clock
        return measurement

    def _busy(self, finished: Mapping[str, list[_Finished]]) -> float | None:
        """Cores at work in the newest batches; while a long one runs, the tasks at work now.

        Segments run side by side, so theirs add up.
        """
        running = [part for part in self._run.segments.values() if part.running is not None]
        if running and not any(finished.values()):
            return float(min(active_tasks(running[0].anchors.session), self._negotiator.granted()))
        for name, batches in finished.items():
            spent_s = sum(batch.progress.duration_s for batch in batches)
            if spent_s > 0.0:
                busy_s = sum(r.busy_s for batch in batches for r in batch.result.reports)
                self._views[name].busy = busy_s / spent_s
        known = [
            0.0 if view.idle else view.busy
            for view in self._views.values()
            if view.busy is not None
        ]
        return sum(known) if known else None

    def _finished(self, view: _SegmentView) -> list[_Finished]:
        """Batches that both we and Spark are done with, each once, oldest first."""
        for progress in view.meter.read():
            view.waiting[progress.batch_id] = progress
        done: list[_Finished] = []
        for result in self._run.results(view.segment.name):
            batch_id = result.plan.batch_id
            ended = view.waiting.pop(batch_id, None)
            if ended is not None and batch_id not in view.seen:
                view.seen.add(batch_id)
                done.append(_Finished(result, ended, _kept(result, ended.end_us)))
                self._ended_s = max(self._ended_s, ended.end_us / 1e6)
        if done:
            oldest = done[-1].result.plan.batch_id - _REMEMBERED
            view.seen = {batch_id for batch_id in view.seen if batch_id >= oldest}
        return done

    def _stamp(self, batch: _Finished) -> None:
        if batch.kept.stamps.rows:
            self._window.add(batch.kept)
        offered = offered_stamps(batch.result.reports)
        if offered is None:
            return
        if not self._oldest_us:
            self._oldest_us = int(offered.slots[0]) * SLOT_US
        self._newest_us = max(self._newest_us, int(offered.slots[-1]) * SLOT_US)
        self._arrivals.append(offered)

    def _look_ahead(self, view: _SegmentView, part: SegmentRun) -> None:
        """What a running batch has told, and those whose duration Spark has not told yet.

        What was told once stays until the batch is over, whatever step it is at meanwhile.
        """
        last = max(view.seen, default=-1)
        told = [early_of(part, r) for r in list(part.results) if r.plan.batch_id > last]
        for one in (*told, early(part)):
            if one is not None:
                view.ahead[one.batch_id] = one
        view.ahead = {batch_id: one for batch_id, one in view.ahead.items() if batch_id > last}

    @property
    def _told_us(self) -> int:
        """The newest arrival that any batch has told of."""
        return max([self._newest_us, *(one.newest_us for one in self._told_ahead)])

    @property
    def _told_ahead(self) -> list[Early]:
        return [one for view in self._views.values() for one in view.ahead.values()]

    def _arrival_rate(self, now_s: float) -> float:
        """Rows per second of the newest second that batches tell of, running ones included.

        By the rows' own stamps, so that a late batch does not look like a late surge; without
        stamps by the rows of the last batches over their time.
        """
        if self._arrivals:
            ahead = [one.offered for one in self._told_ahead]
            newest = self._told_us // SLOT_US
            width = round(_RATE_WINDOW_S * 1e6 / SLOT_US)
            counted = sum(
                int(stamps.counts[stamps.slots > newest - width].sum())
                for stamps in (*self._arrivals, *ahead)
            )
            begun = (newest - self._oldest_us // SLOT_US + 1) * SLOT_US / 1e6
            return counted / min(_RATE_WINDOW_S, max(begun, 0.1))
        view = next(iter(self._views.values()))
        recent = [entry for entry in view.rows if entry[0] > now_s - 10.0]
        spent = sum(duration for _, _, duration in recent)
        return sum(rows for _, rows, _ in recent) / spent if spent > 0 else 0.0

    def _segment(
        self,
        view: _SegmentView,
        finished: list[_Finished],
        arrival_rate: float,
        now_s: float,
    ) -> SegmentMeasurement:
        batches = []
        for batch in finished:
            progress = batch.progress
            batches.append(self._batch(view, batch))
            view.durations_s.append(progress.duration_s)
            view.rows.append((progress.end_us / 1e6, progress.rows, progress.duration_s))
        main = view.segment.name == "main"
        rate = arrival_rate if main else self._offered(view, now_s)
        waiting_s = max(0.0, now_s - self._told_us / 1e6) if self._newest_us and main else 0.0
        running = sum(one.kept for one in view.ahead.values()) if main else 0
        if view.idle:
            rate, waiting_s, running = self._decayed(rate, waiting_s), 0.0, 0
        plan = self._run.allocation()
        return SegmentMeasurement(
            name=view.segment.name,
            arrival_rate=rate,
            backlog_rows=running + rate * waiting_s,
            tasks=max(
                (plan[node.name].tasks for node in view.segment.nodes if node.name in plan),
                default=1,
            ),
            batches=tuple(batches),
            trigger_s=view.trigger_s,
        )

    def _decayed(self, rate: float, silent_s: float) -> float:
        """A rate that was true until some seconds ago, with nothing since."""
        return rate * _RATE_WINDOW_S / (_RATE_WINDOW_S + silent_s)

    def _offered(self, view: _SegmentView, now_s: float) -> float:
        recent = [entry for entry in view.rows if entry[0] > now_s - 10.0]
        if len(recent) < 2:
            return 0.0
        span = recent[-1][0] - recent[0][0]
        return sum(rows for _, rows, _ in recent[1:]) / span if span > 0 else 0.0

    def _batch(self, view: _SegmentView, batch: _Finished) -> BatchMeasurement:
        result, progress = batch.result, batch.progress
        tasks = {name: entry.tasks for name, entry in result.plan.operators.items()}
        outlier = None
        if not view.last_tasks:
            outlier = "first"
        elif any(count > view.last_tasks.get(name, 0) for name, count in tasks.items()):
            outlier = NEW_TASKS
        elif self._awaited is not None and max(tasks.values(), default=1) > self._awaited:
            outlier = "tasks that wait for cores"
        view.last_tasks = tasks
        shed_rows = sum(count.shed for count in result.sources)
        return BatchMeasurement(
            batch_id=progress.batch_id,
            rows=progress.rows - shed_rows,
            shed_rows=shed_rows,
            tasks=max(tasks.values(), default=1),
            imbalance=_batch_imbalance(result.reports),
            duration_s=progress.duration_s,
            ended_s=progress.end_us / 1e6,
            outlier=outlier,
            latency_s=mean_sojourn_s(batch.kept),
        )

    def _operators(
        self, view: _SegmentView, results: list[BatchResult], interval_s: float
    ) -> list[OperatorMeasurement]:
        found = []
        plan = self._run.allocation()
        for node in view.segment.nodes:
            if not isinstance(node, Map | Keyed):
                continue
            reports = [report for result in results for report in result.of(node.name)]
            if results and isinstance(node, Keyed):
                view.nodes[node.name] = nodes_of(results[-1].of(node.name))
            rows = sum(report.rows_in for report in reports)
            busy_s = sum(report.busy_s for report in reports)
            entry = plan.get(node.name)
            if reports:
                view.seen_tasks[node.name] = len({report.task for report in reports})
            tasks = entry.tasks if entry is not None else view.seen_tasks.get(node.name, 1)
            # A map without tasks of its own runs where its rows are: no other number is possible.
            bounds = node.tasks or TaskBounds(tasks, tasks)
            nodes = view.nodes.get(node.name, ())
            per_row = [r.busy_s / r.rows_in for r in reports if r.rows_in]
            found.append(
                OperatorMeasurement(
                    name=node.name,
                    segment=view.segment.name,
                    arrival_rate=rows / max(interval_s, self._tick_s or 0.0),
                    service_rate=rows / busy_s if busy_s > 0 else 0.0,
                    service_scv=_scv(per_row),
                    tasks=tasks,
                    imbalance=_imbalance(results, node.name),
                    state_bytes=_state_bytes(results, node.name),
                    rows=rows,
                    busy_s=busy_s,
                    least_tasks=bounds.least,
                    most_tasks=bounds.most,
                    route=entry.route if entry is not None else (),
                    shard_rows=_shard_rows(node, reports),
                    nodes=nodes if len(nodes) == tasks else (),
                    durable_bytes=sum(report.durable_bytes for report in reports),
                )
            )
        return found

    def _saturated(self, segments: tuple[SegmentMeasurement, ...]) -> bool:
        """Rows waited all the time: more than two batches' worth had arrived and were not done."""
        for segment in segments:
            view = self._views[segment.name]
            usual_s = float(np.median(view.durations_s)) if view.durations_s else 0.0
            last_s = segment.batches[-1].duration_s if segment.batches else usual_s
            if segment.backlog_rows > 2.5 * segment.arrival_rate * max(usual_s, last_s, 0.2):
                return True
        return False

    def _stale(self, now_s: float) -> str | None:
        longest = max(
            (max(view.durations_s) for view in self._views.values() if view.durations_s),
            default=0.0,
        )
        quiet_s = now_s - self._ended_s
        limit_s = max(STALE_S, 5.0 * longest)
        if any(part.running is not None for part in self._run.segments.values()):
            # A long batch is not a stalled source: what waits for it, and who works, is known.
            limit_s = max(STUCK_S, 10.0 * longest)
        if quiet_s > limit_s:
            return f"no batch ended for {quiet_s:.0f} s"
        return None


def _kept(result: BatchResult, end_us: int) -> BatchStamps:
    stamps = [report.stamps for report in result.reports if report.stamps is not None]
    return BatchStamps(merged(stamps), end_us)


def active_tasks(session: SparkSession) -> int:
    """Tasks that run at this moment, on all executors."""
    listed: Any = session.sparkContext._jsc.sc().statusStore().executorList(True)
    return sum(int(listed.apply(number).activeTasks()) for number in range(listed.size()))


def _sources(results: list[BatchResult]) -> tuple[SourceCount, ...]:
    """The counts of some batches, added up per source."""
    totals: dict[str, SourceCount] = {}
    for result in results:
        for count in result.sources:
            known = totals.get(count.name)
            totals[count.name] = count if known is None else added(known, count)
    return tuple(totals.values())


def _batch_imbalance(reports: tuple[TaskReport, ...]) -> float:
    """Time of the slowest tasks over the mean, stage by stage, weighted by the stages' work."""
    by_stage: dict[str, list[float]] = {}
    for report in reports:
        by_stage.setdefault(report.operator, []).append(report.busy_s)
    mean_s = sum(float(np.mean(busy)) for busy in by_stage.values())
    slowest_s = sum(max(busy) for busy in by_stage.values())
    return slowest_s / mean_s if mean_s > 0 else 1.0


def _imbalance(results: list[BatchResult], operator: str) -> float:
    """delta: rows of the fullest task over the mean, over the tick."""
    rows: dict[int, int] = {}
    tasks = 1
    for result in results:
        tasks = max(tasks, len(result.of(operator)))
        for report in result.of(operator):
            rows[report.task] = rows.get(report.task, 0) + report.rows_in
    total = sum(rows.values())
    return max(rows.values()) * tasks / total if total else 1.0


def _state_bytes(results: list[BatchResult], operator: str) -> int:
    return sum(report.state_bytes for report in results[-1].of(operator)) if results else 0


def _shard_rows(node: Map | Keyed, reports: list[TaskReport]) -> tuple[int, ...]:
    if not isinstance(node, Keyed):
        return ()
    total = np.zeros(node.shards, dtype=np.int64)
    for report in reports:
        if report.shard_rows is not None:
            total[report.shard_rows[0]] += report.shard_rows[1]
    return tuple(total.tolist())


def nodes_of(reports: list[TaskReport]) -> tuple[str, ...]:
    """The node of each task of one batch; none unless every task has told."""
    told = {report.task: report.node for report in reports}
    if set(told) != set(range(len(told))) or not all(told.values()):
        return ()
    return tuple(told[task] for task in range(len(told)))


def _scv(values: list[float]) -> float:
    """Squared coefficient of variation; 1 where there is too little to tell."""
    if len(values) < 3:
        return 1.0
    mean = float(np.mean(values))
    return float(np.var(values)) / mean**2 if mean > 0 else 1.0
