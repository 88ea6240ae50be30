"""Corrects the model's latency by the measured one, learned only while load and tasks are steady.

The bias is the measured over the predicted mean. The tail corrects the predicted percentile of the
target in addition: it is the measured ratio of percentile and mean over the predicted one. The
floor is the lowest latency that any number of cores gives.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.control.allocation.allocate import LatencyOutOfReach, provision
from tidegate.control.latency.fewest_cores import predicted_s
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.control.target import Target
from tidegate.forecast.remembering import finite, held
from tidegate.models.microbatch.station import MicroBatchStation

NEAR_FLOOR = 1.05
"""Where the target is out of reach, plan for the fewest cores within this factor of the floor."""
_NORMAL_BACKLOG = 1.4
"""A backlog up to this many times lambda T is normal. A pipeline on target holds lambda T rows by
Little's law, and up to 4/3 of that just before a batch ends."""
_LEAST_BIAS, _MOST_BIAS = 0.6, 2.5
_LEAST_TAIL, _MOST_TAIL = 0.7, 2.5
_QUIET_S = 6.0
"""The measured latency covers the last few seconds. After this time without a change, it belongs to
the present tasks and load alone."""


class Calibration:
    """Corrects the model's latency by measurements; `learn` is called once a tick."""

    def __init__(self, target: Target, model: PipelineModel) -> None:
        self._target = target
        self._model = model
        self.bias = 1.0
        """Measured over predicted mean latency."""
        self.tail = 1.0
        """The measured percentile over the mean, as a multiple of the predicted one."""
        self._predicted_ratio = target.steady_ratio
        self._in_sequence = 1.0
        """The predicted mean over the sum of the stations' own means."""
        self._floor_s = 0.0
        self._restless_s = -math.inf
        self._quiet_rate = 0.0

    @property
    def share(self) -> float | None:
        """The share of rows that the target is for; None: their mean."""
        return self._target.share

    @property
    def ratio(self) -> float:
        """The target's percentile over the mean, for the present load and tasks."""
        return self._predicted_ratio * self.tail

    @property
    def factor(self) -> float:
        """The factor from the predicted latency, of the target's kind, to the one to expect."""
        return self.bias * self.tail

    @property
    def reach(self) -> float:
        """The factor from the sum of the stations' means to the latency that the target is for."""
        return self.bias * self.ratio * self._in_sequence

    @property
    def goal_s(self) -> float:
        """The target, or a latency just above the floor where the target is below that."""
        return max(self._target.latency_s, NEAR_FLOOR**2 * self._floor_s * self.ratio)

    def learn(self, measurement: Measurement, present: list[MicroBatchStation]) -> None:
        """Compare the measured latency with the model's for the present stations."""
        self._predict(measurement, present)
        self._learn_ratios(measurement, present)
        self._learn_floor(present)

    def late(self, segment: SegmentMeasurement) -> bool:
        """Whether a segment's backlog is larger than that of a pipeline at its target."""
        mean_s = self.goal_s / self.ratio
        return segment.backlog_rows > _NORMAL_BACKLOG * mean_s * segment.arrival_rate + 1.0

    def behind(self, measurement: Measurement) -> bool:
        """Whether any segment has such a backlog."""
        return any(self.late(segment) for segment in measurement.segments)

    def learned(self) -> dict[str, Any]:
        """The corrections, to begin with after a restart, and the share that the tail is of."""
        return {"bias": self.bias, "tail": self.tail, "share": self.share}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the corrections of an earlier run, drawn towards 1 the older they are.

        A tail is that of one percentile. With a target for another one, or for the mean, it would
        be wrong, and for the mean it would never be learned again.
        """
        left = held(age_s)
        bias, tail = (finite(learned.get(name, 1.0)) for name in ("bias", "tail"))
        self.bias = 1.0 + left * (min(max(bias, _LEAST_BIAS), _MOST_BIAS) - 1.0)
        if self.share is not None and learned.get("share") == self.share:
            self.tail = 1.0 + left * (min(max(tail, _LEAST_TAIL), _MOST_TAIL) - 1.0)

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
        cores = _tasks(measurement)
        modelled_s = predicted_s(present, cores, None)
        if not 0.0 < modelled_s < math.inf:
            return
        bias = min(max(latency.mean_s / modelled_s, _LEAST_BIAS), _MOST_BIAS)
        # Raise it faster than lower it: too low a bias breaks the target, too high costs a core.
        self.bias += (0.15 if bias > self.bias else 0.05) * (bias - self.bias)
        if self.share is not None:
            modelled_ratio = predicted_s(present, cores, self.share) / modelled_s
            tail = self._target.measured_s(latency) / latency.mean_s / modelled_ratio
            self.tail += 0.1 * (min(max(tail, _LEAST_TAIL), _MOST_TAIL) - self.tail)

    def _predict(self, measurement: Measurement, present: list[MicroBatchStation]) -> None:
        """Predict for the present tasks how percentile, mean and sum of means are related."""
        cores = _tasks(measurement)
        mean_s = predicted_s(present, cores, None)
        if not 0.0 < mean_s < math.inf:
            return
        own_s = sum(
            station.visit_ratio * station.latency(k)
            for station, k in zip(present, cores, strict=True)
        )
        self._in_sequence = mean_s / own_s
        if self.share is not None:
            self._predicted_ratio = predicted_s(present, cores, self.share) / mean_s

    def _learn_floor(self, present: list[MicroBatchStation]) -> None:
        """Ask the allocator for an impossible target: its error says what the lowest latency is."""
        try:
            provision(present, 1e-9)
        except LatencyOutOfReach as error:
            self._floor_s = error.latency_reachable_s * self.bias * self._in_sequence


def _tasks(measurement: Measurement) -> Sequence[int]:
    """The tasks that run now, by segment."""
    return [max(segment.tasks, 1) for segment in measurement.segments]
