"""Shedding around any policy: only what rebalancing, tasks and cores cannot cover in time.

The inner policy decides first, on the load as it is offered, so it asks for the cores that would
carry all of it. What it decides holds from the next micro-batch on, except cores, which take their
time. So the question is: with the tasks and cores that the next batch will really have, balanced as
they will be, does keeping all its rows miss the target? Only then is something shed, and just as
much; when the cores have come the answer is no, and nothing is.
"""

import dataclasses
from collections.abc import Mapping

from tidegate.control.capacity.cycle import Bounds
from tidegate.control.decision import Decision
from tidegate.control.latency.policy import STEADY_RATIO, LatencyOptions
from tidegate.control.learning.segment_model import SegmentModel
from tidegate.control.learning.shed_row_cost import Gathering
from tidegate.control.learning.smoothing import Alpha, Smoothing
from tidegate.control.measurement import Latency, Measurement, SegmentMeasurement
from tidegate.control.policy import Policy
from tidegate.control.shedding.catalogue import DEFAULT_SHEDDER, shedder
from tidegate.control.shedding.classes import Worth, check_classes, keep_by_class
from tidegate.control.shedding.next_batch import RoundWatch, keep_over
from tidegate.control.shedding.shedder import Look, Shedder, most_keep
from tidegate.control.wrapper import Around
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.models.shedding.outlook import RoundOutlook
from tidegate.units import format_duration

_WORTH_SAYING = 0.01
"""A keep that differs by less than this share from the one in force is left as it is."""
_REACHABLE = 1.05
"""A target must be this far above the floor to be held by shedding."""
_BEST = 2.0
"""Where it is not, latencies up to this many floors are allowed before anything is shed."""


