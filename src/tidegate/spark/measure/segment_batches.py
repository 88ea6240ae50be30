"""The finished batches of one segment: Spark's progress and our own results, brought together.

A batch is finished when both sides are done with it: our callback has returned, and Spark has
committed the offsets and told how long the whole trigger took.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.learning.outliers import FIRST, NEW_EXECUTORS, NEW_TASKS, WAITING_TASKS
from tidegate.control.learning.sojourn import BatchStamps, Stamps, mean_sojourn_s, merged
from tidegate.control.learning.told_rate import ToldRate
from tidegate.control.measurement import BatchMeasurement
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.batch_parts import batch_parts
from tidegate.spark.measure.lag_meter import LagMeter
from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.query_meter import QueryMeter
from tidegate.spark.measure.running_batch import kept_stamps, offered_stamps, since, until

_REMEMBERED = 64
_SOURCE_WINDOW_S = 1.0
"""The rate of the segment that reads the first source is that of so many seconds."""
_CHANNEL_WINDOW_S = 5.0
"""The same for a segment that reads a channel, where rows come by the batch."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishedBatch:
    """A batch that both we and Spark are done with."""

    result: BatchResult
    progress: BatchProgress
    kept: BatchStamps
    """When the rows that were worked on arrived."""
    offered: Stamps | None
    """When all its rows arrived, those that it shed included; None without stamps."""
    since_s: float | None = None
    """Its rows arrived from then on: when the batch before it began, or the run; None: unknown."""
    fresh: float = 1.0
    """Rows that arrived for each row that it took. Below 1: it took a part of a backlog, from
    before the run or behind a limit of its source. Above 1: it left rows in its source."""
    newest_age_s: float | None = None
    """How old its newest row was when it began, by its stamp: negative if that is of the future."""
    outside: int = 0
    """Rows that it took from sources, not from channels."""

    @property
    def began_s(self) -> float:
        """When it began: its rows arrived until then."""
        return self.progress.start_us / 1e6


