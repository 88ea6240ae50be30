"""What micro-batches that follow one another get done: rows in each second, latency, moves.

A turn of a batch begins when the batch before it has ended, because the source is always full. So
the time in which nothing runs, while a query is stopped and started, belongs to the next turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidegate.control.shards.route import Route
from tidegate.spark.batch.result import BatchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One micro-batch."""

    began_s: float
    """When the batch before it had ended."""
    ended_s: float
    rows: int
    moves: int
    """Shards that had another task in the batch before."""
    imbalance: float
    """delta: rows of the fullest task over the mean."""

    @property
    def seconds(self) -> float:
        """How long its rows waited and were worked on."""
        return self.ended_s - self.began_s


def turns_of(results: Sequence[BatchResult], operator: str) -> list[Turn]:
    """The turns of consecutive batches; the first one only begins the second one's turn."""
    return [_turn(before, after, operator) for before, after in pairwise(results)]


def _turn(before: BatchResult, after: BatchResult, operator: str) -> Turn:
    rows = [report.rows_in for report in after.of(operator)]
    plan = after.plan.operators[operator]
    return Turn(
        began_s=before.ended_s,
        ended_s=after.ended_s,
        rows=sum(rows),
        moves=moved(before.plan.operators[operator].route, plan.route),
        imbalance=max(rows, default=0) * plan.tasks / max(1, sum(rows)),
    )


def moved(before: Route, after: Route) -> int:
    """How many shards changed their task."""
    return sum(one != other for one, other in zip(before, after, strict=True))


def rows_per_second(turns: Sequence[Turn]) -> tuple[float, ...]:
    """Rows done in each whole second since the first turn began.

    The rows of a batch are spread evenly over its turn: its tasks work on them all the time, and
    only the commit comes at its end.
    """
    if not turns:
        return ()
    edges = np.array([turns[0].began_s, *(turn.ended_s for turn in turns)]) - turns[0].began_s
    done = np.concatenate([[0.0], np.cumsum([float(turn.rows) for turn in turns])])
    seconds = np.arange(int(edges[-1]) + 1, dtype=np.float64)
    return tuple(np.diff(np.interp(seconds, edges, done)).tolist())


def mean_rate(turns: Sequence[Turn]) -> float:
    """Rows per second over all turns."""
    spent_s = sum(turn.seconds for turn in turns)
    return sum(turn.rows for turn in turns) / spent_s if spent_s > 0 else 0.0


def mean_latency_s(turns: Sequence[Turn]) -> float:
    """Mean over all rows: from their turn's begin to the end of their batch."""
    rows = sum(turn.rows for turn in turns)
    return sum(turn.rows * turn.seconds for turn in turns) / rows if rows else 0.0


def latency_percentile_s(turns: Sequence[Turn], percent: float) -> float:
    """The latency that so many percent of all rows do not exceed; rows of a batch share theirs."""
    if not turns:
        return 0.0
    ordered = sorted(turns, key=lambda turn: turn.seconds)
    done = np.cumsum([float(turn.rows) for turn in ordered])
    place = int(np.searchsorted(done, done[-1] * percent / 100.0 - 1e-9))
    return ordered[min(place, len(ordered) - 1)].seconds


def longest_over_median(turns: Sequence[Turn]) -> float:
    """The longest turn over the median one."""
    seconds = [turn.seconds for turn in turns]
    return max(seconds) / float(np.median(seconds)) if seconds else 1.0
