"""Allocates cores to stations: the best latency with K cores, or the fewest cores for a latency.

This is greedy marginal allocation (DRS Alg. 1 and 2, corrected) over convex stations. `assign`
allocates at most K cores; the printed loop allocates K + 1. `provision` compares its target with
the visit-weighted service times; the printed bound omits the visits. Cores that would not lower the
latency are not allocated: with a cost per task, more cores can hurt.
"""

import functools
import heapq
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.control.allocation import greedy
from tidegate.control.allocation.stations import LOAD, Station, StationTable
from tidegate.errors import AskedWrongly
from tidegate.models.queueing.stations import Queues
from tidegate.units import format_duration

Counts = npt.NDArray[np.int64]
Path = Literal["exact", "fast"]

_UNBOUNDED = 2**40
"""The bound of a station without a maximum: large, but sums of it still fit an integer."""
_NO_BUDGET = 2**62
"""The budget when the number of cores is not limited."""
_FAST_FROM = 10_000
"""The fast path pays off above this many cores."""


class Infeasible(AskedWrongly):
    """No allocation satisfies the request; the message names the nearest feasible one."""


class TooFewCores(Infeasible):
    """The stations are unstable with so few cores."""

    def __init__(self, asked: int, needed: int) -> None:
        super().__init__(
            f"{asked} cores are too few for the stations to keep up with the load; at least"
            f" {needed} are needed"
        )
        self.cores_needed = needed


class LatencyOutOfReach(Infeasible):
    """No number of cores achieves so low a mean latency."""

    def __init__(self, asked_s: float, reachable_s: float) -> None:
        shown = format_duration(reachable_s, round_up=True)
        super().__init__(
            f"a mean latency of {format_duration(asked_s)} cannot be reached with any number of"
            f" cores; the lowest that can is {shown}"
        )
        self.latency_reachable_s = reachable_s


class StationTooSmall(Infeasible):
    """A station is unstable with its maximum of cores."""

    def __init__(self, station: int, most: int, needed: int) -> None:
        super().__init__(
            f"station {station} may have {most} cores at most, but needs {needed}; raise its"
            " maximum"
        )
        self.station = station
        self.cores_needed = needed


class CoreAllocation(NamedTuple):
    """Cores per station, in the stations' order, and the resulting mean latency."""

    cores: Counts
    total: int
    """The number of allocated cores, which may be less than the budget."""
    latency_s: float


def assign(
    stations: Queues | StationTable | Sequence[Station],
    cores: int,
    *,
    least: Sequence[int] | Counts | None = None,
    most: Sequence[int] | Counts | None = None,
    path: Path | None = None,
) -> CoreAllocation:
    """The allocation of at most `cores` cores with the lowest latency (DRS eq. 6).

    `least` and `most` bound each station. `path` is for tests: both paths give the same result.
    """
    return _allocate(stations, min(cores, _NO_BUDGET), -1.0, least, most, path)


def provision(
    stations: Queues | StationTable | Sequence[Station],
    latency_s: float,
    *,
    least: Sequence[int] | Counts | None = None,
    most: Sequence[int] | Counts | None = None,
    path: Path | None = None,
) -> CoreAllocation:
    """The allocation with the fewest cores whose latency is at most `latency_s` (DRS eq. 8)."""
    if not 0.0 < latency_s < math.inf:
        raise AskedWrongly(f"the latency must be a positive duration, but is {latency_s} s")
    answer = _allocate(stations, _NO_BUDGET, latency_s, least, most, path)
    if answer.latency_s > latency_s:
        raise LatencyOutOfReach(latency_s, answer.latency_s)
    return answer


def _allocate(
    stations: Queues | StationTable | Sequence[Station],
    budget: int,
    target_s: float,
    least: Sequence[int] | Counts | None,
    most: Sequence[int] | Counts | None,
    path: Path | None,
) -> CoreAllocation:
    """Allocate until the budget, the target (none if negative) or the benefit is exhausted."""
    if isinstance(stations, Queues):
        rows = greedy.queue_rows(
            stations.arrival_rate,
            stations.service_rate,
            stations.variability,
            stations.visit_ratio,
        )
    elif isinstance(stations, StationTable):
        rows = stations.rows
    elif (table := StationTable.of(stations)) is not None:
        rows = table.rows
    else:
        return _by_latency(stations, budget, target_s, least, most)
    count = len(rows)
    lower = _bound(least, count, 1)
    upper = _bound(most, count, _UNBOUNDED)
    fast = path == "fast" or (path is None and (target_s > 0.0 or budget > _FAST_FROM))
    if target_s > 0.0 and target_s < (lowest_s := greedy.reachable(rows, lower, upper)):
        raise LatencyOutOfReach(target_s, lowest_s)
    cores, total, latency_s, unstable = greedy.allocate(rows, lower, upper, budget, target_s, fast)
    if unstable >= 0:
        load = float(rows[unstable, LOAD])
        if not load < _UNBOUNDED:
            raise AskedWrongly(
                f"station {unstable} has rates or a variability that are negative, not numbers, or"
                " too large for any number of cores; correct them"
            )
        needed = max(math.floor(load) + 1, int(lower[unstable]))
        raise StationTooSmall(unstable, int(upper[unstable]), needed)
    if total > budget:
        raise TooFewCores(budget, total)
    return CoreAllocation(cores, total, latency_s)


@functools.lru_cache(maxsize=64)
def _default_bound(count: int, value: int) -> Counts:
    """The default bound of all stations. It is shared, so it must not be changed."""
    return np.full(count, value)


def _bound(given: Sequence[int] | Counts | None, count: int, default: int) -> Counts:
    if count == 0:
        raise AskedWrongly("there is no station to give cores to; give at least one")
    if given is None:
        return _default_bound(count, default)
    bound = np.array(given, np.int64)
    if bound.shape != (count,):
        raise AskedWrongly(
            f"{bound.size} bounds were given for {count} stations; give one for each"
        )
    return np.minimum(bound, _UNBOUNDED)


def _by_latency(
    stations: Sequence[Station],
    budget: int,
    target_s: float,
    least: Sequence[int] | Counts | None,
    most: Sequence[int] | Counts | None,
) -> CoreAllocation:
    """The same greedy allocation for stations that have no compiled form."""
    lower = _bound(least, len(stations), 1)
    upper = _bound(most, len(stations), _UNBOUNDED)
    cores = np.maximum([station.stable_from for station in stations], lower)
    for short in np.flatnonzero(cores > upper):
        raise StationTooSmall(int(short), int(upper[short]), int(cores[short]))
    total = int(cores.sum())
    if total > budget:
        raise TooFewCores(budget, total)
    parts = [_weighted(station, int(k)) for station, k in zip(stations, cores, strict=True)]
    heap: list[tuple[float, int, float]] = []

    def offer(index: int) -> None:
        """Queue the station's next core, unless it is at its maximum or gains nothing."""
        if cores[index] < upper[index]:
            after = _weighted(stations[index], int(cores[index]) + 1)
            if parts[index] > after:
                heapq.heappush(heap, (after - parts[index], index, after))

    for index in range(len(stations)):
        offer(index)
    latency_s = math.fsum(parts)
    while heap and total < budget and not latency_s <= target_s:
        _, index, after = heapq.heappop(heap)
        parts[index] = after
        cores[index] += 1
        total += 1
        offer(index)
        if target_s > 0.0:
            latency_s = math.fsum(parts)
    return CoreAllocation(cores, total, math.fsum(parts))


def _weighted(station: Station, cores: int) -> float:
    return station.visit_ratio * station.latency(cores)
