"""The fewest cores with which the predicted latency, a mean or a percentile, is within a goal.

`provision` needs a latency that is a sum over stations and convex in the cores of each. The sojourn
through segments in sequence is neither, nor is a percentile. But the allocations that the greedy
allocator finds for more and more cores are nested, and the latency falls along them. So the search
goes along them, from the allocation of which the sum of the stations' means would be within the
goal, and every answer is checked by the prediction itself.
"""

import math
from collections.abc import Sequence

from tidegate.control.allocation.allocate import (
    CoreAllocation,
    LatencyOutOfReach,
    assign,
    provision,
)
from tidegate.control.allocation.stations import StationTable
from tidegate.models.microbatch.sequence import total_sojourn
from tidegate.models.microbatch.station import MicroBatchStation


def predicted_s(
    stations: Sequence[MicroBatchStation], cores: Sequence[int], share: float | None
) -> float:
    """The sojourn through all stations: its mean, or the percentile of this share of the rows."""
    sojourn = total_sojourn(stations, cores)
    if sojourn is None:
        return math.inf
    return sojourn.mean_s if share is None else sojourn.percentile(share)


def fewest_cores(
    stations: Sequence[MicroBatchStation],
    goal_s: float,
    share: float | None,
    *,
    least: Sequence[int],
    most: Sequence[int],
) -> CoreAllocation:
    """The greedy allocation with the fewest cores whose predicted latency is within the goal.

    Raises LatencyOutOfReach with the lowest predicted latency if no number of cores is enough, and
    StationTooSmall if a station cannot keep up within its `most`.
    """
    table = StationTable.of(stations) or stations
    try:
        enough = provision(table, goal_s, least=least, most=most).total
    except LatencyOutOfReach as error:
        lowest_s = error.latency_reachable_s * (1.0 + 1e-9)
        enough = provision(table, lowest_s, least=least, most=most).total
    fewest = sum(map(max, least, (station.stable_from for station in stations)))
    found: dict[int, tuple[CoreAllocation, float]] = {}

    def at(total: int) -> tuple[CoreAllocation, float]:
        if total not in found:
            allocation = assign(table, total, least=least, most=most)
            cores = [int(k) for k in allocation.cores]
            found[total] = (allocation, predicted_s(stations, cores, share))
        return found[total]

    low, high = fewest - 1, enough
    step = 1
    while at(high)[1] > goal_s:
        if at(high)[0].total < high:
            raise LatencyOutOfReach(goal_s, min(latency for _, latency in found.values()))
        low, high = high, high + step
        step *= 2
    step = 1
    while high - step > low and at(high - step)[1] <= goal_s:
        high -= step
        step *= 2
    low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        if at(middle)[1] <= goal_s:
            high = middle
        else:
            low = middle
    allocation = at(high)[0]
    cores = [int(k) for k in allocation.cores]
    mean_s = at(high)[1] if share is None else predicted_s(stations, cores, None)
    return CoreAllocation(allocation.cores, allocation.total, mean_s)
