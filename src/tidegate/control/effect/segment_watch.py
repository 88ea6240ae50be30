"""What the effect of cores is judged by in one segment: its last batches, and a series if any."""

import copy
import statistics
from collections import deque

import numpy as np

from tidegate.control.effect.granted_cores import GrantedCores
from tidegate.control.effect.judged_batch import JudgedBatch, judged_batches
from tidegate.control.effect.likely_cause import Evidence, HottestShard, LikelyCause, likely_cause
from tidegate.control.effect.series import COMPARED, Before, ScaleOutSeries
from tidegate.control.lag import Lag
from tidegate.control.learning.segment_model import SegmentModel
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.control.sources.hot_partitions import HotPartitions
from tidegate.control.sources.reading_tasks import read_inside

_LEAST_BEFORE = 2
"""A segment is known with so many batches on the same tasks."""


class SegmentWatch:
    """Sees the segment tick by tick, in time order."""

    def __init__(self) -> None:
        self.series: ScaleOutSeries | None = None
        """Scale-outs in a row that are not judged yet."""
        self._tasks: int | None = None
        """Tasks of the newest batch that had rows, and cores for its tasks."""
        self._last: deque[JudgedBatch] = deque(maxlen=COMPARED)
        """The newest batches that tell a speed, all on the same tasks."""
        self._cores = 1
        """Cores of the pipeline when they ran."""
        self._model: SegmentModel | None = None
        """What was learned of the segment until the last tick."""
        self._lag: Lag | None = None
        self._reads = False
        self._hot_partitions = HotPartitions()
        self._hot_shards: dict[str, HottestShard] = {}

    def observe(
        self,
        measurement: Measurement,
        segment: SegmentMeasurement,
        model: SegmentModel,
        cores: GrantedCores,
        *,
        late: bool,
    ) -> None:
        """Add a tick, after the model has learned from it; `late`: it missed the target."""
        self._look_around(measurement, segment)
        for batch in judged_batches(measurement, segment, self._tasks, cores.were_enough):
            self._add(batch, cores.before, late=late)
        # Only numbers are read from the copy, and these are replaced, not changed, by learning.
        self._model = copy.copy(model)
        self._model.imbalance = copy.copy(model.imbalance)

    @property
    def imbalance(self) -> float | None:
        """delta of the newest batches; None while there are few."""
        if len(self._last) < _LEAST_BEFORE:
            return None
        return statistics.median(batch.imbalance for batch in self._last)

    @property
    def partitions(self) -> tuple[int, int] | None:
        """Partitions of its sources and the option `minPartitions`; None where they do not tell."""
        lag = self._lag
        return None if lag is None else (len(lag.partitions), lag.min_partitions or 0)

    def cause(self, series: ScaleOutSeries) -> LikelyCause:
        """The likely cause why these scale-outs had no effect."""
        return likely_cause(
            Evidence(
                before=series.before,
                after=series.after,
                lag=self._lag,
                reads=self._reads,
                hot_partitions=self._hot_partitions.found(),
                hot_shards=self._hot_shards,
            )
        )

    def _add(self, batch: JudgedBatch, cores: int, *, late: bool) -> None:
        last, self._tasks = self._tasks, batch.tasks
        if self.series is None and last is not None and batch.tasks > last:
            before = self._before()
            self.series = None if before is None else ScaleOutSeries(before)
        elif last is not None and batch.tasks < last:
            self.series = None  # fewer were enough, so what follows is not in a row with it
        if self.series is not None:
            self.series.add(batch, late=late)
        if self._last and batch.tasks != self._last[-1].tasks:
            self._last.clear()
        if batch.fit:
            self._last.append(batch)
            self._cores = cores

    def _before(self) -> Before | None:
        """The segment as it was until now; None while too little is known of it."""
        model = self._model
        if len(self._last) < _LEAST_BEFORE or model is None or model.cost is None:
            return None
        return Before(
            batches=tuple(self._last),
            cores=self._cores,
            cost=model.cost,
            imbalance_on=model.imbalance.on,
        )

    def _look_around(self, measurement: Measurement, segment: SegmentMeasurement) -> None:
        """Remember what a cause is told by."""
        if segment.lag is not None:
            self._hot_partitions.observe(segment.lag.partitions, measurement.at_s)
            if segment.batches:
                self._lag = segment.lag
        self._reads = read_inside(measurement, segment.name) is not None
        for one in measurement.operators:
            rows = int(np.sum(one.shard_rows))
            if one.segment == segment.name and rows > 0:
                shard = int(np.argmax(one.shard_rows))
                self._hot_shards[one.name] = HottestShard(shard, one.shard_rows[shard] / rows)
