"""Cores for a load that leaps from one micro-batch to the next.

Long batches see a surge late and run it on the tasks of before, and few cores make long batches: a
load that fits well while it is steady may be lost by the time it is noticed. So a plan is asked for
one thing more: that the first batch of a load some times as high is within the target, too.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidegate.control.allocation.allocate import Allocation, Counts
from tidegate.models.microbatch.station import MicroBatchStation

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
    cores = [int(count) for count in begin]
    late = [_late_s(station, k, leap) for station, k in zip(stations, cores, strict=True)]
    total, total_s = sum(cores), sum(late)
    if total_s <= goal_s:
        return begin
    if total >= budget or not math.isfinite(total_s):
        return None
    limits = [min(limit, k + budget - total) for limit, k in zip(most, cores, strict=True)]
    best_s = sum(
        min(late[i], _late_s(station, max(limits[i], 1), leap))
        for i, station in enumerate(stations)
    )
    # With a cost per task the widest is not the best; but where even twice as good would not do,
    # there is no need to look.
    if best_s > 2.0 * goal_s:
        return None
    gains = [_gain_s(*entry, leap) for entry in zip(stations, cores, late, limits, strict=True)]
    while total_s > goal_s:
        highest = max(gains)
        if highest <= 0.0 or total >= budget:
            return None
        best = gains.index(highest)
        cores[best] += 1
        total += 1
        total_s -= highest
        late[best] -= highest
        gains[best] = _gain_s(stations[best], cores[best], late[best], limits[best], leap)
    return np.array(cores)


def _gain_s(station: MicroBatchStation, cores: int, late_s: float, most: int, leap: float) -> float:
    return late_s - _late_s(station, cores + 1, leap) if cores < most else 0.0


def _late_s(station: MicroBatchStation, cores: int, leap: float) -> float:
    return station.visit_ratio * station.leap_latency(cores, leap)
