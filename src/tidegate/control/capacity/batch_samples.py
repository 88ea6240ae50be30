"""What micro-batches show of a pipeline's capacity: the throughput on its cores within the target.

MST takes its samples from saturated intervals (III-B). A micro-batch is saturated when it takes as
long as a batch that is just on target, or longer: T / 1.5, or T - P/2 with a trigger interval P
that is longer than the batch. Then the load is all that the cores can process within the target, or
more. Its rows over its duration is the sample, reduced to what a batch that is just on target would
process (`CapacitySample.within`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import BatchMeasurement, Measurement, SegmentMeasurement
from tidegate.models.capacity.measured import CapacitySample


@dataclass(frozen=True, slots=True)
class ShownCapacity:
    """The capacity of the pipeline, as one micro-batch shows it."""

    cores: int
    """Those of the whole pipeline."""
    rows_per_s: float
    """Rows from outside within the target."""
    saturated: bool


class BatchSamples:
    """Reads capacity samples from measurements."""

    def __init__(self, mean_s: float, model: PipelineModel) -> None:
        self.mean_s = mean_s
        """The mean latency of a pipeline that is just on target."""
        self._model = model

    def shown(self, measurement: Measurement) -> tuple[ShownCapacity, ...]:
        """What the batches of the segment that limits the pipeline show; empty without any.

        A pipeline of several segments processes what the slowest of them does. Those that follow
        each other have equal parts of the target.

        Rows are counted from outside by the averaged visit ratio: a segment that still drains an
        earlier and higher load has far more rows at this moment than come for each row outside.
        """
        found: list[tuple[ShownCapacity, ...]] = []
        in_a_row = sum(not one.apart for one in measurement.segments)
        part_s = self.mean_s / max(in_a_row, 1)
        cores = sum(max(one.tasks, 1) for one in measurement.segments)
        for segment in measurement.segments:
            visits = self._model.usual_visits(segment.name)
            if visits is None:
                continue
            others = cores - max(segment.tasks, 1)
            mine = []
            for batch in filter(_guides, segment.batches):
                sample = CapacitySample(
                    cores=max(batch.tasks, 1),
                    rows_per_s=batch.rows / batch.duration_s,
                    batch_s=batch.duration_s,
                )
                throughput = self._throughput(segment, sample, part_s)
                if throughput is not None:
                    from_outside = throughput / visits
                    saturated = sample.exceeds(part_s, segment.trigger_s)
                    mine.append(ShownCapacity(others + sample.cores, from_outside, saturated))
            if mine:
                found.append(tuple(mine))
        return min(found, key=_mean, default=())

    def _throughput(
        self, segment: SegmentMeasurement, sample: CapacitySample, latency_s: float
    ) -> float | None:
        """Rows per second of the segment within its part of the target; None if it is not shown.

        Before the overhead of batches is known, only a saturated one shows anything: what it
        processed, in its trigger interval where that is longer.
        """
        cost = self._model.segment(segment.name).cost
        if cost is None:
            if sample.batch_s is None or not sample.exceeds(latency_s, segment.trigger_s):
                return None
            return sample.rows_per_s * min(sample.batch_s / max(segment.trigger_s, 1e-9), 1.0)
        return sample.within(
            latency_s,
            cost.overhead_s(sample.cores),
            least_s=cost.least_s,
            interval_s=segment.trigger_s,
        )


def _guides(batch: BatchMeasurement) -> bool:
    """Whether a batch is a guide to the next ones."""
    return batch.rows > 0 and batch.duration_s > 0.0 and batch.outlier is None


def _mean(shown: Sequence[ShownCapacity]) -> float:
    return sum(one.rows_per_s for one in shown) / len(shown)
