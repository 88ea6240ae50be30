"""The sojourn that the micro-batch model expects of a split, where rows are few and unequal.

A batch of some dozen frames ends with the slowest of its tasks. By chance that task has more than
the mean, and the more rows a task has, the smaller its share: delta - 1 = c / sqrt(n / k). So a
long batch is balanced better than a short one, and delta is solved for together with the duration.
For rows in their thousands, as the control loop expects them, this makes no difference.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from tidegate.control.learning.offered_rates import OfferedRates
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.models.microbatch.sequence import total_latency
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.papers.measured import mean_rate

_ROUNDS = 400
_MOST_IMBALANCE = 4.0


class MicroBatchEstimate:
    """E[T] of other splits than those that ran, learned from the records of some runs."""

    def __init__(self, runs: Sequence[Sequence[Record]]) -> None:
        self._model = PipelineModel()
        offered = OfferedRates()
        measurements = [one.measurement for records in runs for one in records]
        for one in measurements:
            self._model.learn(one)
            offered.learn(one)
        rate = float(np.mean([mean_rate([one.measurement for one in records]) for records in runs]))
        settled = self._model.at_rate(measurements[-1], rate)
        visits = {one.name: offered.visits(one.name) for one in settled.segments}
        self._measurement = dataclasses.replace(
            settled,
            segments=tuple(
                one
                if visits[one.name] is None
                else dataclasses.replace(one, arrival_rate=rate * (visits[one.name] or 0.0))
                for one in settled.segments
            ),
        )
        self._spreads = {one.name: spread(measurements, one.name) for one in settled.segments}

    def of_split(self, split: Sequence[int]) -> float:
        """E[T] with so many cores for each segment, at the mean rate; infinite in overload."""
        names = [one.name for one in self._measurement.segments]
        stations = self._model.stations(
            self._measurement, None, dict(zip(names, split, strict=True))
        )
        if stations is None:
            return math.inf
        spread_out = [
            unequal(station, cores, self._spreads[name])
            for name, station, cores in zip(names, stations, split, strict=True)
        ]
        return float(total_latency(spread_out, list(split)))


def spread(measurements: Sequence[Measurement], segment: str) -> float:
    """c: how far the slowest task is above the mean, times the root of a task's rows."""
    found = [
        (max(batch.imbalance, 1.0) - 1.0) * math.sqrt(batch.rows / batch.tasks)
        for one in measurements
        for part in one.segments
        if part.name == segment
        for batch in part.batches
        if batch.rows >= batch.tasks
    ]
    return float(np.mean(found)) if found else 0.0


def unequal(station: MicroBatchStation, cores: int, c: float) -> MicroBatchStation:
    """The station with the imbalance that its own batches have in the steady state.

    The longer a batch, the better it is balanced, so the duration is found from above: from batches
    so long that chance does not matter.
    """
    rho = station.arrival_rate * station.cost.work_s / cores
    if rho >= 1.0:
        return station
    overhead_s = station.cost.overhead_s(cores)
    duration_s = overhead_s / (1.0 - rho)
    for _ in range(_ROUNDS):
        rows = max(station.arrival_rate * duration_s / cores, 1e-9)
        duration_s = overhead_s + rho * duration_s * (1.0 + c / math.sqrt(rows))
    rows = max(station.arrival_rate * duration_s / cores, 1e-9)
    delta = min(1.0 + c / math.sqrt(rows), _MOST_IMBALANCE)
    return dataclasses.replace(station, imbalance=delta)
