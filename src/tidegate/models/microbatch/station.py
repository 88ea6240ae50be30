"""The micro-batch station: Spark, where the next batch takes all rows that arrived during the last.

With D the steady duration of a batch (`batch_cost`), E[T] = 1.5 D. docs/models.md derives this.
"""

import math
from dataclasses import dataclass

from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import SOJOURN_BATCHES, BatchCost
from tidegate.models.microbatch.percentile import MOST_SPREAD, SojournTime, Way


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
    loops: bool = False
    """Whether rows come back to it: a visit ratio above 1 then counts passes, not more rows."""
    passes: float | None = None
    """How often a row comes to it that a loop brings back, where that is known apart from rows that
    are multiplied on their way; None: the visit ratio."""
    apart: bool = False
    """Whether its rows come from outside: it does not follow the station before it."""
    noise: float = 0.0
    """Standard deviation of a batch's duration around its cost, as a share of it."""

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
        overhead_s = self.cost.overhead_s(tasks)
        batch_s = max(overhead_s / (1.0 - self.load / tasks), overhead_s + self.cost.least_s)
        if batch_s >= self.interval_s:
            return batch_s
        return overhead_s + max(self.interval_s * self.load / tasks, self.cost.least_s)

    def worked(self, tasks: int) -> float:
        """How much longer a batch takes when it was gathered for longer: rho, or less.

        Where other work beside the tasks makes batches last (L), a few more rows change nothing,
        but for the batches that noise brings over L: erfc is the chance of a deviation that large.
        """
        share = self.load / tasks
        worked_s = share * max(self.duration_s(tasks), self.interval_s)
        below_s = self.cost.least_s - worked_s
        if not 0.0 < below_s < math.inf:
            return share
        noise_s = self.noise * worked_s
        return share * math.erfc(below_s / (math.sqrt(2.0) * noise_s)) if noise_s > 0.0 else 0.0

    def latency(self, tasks: int) -> float:
        """E[T](k): 1.5 D, or P/2 + D(lambda P) where a batch ends before its fixed interval.

        The larger of the two always applies: they meet where a batch just fills the interval. As
        the maximum of two convex functions, E[T] is convex in k.
        """
        duration_s = self.duration_s(tasks)
        return max(SOJOURN_BATCHES * duration_s, self.interval_s / 2.0 + duration_s)

    def noise_on(self, tasks: int) -> float:
        """The relative deviation of a batch's duration, given the time in which it is gathered.

        The number of rows varies as well, by its root, as rows arrive at random.
        """
        duration_s = self.duration_s(tasks)
        cycle_s = max(duration_s, self.interval_s)
        rows = self.arrival_rate * cycle_s
        if not 0.0 < rows < math.inf:
            return self.noise
        worked = self.worked(tasks) * cycle_s / duration_s
        return math.sqrt(self.noise**2 + worked**2 / rows)

    def spread_on(self, tasks: int) -> float:
        """s: the relative deviation of the durations of batches that follow each other.

        A batch that takes longer gathers more rows for the next: y' = rho y + noise, so the
        deviations are those of the noise, raised by 1 / sqrt(1 - rho^2).
        """
        rho = min(self.worked(tasks), 0.999)
        return self.noise_on(tasks) / math.sqrt(1.0 - rho * rho)

    def sojourn(self, tasks: int) -> SojournTime:
        """The distribution of the sojourn of its rows, in the steady state.

        Without a fixed interval, or if batches outlast it, a batch is gathered while the one before
        it runs. With an interval it is gathered during the interval, whatever batches take.
        """
        duration_s = self.duration_s(tasks)
        noise_s = self.noise_on(tasks) * duration_s if duration_s < math.inf else 0.0
        if duration_s < self.interval_s:
            return SojournTime((Way(1.0, duration_s, 0.0, noise_s, self.interval_s, 0.0),))
        longer_s = min(self.worked(tasks), 1.0) * duration_s
        spread = min(self.spread_on(tasks), MOST_SPREAD)
        return SojournTime((Way(1.0, duration_s, longer_s, noise_s, duration_s, spread),))

    def percentile(self, tasks: int, share: float) -> float:
        """The sojourn that this share of its rows do not exceed; infinite when it is unstable."""
        return math.inf if tasks <= self.load else self.sojourn(tasks).percentile(share)

    def surge_latency(self, tasks: int, factor: float) -> float:
        """Mean latency of the first batch after the arrival rate rose by `factor`.

        Its rows arrived during a batch of the usual length, so they waited half of it on average,
        and there are `factor` times as many: E[T] = C/2 + D + (factor - 1) rho C, with
        C = max(D, P). No scaling is fast enough for that batch, so it runs on the present tasks.
        """
        duration_s = self.duration_s(tasks)
        if duration_s == float("inf"):
            return duration_s
        cycle_s = max(duration_s, self.interval_s)
        return cycle_s / 2.0 + duration_s + (factor - 1.0) * cycle_s * self.load / tasks
