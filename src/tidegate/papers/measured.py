"""What the records of a run measured: sojourns, and the operators as queueing stations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.record import Record
from tidegate.models.microbatch.sequence import total_latency
from tidegate.models.queueing.stations import Model, Queues


def after(records: Sequence[Record], warm_s: float) -> list[Record]:
    """The records without those of the first seconds."""
    begun_s = records[0].measurement.at_s
    return [one for one in records if one.measurement.at_s >= begun_s + warm_s]


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
    arriving, serving, varying = [], [], []
    for name in operators:
        mine = [one for r in records for one in r.measurement.operators if one.name == name]
        busy_s = sum(one.busy_s for one in mine)
        arriving.append(float(np.mean([one.arrival_rate for one in mine])))
        serving.append(sum(one.rows for one in mine) / max(busy_s, 1e-9))
        scv = float(np.mean([(one.arrival_scv + one.service_scv) / 2.0 for one in mine]))
        varying.append(scv if model == "gigk" else 1.0)
    outside = float(np.mean([one.measurement.arrival_rate for one in records]))
    return Queues.of(arriving, serving, variability=varying, external_rate=outside)


class MicroBatchEstimate:
    """The sojourn that the micro-batch model expects of other splits, learned from some runs."""

    def __init__(self, runs: Sequence[Sequence[Record]]) -> None:
        self._model = PipelineModel()
        for records in runs:
            for one in records:
                self._model.learn(one.measurement)
        # The rates of a settled moment: its operators and segments are those of every run.
        last = runs[-1]
        self._measurement = last[-max(len(last) // 4, 1)].measurement

    def mean_s(self, cores: dict[str, int]) -> float:
        """E[T] with so many cores for each segment."""
        stations = self._model.stations(self._measurement, None, cores)
        if stations is None:
            return math.nan
        return total_latency(stations, list(cores.values()))

    @property
    def segments(self) -> list[str]:
        """The segments, in the order of the pipeline."""
        return [one.name for one in self._measurement.segments]
