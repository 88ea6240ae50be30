"""The micro-batch station: Spark, where the next batch takes all rows that arrived during the last.

With D the steady duration of a batch (`batch_cost`), E[T] = 1.5 D. docs/models.md derives this.
"""

from dataclasses import dataclass

from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import SOJOURN_BATCHES, BatchCost


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchStation:
    """A segment at a rate of rows, as allocators see a station; a core runs one task."""

    cost: BatchCost
    arrival_rate: float
    """Rows per second (lambda)."""
    imbalance: float = 1.0
    """delta: load of the fullest task over the mean."""
    interval_s: float = 0.0
    """P: the fixed trigger interval; zero starts each batch as soon as the last one ends."""
    visit_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not (self.arrival_rate >= 0.0 and self.imbalance >= 1.0 and self.interval_s >= 0.0):
            raise AskedWrongly(
                "a micro-batch station needs a rate and an interval from zero and an imbalance"
                f" from one, but has {self.arrival_rate}, {self.interval_s} and {self.imbalance}"
            )

    @property
    def load(self) -> float:
        """Cores kept busy by rows: lambda w delta, so that rho = load / k."""
        return self.arrival_rate * self.cost.work_s * self.imbalance

    @property
    def stable_from(self) -> int:
        """The smallest number of tasks with rho < 1."""
        return int(self.load) + 1

    def duration_s(self, tasks: int) -> float:
        """D: the steady duration of a batch; infinite when it cannot keep up."""
        if tasks <= self.load:
            return float("inf")
        batch_s = self.cost.overhead_s(tasks) / (1.0 - self.load / tasks)
        if batch_s >= self.interval_s:
            return batch_s
        return self.cost.overhead_s(tasks) + self.interval_s * self.load / tasks

    def latency(self, tasks: int) -> float:
        """E[T](k): 1.5 D, or P/2 + D(lambda P) where a batch ends before its fixed interval does.

        The larger of the two is always the one in force: they meet where the batch just fills the
        interval, so E[T] is convex in k, being the maximum of two convex functions.
        """
        duration_s = self.duration_s(tasks)
        return max(SOJOURN_BATCHES * duration_s, self.interval_s / 2.0 + duration_s)

    def surge_latency(self, tasks: int, factor: float) -> float:
        """Mean latency of the first batch whose rows came `factor` times as fast as before.

        They came during a steady batch, so they waited half of it, and are `factor` times as many:
        E[T] = max(D, P)/2 + a + factor (D - a). No scaling is quick enough for that batch: it runs
        on the tasks that were there.
        """
        duration_s = self.duration_s(tasks)
        if duration_s == float("inf"):
            return duration_s
        overhead_s = self.cost.overhead_s(tasks)
        waited_s = max(duration_s, self.interval_s) / 2.0
        return waited_s + overhead_s + factor * (duration_s - overhead_s)
