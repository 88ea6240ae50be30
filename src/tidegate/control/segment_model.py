"""What is believed of one segment: its batch cost, learned online, and its imbalance."""

import math

from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.control.outliers import Outliers
from tidegate.control.smoothing import Alpha
from tidegate.models.batch_memory import BatchMemory
from tidegate.models.microbatch import BatchCost, MicroBatchStation


class SegmentModel:
    """Batches in, a station out."""

    def __init__(self) -> None:
        self._memory = BatchMemory()
        self._outliers = Outliers()
        self._work = Alpha(0.9)
        self._work_s: float | None = None
        self._imbalance = Alpha(0.6)
        self.imbalance = 1.0
        self.cost: BatchCost | None = None
        self.left_out: str | None = None
        """Why the last batch was not learned from, if so."""
        self.settled = 0
        """Batches that ended since the tasks last changed."""
        self._tasks = 0

    def learn(self, measurement: Measurement, segment: SegmentMeasurement) -> None:
        """Take in the batches of the tick and fit again when there are any."""
        self._suggest_work(measurement, segment.name)
        learned = False
        for batch in segment.batches:
            self.settled = self.settled + 1 if batch.tasks == self._tasks else 0
            self._tasks = batch.tasks
            delta = max(batch.imbalance, 1.0)
            expected_s = None
            if self.cost is not None:
                expected_s = self.cost.duration_s(batch.rows, batch.tasks, delta)
            self.left_out = self._outliers.reason(batch, expected_s)
            if self.left_out is not None or batch.rows <= 0:
                continue
            self.imbalance = max(self._imbalance.update(delta), 1.0)
            self._memory.observe(
                rows=batch.rows,
                tasks=batch.tasks,
                duration_s=batch.duration_s,
                imbalance=delta,
                at_s=batch.ended_s,
            )
            learned = True
        if learned:
            fit = self._memory.fit(measurement.at_s, self._work_s)
            self.cost = None if fit is None else fit.cost

    def station(self, rate: float, visits: float, interval_s: float) -> MicroBatchStation | None:
        """The segment at a rate of its own rows; None before it is known."""
        if self.cost is None:
            return None
        return MicroBatchStation(
            cost=self.cost,
            arrival_rate=rate,
            imbalance=self.imbalance,
            interval_s=interval_s,
            visit_ratio=max(visits, 1e-9),
        )

    def cores_for(self, rate: float) -> int:
        """The fewest cores that complete so many rows per second."""
        if self.cost is None:
            return 1
        load = rate * self.cost.work_s * self.imbalance
        return math.floor(load) + 1 if math.isfinite(load) else 1

    def _suggest_work(self, measurement: Measurement, name: str) -> None:
        """Core seconds per row from busy time: a guess, for while batches are too alike to tell."""
        inside = [op for op in measurement.operators if op.segment == name]
        rows = max((op.rows for op in inside), default=0)
        if rows > 0:
            busy_s = sum(op.busy_s for op in inside)
            if busy_s > 0.0:
                self._work_s = self._work.update(busy_s / rows)
        elif len(measurement.segments) == 1 and measurement.cores_busy is not None:
            if measurement.processed_rate > 0.0 and measurement.cores_busy > 0.0:
                self._work_s = self._work.update(
                    measurement.cores_busy / measurement.processed_rate
                )
