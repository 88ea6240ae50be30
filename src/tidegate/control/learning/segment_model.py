"""The model of one segment: its batch cost, imbalance and noise, all learned online."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.control.batch_parts import BESIDE, SLOWEST, STARTING
from tidegate.control.learning.outliers import NEW_TASKS, Outliers
from tidegate.control.learning.smoothing import Alpha
from tidegate.control.measurement import BatchMeasurement, Measurement, SegmentMeasurement
from tidegate.control.shards.balance import THETA
from tidegate.forecast.remembering import finite
from tidegate.models.microbatch.batch_cost import BatchCost, chance_spread
from tidegate.models.microbatch.batch_memory import BatchMemory, ToldParts
from tidegate.models.microbatch.station import MicroBatchStation

_NOISE_MEMORY = 0.95
_MOST_NOISE = 0.5
"""The largest deviation, in the logarithm, that a single batch adds to the noise."""
_STILL_HOLDS = 0.1
"""The weight that is left to what was learned of a segment whose operators have changed."""
_HALF_FORGOTTEN_S = 7 * 86_400.0
"""What an earlier run learned counts half after so long."""


class SegmentModel:
    """Learns from the batches of a segment, and describes it as a micro-batch station."""

    def __init__(self) -> None:
        self._memory = BatchMemory()
        self._outliers = Outliers()
        self._work = Alpha(0.9)
        self._work_s: float | None = None
        self._imbalance = Alpha(0.6)
        self.imbalance = 1.0
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
        self._slowly = Alpha(0.85)
        self._lasting = 1.0
        self._hot = 0.0
        self._keyed = 0.0
        self._named = ""

    def learn(self, measurement: Measurement, segment: SegmentMeasurement) -> None:
        """Learn from the batches of the tick, and fit again if there were any."""
        self._at_s = measurement.at_s
        self._notice_change(measurement, segment.name)
        self._suggest_work(measurement, segment)
        self._find_hottest(measurement, segment.name)
        learned = False
        for batch in segment.batches:
            before = self._tasks
            self.settled = self.settled + 1 if batch.tasks == self._tasks else 0
            self._tasks = batch.tasks
            delta = max(batch.imbalance, 1.0)
            expected_s = None
            if self.cost is not None:
                expected_s = self.cost.duration_s(batch.rows, batch.tasks, delta)
            self.left_out = self._outliers.reason(batch, expected_s)
            if self.left_out == NEW_TASKS and expected_s is not None and batch.tasks > before > 0:
                more_s = max(batch.duration_s - expected_s, 0.0) / (batch.tasks - before)
                self.start_up_s = self._start_up.update(more_s)
            if self.cost is None and self.left_out == NEW_TASKS:
                self.left_out = None  # a batch that ran a little long is better than no batch
            if self.left_out is not None or batch.rows <= 0:
                continue
            if expected_s is not None and expected_s > 0.0 and batch.duration_s > 0.0:
                self._learn_noise(math.log(batch.duration_s / expected_s))
            self.imbalance = max(self._imbalance.update(delta), 1.0)
            self._lasting = self._slowly.update(delta)
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
            self.cost = self._memory.fit(measurement.at_s, self._work_s)

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
        """The segment as a station at a rate of its own rows; None while its cost is unknown."""
        if self.cost is None:
            return None
        return MicroBatchStation(
            cost=self.cost,
            arrival_rate=rate,
            imbalance=self.imbalance if cores is None else self.imbalance_on(cores),
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
            "imbalance": self.imbalance,
            "lasting": self._lasting,
            "noise": self.noise,
            "start_up_s": self.start_up_s,
            "tasks": self._tasks,
            "hottest": [self._hot, self._keyed, self._named],
        }

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with what an earlier run learned, with less weight the older it is."""
        if not learned:
            return
        self._memory.recall(learned["memory"], 0.5 ** (max(age_s, 0.0) / _HALF_FORGOTTEN_S))
        ratios = [finite(ratio) for ratio in learned["outliers"].get("ratios", ())]
        self._outliers.recall({"ratios": ratios})
        self._operators = frozenset(learned["operators"])
        if not all(isinstance(one, str) for one in self._operators):
            raise ValueError("the name of an operator is not a text")
        work_s = learned["work_s"]
        if work_s is not None:
            self._work_s = self._work.update(finite(work_s))
        self.imbalance = max(self._imbalance.update(finite(learned["imbalance"])), 1.0)
        self._lasting = self._slowly.update(finite(learned["lasting"]))
        self.noise = math.sqrt(self._off_s2.update(finite(learned["noise"]) ** 2))
        self.start_up_s = self._start_up.update(finite(learned["start_up_s"]))
        self._tasks = int(learned["tasks"])
        hot, keyed, named = learned["hottest"]
        self._hot, self._keyed, self._named = finite(hot), finite(keyed), str(named)
        # Age has been taken off its weight, so from here on it is as old as this moment.
        self._at_s = finite(learned["at_s"]) + age_s
        self.cost = self._memory.fit(self._at_s, self._work_s)

    def _notice_change(self, measurement: Measurement, name: str) -> None:
        """Trust what was recalled less if the segment's operators have changed since.

        What a batch costs besides its rows is still a fair guess; where the rows are is not.
        """
        present = frozenset(op.name for op in measurement.operators if op.segment == name)
        if self._operators and present and present != self._operators:
            self._memory.forget(_STILL_HOLDS)
            self._hot, self._keyed, self._named = 0.0, 0.0, ""
        self._operators = present or self._operators

    def _learn_noise(self, off: float) -> None:
        """Learn the deviation of durations from the fit; a lasting difference is no noise."""
        off = min(max(off, -_MOST_NOISE), _MOST_NOISE)
        beyond = off - self._off.update(off)
        self.noise = math.sqrt(self._off_s2.update(beyond * beyond))

    def imbalances(self, most: int) -> npt.NDArray[np.float64]:
        """`imbalance_on` for 1 to `most` cores."""
        cores = np.arange(1, most + 1, dtype=np.float64)
        hot = 1.0 + self._keyed * np.maximum(self._hot * cores - 1.0, 0.0)
        routed = np.where(cores == self._tasks, self._mended, self._anew)
        fewer = cores < self._tasks
        if fewer.any():
            routed[fewer] = 1.0 + (self._mended - 1.0) * self._fewer_tasks(cores[fewer])
        return np.maximum(routed, hot)

    def imbalance_on(self, cores: int) -> float:
        """The imbalance delta to expect on so many cores once the shards are balanced.

        Rebalancing is free and comes first, so no cores are added for a new imbalance unless it
        lasts. A route cannot split the hottest shard: with a share p of the rows and a task of its
        own out of k, it takes p k times the mean, so the imbalance grows with the tasks.
        """
        if cores < self._tasks:
            routed = 1.0 + (self._mended - 1.0) * float(self._fewer_tasks(np.array([cores]))[0])
        else:
            routed = self._mended if cores == self._tasks else self._anew
        return max(routed, 1.0 + self._keyed * max(self._hot * cores - 1.0, 0.0))

    def _fewer_tasks(self, cores: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """What is left of the imbalance (delta - 1) on fewer tasks than now.

        The fullest of k tasks has so many standard deviations more rows than the mean, each of the
        root of the rows per task. So fewer tasks are balanced better, by chance alone.
        """
        return np.asarray(chance_spread(cores) / chance_spread(self._tasks))

    @property
    def _anew(self) -> float:
        """The imbalance on more tasks than now, where new routes are balanced only to theta."""
        return max(self._mended, 1.0 + self._keyed * (THETA - 1.0))

    @property
    def _mended(self) -> float:
        """The present imbalance, or the lower one that rebalancing will soon reach."""
        if self._hot <= 0.0:
            return self.imbalance
        return min(self.imbalance, max(THETA, self._lasting))

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

    def _find_hottest(self, measurement: Measurement, name: str) -> None:
        """Find the hottest shard's share p of its operator's rows, and that operator's of the work.

        Both are those of the operator where the hottest shard matters most.
        """
        inside = [op for op in measurement.operators if op.segment == name]
        busy_s = sum(op.busy_s for op in inside)
        for operator in inside:
            rows = sum(operator.shard_rows)
            if rows > 0 and busy_s > 0.0:
                hot = max(operator.shard_rows) / rows
                keyed = operator.busy_s / busy_s
                if hot * keyed >= self._hot * self._keyed or self._named == operator.name:
                    self._hot, self._keyed, self._named = hot, keyed, operator.name


def told_parts(batch: BatchMeasurement) -> ToldParts | None:
    """What a batch tells of its duration; None if it does not tell of its tasks."""
    slowest_s = batch.parts_s.get(SLOWEST, 0.0)
    if not 0.0 < slowest_s < batch.duration_s:
        return None
    return ToldParts(slowest_s, batch.parts_s.get(BESIDE, 0.0), batch.parts_s.get(STARTING, 0.0))
