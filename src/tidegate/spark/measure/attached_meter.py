"""The meter of queries that are not ours: Spark's own progress, folded into one `Measurement`.

Nothing of ours runs in their tasks, and there is no listener: every tick reads the batches that
ended since the last one. Rows carry no stamps, so sojourns are computed as if rows arrived evenly
(`uniform_sojourn`), and the backlog is the arrival rate times the time since the last finished
batch began, and what the sources say they still have. The rate is the growth of the sources' newest
offsets where they tell these, so a batch behind a read limit is not taken for the load. Rows that
a query found at its start are a backlog, and no part of its rate.
"""

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery

from tidegate.control.learning.outliers import COLD, FIRST
from tidegate.control.learning.told_rate import ToldRate
from tidegate.control.learning.uniform_sojourn import SpreadBatch, uniform_sojourn
from tidegate.control.measurement import BatchMeasurement, Measurement, SegmentMeasurement
from tidegate.control.operator_tasks import split
from tidegate.spark.batch.batch_clock import TickClock
from tidegate.spark.loop.negotiate import Negotiator
from tidegate.spark.measure.batch_parts import attached_parts
from tidegate.spark.measure.lag_meter import LagMeter
from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.query_meter import QueryMeter, has_started, trigger_interval_s
from tidegate.spark.measure.read_limits import read_limits
from tidegate.spark.measure.stage_work import BatchWork
from tidegate.spark.measure.staleness import STALE_S

RATE_WINDOW_S = 0.5
"""A rate is counted over at least so long and at least one batch, so a surge shows at once."""
RATE_CORRECTED = 0.05
"""The rate told is off the newest one by this share at most, to make up for rows told late."""
COLD_BATCHES = 3
"""So many first batches of a query run while its executors still load and compile code."""
HISTORY = 24
"""At most so many batches from before it was attached are learned from."""
LATENCY_WINDOW_S = 5.0
WORK_WINDOW_S = 10.0
"""Throughput and busy cores are means over so long."""
SHARES_EVERY_S = 10.0
"""How often the cores are divided anew among several queries."""
_REMEMBERED = 128
_KEPT = 64
"""What the tasks of so many batches did is kept, until Spark tells that they have ended."""
_LOOKED_S = 5.0
"""A look at the sources that takes longer does not say that they are empty: they may be away."""
_IGNORED_S = 60.0
"""How long after the wall clock was set back Spark may still tell of batches from before that."""


@dataclass(slots=True)
class _QueryView:
    """What is known of one query."""

    name: str
    query: StreamingQuery
    meter: QueryMeter
    trigger_s: float
    since_s: float
    lag: LagMeter
    arrived: ToldRate = field(default_factory=lambda: ToldRate(RATE_WINDOW_S, RATE_CORRECTED))
    batches: deque[BatchProgress] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    spreads: deque[tuple[float, SpreadBatch]] = field(
        default_factory=lambda: deque(maxlen=_REMEMBERED)
    )
    """When each batch ended, and over what time its rows arrived, where that is known."""
    work: dict[int, BatchWork] = field(default_factory=dict)
    """What the tasks of its newest batches did."""
    unlearned: list[BatchProgress] = field(default_factory=list)
    """Batches from before it was attached that tell what a batch costs on the present cores."""
    cores: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    """Cores it could use, as of each tick."""
    usual_rate: float = 0.0
    """The last rate above zero: what to expect of rows that come after a silence."""
    first_id: int | None = None
    """The first batch of this run that Spark still tells of."""
    idle: bool = False
    """Whether its last trigger found no row: then there is no backlog."""
    idle_s: float = 0.0
    """When it was last seen idle: rows in the backlog arrived later."""
    looked_s: float = -math.inf
    """When a look at its sources was last known to be over that had found no row."""

    def add(self, fresh: Sequence[BatchProgress]) -> None:
        """Take in batches that have ended, oldest first."""
        for batch in fresh:
            if self.first_id is None:
                self.first_id = batch.batch_id
            before = self.batches[-1] if self.batches else None
            rows = self.lag.add(batch)
            since_s = None if before is None else before.start_us / 1e6
            known = self.arrived.known > 0.0
            self.arrived.add(rows if before is not None else 0.0, since_s, batch.start_us / 1e6)
            if not known:
                # No rate was told while these rows came: they are in the backlog, if anywhere.
                self.arrived.untold = 0.0
            spread = spread_of(batch, self.arrived.known)
            if spread is not None:
                self.spreads.append((batch.end_us / 1e6, spread))
            self.batches.append(batch)

    @property
    def newest(self) -> int:
        """The id of its newest batch."""
        return self.batches[-1].batch_id if self.batches else -1

    @property
    def ended_s(self) -> float:
        return max(self.since_s, self.batches[-1].end_us / 1e6 if self.batches else 0.0)

    def notice(self, now_s: float) -> None:
        """Note whether it is idle; while a trigger still asks its sources, that stays as it was."""
        status = self.query._jsq.status()
        if status.isDataAvailable():
            self.idle = False
        elif not status.isTriggerActive():
            self.idle = True
            if has_started(str(status.message())):
                self.looked_s = now_s
        if self.idle:
            self.idle_s = now_s


