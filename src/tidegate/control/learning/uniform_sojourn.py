"""Sojourns of a query whose rows carry no arrival time, by the micro-batch formula.

A row that arrives between the starts of two triggers is done when the batch of the second ends. If
arrivals are spread evenly, a batch of duration D whose rows arrived during a span s has sojourns
that are uniform between D and D + s. In the steady state s = D, and the mean is the formula's
1.5 D. Rows that stayed in the source before, behind a read limit, waited for that as well, all of
them equally long. The sojourns of several batches are a mixture of uniforms, weighted by their
rows. Its distribution function is piecewise linear, so its mean and percentiles are computed
exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.measurement import Latency


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadBatch:
    """A finished batch, and the time over which its rows arrived."""

    rows: int
    span_s: float
    """From the start of the trigger before to the start of its own."""
    duration_s: float
    """From the start of its trigger to its end."""
    waited_s: float = 0.0
    """Time between the arrival of its newest row and the start of its trigger."""


def uniform_sojourn(batches: Sequence[SpreadBatch]) -> Latency | None:
    """Mean and percentiles over all rows of the batches; `None` when there is no row.

    A percentile is the smallest sojourn that this share of the rows do not exceed.
    """
    full = [batch for batch in batches if batch.rows > 0]
    if not full:
        return None
    weight = np.array([batch.rows for batch in full], dtype=np.float64)
    weight /= weight.sum()
    shortest = np.array([batch.duration_s + max(batch.waited_s, 0.0) for batch in full])
    span = np.array([max(batch.span_s, 0.0) for batch in full])
    edges = np.unique(np.concatenate([shortest, shortest + span]))
    # The distribution function at each edge, and just before it: it jumps where all rows of a batch
    # arrived at the same time (a span of zero).
    spread = span > 0.0
    beyond = edges[:, None] - shortest[None, :]
    part = np.clip(beyond / np.where(spread, span, 1.0), 0.0, 1.0)
    upto = np.where(spread, part, beyond >= 0.0) @ weight
    before = np.where(spread, part, beyond > 0.0) @ weight

    def percentile(share: float) -> float:
        place = min(int(np.searchsorted(upto, share - 1e-12)), len(edges) - 1)
        if place == 0 or before[place] < share:
            return float(edges[place])
        rise = before[place] - upto[place - 1]
        along = (share - upto[place - 1]) / rise if rise > 0.0 else 0.0
        return float(edges[place - 1] + along * (edges[place] - edges[place - 1]))

    return Latency(
        mean_s=float(weight @ (shortest + span / 2.0)),
        p50_s=percentile(0.5),
        p95_s=percentile(0.95),
        p99_s=percentile(0.99),
    )
