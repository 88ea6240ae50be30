"""The cost of a micro-batch, and what follows from it for a latency target.

A batch of N rows on k tasks takes D = a(k) + N c(k). Here a(k) = a0 + a1 k is the fixed cost, and
c(k) = w delta / k is the work per row, spread over k tasks with imbalance delta. In a query of
others, a(k) has a part F / k more: its tasks are many, and cores share what they cost. In the
steady state N = lambda D, so D = a / (1 - rho) with rho = lambda c. A row waits half a batch on
average and is done when the next batch ends, so E[T] = 1.5 D. Planning, shedding and sharing all
use this one formula, solved for the load, the cores, or the share of rows to keep.
"""

import math
from dataclasses import dataclass

from tidegate.errors import AskedWrongly

SOJOURN_BATCHES = 1.5
"""E[T] in batches: a row waits half a batch on average, then its own batch runs."""
REACHABLE = 1.05
"""Shedding can reach a target that is at least this many times the floor."""
BELOW_FLOOR = 2.0
"""If the target cannot be reached, the aim is this many times the floor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCost:
    """The cost of a micro-batch, as three numbers that can be learned from a running query."""

    fixed_s: float
    """a0: planning and commit, independent of the batch's size."""
    per_task_s: float = 0.0
    """a1: the overhead that each task adds; above zero, more cores can hurt."""
    work_s: float
    """w: core seconds per row."""
    least_s: float = 0.0
    """L: the time of the tasks that a batch takes at least, because other work runs beside them."""
    rowless_s: float = 0.0
    """F: core seconds of its tasks that are for no row, such as those of 200 shuffle partitions.
    All cores share them."""

    def __post_init__(self) -> None:
        costs = (self.fixed_s, self.per_task_s, self.work_s, self.least_s, self.rowless_s)
        if not min(costs) >= 0.0:
            raise AskedWrongly(
                f"a batch's cost cannot be negative, but is {self}; give numbers that are zero or"
                " more"
            )

    def overhead_s(self, tasks: int) -> float:
        """a(k): the fixed cost of a batch on k tasks."""
        return self.fixed_s + self.per_task_s * tasks + self.rowless_s / tasks

    def row_s(self, tasks: int, imbalance: float = 1.0) -> float:
        """c(k): what one more row adds to the batch."""
        return self.work_s * imbalance / tasks

    def duration_s(self, rows: float, tasks: int, imbalance: float = 1.0) -> float:
        """D: how long a batch of `rows` takes."""
        worked_s = rows * self.row_s(tasks, imbalance)
        return self.overhead_s(tasks) + max(worked_s, self.least_s)

    def throughput(
        self, tasks: int, latency_s: float, *, imbalance: float = 1.0, interval_s: float = 0.0
    ) -> float:
        """tau(T_max): the most rows per second at a mean latency of at most `latency_s`.

        From 1.5 a / (1 - tau c) = T_max follows tau = (1 - 1.5 a / T_max) / c. A fixed interval P
        also bounds it by P/2 + a + tau P c = T_max. It is zero when the fixed cost alone exceeds
        the latency.
        """
        overhead_s = self.overhead_s(tasks)
        row_s = self.row_s(tasks, imbalance)
        share = 1.0 - SOJOURN_BATCHES * overhead_s / latency_s
        if interval_s > 0.0:
            share = min(share, (latency_s - interval_s / 2.0 - overhead_s) / interval_s)
        if share <= 0.0 or self.floor_s(tasks, interval_s) > latency_s:
            return 0.0
        return share / row_s if row_s > 0.0 else float("inf")

    def floor_s(self, tasks: int, interval_s: float = 0.0) -> float:
        """E[T] of empty batches: the latency that neither cores nor shedding can lower."""
        empty_s = self.overhead_s(tasks) + self.least_s
        return max(SOJOURN_BATCHES * empty_s, interval_s / 2.0 + empty_s)

    def kept(self, rate: float, tasks: int, latency_s: float) -> float:
        """The share of `rate` that can be kept within the target: min(1, tau(T) / lambda).

        If the target cannot be reached, `reachable_s` takes its place.
        """
        aim_s = reachable_s(latency_s, self.floor_s(tasks))
        sustained = self.throughput(tasks, aim_s)
        return 1.0 if sustained >= rate else sustained / rate

    def cores_for(self, rate: float, latency_s: float, *, imbalance: float = 1.0) -> int:
        """The fewest cores with tau(T) >= `rate`: k >= lambda w delta / (1 - 1.5 a / T).

        Raises AskedWrongly when the target is below the floor, which no number of cores can lower.
        With a cost per task, k is also on the right-hand side; the smaller root is the result.
        """
        load = rate * self.work_s * imbalance + SOJOURN_BATCHES * self.rowless_s / latency_s
        room = 1.0 - SOJOURN_BATCHES * self.fixed_s / latency_s
        slope = SOJOURN_BATCHES * self.per_task_s / latency_s
        found = room * room - 4.0 * slope * load
        if room > 0.0 and found >= 0.0:
            exact = load / room if slope == 0.0 else (room - math.sqrt(found)) / (2.0 * slope)
            cores = max(math.ceil(exact - 1e-9), 1)
            if self.floor_s(cores) <= latency_s * (1.0 + 1e-9):
                return cores
        raise AskedWrongly(
            f"no number of cores holds {latency_s:g} s at {rate:g} rows/s, with"
            f" {self.fixed_s + self.least_s:g} s of fixed cost in every batch; give a longer target"
        )

    def most_throughput(
        self, most: int, latency_s: float, *, imbalance: float = 1.0, interval_s: float = 0.0
    ) -> float:
        """The largest tau(T_max) over 1 to `most` tasks; `most` is not best if tasks are costly.

        Up to the most tasks whose empty batches are within the latency, tau is the smaller of two
        parabolas in k, (1 - 1.5 a / T) k and (T - P/2 - a) k / P, over w delta. So it is concave,
        and bisection finds where one more task no longer raises it.
        """

        def at(tasks: int) -> float:
            return self.throughput(tasks, latency_s, imbalance=imbalance, interval_s=interval_s)

        low, high = 1, self._most_within(most, latency_s, interval_s)
        while low < high:
            middle = (low + high) // 2
            if at(middle + 1) > at(middle):
                low = middle + 1
            else:
                high = middle
        return at(low)

    def _most_within(self, most: int, latency_s: float, interval_s: float) -> int:
        """The most tasks, up to `most`, whose empty batches are within the latency; at least 1."""
        low, high = 1, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.floor_s(middle, interval_s) <= latency_s:
                low = middle
            else:
                high = middle - 1
        return low


def reachable_s(target_s: float, floor_s: float) -> float:
    """The latency to aim at when shedding: the target, or twice the floor if that is too low.

    Below the floor even an empty batch is late, so shedding all rows would not help.
    """
    return target_s if floor_s * REACHABLE <= target_s else BELOW_FLOOR * floor_s
