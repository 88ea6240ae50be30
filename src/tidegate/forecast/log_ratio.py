"""ARMA on the logarithm of each value over the one before: growth, not level.

A load that jumps or grows keeps no mean within a window of 100; its growth does. A forecast adds
up growth: its k-step error is the sum of the steps' errors, so psi enters by its running sum.
"""

from collections import deque

import numpy as np

from tidegate.forecast import Forecast
from tidegate.forecast.arma import FEWEST, ArmaFitter, Order, walk
from tidegate.forecast.logarithm import Logarithm, to_levels


class LogRatioForecaster:
    """Zero-mean ARMA on log ratios in a sliding window; order by AIC, now and then again."""

    def __init__(
        self, window: int = 100, max_order: Order = (2, 2), reselect_steps: int = 60
    ) -> None:
        self._logs: deque[float] = deque(maxlen=window + 1)
        self._logarithm = Logarithm()
        self._fitter = ArmaFitter(max_order, with_mean=False)
        self._reselect_steps = reselect_steps
        self._order: Order | None = None
        self._since_selection = 0

    def observe(self, value: float, at_s: float) -> None:
        """Slide the window by one value."""
        self._logs.append(self._logarithm.of(value))
        self._since_selection += 1

    def forecast(self, steps: int) -> Forecast:
        """Fit the ratios and add the forecast ones to the last level."""
        logs = np.array(self._logs)
        ratios = np.diff(logs)
        if ratios.size < FEWEST or np.ptp(ratios) <= 1e-9:
            flat = walk(logs, steps)
            return to_levels(flat.mean, flat.variance)
        if self._order is None or self._since_selection >= self._reselect_steps:
            model = self._fitter.fit_best(ratios)
            self._order = model.order
            self._since_selection = 0
        else:
            model = self._fitter.fit(ratios, self._order)
        growth = model.forecast(ratios, steps)
        variance = model.variance * np.cumsum(np.cumsum(model.psi(steps)) ** 2)
        return to_levels(logs[-1] + np.cumsum(growth.mean), variance)
