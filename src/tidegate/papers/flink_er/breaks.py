"""The break at a rescale: how much longer than usual no result came (Flink-ER 4.4).

Results come when a micro-batch ends. So the *gap* of a batch is the time from the end of the batch
before it to its own end. The *usual gap* at a rescale is the median over the batches around it, and
the *break* is what the first batch with other tasks took longer than that. While the load rises,
gaps grow before a rescale and shrink after it, so the median is taken over both sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidegate.papers.flink_er.done_batches import DoneBatch

AROUND = 3
"""So many batches on each side of a rescale say what gap is usual there."""


@dataclass(frozen=True, slots=True)
class Break:
    """What happened at one rescale."""

    at_s: float
    """When the first batch with other tasks ended."""
    gap_s: float
    usual_s: float

    @property
    def seconds(self) -> float:
        """How much longer than usual no result came; never below 0."""
        return max(self.gap_s - self.usual_s, 0.0)


def breaks_of(batches: Sequence[DoneBatch]) -> list[Break]:
    """The break at each rescale of a run."""
    pairs = list(pairwise(batches))
    gaps = [after.ended_s - before.ended_s for before, after in pairs]
    rescaled = [after.rescaled for _, after in pairs]
    found = []
    for place, (_, batch) in enumerate(pairs):
        if not batch.rescaled:
            continue
        near = range(max(place - AROUND, 0), min(place + AROUND + 1, len(pairs)))
        around = [gaps[other] for other in near if not rescaled[other]]
        if around:
            found.append(Break(batch.ended_s, gaps[place], float(np.median(around))))
    return found


def gaps_between(batches: Sequence[DoneBatch], from_s: float, until_s: float) -> list[float]:
    """All gaps between results that end within some time."""
    return [
        after.ended_s - before.ended_s
        for before, after in pairwise(batches)
        if from_s <= after.ended_s < until_s
    ]
