"""The fewest cores with which the predicted latency, a mean or a percentile, is within a goal.

`provision` needs a latency that is a sum over stations and convex in the cores of each. The sojourn
through segments in sequence is neither, nor is a percentile. But the allocations that the greedy
allocator finds for more and more cores are nested, and the latency falls along them, but for small
steps where one segment becomes faster than the one before it. So the search goes along them, from
the allocation of which the sum of the stations' means would be within the goal, and every answer is
checked by the prediction itself. Where that search finds nothing, the whole path is looked through
before a goal is said to be out of reach.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.control.allocation.allocate import (
    CoreAllocation,
    LatencyOutOfReach,
    assign,
    provision,
)
from tidegate.control.allocation.stations import StationTable
from tidegate.models.microbatch.sequence import total_latency, total_percentile
from tidegate.models.microbatch.station import MicroBatchStation

_ALL_OF = 16
"""A path of up to so many allocations is looked through one by one."""
_PARTS = 6
"""A longer one is divided into so many parts, and so are the parts around the best."""
_OVER = 2.0
"""Batches that noise must lift by so many deviations do not count."""


class PredictedOutOfReach(LatencyOutOfReach):
    """No number of cores is predicted to reach the goal."""

    def __init__(self, goal_s: float, lowest_s: float, best: CoreAllocation) -> None:
        super().__init__(goal_s, lowest_s)
        self.best = best
        """The allocation with the lowest latency that was found."""


def predicted_s(
    stations: Sequence[MicroBatchStation], cores: Sequence[int], share: float | None
) -> float:
    """The sojourn through all stations: its mean, or the percentile of this share of the rows."""
    if share is None:
        return total_latency(stations, cores)
    return total_percentile(stations, cores, share)


def fewest_cores(
    stations: Sequence[MicroBatchStation],
    goal_s: float,
    share: float | None,
    *,
    least: Sequence[int],
    most: Sequence[int],
) -> CoreAllocation:
    """The greedy allocation with the fewest cores whose predicted latency is within the goal.

    Raises PredictedOutOfReach if no number of cores is enough, and StationTooSmall if a station
    cannot keep up within its `most`.
    """
    return CorePath(stations, share, least=least, most=most).fewest(goal_s)


def until_flat(station: MicroBatchStation) -> MicroBatchStation:
    """The station as the path follows it.

    Where other work beside the tasks makes batches last (L), a latency without noise is flat. With
    noise it still falls with more cores, until hardly any batch is brought over L any more.
    """
    flat = max(1.0 - _OVER * station.noise, 0.0)
    return replace(station, cost=replace(station.cost, least_s=flat * station.cost.least_s))


class CorePath:
    """The greedy allocations of some stations, by their number of cores, with their latencies.

    Whatever was computed for one goal is used again for the next.
    """

    def __init__(
        self,
        stations: Sequence[MicroBatchStation],
        share: float | None,
        *,
        least: Sequence[int],
        most: Sequence[int],
    ) -> None:
        self._stations = stations
        self._share = share
        self._least, self._most = least, most
        followed = [until_flat(one) for one in stations]
        self._table = StationTable.of(followed) or followed
        self._begin = sum(map(max, least, (station.stable_from for station in stations)))
        self._found: dict[int, tuple[CoreAllocation, float]] = {}
        self._looked_through = False

    def fewest(self, goal_s: float) -> CoreAllocation:
        """The fewest cores for the goal; raises PredictedOutOfReach with the best there is."""
        low, high = self._begin - 1, 0
        if not self._looked_through:
            low, high = self._climb(goal_s)
        if self._looked_through:
            low, high = self._begin - 1, self._any_within(goal_s)
        step = 1
        while high - step > low and self._latency_s(high - step) <= goal_s:
            high -= step
            step *= 2
        low = max(low, high - step)
        while high - low > 1:
            middle = (low + high) // 2
            if self._latency_s(middle) <= goal_s:
                high = middle
            else:
                low = middle
        return self._with_mean(high)

    def _climb(self, goal_s: float) -> tuple[int, int]:
        """Too few cores and enough of them; if there is no such number, look through the path."""
        low, high = self._begin - 1, self._enough_by_sum(goal_s)
        step = 1
        while self._latency_s(high) > goal_s:
            if self._allocation(high).total < high:
                self._look_through()
                break
            low, high = high, high + step
            step *= 2
        return low, high

    def _enough_by_sum(self, goal_s: float) -> int:
        """Where the search begins: the cores for which the sum of the means is within the goal."""
        try:
            return self._provisioned(goal_s)
        except LatencyOutOfReach as error:
            return self._provisioned(error.latency_reachable_s * (1.0 + 1e-9))

    def _provisioned(self, goal_s: float) -> int:
        return provision(self._table, goal_s, least=self._least, most=self._most).total

    def _any_within(self, goal_s: float) -> int:
        """Some number of cores within the goal, of those that a look through the path has found."""
        within = [total for total, (_, latency_s) in self._found.items() if latency_s <= goal_s]
        if within:
            return min(within)
        best = min(self._found, key=lambda total: (self._found[total][1], total))
        raise PredictedOutOfReach(goal_s, self._found[best][1], self._with_mean(best))

    def _look_through(self) -> None:
        """Compute the latency along the path: everywhere, or closer and closer to its lowest."""
        self._looked_through = True
        low, high = self._begin, max(found.total for found, _ in self._found.values())
        parts = _ALL_OF if high - low <= _ALL_OF else _PARTS
        while True:
            tried = sorted({low + (high - low) * n // parts for n in range(parts + 1)})
            place = tried.index(min(tried, key=self._latency_s))
            if high - low <= parts:
                return
            low, high = tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)]

    def _at(self, total: int) -> tuple[CoreAllocation, float]:
        if total not in self._found:
            allocation = assign(self._table, total, least=self._least, most=self._most)
            cores = [int(k) for k in allocation.cores]
            latency_s = predicted_s(self._stations, cores, self._share)
            self._found[total] = (allocation, latency_s)
        return self._found[total]

    def _allocation(self, total: int) -> CoreAllocation:
        return self._at(total)[0]

    def _latency_s(self, total: int) -> float:
        return self._at(total)[1]

    def _with_mean(self, total: int) -> CoreAllocation:
        """The allocation with its predicted mean."""
        allocation, mean_s = self._at(total)
        if self._share is not None:
            cores = [int(k) for k in allocation.cores]
            mean_s = predicted_s(self._stations, cores, None)
        return CoreAllocation(allocation.cores, allocation.total, mean_s)
