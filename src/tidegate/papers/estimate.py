"""The sojourn that the micro-batch model expects of a split that did not run.

It is the model of the control loop, learned from the records of runs with other splits.
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
from tidegate.papers.measured import mean_rate


class MicroBatchEstimate:
    """E[T] of other splits than those that ran, learned from the records of some runs.

    Of runs that took place long apart, the last one counts most, as in a control loop.
    """

    def __init__(self, runs: Sequence[Sequence[Record]]) -> None:
        self._model = PipelineModel()
        self._offered = OfferedRates()
        measurements = [one.measurement for records in runs for one in records]
        for one in measurements:
            self._model.learn(one)
            self._offered.learn(one)
        rates = [mean_rate([one.measurement for one in records]) for records in runs]
        self._rate = float(np.mean(rates))
        self._last = measurements[-1]

    def of_split(self, split: Sequence[int], rate: float | None = None) -> float:
        """E[T] with so many cores for each segment; infinite in overload.

        Without a `rate` of rows from outside, it is the mean of the runs.
        """
        measurement = self._at_rate(self._rate if rate is None else rate)
        names = [one.name for one in measurement.segments]
        stations = self._model.stations(measurement, None, dict(zip(names, split, strict=True)))
        return math.inf if stations is None else float(total_latency(stations, list(split)))

    def _at_rate(self, rate: float) -> Measurement:
        """The last measurement, as if this rate had been measured."""
        settled = self._model.at_rate(self._last, rate)
        visits = {one.name: self._offered.visits(one.name) for one in settled.segments}
        return dataclasses.replace(
            settled,
            segments=tuple(
                one
                if visits[one.name] is None
                else dataclasses.replace(one, arrival_rate=rate * (visits[one.name] or 0.0))
                for one in settled.segments
            ),
        )