def shedding(
    inner: Policy,
    *,
    target_s: float,
    bounds: Bounds,
    by: str = DEFAULT_SHEDDER,
    options: LatencyOptions | None = None,
    classes: Mapping[str, Worth] | None = None,
) -> "SheddingPolicy":
    """The policy with shedding around it: what `start(..., shed=True)` makes of its policy.

    `by` names the shedder; `options` are the latency policy's, for its percentile and the time that
    granting cores is assumed to take; `classes` say which rows go first.
    """
    options = options or LatencyOptions()
    mean_s = target_s / STEADY_RATIO[options.percentile]
    return SheddingPolicy(
        inner,
        shedder(by, mean_s),
        target_s=target_s,
        bounds=bounds,
        options=options,
        classes=classes,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class PipelineOutlook:
    """The next batches of the first segment, and the segments behind it in their steady state."""

    first: RoundOutlook
    behind: tuple[tuple[MicroBatchStation, int], ...] = ()
    """Stations at the rate they would have with nothing shed, and their tasks."""

    @property
    def offered_rows(self) -> float:
        """Rows that the next batch of the first segment finds."""
        return self.first.offered_rows

    def latency_s(self, keep: float) -> float:
        """Over all segments."""
        return self.first.latency_s(keep) + sum(
            station.visit_ratio
            * dataclasses.replace(station, arrival_rate=keep * station.arrival_rate).latency(tasks)
            for station, tasks in self.behind
        )


class SheddingPolicy(Around):
    """See the module's text. Called once a tick, deterministic."""

    def __init__(
        self,
        inner: Policy,
        shedder: Shedder,
        *,
        target_s: float,
        bounds: Bounds,
        options: LatencyOptions,
        classes: Mapping[str, Worth] | None = None,
    ) -> None:
        super().__init__(inner)
        self._shedder = shedder
        self._target_s = target_s
        self._bounds = bounds
        self._options = options
        self._classes = dict(classes or {})
        check_classes(self._classes, ())
        self._offered: dict[str, float] = {}
        self._shares = Smoothing(lambda: Alpha(0.5))
        self._models: dict[str, SegmentModel] = {}
        self._gathering = Gathering()
        self._watch = RoundWatch()
        self._wished: tuple[int | None, Mapping[str, int]] = (None, {})
        self._asked = 0
        self._span_s: float | None = None
        """What the keep in force is meant for."""
        self._share = 1.0
        """Of the rows that the newest batches were offered, those that they kept."""
        self._due_s = 0.0
        self._beliefs: dict[str, float] = {}

    @property
    def beliefs(self) -> dict[str, float]:
        """The inner policy's, and what shedding was decided by."""
        return {**super().beliefs, **self._beliefs}

    def decide(self, measurement: Measurement) -> Decision:
        """The inner decision, and what to keep until it has its effect."""
        sheds = measurement.keep < 1.0
        # A latency that shedding holds down says nothing about the load that the inner one plans.
        unshed = dataclasses.replace(measurement, latency=None) if sheds else measurement
        decision = self._inner.decide(unshed)
        self._learn(measurement)
        outlook, span_s = self._outlook(measurement, decision) or (None, None)
        self._wished = (decision.cores, decision.tasks)
        if outlook is None:
            return decision
        floor_s = self._floor_s(outlook)
        if floor_s * _REACHABLE > self._target_s:
            keep = most_keep(outlook.latency_s, _BEST * floor_s)
            decision = _noted(decision, self._floor_note(floor_s))
        else:
            keep = self._shedder.keep(self._look(measurement, outlook))
        self._beliefs = {
            "keep": keep,
            "offered_rows": outlook.offered_rows,
            "unshed_latency_s": min(outlook.latency_s(1.0), 1e9),
            "gather_s": self._gathering.row_s,
        }
        return self._with_keep(decision, measurement, keep, span_s)

    # ------------------------------------------------------------------ what is known

    def _learn(self, measurement: Measurement) -> None:
        for number, segment in enumerate(measurement.segments):
            model = self._models.setdefault(segment.name, SegmentModel())
            learned = segment
            if number == 0:
                for batch in segment.batches:
                    self._gathering.learn(batch)
                    if batch.rows > 0:
                        self._share = batch.rows / (batch.rows + batch.shed_rows)
                learned = self._gathering.without(segment)
            model.learn(measurement, learned)
        self._watch.observe(measurement, self._span_s)
        for source in measurement.sources:
            for part in source.classes:
                self._offered[part.name] = self._shares.update(part.name, float(part.offered))
        if measurement.cores_asked > self._asked:
            self._due_s = measurement.at_s - measurement.interval_s + self._grant_s(measurement)
        self._asked = measurement.cores_asked

    def _grant_s(self, measurement: Measurement) -> float:
        observed_s = measurement.grant_s
        return self._options.assumed_grant_s if observed_s is None else observed_s

    def _cores_by(self, measurement: Measurement, decision: Decision, begins_s: float) -> int:
        """Cores that will be up when the next batch begins.

        Those asked for now count if granting them takes no longer; those asked for before count if
        they are due by then and not overdue. A wish that was not followed, because something held
        it back, is not believed a second time.
        """
        granted, asked = measurement.cores_granted, measurement.cores_asked
        at_s = measurement.at_s
        new = decision.cores is not None and decision.cores > granted
        if new and decision.cores is not None and decision.cores != self._wished[0]:
            due_s = at_s + self._grant_s(measurement)
            return max(decision.cores if due_s <= begins_s else granted, 1)
        coming = asked > granted and at_s <= self._due_s <= begins_s
        return max(asked if coming else granted, 1)

    def _tasks(self, measurement: Measurement, decision: Decision) -> dict[str, int]:
        """Tasks of each segment's next batch; a wish that was not followed is not believed.

        Where none of a segment's operators is to change, they are the segment's own: the tasks of
        an operator that runs where its rows are do not count, there or in the model.
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

    def _outlook(
        self, measurement: Measurement, decision: Decision
    ) -> tuple[PipelineOutlook, float] | None:
        """The next batch with what it will have to run on, and the time over which its rows come.

        None while a segment is unknown.
        """
        if not measurement.segments:
            return None
        segment = measurement.segments[0]
        model = self._models[segment.name]
        cost = model.cost
        if cost is None:
            return None
        gather_s = self._gathering.row_s

        def lasts_s(kept: float, shed: float) -> float:
            now = max(segment.tasks, 1)
            return cost.duration_s(kept, now, model.imbalance) + shed * gather_s / now

        coming = self._watch.next_round(measurement, lasts_s)
        if coming is None:
            return None
        tasks = self._tasks(measurement, decision)
        cores = self._cores_by(measurement, decision, coming.begins_s)
        waves = max(sum(tasks.values()) / cores, 1.0)
        wide = tasks[segment.name]
        horizon_s = measurement.at_s + measurement.step_s - coming.begins_s
        first = RoundOutlook(
            offered_rows=coming.offered_rows,
            arrival_rate=measurement.arrival_rate,
            row_s=cost.row_s(wide, model.imbalance_on(wide)) * waves,
            gather_s=gather_s / wide * waves,
            fixed_s=cost.overhead_s(wide),
            trigger_s=segment.trigger_s,
            horizon_s=max(horizon_s, 0.0),
        )
        behind = []
        for other in measurement.segments[1:]:
            station = self._station_behind(measurement, other, tasks[other.name])
            if station is None:
                return None
            behind.append((station, tasks[other.name]))
        return PipelineOutlook(first, tuple(behind)), coming.span_s

    def _station_behind(
        self, measurement: Measurement, segment: SegmentMeasurement, tasks: int
    ) -> MicroBatchStation | None:
        """A later segment as it would be if nothing were shed before it."""
        unshed = segment.arrival_rate / max(self._share, 1e-6)
        visits = unshed / measurement.arrival_rate if measurement.arrival_rate > 0.0 else 1.0
        return self._models[segment.name].station(unshed, visits, segment.trigger_s, cores=tasks)

    def _look(self, measurement: Measurement, outlook: PipelineOutlook) -> Look:
        """With latency, unless it is of another keep than the one that was decided (a dry run)."""
        latency = measurement.latency
        decided = self._beliefs.get("keep", 1.0)
        ours = measurement.keep < 1.0 or decided >= 1.0
        news = bool(measurement.segments[-1].batches)
        begun_s = self._watch.begun_s
        return Look(
            at_s=measurement.at_s,
            outlook=outlook,
            latency_s=self._of_results(measurement, latency) if ours and news else None,
            delay_s=0.0 if begun_s is None else max(measurement.at_s - begun_s, 0.0),
            waits_since_s=self._watch.waits_since_s,
        )

    def _of_results(self, measurement: Measurement, latency: Latency | None) -> float | None:
        """Of the newest batches alone where that is known: a window looks back to other keeps."""
        told = [
            (batch.rows, batch.latency_s)
            for batch in measurement.segments[-1].batches
            if batch.latency_s is not None and batch.rows > 0
        ]
        if told and self._options.percentile is None:
            return sum(rows * mean_s for rows, mean_s in told) / sum(rows for rows, _ in told)
        return None if latency is None else self._as_mean_s(latency)

    def _as_mean_s(self, latency: Latency) -> float:
        """What the target is for, as the mean that goes with it."""
        percentile = self._options.percentile
        if percentile is None:
            return latency.mean_s
        measured = {50: latency.p50_s, 95: latency.p95_s, 99: latency.p99_s}[percentile]
        return measured / STEADY_RATIO[percentile]

    def _floor_s(self, outlook: PipelineOutlook) -> float:
        """Of batches with no rows in them."""
        empty = dataclasses.replace(outlook.first, offered_rows=0.0, arrival_rate=0.0)
        idle = PipelineOutlook(empty, outlook.behind)
        return idle.latency_s(0.0) * STEADY_RATIO[self._options.percentile]

    # ------------------------------------------------------------------ what is said

    def _with_keep(
        self, decision: Decision, measurement: Measurement, keep: float, span_s: float | None
    ) -> Decision:
        before = measurement.keep
        # Compared by the rows that they stand for.
        meant = before if self._span_s is None else keep_over(before, self._span_s, span_s or 0.0)
        same = abs(keep - meant) <= _WORTH_SAYING * meant
        if (same and (keep < 1.0 or before >= 1.0)) or (keep >= 1.0 and before >= 1.0):
            if before < 1.0:
                return _reasoned(decision, self._why(decision, measurement, keep))
            return decision
        by_class: dict[str, float] = {}
        if self._classes and self._offered:
            by_class = keep_by_class(keep, self._offered, self._classes)
            kept = sum(self._offered[name] * share for name, share in by_class.items())
            if kept > (keep + _WORTH_SAYING) * sum(self._offered.values()):
                decision = _noted(
                    decision,
                    f"the promised floors keep {kept / sum(self._offered.values()):.0%}, more than"
                    f" the {keep:.0%} that the target allows; the target is missed",
                )
        why = self._why(decision, measurement, keep)
        decision = _reasoned(decision, why)
        self._span_s = None if keep >= 1.0 else span_s
        return dataclasses.replace(
            decision, keep=keep, keep_span_s=self._span_s, keep_by_class=by_class
        )

    def _why(self, decision: Decision, measurement: Measurement, keep: float) -> str:
        bounds = self._bounds.within(measurement.cores_allowed)
        granted, most = measurement.cores_granted, bounds.most
        rate = measurement.arrival_rate
        if keep >= 1.0:
            return f"keep all again: {granted} cores carry {rate:,.0f} rows/s"
        asked = measurement.cores_asked if decision.cores is None else decision.cores
        until = f" until {asked - granted} more cores have come" if asked > granted else ""
        return (
            f"keep {keep:.0%}{until}: {granted} of {most} cores carry"
            f" {keep * rate:,.0f} of {rate:,.0f} rows/s".replace("%", " %")
        )

    def _floor_note(self, floor_s: float) -> str:
        return (
            f"the target of {format_duration(self._target_s)} is at or below the floor of"
            f" {format_duration(floor_s, round_up=True)} that batches with no rows have; shedding"
            " cannot reach it, and only keeps the batches from growing"
        )


def _reasoned(decision: Decision, why: str) -> Decision:
    return dataclasses.replace(decision, reason=f"{decision.reason}; {why}")


def _noted(decision: Decision, note: str) -> Decision:
    return dataclasses.replace(decision, notes=(*decision.notes, note))
