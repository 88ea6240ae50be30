"""What the records of a run measured: sojourns, and the operators as queueing stations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.allocation.hosted import only_stations
from tidegate.control.learning.offered_rates import OfferedRates
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
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


def mean_rate(measurements: Sequence[Measurement]) -> float:
    """Rows per second from outside: those that the first segment took, from batch to batch.

    Where the rate changes every second, its value at the ticks says little about the mean.
    """
    batches = [one for each in measurements for one in each.segments[0].batches]
    if len(batches) < 2:
        return float(np.mean([one.arrival_rate for one in measurements]))
    offered = sum(one.rows + one.shed_rows for one in batches[1:])
    return offered / max(batches[-1].ended_s - batches[0].ended_s, 1e-9)


def queues_of(runs: Sequence[Sequence[Record]], operators: Sequence[str], model: Model) -> Queues:
    """The operators as DRS sees them: rates and variabilities averaged over the ticks of runs."""
    offered = OfferedRates()
    by_run = [[only_stations(record.measurement) for record in records] for records in runs]
    stations = [one for run in by_run for one in run]
    for one in stations:
        offered.learn(one)
    outside = float(np.mean([mean_rate(run) for run in by_run]))
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
