"""The forecasts to beat: the last value, and the largest of the last few."""

from collections import deque

import numpy as np

from tidegate.errors import AskedWrongly
from tidegate.forecast import Forecast


class LastValue:
    """What was is what comes; the variance is that of a random walk with the recent step size."""

    def __init__(self, fading: float = 0.98) -> None:
        self._fading = fading
        self._last: float | None = None
        self._squares = 0.0
        self._weight = 0.0

    def observe(self, value: float, at_s: float) -> None:
        """Remember the value and how far it stepped."""
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


class RecentMaximum:
    """The largest of the last `window` values; hard to beat for the highest load of a cycle.

    Its variance is how far values lay from what it had said one step before.
    """

    def __init__(self, window: int = 10, fading: float = 0.98) -> None:
        self._recent: deque[float] = deque(maxlen=window)
        self._fading = fading
        self._squares = 0.0
        self._weight = 0.0

    def observe(self, value: float, at_s: float) -> None:
        """Slide the window."""
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
