"""Converts loads to logarithms and back. On that scale proportional noise is constant."""

import numpy as np
from numpy.typing import NDArray

from tidegate.forecast import Forecast
from tidegate.forecast.remembering import Remembered

Vector = NDArray[np.float64]

MAX_LOG_VARIANCE = 1.0
"""Cap used when converting back: above it the tail of a log-normal dominates its mean."""
FLOOR = 0.01
"""A load is raised to at least this share of the typical load, so that zero has a logarithm."""


class Logarithm(Remembered):
    """The logarithm of a load, with a floor that follows the typical load.

    Loads may be counts or megabytes per second, so a fixed floor (log1p) would not work.
    """

    _LEARNED = ("_total", "_weight")

    def __init__(self, fading: float = 0.999) -> None:
        self._fading = fading
        self._total = 0.0
        self._weight = 0.0

    def of(self, value: float) -> float:
        """The logarithm of the value; the value also updates the typical load."""
        if value > 0:
            self._total = self._fading * self._total + value
            self._weight = self._fading * self._weight + 1.0
        typical = self._total / self._weight if self._weight else 1.0
        return float(np.log(max(value, FLOOR * typical)))


def to_levels(log_mean: Vector, log_variance: Vector) -> Forecast:
    """Forecast of a load whose logarithm is normal with this mean and variance."""
    variance = np.minimum(log_variance, MAX_LOG_VARIANCE)
    mean = np.exp(log_mean + variance / 2)
    return Forecast(mean, np.expm1(variance) * mean * mean)
