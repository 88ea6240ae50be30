"""Predicts the latency if a share of the rows is kept, with the cores and tasks of the next batch.

Granting cores takes time, so a decision to scale out does not help the next batch unless they are
granted before it begins. A change that was held back once is not relied on again.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate.control.decision import Decision
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement
from tidegate.control.shedding.next_batch import NextBatchWatch
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.models.shedding.outlook import BatchOutlook


@dataclass(frozen=True, slots=True)
class PipelineOutlook:
    """The next batches of the first segment, and the segments behind it in their steady state."""

    first: BatchOutlook
    behind: tuple[tuple[MicroBatchStation, int], ...] = ()
    """Stations at the rates they would have without shedding, each with its tasks."""
    span_s: float = 0.0
    """Time over which the rows of the first segment's next batch arrive."""

    @property
    def offered_rows(self) -> float:
        """The backlog when the next batch of the first segment begins, in rows."""
        return self.first.offered_rows

    def without_backlog(self, span_s: float) -> "PipelineOutlook":
        """The outlook if the next batch had no more rows than arrive in so long."""
        rows = min(self.first.offered_rows, self.first.arrival_rate * span_s)
        return dataclasses.replace(self, first=dataclasses.replace(self.first, offered_rows=rows))

    def latency_s(self, keep: float) -> float:
        """Mean latency over all segments when this share of the rows is kept."""
        return self.first.latency_s(keep) + sum(
            station.visit_ratio
            * dataclasses.replace(station, arrival_rate=keep * station.arrival_rate).latency(tasks)
            for station, tasks in self.behind
        )

    @property
    def floor_s(self) -> float:
        """Mean latency of empty batches."""
        empty = dataclasses.replace(self.first, offered_rows=0.0, arrival_rate=0.0)
        return PipelineOutlook(empty, self.behind).latency_s(0.0)


class OutlookMaker:
    """Builds the outlook of each tick; remembers which cores and tasks are still to come."""

    def __init__(
        self,
        model: PipelineModel,
        watch: NextBatchWatch,
        grant_s: Callable[[float | None], float],
    ) -> None:
        self._model = model
        self._watch = watch
        self._grant_s = grant_s
        """The time to grant cores, given the observed one."""
        self._wished: tuple[int | None, Mapping[str, int]] = (None, {})
        """Cores and tasks of the last decision, whether it was acted on or not."""
        self._asked = 0
        self._due_s = 0.0

    def observe(self, measurement: Measurement) -> None:
        """Note when cores that have been asked for are due."""
        if measurement.cores_asked > self._asked:
            granted_s = self._grant_s(measurement.grant_s)
            self._due_s = measurement.at_s - measurement.interval_s + granted_s
        self._asked = measurement.cores_asked

    def outlook(self, measurement: Measurement, decision: Decision) -> PipelineOutlook | None:
        """The outlook with the cores and tasks of the next batch; None while costs are unknown."""
        found = self._outlook(measurement, decision)
        self._wished = (decision.cores, decision.tasks)
        return found

    def _outlook(self, measurement: Measurement, decision: Decision) -> PipelineOutlook | None:
        if not measurement.segments:
            return None
        segment = measurement.segments[0]
        model = self._model.segment(segment.name)
        cost = model.cost
        if cost is None:
            return None
        shed_row_s = self._model.shed_row_s

        def lasts_s(kept: float, shed: float) -> float:
            now = max(segment.tasks, 1)
            return cost.duration_s(kept, now, model.imbalance.now) + shed * shed_row_s / now

        coming = self._watch.next_batch(measurement, lasts_s)
        if coming is None:
            return None
        tasks = self._tasks(measurement, decision)
        cores = self._cores_by(measurement, decision, coming.begins_s)
        waves = max(sum(tasks.values()) / cores, 1.0)
        wide = tasks[segment.name]
        horizon_s = measurement.at_s + measurement.step_s - coming.begins_s
        first = BatchOutlook(
            offered_rows=coming.offered_rows,
            arrival_rate=measurement.arrival_rate,
            row_s=cost.row_s(wide, model.imbalance.on(wide)) * waves,
            gather_s=shed_row_s / wide * waves,
            fixed_s=cost.overhead_s(wide),
            trigger_s=segment.trigger_s,
            horizon_s=max(horizon_s, 0.0),
        )
        behind = []
        for other in measurement.segments[1:]:
            station = self._model.station_unshed(measurement, other, tasks[other.name])
            if station is None:
                return None
            behind.append((station, tasks[other.name]))
        return PipelineOutlook(first, tuple(behind), coming.span_s)

    def _cores_by(self, measurement: Measurement, decision: Decision, begins_s: float) -> int:
        """Cores that will be up when the next batch begins.

        Cores that are asked for now count if they will be granted by then. Cores that were asked
        for earlier count if they are due by then and not overdue. If the same decision was made
        before and held back, its cores do not count.
        """
        granted, asked = measurement.cores_granted, measurement.cores_asked
        at_s = measurement.at_s
        new = decision.cores is not None and decision.cores > granted
        if new and decision.cores is not None and decision.cores != self._wished[0]:
            due_s = at_s + self._grant_s(measurement.grant_s)
            return max(decision.cores if due_s <= begins_s else granted, 1)
        coming = asked > granted and at_s <= self._due_s <= begins_s
        return max(asked if coming else granted, 1)

    def _tasks(self, measurement: Measurement, decision: Decision) -> dict[str, int]:
        """Tasks of each segment's next batch; a decision that was held back before does not count.

        A segment keeps its tasks if none of its operators changes. An operator that runs on the
        partitions of its input may have more tasks than its segment; these count neither here nor
        in the model.
        """
        tasks = {segment.name: max(segment.tasks, 1) for segment in measurement.segments}
        wished = {} if decision.tasks == self._wished[1] else decision.tasks
        for name in tasks:
            inside = [op for op in measurement.operators if op.segment == name]
            if any(operator.name in wished for operator in inside):
                tasks[name] = max(
                    wished.get(op.name, op.tasks)
                    for op in inside
                    if op.name in wished or op.tasks <= tasks[name]
                )
        return tasks
