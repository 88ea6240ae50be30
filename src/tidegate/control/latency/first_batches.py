"""What to do before the model knows what a batch costs on warm workers.

Only a late batch or a measured overload is a reason to act then. A first batch is often late for
another reason: Spark compiles code and Python workers start. More cores do not help there. So the
time of its tasks counts, which bounds what its rows need on warm workers, and the rows that have
arrived meanwhile: all of them are in the next batch.
"""

import dataclasses
import math

import numpy as np

from tidegate.control.bounds import Bounds
from tidegate.control.decision import Decision, hold
from tidegate.control.latency.catch_up import cores_to_catch_up
from tidegate.control.latency.load_ahead import LoadAhead
from tidegate.control.learning.cold_batches import ColdBatch, cold_batch
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.control.operator_tasks import evenly
from tidegate.control.target import Target
from tidegate.models.microbatch.batch_cost import SOJOURN_BATCHES, BatchCost
from tidegate.units import format_duration

_MOST_FIXED = 0.3
"""The share of the target that a warm batch is taken to need besides its rows, at most. What a cold
one needed says little about that, and cores do not lower it."""
_FIRST_CALL_S = 0.25
"""The time of tasks that the first calls of their functions are taken to cost. A first batch may
have a handful of rows, and this is no cost of theirs."""
_ASSUMED_ROW_S = 1e-3
"""Core seconds per row that are assumed, at least, until rows have shown that they need less: a
first batch may have none at all, and many may have arrived meanwhile."""


