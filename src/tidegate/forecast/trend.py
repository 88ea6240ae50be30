"""Holt's damped trend: a ramp is extrapolated, with a slope that decays."""

from typing import ClassVar

import numpy as np

from tidegate.errors import AskedWrongly
from tidegate.forecast import Forecast
from tidegate.forecast.remembering import Remembered


class DampedTrend(Remembered):
    """Exponential smoothing of level and slope; the variance grows with the steps ahead."""

    _LEARNED = ("_level", "_slope", "_squares", "_weight")
    _LIKE: ClassVar = {"_level": 0.0}

    def __init__(
        self, level: float = 0.6, slope: float = 0.3, damping: float = 0.85, fading: float = 0.95
    ) -> None:
        self._level_share, self._slope_share, self._damping = level, slope, damping
        self._fading = fading
        self._level: float | None = None
        self._slope = 0.0
        self._squares = 0.0
        self._weight = 0.0

    def observe(self, value: float, at_s: float) -> None:
        """Update level and slope, and the variance of the one-step error."""
        if self._level is None:
            self._level = value
            return
        predicted = self._level + self._damping * self._slope
        error = value - predicted
        self._squares = self._fading * self._squares + error * error
        self._weight = self._fading * self._weight + 1.0
        level = predicted + self._level_share * error
        self._slope = self._damping * self._slope + self._slope_share * self._level_share * error
        self._level = level

    def forecast(self, steps: int) -> Forecast:
        """The level plus the damped slopes, never below zero."""
        if self._level is None:
            raise AskedWrongly("A forecast was asked for before any value was observed.")
        ahead = np.cumsum(self._damping ** np.arange(1.0, steps + 1.0))
        mean = np.maximum(self._level + self._slope * ahead, 0.0)
        variance = self._squares / self._weight if self._weight else self._level**2
        return Forecast(mean, variance * np.arange(1.0, steps + 1.0))
