"""What the next rounds take when a share of their rows is kept: the overload paper's eq. 1.

A round takes all rows that wait: a micro-batch, or the paper's pass over its buffer. Each of its N
rows is gathered, kept or not, and costs c_s; the n that are kept are processed at c_p each; a fixed
part a comes on top. A round takes D = a + N c_s + n c_p, and while it runs the rows of the next one
wait. In the steady state a row has waited `waiting` rounds when its own begins.
"""

from dataclasses import dataclass

from tidegate.errors import AskedWrongly

_MOST_ROUNDS = 64
"""Rounds looked at: more than this of them within one decision are as good as steady."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOutlook:
    """The rounds that the next decision is about."""

    offered_rows: float
    """N: rows that wait when the next round begins."""
    arrival_rate: float
    """Rows per second that arrive while it runs."""
    row_s: float
    """c_p: what one more row kept adds to the round."""
    gather_s: float = 0.0
    """c_s: what a row adds whether it is kept or not."""
    fixed_s: float = 0.0
    """a: what a round costs in any case."""
    waiting: float = 0.5
    """Rounds that a row has waited when its own begins: 1/2 on average, 1 for the oldest one."""
    working: float = 1.0
    """Share of a round's processing that is over when a result is out: 1 in a micro-batch, on
    average (Q + 1) / 2Q where Q queries take turns."""
    trigger_s: float = 0.0
    """Rounds begin no closer together than this."""
    horizon_s: float = 0.0
    """From the beginning of the next round until another decision can take effect."""

    def __post_init__(self) -> None:
        numbers = (self.offered_rows, self.arrival_rate, self.gather_s, self.fixed_s, self.row_s)
        if min(*numbers, self.trigger_s) < 0.0 or not 0.0 < self.working <= 1.0:
            raise AskedWrongly(
                "an outlook needs rows, rates and costs from zero up, and a share of the work above"
                f" 0 and up to 1, but is {self}"
            )

    def duration_s(self, offered_rows: float, keep: float) -> float:
        """D of a round with so many rows (eq. 1, with a fixed part)."""
        return self.fixed_s + offered_rows * (self.gather_s + keep * self.row_s)

    def latency_s(self, keep: float) -> float:
        """Mean latency that settles in with this share, over the rounds of the horizon.

        What rows have waited already cannot be changed any more: each round counts with the wait
        that its own duration gives the rows behind it. So a late round is followed by one of the
        right length, and not by one that is too short and leaves the machine idle.
        """
        rows = self.offered_rows
        passed_s = total = weight = 0.0
        for _ in range(_MOST_ROUNDS):
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
        """tau(T): most rows per second kept, for ever, with this mean latency.

        From D = a + lambda D (c_s + keep c_p) and T = waiting D + D - (1 - working) (the work of
        D); the micro-batch station's tau (models/microbatch) with gathering paid first.
        """
        if self.row_s <= 0.0:
            return float("inf")
        gathering = self.arrival_rate * self.gather_s
        # T = D (waiting + 1 - (1 - working) rho) and D = a / (1 - gathering - rho): linear in rho.
        span = self.waiting + 1.0
        unseen = 1.0 - self.working
        rho = (latency_s * (1.0 - gathering) - self.fixed_s * span) / (
            latency_s - self.fixed_s * unseen
        )
        return max(rho, 0.0) / self.row_s
