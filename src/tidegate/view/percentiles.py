"""A percentile of all rows of a run, from the percentiles of its ticks.

A tick has its median, 95th and 99th percentile. Its distribution is assumed to be linear from zero
to the median and between the percentiles, and to end at the 99th. The rows of a run are the mixture
of these. The result is exact where all ticks are alike, and always within the range of the ticks.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate.control.measurement import Latency

_HEIGHTS = np.array([0.0, 0.5, 0.95, 0.99])
_HALVINGS = 60
"""Enough bisections to reach the last digit of a double from any latency."""


def pooled_quantile(latencies: Sequence[Latency], rows: Sequence[float], share: float) -> float:
    """The latency within which this share (0 to 1) of all rows was completed."""
    knots = np.array([[0.0, one.p50_s, one.p95_s, one.p99_s] for one in latencies])
    weights = np.asarray(rows, dtype=np.float64)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(knots), 1 / len(knots))
    low, high = 0.0, float(knots.max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(weights @ _share_within(knots, middle)) < share:
            low = middle
        else:
            high = middle
    return high


def _share_within(knots: NDArray[np.float64], latency_s: float) -> NDArray[np.float64]:
    within = np.zeros(len(knots))
    for place in range(len(_HEIGHTS) - 1):
        left, right = knots[:, place], knots[:, place + 1]
        width = np.where(right > left, right - left, 1.0)
        rise = np.where(right > left, (latency_s - left) / width, latency_s >= left)
        within += np.clip(rise, 0.0, 1.0) * (_HEIGHTS[place + 1] - _HEIGHTS[place])
    return np.asarray(np.where(latency_s >= knots[:, -1], 1.0, within))