class SegmentBatches:
    """Reads the batches of one segment, each once, oldest first."""

    def __init__(
        self,
        meter: QueryMeter,
        *,
        main: bool = True,
        since_s: float | None = None,
        mixed: frozenset[str] = frozenset(),
        old_rows: Callable[[BatchProgress], int] = lambda _: 0,
        lag: LagMeter | None = None,
    ) -> None:
        self._meter = meter
        self._main = main
        self._mixed = mixed
        """The operators that read a source and a channel at once (`mixed_readers`)."""
        self._old_rows = old_rows
        """How many rows of a batch were handed over to it before the run began."""
        self._since_us = 0 if since_s is None else round(since_s * 1e6)
        """When the run began."""
        self.window_s = _SOURCE_WINDOW_S if main else _CHANNEL_WINDOW_S
        self.arrived = ToldRate(self.window_s)
        """Rows that arrived from outside, by when the batches that took them began."""
        self.completed = ToldRate(_SOURCE_WINDOW_S)
        """Rows that were completed, as if each batch had completed its rows evenly."""
        self._progress: dict[int, BatchProgress] = {}
        """Batches that Spark has told of, and we have not met yet."""
        self._seen: set[int] = set()
        self._last_tasks: Mapping[str, int] = {}
        self._last_executors = 0
        self._awaited: int | None = None
        """The fewest cores that were up at a tick of the running batch while more were awaited."""
        self._durations_s: deque[float] = deque(maxlen=_REMEMBERED)
        self._began_s = since_s
        """When the newest finished batch began; before the first, when the run began."""
        self._first = True
        self.lag = lag or LagMeter()
        """How far the segment is behind its sources."""
        self._age_s: float | None = None
        self._behind_rows = 0
        """Rows that the newest batch left in the source, where it tells."""

    @property
    def newest(self) -> int:
        """The id of the newest finished batch; -1 before the first."""
        return max(self._seen, default=-1)

    @property
    def behind_rows(self) -> int:
        """Rows that the newest finished batch left in the sources, where they tell."""
        return self._behind_rows

    @property
    def began_s(self) -> float | None:
        """When the newest finished batch began; before the first, the run; None if not known."""
        return self._began_s

    @property
    def age_s(self) -> float | None:
        """How old the newest row was that the newest batch took, when that batch was planned."""
        return self._age_s

    @property
    def usual_s(self) -> float:
        """The median duration of the last batches; zero before the first."""
        return float(np.median(self._durations_s)) if self._durations_s else 0.0

    @property
    def longest_s(self) -> float:
        """The longest duration of the last batches; zero before the first."""
        return max(self._durations_s, default=0.0)

    def finished(self, results: Iterable[BatchResult]) -> list[FinishedBatch]:
        """The batches that finished since the last call; `results` are the last ones that ran."""
        for progress in self._meter.read():
            self._progress[progress.batch_id] = progress
        done: list[FinishedBatch] = []
        for result in results:
            batch_id = result.plan.batch_id
            ended = self._progress.pop(batch_id, None)
            if ended is not None and batch_id not in self._seen:
                self._seen.add(batch_id)
                done.append(self._finished(result, ended))
        if done:
            oldest = done[-1].result.plan.batch_id - _REMEMBERED
            self._seen = {batch_id for batch_id in self._seen if batch_id >= oldest}
        return done

    def forget_times(self) -> None:
        """Forget when batches began, because the wall clock was set back."""
        self._began_s, self._since_us = None, 0
        self.arrived.forget_times()
        self.completed.forget_times()

    def measured(
        self, finished: Sequence[FinishedBatch], awaited: int | None
    ) -> tuple[BatchMeasurement, ...]:
        """The measurements of finished batches, which are remembered from now on.

        `awaited` is how many cores are up while more are on their way; None when none is awaited.
        Cores that have come while a batch ran did not run all of it.
        """
        counts = [cores for cores in (awaited, self._awaited) if cores is not None]
        fewest = min(counts, default=None)
        self._awaited = awaited if finished else fewest
        found = []
        for batch in finished:
            progress = batch.progress
            found.append(self._measured(batch, fewest))
            self._durations_s.append(progress.duration_s)
            self.arrived.add(batch.outside * batch.fresh, batch.since_s, batch.began_s)
            self.completed.add(found[-1].rows, batch.began_s, progress.end_us / 1e6)
        return tuple(found)

    def nothing(self, until_s: float) -> None:
        """Nothing has arrived, and nothing was completed, since the newest finished batch.

        So the backlog from before the run is done, and rows that come later are no part of it,
        whatever times they carry.
        """
        if not self._first:
            self._since_us = 0
        self.arrived.nothing(until_s)
        self.completed.nothing(until_s)

    def _finished(self, result: BatchResult, progress: BatchProgress) -> FinishedBatch:
        planned_us = result.plan.at_us
        arrived = until(merged(kept_stamps(result.reports, self._mixed)), planned_us)
        kept = BatchStamps(arrived, progress.end_us)
        offered = offered_stamps(result.reports, self._mixed)
        newest_age_s = None
        if offered is not None and offered.rows:
            newest_age_s = (progress.start_us - offered.newest_us) / 1e6
        offered = None if offered is None else until(offered, planned_us)
        grown = self.lag.add(progress)
        fresh = self._fresh(progress, offered, grown)
        self._behind_rows = progress.behind_rows
        self._age_s = None
        if offered is not None and offered.rows:
            self._age_s = max(progress.start_us - offered.newest_us, 0) / 1e6
        # The first rows of a channel come once the segment before has filled it.
        since_s = self._began_s if self._main or not self._first else None
        outside = progress.rows - progress.channel_rows
        batch = FinishedBatch(
            result, progress, kept, offered, since_s, fresh, newest_age_s, outside
        )
        self._began_s, self._first = batch.began_s, False
        return batch

    def _fresh(self, progress: BatchProgress, offered: Stamps | None, grown: float) -> float:
        """Rows that arrived for each row that a batch took.

        By the growth of the sources' newest offsets where a batch left rows there, now or before:
        then what it took is not what arrived. Else by stamps, if rows have some.
        """
        outside = progress.rows - progress.channel_rows
        limited = max(progress.behind_rows, self._behind_rows) > 0
        if offered is not None and not (limited and progress.partitions):
            return since(offered, self._since_us).rows / offered.rows
        if self._first and outside > 0:
            return 0.0  # what the first batch found was there before the run began
        if progress.partitions and outside > 0:
            return grown / outside
        left = progress.behind_rows - self._behind_rows
        arrived = progress.rows + left - self._old_rows(progress)
        return max(arrived, 0) / progress.rows if progress.rows else 1.0

    def _measured(self, batch: FinishedBatch, awaited: int | None) -> BatchMeasurement:
        result, progress = batch.result, batch.progress
        tasks = {name: entry.tasks for name, entry in result.plan.operators.items()}
        most = max(tasks.values(), default=1)
        outlier = None
        if not self._last_tasks:
            outlier = FIRST
        elif any(count > self._last_tasks.get(name, 0) for name, count in tasks.items()):
            outlier = NEW_TASKS
        elif result.executors > self._last_executors:
            outlier = NEW_EXECUTORS
        elif awaited is not None and most > awaited:
            outlier = WAITING_TASKS
        self._last_tasks, self._last_executors = tasks, result.executors
        shed_rows = sum(count.shed for count in result.sources)
        return BatchMeasurement(
            batch_id=progress.batch_id,
            rows=progress.rows - shed_rows,
            shed_rows=shed_rows,
            tasks=most,
            imbalance=stage_imbalance(result.reports),
            duration_s=progress.duration_s,
            ended_s=progress.end_us / 1e6,
            outlier=outlier,
            latency_s=mean_sojourn_s(batch.kept),
            newest_age_s=batch.newest_age_s,
            parts_s=batch_parts(result, progress),
        )


def stage_imbalance(reports: Sequence[TaskReport]) -> float:
    """Time of the slowest tasks over the mean, stage by stage, weighted by the stages' work."""
    by_task: dict[tuple[str, int, int], float] = {}
    for report in reports:
        # A keyed task that works in parts is one task; a map may have run in several of them.
        part = 0 if report.change is not None else report.part
        task = (report.operator, report.task, part)
        by_task[task] = by_task.get(task, 0.0) + report.busy_s
    by_stage: dict[str, list[float]] = {}
    for (operator, _, _), busy_s in by_task.items():
        by_stage.setdefault(operator, []).append(busy_s)
    mean_s = sum(float(np.mean(busy)) for busy in by_stage.values())
    slowest_s = sum(max(busy) for busy in by_stage.values())
    return slowest_s / mean_s if mean_s > 0 else 1.0
