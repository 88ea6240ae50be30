"""Adds shedding to any policy, for what rebalancing, tasks and cores cannot cover in time.

The inner policy decides first, on the load as it is offered, so it asks for the cores that would
carry all of it. Its decision takes effect with the next micro-batch, except for cores, which take
time to be granted. So the question is: with the tasks, cores and balance that the next batch will
really have, would keeping all its rows miss the target? Only then are rows shed, and no more than
needed. Once the cores are granted, the answer is no, and nothing is shed.
"""

import dataclasses
from collections.abc import Callable, Mapping

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.learning.cold_batches import StartUpLateness
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.learning.smoothing import Alpha, Smoothing
from tidegate.control.measurement import Latency, Measurement
from tidegate.control.policy import Policy
from tidegate.control.shedding.backlog_watch import BacklogWatch
from tidegate.control.shedding.classes import Worth, check_classes, keep_by_class
from tidegate.control.shedding.keep import keep_over
from tidegate.control.shedding.next_batch import NextBatchWatch
from tidegate.control.shedding.pipeline_outlook import OutlookMaker, PipelineOutlook
from tidegate.control.shedding.shedder import LEAST_KEEP, Look, Shedder, most_keep
from tidegate.control.target import Target
from tidegate.control.wrapper import Wrapper
from tidegate.models.microbatch.batch_cost import SOJOURN_BATCHES, reachable_s
from tidegate.units import counted, format_duration, format_share

_WORTH_CHANGING = 0.01
"""The keep in force is left as it is if the new one differs by less than this share."""