class FirstBatches:
    """Decides until warm batches have ended; remembers what the cold ones told of their rows."""

    def __init__(self, target: Target, catch_up_s: float) -> None:
        self._target = target
        self._catch_up_s = catch_up_s
        self._colds: dict[str, ColdBatch] = {}
        """The last cold batch of each segment that had one."""

    def observe(self, measurement: Measurement) -> None:
        """Remember cold batches. Call this every tick."""
        for segment in measurement.segments:
            for batch in segment.batches:
                cold = cold_batch(batch)
                if cold is not None:
                    self._colds[segment.name] = cold

    def decide(self, measurement: Measurement, ahead: LoadAhead, allowed: Bounds) -> Decision:
        """Scale out for rows that the present cores cannot process in time; else hold and learn."""
        late = [
            (segment, batch)
            for segment in measurement.segments
            for batch in segment.batches
            if batch.duration_s > self._target.latency_s
        ]
        if not late:
            return self._saturated(measurement, ahead, allowed)
        longest_s = max(batch.duration_s for _, batch in late)
        by_overrun = self._by_overrun(measurement, allowed, longest_s)
        if all(cold_batch(batch) is not None for _, batch in late):
            return self._after_cold(measurement, ahead, allowed, by_overrun)
        if by_overrun <= measurement.cores_asked:
            return self._saturated(measurement, ahead, allowed)
        return Decision(
            reason=f"a first batch took {format_duration(longest_s)}, target {self._target}:"
            f" {by_overrun} cores for the rows that arrived meanwhile",
            cores=by_overrun,
            tasks=evenly(measurement, by_overrun),
        )

    def bounded(
        self, decision: Decision, measurement: Measurement, ahead: LoadAhead, allowed: Bounds
    ) -> Decision:
        """The decision of a model that was learned from cold batches alone.

        Such a model takes start-up for work, so it asks for no more cores than the tasks of the
        cold batches themselves call for.
        """
        asked = measurement.cores_asked
        colds = [self._colds[one.name] for one in measurement.segments if one.name in self._colds]
        if decision.cores is None or decision.cores <= asked or not colds:
            return decision
        needed = self._cores(measurement, ahead, allowed)
        cold = max(colds, key=lambda one: one.took_s)
        if needed <= asked:
            return dataclasses.replace(
                hold(f"{cold.words}; {_counted(asked)} kept"), notes=decision.notes
            )
        if needed >= decision.cores:
            return decision
        return dataclasses.replace(
            decision,
            reason=f"{decision.reason}; {cold.words}, so {needed} cores are enough",
            cores=needed,
            tasks=evenly(measurement, needed),
            expected_latency_s=None,
        )

    def _by_overrun(self, measurement: Measurement, allowed: Bounds, longest_s: float) -> int:
        """More cores by the factor by which a batch overran the target, as if all was for rows."""
        factor = longest_s / self._target.latency_s
        return allowed.clamp(math.ceil(measurement.cores_asked * factor))

    def _after_cold(
        self, measurement: Measurement, ahead: LoadAhead, allowed: Bounds, by_overrun: int
    ) -> Decision:
        """After a late cold batch: more cores if its rows, or those that wait now, need them."""
        asked = measurement.cores_asked
        colds = [self._colds[one.name] for one in measurement.segments if one.name in self._colds]
        cold = max(colds, key=lambda one: one.took_s)
        cores = min(self._cores(measurement, ahead, allowed), max(by_overrun, asked))
        if cores <= asked:
            return hold(f"{cold.words}; {_counted(asked)} kept")
        backlog = measurement.backlog_rows
        waiting = f", and {backlog:,.0f} rows wait now" if backlog >= 1.0 else ""
        return Decision(
            reason=f"{cold.words}{waiting}, target {self._target}: {cores} cores",
            cores=cores,
            tasks=evenly(measurement, cores),
        )

    def _cores(self, measurement: Measurement, ahead: LoadAhead, allowed: Bounds) -> int:
        """The cores asked for, and those that segments need beyond their own by a cold batch."""
        asked, outside = measurement.cores_asked, measurement.arrival_rate
        factor = ahead.planned / outside if outside > 0.0 else 1.0
        more = sum(
            max(self._needed(one, cold, one.arrival_rate * factor, allowed.most) - one.tasks, 0)
            for one in measurement.segments
            if (cold := self._colds.get(one.name)) is not None
        )
        unused = max(asked - sum(one.tasks for one in measurement.segments), 0)
        return allowed.clamp(asked + max(more - unused, 0))

    def _needed(self, segment: SegmentMeasurement, cold: ColdBatch, rate: float, most: int) -> int:
        """The cores that a segment needs for its load and its backlog, by its cold batch."""
        rows_s = max(cold.rows_s - _FIRST_CALL_S, 0.0)
        mean_s = self._target.mean_s
        steady_s = mean_s / SOJOURN_BATCHES
        fixed_s = min(cold.took_s - cold.rows_s, _MOST_FIXED * mean_s)
        if rate <= 0.0:
            # Nothing is known of the load but this batch. The next one is taken to be like it.
            return math.ceil(cold.tasks * rows_s / (steady_s - fixed_s))
        work_s = _ASSUMED_ROW_S
        if cold.rows > 0:
            work_s = max(rows_s * cold.tasks / cold.rows, min(work_s, cold.work_s))
        cost = BatchCost(fixed_s=fixed_s, work_s=work_s)
        limit = None if segment.lag is None else segment.lag.limit_rows
        waiting = cores_to_catch_up(
            cost,
            rate=rate,
            imbalance=np.ones(most),
            backlog_rows=segment.backlog_rows,
            steady_s=steady_s,
            within_s=self._catch_up_s,
            limit_rows=None if limit is None else max(float(limit), 1.0),
        )
        return max(cost.cores_for(rate, mean_s), waiting)

    def _saturated(self, measurement: Measurement, ahead: LoadAhead, allowed: Bounds) -> Decision:
        """Scale out if rows wait all the time and the latency is above the target."""
        latency = measurement.latency
        above = latency is not None and self._target.measured_s(latency) > self._target.latency_s
        if not (measurement.saturated and above and measurement.processed_rate > 0.0):
            return hold("learning what a batch costs")
        per_core = measurement.processed_rate / max(measurement.cores_granted, 1)
        if len(measurement.segments) == 1 and measurement.segments[0].name in self._colds:
            # Of the time of a cold batch, only that of its tasks was for its rows.
            cold = self._colds[measurement.segments[0].name]
            per_core = max(per_core, 1.0 / cold.work_s if cold.work_s > 0.0 else 0.0)
        wanted_rate = ahead.planned + measurement.backlog_rows / self._catch_up_s
        cores = allowed.clamp(math.ceil(wanted_rate / per_core))
        if cores <= measurement.cores_asked:
            return hold("learning what a batch costs; the cores asked for keep up")
        return Decision(
            reason=f"saturated at {per_core:,.0f} rows/s per core: {wanted_rate:,.0f} rows/s need"
            f" {cores} cores",
            cores=cores,
            tasks=evenly(measurement, cores),
        )


def _counted(cores: int) -> str:
    return "1 core is" if cores == 1 else f"{cores} cores are"
