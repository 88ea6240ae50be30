"""The interface of a station for allocators: its latency, stability and visit ratio."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.models.queueing.stations import QueueStation


class Station(Protocol):
    """Anything whose mean latency is convex in its cores."""

    @property
    def stable_from(self) -> int:
        """The smallest stable number of cores."""
        ...

    @property
    def visit_ratio(self) -> float:
        """Visits per external tuple: the station's weight in the network's latency (DRS eq. 4)."""
        ...

    def latency(self, cores: int, /) -> float:
        """E[T](k) in seconds."""
        ...


LOAD, WAIT, FLOOR, WEIGHT, FIXED, GROWTH, LEAST, INTERVAL, ROWLESS, COLUMNS = range(10)
"""Columns of a station table. A `WEIGHT` of zero marks a queue, any other a micro-batch segment.

A queue's weighted latency is FLOOR + WAIT * delay(k, LOAD). A micro-batch segment's is WEIGHT times
that of MicroBatchStation with a0 = FIXED, a1 = GROWTH, L = LEAST, F = ROWLESS, P = INTERVAL and
lambda w delta = LOAD.
"""


@dataclass(frozen=True, slots=True, eq=False)
class StationTable:
    """Queueing and micro-batch stations as rows of numbers, for the compiled allocator."""

    rows: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, stations: Sequence[Station]) -> "StationTable | None":
        """The table of these stations, or None if one of them has no compiled form."""
        rows = np.zeros((len(stations), COLUMNS))
        for row, station in zip(rows, stations, strict=True):
            if isinstance(station, QueueStation):
                floor = station.visit_ratio / station.service_rate
                row[LOAD], row[FLOOR], row[WAIT] = station.load, floor, station.variability * floor
            elif isinstance(station, MicroBatchStation) and station.visit_ratio > 0.0:
                row[LOAD], row[WEIGHT] = station.load, station.visit_ratio
                row[FIXED], row[GROWTH] = station.cost.fixed_s, station.cost.per_task_s
                row[LEAST], row[INTERVAL] = station.cost.least_s, station.interval_s
                row[ROWLESS] = station.cost.rowless_s
            else:
                return None
        return cls(rows)
