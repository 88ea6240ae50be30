"""What the records of a run measured: sojourns, and the operators as queueing stations."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.allocation.hosted import only_stations
from tidegate.control.learning.offered_rates import OfferedRates
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.record import Record
from tidegate.models.microbatch.sequence import total_latency
from tidegate.models.queueing.stations import Model, Queues


def after(records: Sequence[Record], warm_s: float, until_s: float = math.inf) -> list[Record]:
    """The records without those of the first seconds, and of what came after the last row."""
    begun_s = records[0].measurement.at_s
    found = [one for one in records if warm_s <= one.measurement.at_s - begun_s <= until_s]
    return found or list(records[-1:])


@dataclass(frozen=True, slots=True)
class Sojourns:
    """The mean of the sojourn over some ticks, and its deviation from tick to tick."""

    mean_s: float
    deviation_s: float

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Sojourns":
        """Those of some records; not a number without any."""
        found = [
            one.measurement.latency.mean_s for one in records if one.measurement.latency is not None
        ]
        if not found:
            return cls(math.nan, math.nan)
        return cls(float(np.mean(found)), float(np.std(found)))


def queues_of(records: Sequence[Record], operators: Sequence[str], model: Model) -> Queues:
    """The operators as DRS sees them: rates and variabilities averaged over some ticks."""
    offered = OfferedRates()
    stations = [only_stations(record.measurement) for record in records]
    for one in stations:
        offered.learn(one)
    outside = float(np.mean([one.arrival_rate for one in stations]))
    arriving, serving, varying = [], [], []
    for name in operators:
        mine = [one for m in stations for one in m.operators if one.name == name]
        rows, busy_s = sum(one.rows for one in mine), sum(one.busy_s for one in mine)
        rate = offered.rate(name, mine[0].segment, outside)
        counted = float(np.mean([one.arrival_rate for one in mine]))
        arriving.append(counted if rate is None else rate)
        serving.append(rows / max(busy_s, 1e-9))
        scv = float(np.mean([(one.arrival_scv + one.service_scv) / 2.0 for one in mine]))
        varying.append(scv if model == "gigk" else 1.0)
    return Queues.of(arriving, serving, variability=varying, external_rate=outside)


class MicroBatchEstimate:
    """The sojourn that the micro-batch model expects of other splits, learned from some runs."""

    def __init__(self, runs: Sequence[Sequence[Record]]) -> None:
        self._model = PipelineModel()
        offered = OfferedRates()
        measurements = [one.measurement for records in runs for one in records]
        for one in measurements:
            self._model.learn(one)
            offered.learn(one)
        rate = float(np.mean([one.arrival_rate for one in measurements]))
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

    def of_split(self, split: Sequence[int]) -> float:
        """E[T] with so many cores for each segment, at the mean rate; infinite in overload."""
        names = [one.name for one in self._measurement.segments]
        cores = dict(zip(names, split, strict=True))
        stations = self._model.stations(self._measurement, None, cores)
        if stations is None:
            return math.inf
        return float(total_latency(stations, list(split)))
