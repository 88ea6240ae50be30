"""Corrects the model's latency by the measured one, learned only while load and tasks are steady.

Three numbers correct the model. The bias is the measured over the modelled mean. The ratio is the
target's percentile over the mean. The floor is the lowest latency that any number of cores gives.
"""

import math

from tidegate.control.allocation.allocate import LatencyOutOfReach, provision
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.control.target import Target
from tidegate.models.microbatch.station import MicroBatchStation

NEAR_FLOOR = 1.05
"""Where the target is out of reach, plan for the fewest cores within this factor of the floor."""
_NORMAL_BACKLOG = 1.4
"""A backlog up to this many times lambda T is normal. A pipeline on target holds lambda T rows by
Little's law, and up to 4/3 of that just before a batch ends."""
_QUIET_S = 6.0
"""The measured latency covers the last few seconds. After this time without a change, it belongs to
the present tasks and load alone."""


class Calibration:
    """Corrects the model's latency by measurements; `learn` is called once a tick."""

    def __init__(self, target: Target, model: PipelineModel) -> None:
        self._target = target
        self._model = model
        self.bias = 1.0
        """Measured over modelled mean latency."""
        self.ratio = target.steady_ratio
        """The target's percentile over the mean."""
        self._floor_s = 0.0
        self._restless_s = -math.inf
        self._quiet_rate = 0.0

    @property
    def reach(self) -> float:
        """The factor from the model's mean latency to the latency that the target is for."""
        return self.bias * self.ratio

    @property
    def goal_s(self) -> float:
        """The target, or a latency just above the floor where the target is below that."""
        return max(self._target.latency_s, NEAR_FLOOR**2 * self._floor_s * self.ratio)

    def learn(self, measurement: Measurement, present: list[MicroBatchStation]) -> None:
        """Compare the measured latency with the model's for the present stations."""
        self._learn_ratios(measurement, present)
        self._learn_floor(present)

    def late(self, segment: SegmentMeasurement) -> bool:
        """Whether a segment's backlog is larger than that of a pipeline at its target."""
        mean_s = self.goal_s / self.ratio
        return segment.backlog_rows > _NORMAL_BACKLOG * mean_s * segment.arrival_rate + 1.0

    def behind(self, measurement: Measurement) -> bool:
        """Whether any segment has such a backlog."""
        return any(self.late(segment) for segment in measurement.segments)

    def _learn_ratios(self, measurement: Measurement, present: list[MicroBatchStation]) -> None:
        latency = measurement.latency
        moved = abs(measurement.arrival_rate - self._quiet_rate) > 0.1 * self._quiet_rate
        quiet = self._model.settled(measurement) and not self.behind(measurement)
        if moved or not quiet:
            self._restless_s = measurement.at_s
            self._quiet_rate = measurement.arrival_rate
        if latency is None or latency.mean_s <= 0.0:
            return
        if measurement.at_s - self._restless_s < _QUIET_S:
            return
        modelled_s = _modelled_s(measurement, present)
        if not 0.0 < modelled_s < math.inf:
            return
        bias = min(max(latency.mean_s / modelled_s, 0.6), 2.5)
        # Raise it faster than lower it: too low a bias breaks the target, too high costs a core.
        self.bias += (0.15 if bias > self.bias else 0.05) * (bias - self.bias)
        if self._target.percentile is not None:
            steady = self._target.steady_ratio
            ratio = self._target.measured_s(latency) / latency.mean_s
            ratio = min(max(ratio, 0.7 * steady), 2.5 * steady)
            self.ratio += 0.1 * (ratio - self.ratio)

    def _learn_floor(self, present: list[MicroBatchStation]) -> None:
        """Ask the allocator for an impossible target: its error says what the lowest latency is."""
        try:
            provision(present, 1e-9)
        except LatencyOutOfReach as error:
            self._floor_s = error.latency_reachable_s * self.bias


def _modelled_s(measurement: Measurement, stations: list[MicroBatchStation]) -> float:
    """The model's mean latency of the tasks that run now."""
    return sum(
        station.visit_ratio * station.latency(max(segment.tasks, 1))
        for station, segment in zip(stations, measurement.segments, strict=True)
    )
