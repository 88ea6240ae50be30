"""Baseline forecasters: the last value, and the largest of the last few."""

from collections import deque
from typing import ClassVar

import numpy as np

from tidegate.errors import AskedWrongly
from tidegate.forecast import Forecast
from tidegate.forecast.remembering import Remembered


class LastValue(Remembered):
    """Forecasts the last value, with the variance of a random walk of the recent step size."""

    _LEARNED = ("_last", "_squares", "_weight")
    _LIKE: ClassVar = {"_last": 0.0}

    def __init__(self, fading: float = 0.98) -> None:
        self._fading = fading
        self._last: float | None = None
        self._squares = 0.0
        self._weight = 0.0

    def observe(self, value: float, at_s: float) -> None:
        """Remember the value, and update the step size."""
        if self._last is not None:
            self._squares = self._fading * self._squares + (value - self._last) ** 2
            self._weight = self._fading * self._weight + 1.0
        self._last = value

    def forecast(self, steps: int) -> Forecast:
        """The last value for every step."""
        if self._last is None:
            raise AskedWrongly("A forecast was asked for before any value was observed.")
        step_variance = self._squares / self._weight if self._weight else self._last**2
        return Forecast(np.full(steps, self._last), step_variance * np.arange(1.0, steps + 1.0))


class RecentMaximum(Remembered):
    """Forecasts the largest of the last `window` values: hard to beat for a cycle's highest load.

    Its variance is that of its own one-step errors.
    """

    _LEARNED = ("_recent", "_squares", "_weight")

    def __init__(self, window: int = 10, fading: float = 0.98) -> None:
        self._recent: deque[float] = deque(maxlen=window)
        self._fading = fading
        self._squares = 0.0
        self._weight = 0.0

    def observe(self, value: float, at_s: float) -> None:
        """Add one value to the sliding window."""
        if self._recent:
            self._squares = self._fading * self._squares + (value - max(self._recent)) ** 2
            self._weight = self._fading * self._weight + 1.0
        self._recent.append(value)

    def forecast(self, steps: int) -> Forecast:
        """The largest recent value for every step."""
        if not self._recent:
            raise AskedWrongly("A forecast was asked for before any value was observed.")
        highest = max(self._recent)
        variance = self._squares / self._weight if self._weight else highest**2
        return Forecast(np.full(steps, highest), np.full(steps, variance))
