"""The micro-batch station: Spark, where the next batch takes all rows that arrived during the last.

With D the steady duration of a batch (`batch_cost`), E[T] = 1.5 D. docs/models.md derives this.
"""

from dataclasses import dataclass

from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import SOJOURN_BATCHES, BatchCost


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
        return max(SOJOURN_BATCHES * duration_s, self.interval_s / 2.0 + duration_s)

    def surge_latency(self, tasks: int, factor: float) -> float:
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
