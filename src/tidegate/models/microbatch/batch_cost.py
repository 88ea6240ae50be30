"""The cost of a micro-batch, and what follows from it for a latency target.

A batch of N rows on k tasks takes D = a(k) + N c(k). Here a(k) = a0 + a1 k is the fixed cost, and
c(k) = w delta / k is the work per row, spread over k tasks with imbalance delta. In the steady
state N = lambda D, so D = a / (1 - rho) with rho = lambda c. A row waits half a batch on average
and is done when the next batch ends, so E[T] = 1.5 D. Planning, shedding and sharing all use this
one formula, solved for the load, the cores, or the share of rows to keep.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

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

    def __post_init__(self) -> None:
        if not (self.fixed_s >= 0.0 and self.per_task_s >= 0.0 and self.work_s >= 0.0):
            raise AskedWrongly(
                f"a batch's cost cannot be negative, but is {self}; give three numbers that are"
                " zero or more"
            )

    def overhead_s(self, tasks: int) -> float:
        """a(k): the fixed cost of a batch on k tasks."""
        return self.fixed_s + self.per_task_s * tasks

    def row_s(self, tasks: int, imbalance: float = 1.0) -> float:
        """c(k): what one more row adds to the batch."""
        return self.work_s * imbalance / tasks

    def duration_s(self, rows: float, tasks: int, imbalance: float = 1.0) -> float:
        """D: how long a batch of `rows` takes."""
        return self.overhead_s(tasks) + rows * self.row_s(tasks, imbalance)

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
        if share <= 0.0:
            return 0.0
        return share / row_s if row_s > 0.0 else float("inf")

    def floor_s(self, tasks: int, interval_s: float = 0.0) -> float:
        """E[T] of empty batches: the latency that neither cores nor shedding can lower."""
        overhead_s = self.overhead_s(tasks)
        return max(SOJOURN_BATCHES * overhead_s, interval_s / 2.0 + overhead_s)

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
        load = rate * self.work_s * imbalance
        room = 1.0 - SOJOURN_BATCHES * self.fixed_s / latency_s
        slope = SOJOURN_BATCHES * self.per_task_s / latency_s
        found = room * room - 4.0 * slope * load
        if room <= 0.0 or found < 0.0:
            raise AskedWrongly(
                f"no number of cores holds {latency_s:g} s at {rate:g} rows/s, with"
                f" {self.fixed_s:g} s of fixed cost in every batch; give a longer target"
            )
        exact = load / room if slope == 0.0 else (room - math.sqrt(found)) / (2.0 * slope)
        return max(math.ceil(exact - 1e-9), 1)

    def most_throughput(
        self, most: int, latency_s: float, *, imbalance: float = 1.0, interval_s: float = 0.0
    ) -> float:
        """The largest tau(T_max) over 1 to `most` tasks; `most` is not best if tasks are costly.

        (1 - 1.5 (a0 + a1 k) / T) k is largest at k = (T / 1.5 - a0) / 2 a1. When the trigger
        interval limits, (T - P/2 - a0 - a1 k) k is largest at k = (T - P/2 - a0) / 2 a1.
        """
        tried = {1, most}
        if self.per_task_s > 0.0:
            for room_s in (latency_s / SOJOURN_BATCHES, latency_s - interval_s / 2.0):
                best = (room_s - self.fixed_s) / (2.0 * self.per_task_s)
                tried |= {min(max(int(best) + more, 1), most) for more in (0, 1)}
        return max(
            self.throughput(tasks, latency_s, imbalance=imbalance, interval_s=interval_s)
            for tasks in tried
        )


def chance_spread(tasks: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """delta - 1 when rows fall on k tasks at random, times the root of their number.

    The fullest task lies as far above the mean as the largest of k normal draws (Blom's
    approximation of its expectation). N/k rows per task have a deviation of about their root.
    """
    k = np.maximum(np.asarray(tasks, np.float64), 1.0)
    return np.asarray(ndtri((k - 0.375) / (k + 0.25)) * np.sqrt(k - 1.0))


def chance_imbalance(rows: float, tasks: int) -> float:
    """delta when N rows fall on k tasks at random: small batches are never balanced."""
    if rows <= 0.0 or tasks <= 1:
        return 1.0
    return min(1.0 + float(chance_spread(tasks)) / math.sqrt(rows), float(tasks))


def routed_imbalance(shares: npt.ArrayLike, rows: float) -> float:
    """delta when N rows fall on tasks that get these shares of them.

    The rows of a task are normally distributed around its share, so the fullest task has
    E[max] = low + the integral of 1 - Phi_1 ... Phi_k rows, with Phi_j the distribution of task j.
    """
    parts = np.asarray(shares, np.float64)
    tasks = len(parts)
    if rows <= 0.0 or tasks <= 1:
        return 1.0
    mean = rows * parts
    deviation = np.sqrt(np.maximum(mean * (1.0 - parts), 1e-12))
    low, high = float(mean.max()), float((mean + 6.0 * deviation).max())
    at, step = np.linspace(low, high, 256, retstep=True)
    below = ndtr((at[:, None] - mean) / deviation).prod(axis=1)
    # The maximum is rarely below the largest mean; what it falls short of there is added below.
    under = np.linspace(float((mean - 6.0 * deviation).max()), low, 256)
    short = float(ndtr((under[:, None] - mean) / deviation).prod(axis=1).mean())
    fullest = low - short * (low - float(under[0])) + float((1.0 - below).sum()) * float(step)
    return min(max(fullest / (rows / tasks), 1.0), float(tasks))


def reachable_s(target_s: float, floor_s: float) -> float:
    """The latency to aim at when shedding: the target, or twice the floor if that is too low.

    Below the floor even an empty batch is late, so shedding all rows would not help.
    """
    return target_s if floor_s * REACHABLE <= target_s else BELOW_FLOOR * floor_s