class SheddingPolicy(Wrapper):
    """A policy that wraps another one and sheds what it cannot cover in time.

    It is called once a tick, after the model has learned, and is deterministic.
    """

    def __init__(
        self,
        inner: Policy,
        shedder: Shedder,
        *,
        target: Target,
        model: PipelineModel,
        grant_s: Callable[[float | None], float],
        classes: Mapping[str, Worth] | None = None,
        shed_backlog: bool = False,
    ) -> None:
        super().__init__(inner)
        self._shedder = shedder
        self._target = target
        self._classes = dict(classes or {})
        check_classes(self._classes, ())
        self._offered: dict[str, float] = {}
        """Rows of each class that batches were offered per tick, smoothed."""
        self._shares = Smoothing(lambda: Alpha(0.5))
        self._model = model
        self._watch = NextBatchWatch()
        self._start_up = StartUpLateness(target.latency_s)
        self._late_by_start_up = False
        self._backlog = BacklogWatch(target.mean_s)
        self._sheds_backlog = shed_backlog
        self._outlooks = OutlookMaker(model, self._watch, grant_s)
        self._span_s: float | None = None
        """The span of arrivals that the keep in force was planned for."""
        self._beliefs: dict[str, float] = {}

    @property
    def beliefs(self) -> dict[str, float]:
        """The inner policy's beliefs, and those behind the decision to shed."""
        return {**super().beliefs, **self._beliefs}

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner decision, and the share of rows to keep until it takes effect."""
        sheds = measurement.keep < 1.0
        # The inner policy plans for the whole load; a latency that shedding keeps low misleads it.
        unshed = dataclasses.replace(measurement, latency=None) if sheds else measurement
        decision = self._inner.decide(unshed, constraints)
        self._observe(measurement)
        outlook = self._outlooks.outlook(measurement, decision)
        if outlook is None:
            return decision
        draining = self._backlog.draining and not self._sheds_backlog
        if draining:
            outlook = outlook.without_backlog(self._target.mean_s / SOJOURN_BATCHES)
        floor_s = outlook.floor_s * self._target.steady_ratio
        aim_s = reachable_s(self._target.latency_s, floor_s)
        if aim_s > self._target.latency_s:
            keep = most_keep(outlook.latency_s, aim_s)
            decision = _noted(decision, self._floor_note(floor_s))
        else:
            keep = self._shedder.keep(self._look(measurement, outlook, draining=draining))
        if self._sheds_backlog and self._backlog.behind_rows:
            keep = LEAST_KEEP  # what the next batches take is too old already
        self._beliefs = {
            "keep": keep,
            "offered_rows": outlook.offered_rows,
            "unshed_latency_s": min(outlook.latency_s(1.0), 1e9),
            "gather_s": self._model.shed_row_s,
        }
        whole = draining or self._backlog.behind_rows > 0
        span_s = None if whole else outlook.span_s
        return self._with_keep(decision, measurement, constraints, keep, span_s)

    def _observe(self, measurement: Measurement) -> None:
        self._watch.observe(measurement, self._span_s)
        self._late_by_start_up = self._start_up.notice(measurement) is not None
        self._backlog.observe(measurement)
        for source in measurement.sources:
            for part in source.classes:
                self._offered[part.name] = self._shares.update(part.name, float(part.offered))
        self._outlooks.observe(measurement)

    def _look(self, measurement: Measurement, outlook: PipelineOutlook, *, draining: bool) -> Look:
        """What the shedder gets to see.

        It sees no latency if the keep that it decided is not in force, as in a dry run, nor while a
        backlog is drained: the rows of a backlog are late whatever is shed. So are those that
        waited for a batch in which workers were started.
        """
        latency = measurement.latency
        decided = self._beliefs.get("keep", 1.0)
        ours = (measurement.keep < 1.0 or decided >= 1.0) and not draining
        ours = ours and not self._late_by_start_up
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
        """The mean latency of the newest batches alone, or of the measured window where unknown.

        The newest batches are preferred because a window also covers batches with another keep.
        """
        told = [
            (batch.rows, batch.latency_s)
            for batch in measurement.segments[-1].batches
            if batch.latency_s is not None and batch.rows > 0
        ]
        if told and self._target.percentile is None:
            return sum(rows * mean_s for rows, mean_s in told) / sum(rows for rows, _ in told)
        return None if latency is None else self._target.as_mean_s(latency)

    def _with_keep(
        self,
        decision: Decision,
        measurement: Measurement,
        constraints: Constraints,
        keep: float,
        span_s: float | None,
    ) -> Decision:
        before = measurement.keep
        why = self._why(decision, measurement, constraints, keep)
        # Keeps that were planned for different spans are compared by the rows that they mean.
        meant = before
        if self._span_s is not None and span_s is not None:
            meant = keep_over(before, self._span_s, span_s)
        same = abs(keep - meant) <= _WORTH_CHANGING * meant
        if (same and (keep < 1.0 or before >= 1.0)) or (keep >= 1.0 and before >= 1.0):
            return _reasoned(decision, why) if before < 1.0 else decision
        by_class: dict[str, float] = {}
        if self._classes and self._offered:
            by_class = keep_by_class(keep, self._offered, self._classes)
            kept = sum(self._offered[name] * share for name, share in by_class.items())
            if kept > (keep + _WORTH_CHANGING) * sum(self._offered.values()):
                decision = _noted(
                    decision,
                    "what the classes were promised (floors) keeps"
                    f" {format_share(kept / sum(self._offered.values()))} of the rows, more than"
                    f" the {format_share(keep)} that the target allows; the target is missed",
                )
        decision = _reasoned(decision, why)
        self._span_s = None if keep >= 1.0 else span_s
        return dataclasses.replace(
            decision, keep=keep, keep_span_s=self._span_s, keep_by_class=by_class
        )

    def _why(
        self, decision: Decision, measurement: Measurement, constraints: Constraints, keep: float
    ) -> str:
        granted, most = measurement.cores_granted, constraints.allowed.most
        rate = measurement.arrival_rate
        if keep >= 1.0:
            return f"keep all rows again: {counted(granted, 'core')} can process {rate:,.0f} rows/s"
        asked = measurement.cores_asked if decision.cores is None else decision.cores
        more = asked - granted
        until = f" until {counted(more, 'more core')} can be used" if more > 0 else ""
        return (
            f"keep {format_share(keep)} of the rows{until}: {granted} of {most} cores can process"
            f" {keep * rate:,.0f} of {rate:,.0f} rows/s"
        )

    def _floor_note(self, floor_s: float) -> str:
        return (
            f"the target of {self._target} is at or below the floor of"
            f" {format_duration(floor_s, round_up=True)}, the latency of empty batches; shedding"
            " cannot reach it, and only keeps the batches from growing"
        )


def _reasoned(decision: Decision, why: str) -> Decision:
    return dataclasses.replace(decision, reason=f"{decision.reason}; {why}")


def _noted(decision: Decision, note: str) -> Decision:
    return dataclasses.replace(decision, notes=(*decision.notes, note))
