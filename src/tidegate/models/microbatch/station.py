"""The micro-batch station: Spark, where a batch takes all rows that arrived during the last one.

A batch of N rows on k tasks takes D = a(k) + N c(k). Here a(k) = a0 + a1 k is the fixed cost, and
c(k) = w delta / k is the work per row, spread over k tasks with imbalance delta. In the steady
state N = lambda D, so D = a / (1 - rho) with rho = lambda c. A row waits half a batch on average
and is done when the next batch ends, so E[T] = 1.5 D. docs/models.md derives this.
"""

import math
from dataclasses import dataclass

from scipy.special import ndtri

from tidegate.errors import AskedWrongly


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
        share = 1.0 - 1.5 * overhead_s / latency_s
        if interval_s > 0.0:
            share = min(share, (latency_s - interval_s / 2.0 - overhead_s) / interval_s)
        if share <= 0.0:
            return 0.0
        return share / row_s if row_s > 0.0 else float("inf")

    def most_throughput(
        self, most: int, latency_s: float, *, imbalance: float = 1.0, interval_s: float = 0.0
    ) -> float:
        """The largest tau(T_max) over 1 to `most` tasks. With a cost per task it need not be at
        `most`.

        (1 - 1.5 (a0 + a1 k) / T) k is largest at k = (T / 1.5 - a0) / 2 a1. When the trigger
        interval limits, (T - P/2 - a0 - a1 k) k is largest at k = (T - P/2 - a0) / 2 a1.
        """
        tried = {1, most}
        if self.per_task_s > 0.0:
            for room_s in (latency_s / 1.5, latency_s - interval_s / 2.0):
                best = (room_s - self.fixed_s) / (2.0 * self.per_task_s)
                tried |= {min(max(int(best) + more, 1), most) for more in (0, 1)}
        return max(
            self.throughput(tasks, latency_s, imbalance=imbalance, interval_s=interval_s)
            for tasks in tried
        )


def chance_imbalance(rows: float, tasks: int) -> float:
    """delta when N rows fall on k tasks at random: N/k per task, with a deviation of its root.

    The fullest task lies as far above the mean as the largest of k normal draws (Blom's
    approximation of its expectation), so small batches on many tasks are never balanced.
    """
    if rows <= 0.0 or tasks <= 1:
        return 1.0
    highest = float(ndtri((tasks - 0.375) / (tasks + 0.25)))
    return min(1.0 + highest * math.sqrt((tasks - 1) / rows), float(tasks))


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchStation:
    """A segment at a given arrival rate, as a station for allocators; each core runs one task."""

    cost: BatchCost
    arrival_rate: float
    """Rows per second (lambda)."""
    imbalance: float = 1.0
    """delta: load of the fullest task over the mean."""
    interval_s: float = 0.0
    """P: the fixed trigger interval; with zero a batch starts as soon as the last one ends."""
    visit_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not (self.arrival_rate >= 0.0 and self.imbalance >= 1.0 and self.interval_s >= 0.0):
            raise AskedWrongly(
                "a micro-batch station needs an arrival rate and an interval of at least 0 and an"
                f" imbalance of at least 1, but has {self.arrival_rate}, {self.interval_s} and"
                f" {self.imbalance}"
            )

    @property
    def load(self) -> float:
        """Cores that the rows keep busy: lambda w delta, so that rho = load / k."""
        return self.arrival_rate * self.cost.work_s * self.imbalance

    @property
    def stable_from(self) -> int:
        """The smallest number of tasks with rho < 1."""
        return int(self.load) + 1

    def duration_s(self, tasks: int) -> float:
        """D: the duration of a batch in the steady state; infinite when the station is unstable."""
        if tasks <= self.load:
            return float("inf")
        batch_s = self.cost.overhead_s(tasks) / (1.0 - self.load / tasks)
        if batch_s >= self.interval_s:
            return batch_s
        return self.cost.overhead_s(tasks) + self.interval_s * self.load / tasks

    def latency(self, tasks: int) -> float:
        """E[T](k): 1.5 D, or P/2 + D(lambda P) where a batch ends before its fixed interval.

        The larger of the two always applies: they meet where a batch just fills the interval. As
        the maximum of two convex functions, E[T] is convex in k.
        """
        duration_s = self.duration_s(tasks)
        return max(1.5 * duration_s, self.interval_s / 2.0 + duration_s)

    def leap_latency(self, tasks: int, factor: float) -> float:
        """Mean latency of the first batch after the arrival rate rose by `factor`.

        Its rows arrived during a batch of the usual length, so they waited half of it on average,
        and there are `factor` times as many: E[T] = max(D, P)/2 + a + factor (D - a). No scaling is
        fast enough for that batch, so it runs on the present tasks.
        """
        duration_s = self.duration_s(tasks)
        if duration_s == float("inf"):
            return duration_s
        overhead_s = self.cost.overhead_s(tasks)
        waited_s = max(duration_s, self.interval_s) / 2.0
        return waited_s + overhead_s + factor * (duration_s - overhead_s)
