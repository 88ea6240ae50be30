"""The model of one segment: its batch cost, imbalance and noise, all learned online."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from tidegate.control.batch_parts import BESIDE, SLOWEST, STARTING
from tidegate.control.learning.outliers import COLD, NEW_EXECUTORS, NEW_TASKS, Outliers
from tidegate.control.learning.row_work import RowWork
from tidegate.control.learning.segment_imbalance import SegmentImbalance
from tidegate.control.learning.smoothing import Alpha
from tidegate.control.measurement import BatchMeasurement, Measurement, SegmentMeasurement
from tidegate.forecast.remembering import finite
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.batch_memory import BatchMemory, ToldParts
from tidegate.models.microbatch.imbalance import steady_rows
from tidegate.models.microbatch.station import MicroBatchStation

_NOISE_MEMORY = 0.95
_MOST_NOISE = 0.5
"""The largest deviation, in the logarithm, that a single batch adds to the noise."""
_STILL_HOLDS = 0.1
"""The weight that is left to what was learned of a segment whose operators have changed."""
_LONGER = 2.0
"""A batch that takes so many times as long as its rows explain is held up by something else."""
_HALF_FORGOTTEN_S = 7 * 86_400.0
"""What an earlier run learned counts half after so long."""


class SegmentModel:
    """Learns from the batches of a segment, and describes it as a micro-batch station."""

    def __init__(self) -> None:
        self._memory = BatchMemory()
        self._outliers = Outliers()
        self._work = Alpha(0.9)
        self._work_s: float | None = None
        self._row_work = RowWork()
        self._rowless_s = 0.0
        """Core seconds that its tasks take in a batch for no row."""
        self._only_cold = True
        """Whether nothing was learned yet, or from cold batches alone."""
        self.imbalance = SegmentImbalance()
        self.cost: BatchCost | None = None
        self.left_out: str | None = None
        """Why the last batch was left out of learning; None if it was not."""
        self.settled = 0
        """Batches that ended since the tasks last changed."""
        self.start_up_s = 0.0
        """What one more task costs in the first batch that has it: its Python worker starts."""
        self._start_up = Alpha(0.7)
        self._off = Alpha(0.9)
        self._off_s2 = Alpha(_NOISE_MEMORY)
        self.noise = 0.0
        """Standard deviation of a batch's duration around its cost, as a share of it."""
        self._operators: frozenset[str] = frozenset()
        self._at_s = 0.0
        self._tasks = 0
        self._granted = self._granted_before = 0
        """Cores that were up before the tick in which the last batch ended, and at the last tick:
        those that come in such a tick are for the next batch."""
        self._lasted_s = 0.0
        """Duration of the last batch."""
        self._ended_s: float | None = None
        """When it ended; None before the first batch of this run."""

    def learn(self, measurement: Measurement, segment: SegmentMeasurement) -> None:
        """Learn from the batches of the tick, and fit again if there were any."""
        self._at_s = measurement.at_s
        self._notice_change(measurement, segment.name)
        self._suggest_work(measurement, segment)
        self.imbalance.find_hottest(measurement, segment.name)
        learned = False
        for batch in segment.batches:
            before = self._tasks
            self.settled = self.settled + 1 if batch.tasks == self._tasks else 0
            self._tasks = batch.tasks
            self._lasted_s, self._ended_s = batch.duration_s, batch.ended_s
            self._granted = self._granted_before
            delta = max(batch.imbalance, 1.0)
            expected_s = None
            if self.cost is not None:
                expected_s = self.cost.duration_s(batch.rows, batch.tasks, delta)
            self.left_out = self._outliers.reason(batch, expected_s)
            if self.left_out == NEW_TASKS and expected_s is not None and batch.tasks > before > 0:
                more_s = max(batch.duration_s - expected_s, 0.0) / (batch.tasks - before)
                self.start_up_s = self._start_up.update(more_s)
            if self.left_out is None and batch.rows > 0:
                self._forget_cold()
            if self.cost is None and self.left_out in (NEW_TASKS, NEW_EXECUTORS):
                self.left_out = None  # a batch that ran a little long is better than no batch
            if self.left_out == COLD and self._only_cold:
                self.left_out = None  # it ran long, but says more than nothing
            if self.left_out is not None or batch.rows <= 0:
                continue
            if batch.busy_s is not None:
                self._row_work.observe(batch.rows, batch.busy_s, batch.rowless_s)
            if expected_s is not None and expected_s > 0.0 and batch.duration_s > 0.0:
                self._learn_noise(math.log(batch.duration_s / expected_s))
            self.imbalance.learn(delta, batch.rows, batch.tasks)
            self._memory.observe(
                rows=batch.rows,
                tasks=batch.tasks,
                duration_s=batch.duration_s,
                imbalance=delta,
                at_s=batch.ended_s,
                told=told_parts(batch),
            )
            learned = True
        if learned:
            self._work_s = self._row_work.work_s or self._work_s
            self._rowless_s = self._row_work.rowless_s or self._rowless_s
            self.cost = self._memory.fit(measurement.at_s, self._work_s, self._rowless_s)
            self.imbalance.learn_chance(self._memory.chance(measurement.at_s))
        self._granted_before = measurement.cores_granted

    @property
    def only_cold(self) -> bool:
        """Whether its cost is known from cold batches alone, and so is too high."""
        return self.cost is not None and self._only_cold

    def starts_up(self, measurement: Measurement, segment: SegmentMeasurement) -> bool:
        """Whether a batch runs that gave its tasks to new workers, and these still start.

        It has more tasks or cores than the last batch had, and takes longer than its rows would on
        as few tasks as that one had. What the rows that wait meanwhile need is known when it ends.
        """
        if self.cost is None or self._ended_s is None or segment.between:
            return False
        if segment.tasks <= self._tasks and measurement.cores_granted <= self._granted:
            return False
        rows = segment.arrival_rate * self._lasted_s
        expected_s = self.cost.duration_s(rows, max(self._tasks, 1), self.imbalance.now)
        runs_s = measurement.at_s - self._ended_s
        return runs_s > segment.trigger_s + _LONGER * expected_s

    def station(
        self,
        rate: float,
        visits: float,
        interval_s: float,
        cores: int | None = None,
        *,
        loops: bool = False,
        passes: float | None = None,
        apart: bool = False,
    ) -> MicroBatchStation | None:
        """The segment as a station at a rate of its own rows; None while its cost is unknown.

        `cores` are those to expect the imbalance on; without, the tasks of the last batch.
        """
        if self.cost is None:
            return None
        cost, imbalance = self._at_rate(self.cost, rate, cores, interval_s)
        return MicroBatchStation(
            cost=cost,
            arrival_rate=rate,
            imbalance=imbalance,
            interval_s=interval_s,
            visit_ratio=max(visits, 1e-9),
            loops=loops,
            passes=passes,
            apart=apart,
            noise=self.noise,
        )

    def learned(self) -> dict[str, Any]:
        """What was learned, as plain values; empty before the first batch."""
        if self.cost is None:
            return {}
        return {
            "memory": self._memory.learned(),
            "outliers": self._outliers.learned(),
            "operators": sorted(self._operators),
            "at_s": self._at_s,
            "work_s": self._work_s,
            "rowless_s": self._rowless_s,
            "noise": self.noise,
            "start_up_s": self.start_up_s,
            "tasks": self._tasks,
            **self.imbalance.learned(),
        }

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what an earlier run learned, with less weight the older it is."""
        if not learned:
            return
        self._only_cold = False
        self._memory.recall(learned["memory"], 0.5 ** (max(age_s, 0.0) / _HALF_FORGOTTEN_S))
        ratios = [finite(ratio) for ratio in learned["outliers"].get("ratios", ())]
        self._outliers.recall({"ratios": ratios})
        self._operators = frozenset(learned["operators"])
        if not all(isinstance(one, str) for one in self._operators):
            raise ValueError("the name of an operator is not a text")
        work_s = learned["work_s"]
        if work_s is not None:
            self._work_s = self._work.update(finite(work_s))
        self.noise = math.sqrt(self._off_s2.update(finite(learned["noise"]) ** 2))
        self.start_up_s = self._start_up.update(finite(learned["start_up_s"]))
        self._tasks = int(learned["tasks"])
        self.imbalance.recall(learned, self._tasks)
        # Age has been taken off its weight, so from here on it is as old as this moment.
        self._at_s = finite(learned["at_s"]) + age_s
        self._rowless_s = max(finite(learned.get("rowless_s", 0.0)), 0.0)
        self.cost = self._memory.fit(self._at_s, self._work_s, self._rowless_s)

    def _notice_change(self, measurement: Measurement, name: str) -> None:
        """Trust what was recalled less if the segment's operators have changed since.

        What a batch costs besides its rows is still a fair guess; where the rows are is not.
        """
        present = frozenset(op.name for op in measurement.operators if op.segment == name)
        if self._operators and present and present != self._operators:
            self._memory.forget(_STILL_HOLDS)
            self.imbalance.forget_shards()
        self._operators = present or self._operators

    def _forget_cold(self) -> None:
        """Forget batches that ran while executors still warmed up: now there is a warm one.

        They would count as costly rows, because each had the rows that came during a longer one.
        """
        if self._only_cold:
            self._memory, self._row_work = BatchMemory(), RowWork()
        self._only_cold = False

    def _learn_noise(self, off: float) -> None:
        """Learn the deviation of durations from the fit; a lasting difference is no noise."""
        off = min(max(off, -_MOST_NOISE), _MOST_NOISE)
        beyond = off - self._off.update(off)
        self.noise = math.sqrt(self._off_s2.update(beyond * beyond))

    def _at_rate(
        self, cost: BatchCost, rate: float, cores: int | None, interval_s: float
    ) -> tuple[BatchCost, float]:
        """The cost and the imbalance that hold for batches of the size that they have at a rate.

        With n rows per task, a batch takes a + w (delta n + c sqrt(n)), where c sqrt(n) is what the
        fullest task has more by chance. At the steady size this is replaced by its tangent: half of
        the part by chance counts as fixed cost, and half as imbalance. So a station stays linear in
        the rows, and is exact at that size.
        """
        tasks = max(self._tasks, 1) if cores is None else cores
        lasting, chance = self.imbalance.terms(cores)
        rows = steady_rows(cost, rate, tasks, 1.0 + lasting, chance, interval_s)
        if rows is None:
            rows = self.imbalance.rows / tasks
        if chance <= 0.0 or rows <= 0.0:
            return cost, 1.0 + lasting
        root = math.sqrt(rows)
        more_s = 0.5 * chance * cost.work_s * root
        imbalance = min(1.0 + lasting + 0.5 * chance / root, max(float(tasks), 1.0 + lasting))
        return dataclasses.replace(cost, fixed_s=cost.fixed_s + more_s), imbalance

    def _suggest_work(self, measurement: Measurement, segment: SegmentMeasurement) -> None:
        """Estimate core seconds per row from busy time, for while batches are too alike to fit.

        The estimate is per row of the segment: an operator downstream of one that multiplies rows
        sees many more.
        """
        inside = [op for op in measurement.operators if op.segment == segment.name]
        rows = sum(batch.rows for batch in segment.batches)
        busy_s = sum(op.busy_s for op in inside)
        if rows > 0 and busy_s > 0.0:
            self._work_s = self._work.update(busy_s / rows)
        elif not inside and len(measurement.segments) == 1 and measurement.processed_rate > 0.0:
            busy = measurement.cores_busy
            if busy is not None and busy > 0.0:
                self._work_s = self._work.update(busy / measurement.processed_rate)


def told_parts(batch: BatchMeasurement) -> ToldParts | None:
    """What a batch tells of its duration; None if it does not tell of its tasks."""
    slowest_s = batch.parts_s.get(SLOWEST, 0.0)
    if not 0.0 < slowest_s < batch.duration_s:
        return None
    return ToldParts(slowest_s, batch.parts_s.get(BESIDE, 0.0), batch.parts_s.get(STARTING, 0.0))