class AttachedMeter:
    """Looks at the queries once a tick; queries may come and go."""

    def __init__(
        self,
        queries: Callable[[], Sequence[StreamingQuery]],
        negotiator: Negotiator,
        busy_s: Callable[[], float],
        work_of: Callable[[str], Mapping[int, BatchWork]] = lambda _: {},
        up_since_s: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._queries = queries
        self.negotiator = negotiator
        """Knows of cores; another one when a dry run ends."""
        self._busy_s = busy_s
        self._work_of = work_of
        """What the tasks of a query's newest batches did, by its run's id."""
        self._up_since_s = up_since_s
        """When the newest executor came: since then, batches had the present cores."""
        self._views: dict[str, _QueryView] = {}
        self._since_s = time.time()
        self._clock = TickClock(self._since_s)
        self._ignored_until_s = -math.inf
        """Until then, batches that end in the future are from before the clock was set back."""
        self._shares: dict[str, int] = {}
        self._shared_s = 0.0
        self._granted = 0
        self._busy: deque[tuple[float, float]] = deque([(self._since_s, busy_s())])
        self.spent_s = 0.0
        """Time that measuring took on the driver, in all."""

    def measure(self, now_s: float) -> Measurement:
        """The tick that ends now."""
        granted = self.negotiator.granted()
        clock = time.perf_counter()
        if self._clock.tick(now_s, 1.0):
            self._forget(now_s)
        interval_s, shift_s = self._clock.interval_s, self._clock.shift_s
        self._look(now_s)
        self._share(granted, now_s)
        segments = tuple(self._segment(view, now_s) for view in self._views.values())
        rate, busy = self._throughput(now_s)
        measurement = Measurement(
            at_s=now_s + shift_s,
            interval_s=interval_s,
            arrival_rate=sum(segment.arrival_rate for segment in segments),
            processed_rate=rate,
            backlog_rows=sum(segment.backlog_rows for segment in segments),
            cores_asked=self.negotiator.asked,
            cores_granted=granted,
            saturated=any(self._saturated(segment) for segment in segments),
            cores_busy=busy,
            latency=uniform_sojourn(self._recent(now_s)),
            segments=segments,
            stale=self._stale(now_s),
            grant_s=self.negotiator.grant_s,
            overdue=self.negotiator.overdue(),
        )
        self.spent_s += time.perf_counter() - clock
        return measurement

    def _forget(self, now_s: float) -> None:
        """Forget times of the wall clock, which was set back: they are in the future now."""
        self._views, self._shares, self._shared_s = {}, {}, 0.0
        self._busy = deque([(now_s, self._busy_s())])
        self._ignored_until_s = now_s + _IGNORED_S

    def _fresh(self, view: _QueryView, now_s: float) -> list[BatchProgress]:
        """The batches of a query that ended since it was last read."""
        fresh = view.meter.read()
        if now_s > self._ignored_until_s:
            return fresh
        return [batch for batch in fresh if batch.end_us / 1e6 <= now_s + 1.0]

    def _look(self, now_s: float) -> None:
        """Follow the queries that run; what a new one did before is not part of this tick."""
        running = {str(query.runId): query for query in self._queries()}
        for run_id in [run_id for run_id in self._views if run_id not in running]:
            del self._views[run_id]
            self._shares = {}
        for run_id, query in running.items():
            if run_id not in self._views:
                self._views[run_id] = self._new_view(query, now_s)
                self._shares = {}
            self._views[run_id].notice(now_s)

    def _new_view(self, query: StreamingQuery, now_s: float) -> _QueryView:
        """A query that is seen for the first time, with what Spark still tells of its past."""
        view = _QueryView(
            str(query.name or query.id),
            query,
            QueryMeter(query),
            trigger_interval_s(query),
            now_s,
            LagMeter(lambda: read_limits(query)),
        )
        past = self._fresh(view, now_s)
        view.add(past)
        view.arrived.untold = 0.0  # rows of the past are no part of the next ticks
        up_s = self._up_since_s()
        view.unlearned = [one for one in past if one.start_us / 1e6 >= up_s][-HISTORY:]
        return view

    def _share(self, granted: int, now_s: float) -> None:
        """Divide the cores among the queries, by the time that the stages of each take."""
        due = now_s - self._shared_s >= SHARES_EVERY_S
        if not self._shares or granted != self._granted or due:
            weights = {}
            for run_id, view in self._views.items():
                recent = [b for b in view.batches if b.end_us / 1e6 > now_s - WORK_WINDOW_S]
                weights[run_id] = sum(batch.work_s for batch in recent) + 1e-9
            self._shares = split(weights, granted)
            self._shared_s, self._granted = now_s, granted
        for run_id, view in self._views.items():
            view.cores.append((now_s, self._shares[run_id]))

    def _segment(self, view: _QueryView, now_s: float) -> SegmentMeasurement:
        fresh = self._fresh(view, now_s)
        view.add(fresh)
        view.work |= self._work_of(str(view.query.runId)) if fresh or view.unlearned else {}
        if view.idle:
            view.arrived.nothing(now_s)
        rate = view.arrived.tell(self._clock.interval_s, quiet=view.idle)
        view.usual_rate = rate or view.usual_rate
        waiting_s = 0.0
        if view.batches and not view.idle:
            waiting_s = max(0.0, now_s - max(view.batches[-1].start_us / 1e6, view.idle_s))
        lag = view.lag.tell(now_s, rate)
        behind = view.batches[-1].behind_rows if view.batches else 0
        if lag is not None and lag.partitions:
            behind = lag.reachable_rows
        learned, view.unlearned = [*view.unlearned, *fresh], []
        batches = tuple(self._batch(view, progress) for progress in learned)
        view.work = {one: work for one, work in view.work.items() if one > view.newest - _KEPT}
        return SegmentMeasurement(
            name=view.name,
            arrival_rate=rate,
            backlog_rows=(rate or view.usual_rate) * waiting_s + behind,
            tasks=view.cores[-1][1],
            batches=batches,
            trigger_s=view.trigger_s,
            apart=True,
            lag=lag,
            idle=view.idle and now_s - view.looked_s <= _LOOKED_S,
        )

    def _batch(self, view: _QueryView, progress: BatchProgress) -> BatchMeasurement:
        cores = cores_during(view.cores, progress.start_us / 1e6, progress.end_us / 1e6)
        outlier = self._warming(view, progress)
        work = view.work.get(progress.batch_id)
        return BatchMeasurement(
            batch_id=progress.batch_id,
            rows=progress.rows,
            tasks=min(cores),
            imbalance=1.0,
            duration_s=progress.duration_s,
            ended_s=progress.end_us / 1e6 + self._clock.shift_s,
            outlier="executors changed" if len(cores) > 1 else outlier,
            parts_s=attached_parts(progress),
            busy_s=None if work is None else work.busy_s,
            rowless_s=0.0 if work is None else work.rowless_s,
        )

    def _warming(self, view: _QueryView, progress: BatchProgress) -> str | None:
        """Why one of the first batches of a query's run took longer than later ones will."""
        since = progress.batch_id - (view.first_id or 0)
        if since == 0:
            return FIRST
        return COLD if since < COLD_BATCHES else None

    def _throughput(self, now_s: float) -> tuple[float, float | None]:
        """Rows per second of the batches' time, and the cores that were busy meanwhile."""
        self._busy.append((now_s, self._busy_s()))
        while len(self._busy) > 2 and self._busy[1][0] <= now_s - WORK_WINDOW_S:
            self._busy.popleft()
        (from_s, before_s), (_, after_s) = self._busy[0], self._busy[-1]
        rate, rows = 0.0, 0
        for view in self._views.values():
            recent = [batch for batch in view.batches if batch.end_us / 1e6 > from_s]
            spent_s = sum(batch.duration_s for batch in recent)
            done = sum(batch.rows for batch in recent)
            rate += done / spent_s if spent_s > 0.0 else 0.0
            rows += done
        return rate, rate * (after_s - before_s) / rows if rows > 0 else None

    def _recent(self, now_s: float) -> list[SpreadBatch]:
        found = []
        for view in self._views.values():
            longest_s = view.batches[-1].duration_s if view.batches else 0.0
            from_s = now_s - max(LATENCY_WINDOW_S, 2.0 * longest_s)
            found += [spread for ended_s, spread in view.spreads if ended_s > from_s]
        return found

    def _saturated(self, segment: SegmentMeasurement) -> bool:
        """Whether rows waited all the time: the backlog is more than two batches' worth."""
        view = next(view for view in self._views.values() if view.name == segment.name)
        durations_s = [batch.duration_s for batch in view.batches]
        usual_s = max(statistics.median(durations_s), durations_s[-1]) if durations_s else 0.0
        usual_s = max(usual_s, view.trigger_s, 0.2)
        return segment.backlog_rows > 2.5 * segment.arrival_rate * usual_s

    def _stale(self, now_s: float) -> str | None:
        if not self._views:
            return "no query is running"
        quiet_s = []
        for view in self._views.values():
            if view.idle:
                return None
            longest_s = max((batch.duration_s for batch in view.batches), default=0.0)
            if now_s - view.ended_s <= max(STALE_S, 5.0 * longest_s, 2.0 * view.trigger_s):
                return None
            quiet_s.append(now_s - view.ended_s)
        return f"no batch ended for {min(quiet_s):.0f} s"


def spread_of(progress: BatchProgress, rate: float = 0.0) -> SpreadBatch | None:
    """The batch with the time over which its rows arrived; None when that is not known.

    Spark's rate is the batch's rows over the time since the trigger before it, even if that one
    found nothing, so rows over rate is that time. A batch that left rows in its sources took older
    ones, which arrived at the rate of arrivals and waited until as many more had come as are left.
    """
    if progress.rows == 0 or progress.arrival_rate <= 0.0:
        return None
    span_s, waited_s = progress.rows / progress.arrival_rate, 0.0
    if progress.behind_rows > 0:
        if rate <= 0.0:
            return None
        span_s, waited_s = progress.rows / rate, progress.behind_rows / rate
    return SpreadBatch(
        rows=progress.rows, span_s=span_s, duration_s=progress.duration_s, waited_s=waited_s
    )


def cores_during(cores: Sequence[tuple[float, int]], from_s: float, to_s: float) -> set[int]:
    """The numbers of cores at the ticks within this time, and at the last tick before it."""
    before = [count for at_s, count in cores if at_s <= from_s][-1:]
    found = {count for at_s, count in cores if from_s < at_s <= to_s}
    return found | set(before) or {cores[0][1]}
