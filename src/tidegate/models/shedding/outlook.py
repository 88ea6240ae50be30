"""Predicts the next batches when a share of their rows is kept (the overload paper's eq. 1).

A batch is a micro-batch, or the paper's pass over its buffer; it takes the whole backlog. Reading a
row costs c_s whether it is kept or shed, and processing a kept row costs c_p. With a fixed cost a,
a batch of N rows that keeps n takes D = a + N c_s + n c_p, while the rows of the next one arrive.
In the steady state a row has waited `waiting` batches when its own begins.
"""

from dataclasses import dataclass

from tidegate.errors import AskedWrongly

_MOST_BATCHES = 64
"""Batches that are simulated at most: after so many between two decisions the state is steady."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutlook:
    """The batches from the next one until another decision can take effect."""

    offered_rows: float
    """N: the backlog in rows when the next batch begins."""
    arrival_rate: float
    """Rows per second that arrive during the batches."""
    row_s: float
    """c_p: the time that each kept row adds to the batch."""
    gather_s: float = 0.0
    """c_s: the time that each row adds, kept or shed."""
    fixed_s: float = 0.0
    """a: the fixed cost of a batch."""
    waiting: float = 0.5
    """How many batches a row has waited when its own begins: 1/2 on average, 1 for the oldest."""
    working: float = 1.0
    """The share of a batch's processing that precedes a result: 1 in a micro-batch; where Q queries
    take turns, (Q + 1) / 2Q on average."""
    trigger_s: float = 0.0
    """The least time between the starts of two batches."""
    horizon_s: float = 0.0
    """From the start of the next batch until another decision can take effect."""

    def __post_init__(self) -> None:
        numbers = (self.offered_rows, self.arrival_rate, self.gather_s, self.fixed_s, self.row_s)
        if min(*numbers, self.trigger_s) < 0.0 or not 0.0 < self.working <= 1.0:
            raise AskedWrongly(
                "an outlook needs rows, rates and costs of at least 0, and a share of the work"
                f" above 0 and up to 1, but is {self}"
            )

    def duration_s(self, offered_rows: float, keep: float) -> float:
        """D: how long a batch of `offered_rows` takes (eq. 1, plus a fixed cost)."""
        return self.fixed_s + offered_rows * (self.gather_s + keep * self.row_s)

    def latency_s(self, keep: float) -> float:
        """Mean latency over the batches of the horizon when this share of the rows is kept.

        The time that rows have waited already cannot be changed. Each batch therefore counts with
        the wait that its duration causes for the rows that arrive during it. So a late batch is
        followed by one of the right length, not by one too short that leaves the machine idle.
        """
        rows = self.offered_rows
        passed_s = total = weight = 0.0
        for _ in range(_MOST_BATCHES):
            duration_s = self.duration_s(rows, keep)
            period_s = max(duration_s, self.trigger_s)
            unfinished_s = (1.0 - self.working) * keep * rows * self.row_s
            total += period_s * (self.waiting * period_s + duration_s - unfinished_s)
            weight += period_s
            passed_s += period_s
            if passed_s >= self.horizon_s or period_s <= 0.0:
                break
            rows = self.arrival_rate * period_s
        return total / weight if weight > 0.0 else 0.0

    def steady_throughput(self, latency_s: float) -> float:
        """tau(T): the most rows per second that can be kept in the steady state at this latency.

        It follows from D = a + lambda D (c_s + keep c_p) and T = waiting D + D - (1 - working)
        (the work of D): tau of the micro-batch station (models/microbatch) in the time that is
        left after reading all rows.
        """
        if self.row_s <= 0.0:
            return float("inf")
        reading = self.arrival_rate * self.gather_s
        # T = D (waiting + 1 - (1 - working) rho) and D = a / (1 - reading - rho): linear in rho.
        span = self.waiting + 1.0
        unseen = 1.0 - self.working
        rho = (latency_s * (1.0 - reading) - self.fixed_s * span) / (
            latency_s - self.fixed_s * unseen
        )
        return max(rho, 0.0) / self.row_s
