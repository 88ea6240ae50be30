"""Between a load and its logarithm, where jumps are steps and noise is in proportion."""

import numpy as np
from numpy.typing import NDArray

from tidegate.forecast import Forecast

Vector = NDArray[np.float64]

MAX_LOG_VARIANCE = 1.0
"""Cap on the way back: beyond it a log-normal's mean says more of its tail than of its size."""
FLOOR = 0.01
"""A load counts as at least this share of the typical one, so that zero has a logarithm."""


class Logarithm:
    """The logarithm of a load, with a floor that follows the load's own size.

    Loads come as counts or as megabytes per second, so a fixed floor (log1p) would not do.
    """

    def __init__(self, fading: float = 0.999) -> None:
        self._fading = fading
        self._total = 0.0
        self._weight = 0.0

    def of(self, value: float) -> float:
        """Logarithm of the value, which also joins the typical size."""
        if value > 0:
            self._total = self._fading * self._total + value
            self._weight = self._fading * self._weight + 1.0
        typical = self._total / self._weight if self._weight else 1.0
        return float(np.log(max(value, FLOOR * typical)))


def to_levels(log_mean: Vector, log_variance: Vector) -> Forecast:
    """Mean and variance of the load whose logarithm is normal with these."""
    variance = np.minimum(log_variance, MAX_LOG_VARIANCE)
    mean = np.exp(log_mean + variance / 2)
    return Forecast(mean, np.expm1(variance) * mean * mean)
