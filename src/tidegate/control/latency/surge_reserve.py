"""The reserve for surges: cores for a load that jumps from one micro-batch to the next.

A surge is seen only when the running batch ends, and its first batch runs on the tasks that were
there before. Few cores make long batches, so a load that fits well while it is steady may break the
target before the policy can react. A plan therefore keeps a reserve: the first batch of a load that
is higher by the surge factor must be within the target, too.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidegate.control.allocation.allocate import CoreAllocation, Counts
from tidegate.models.microbatch.station import MicroBatchStation

_SMALLER = (1.0, 0.5, 0.25)
"""Shares of the surge's growth that are tried in turn, until one can be met."""


def absorbed(stations: Sequence[MicroBatchStation], cores: Sequence[int], goal_s: float) -> float:
    """The factor of the largest surge whose first rows are within the goal on these cores.

    Their latency is linear in the factor: sum of v (C/2 + D + (f - 1) rho C), C = max(D, P).
    """
    still_s = surge_latency_s(stations, cores, 0.0)
    grows_s = surge_latency_s(stations, cores, 1.0) - still_s
    if not math.isfinite(still_s) or not math.isfinite(grows_s):
        return 0.0
    return (goal_s - still_s) / grows_s if grows_s > 1e-12 else math.inf


class Reserve(NamedTuple):
    """An allocation, and the factor of the surge that it can absorb; 1: none."""

    allocation: CoreAllocation
    surge: float


def surge_latency_s(
    stations: Sequence[MicroBatchStation], cores: Sequence[int], surge: float
) -> float:
    """Mean latency of a surge's first rows through all stations."""
    return sum(map(_late_s, stations, cores, [surge] * len(stations)))


def with_reserve(
    stations: Sequence[MicroBatchStation],
    allocation: CoreAllocation,
    *,
    goal_s: float,
    surge: float,
    most: Sequence[int],
    budget: int,
) -> Reserve:
    """The allocation with the cores that a surge needs, for the largest surge that can be met.

    No reserve is kept for more load than all cores together could carry on target: it could not be
    held after the first batch anyway.
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
    whole = min(surge, *carried) - 1.0
    for share in _SMALLER:
        factor = 1.0 + share * whole
        if factor > 1.0:
            cores = _enough(stations, allocation.cores, goal_s, factor, most, budget)
            if cores is not None:
                steady_s = sum(
                    station.visit_ratio * station.latency(int(k))
                    for station, k in zip(stations, cores, strict=True)
                )
                return Reserve(CoreAllocation(cores, int(cores.sum()), steady_s), factor)
    return Reserve(allocation, 1.0)


def _enough(
    stations: Sequence[MicroBatchStation],
    begin: Counts,
    goal_s: float,
    surge: float,
    most: Sequence[int],
    budget: int,
) -> Counts | None:
    """Give cores one by one to the station that gains most, until the surge is within the goal.

    None if the budget does not suffice.
    """
    cores = [int(count) for count in begin]
    late = [_late_s(station, k, surge) for station, k in zip(stations, cores, strict=True)]
    total, total_s = sum(cores), sum(late)
    if total_s <= goal_s:
        return begin
    if total >= budget or not math.isfinite(total_s):
        return None
    limits = [min(limit, k + budget - total) for limit, k in zip(most, cores, strict=True)]
    best_s = sum(
        min(late[i], _late_s(station, max(limits[i], 1), surge))
        for i, station in enumerate(stations)
    )
    # With a cost per task, the most cores need not be the fastest, so allow for a factor of two. If
    # they miss even that, the search is skipped.
    if best_s > 2.0 * goal_s:
        return None
    gains = [_gain_s(*entry, surge) for entry in zip(stations, cores, late, limits, strict=True)]
    while total_s > goal_s:
        highest = max(gains)
        if highest <= 0.0 or total >= budget:
            return None
        best = gains.index(highest)
        cores[best] += 1
        total += 1
        total_s -= highest
        late[best] -= highest
        gains[best] = _gain_s(stations[best], cores[best], late[best], limits[best], surge)
    return np.array(cores)


def _gain_s(
    station: MicroBatchStation, cores: int, late_s: float, most: int, surge: float
) -> float:
    return late_s - _late_s(station, cores + 1, surge) if cores < most else 0.0


def _late_s(station: MicroBatchStation, cores: int, surge: float) -> float:
    return station.visit_ratio * station.surge_latency(cores, surge)
