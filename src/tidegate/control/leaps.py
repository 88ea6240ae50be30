"""Cores for a load that leaps from one micro-batch to the next.

Long batches see a surge late and run it on the tasks of before, and few cores make long batches: a
load that fits well while it is steady may be lost by the time it is noticed. So a plan is asked for
one thing more: that the first batch of a load some times as high is within the target, too.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidegate.control.allocate import Allocation, Counts
from tidegate.models.microbatch import MicroBatchStation

_SMALLER = (1.0, 0.5, 0.25)
"""Shares of a leap that are tried, where the whole of it cannot be met."""


class Ready(NamedTuple):
    """An allocation, and the leap that it meets; 1: none."""

    allocation: Allocation
    leap: float


def leap_latency_s(
    stations: Sequence[MicroBatchStation], cores: Sequence[int], leap: float
) -> float:
    """Mean latency of a leap's first rows through all stations."""
    return sum(map(_late_s, stations, cores, [leap] * len(stations)))


def ready_for(
    stations: Sequence[MicroBatchStation],
    allocation: Allocation,
    *,
    goal_s: float,
    leap: float,
    most: Sequence[int],
    budget: int,
) -> Ready:
    """The allocation with as many more cores as the leap needs, as large a leap as can be met.

    None beyond what the stations could carry on target with all their cores: nobody would hold
    such a load afterwards.
    """
    carried = [
        station.cost.most_throughput(
            max(min(limit, budget), 1),
            goal_s,
            imbalance=station.imbalance,
            interval_s=station.interval_s,
        )
        / max(station.arrival_rate, 1e-9)
        for station, limit in zip(stations, most, strict=True)
    ]
    whole = min(leap, *carried) - 1.0
    for share in _SMALLER:
        factor = 1.0 + share * whole
        if factor > 1.0:
            cores = _enough(stations, allocation.cores, goal_s, factor, most, budget)
            if cores is not None:
                steady_s = sum(
                    station.visit_ratio * station.latency(int(k))
                    for station, k in zip(stations, cores, strict=True)
                )
                return Ready(Allocation(cores, int(cores.sum()), steady_s), factor)
    return Ready(allocation, 1.0)


def _enough(
    stations: Sequence[MicroBatchStation],
    begin: Counts,
    goal_s: float,
    leap: float,
    most: Sequence[int],
    budget: int,
) -> Counts | None:
    """One core after the other to the station that gains most by it; None if that does not do."""
    cores = begin.copy()
    late = [_late_s(station, int(k), leap) for station, k in zip(stations, cores, strict=True)]
    gains = [_gain_s(*entry, leap) for entry in zip(stations, cores, late, most, strict=True)]
    while sum(late) > goal_s:
        best = int(np.argmax(gains))
        if not gains[best] > 0.0 or int(cores.sum()) >= budget:
            return None
        cores[best] += 1
        late[best] -= gains[best]
        gains[best] = _gain_s(stations[best], int(cores[best]), late[best], most[best], leap)
    return cores


def _gain_s(station: MicroBatchStation, cores: int, late_s: float, most: int, leap: float) -> float:
    return late_s - _late_s(station, int(cores) + 1, leap) if cores < most else 0.0


def _late_s(station: MicroBatchStation, cores: int, leap: float) -> float:
    return station.visit_ratio * station.leap_latency(cores, leap)
