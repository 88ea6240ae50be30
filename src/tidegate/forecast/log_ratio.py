"""ARMA on log ratios: the logarithm of each value over the one before.

A load that jumps or grows has no constant mean within a window of 100 values, but its growth does.
A forecast adds up growth, so the k-step error is the sum of the steps' errors and its variance uses
the running sum of psi.
"""

from collections import deque

import numpy as np

from tidegate.forecast import Forecast
from tidegate.forecast.arma import FEWEST, ArmaFitter, Order, walk
from tidegate.forecast.logarithm import Logarithm, to_levels


class LogRatioForecaster:
    """Zero-mean ARMA on log ratios in a sliding window; AIC selects the order periodically."""

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
        """Add one value to the sliding window."""
        self._logs.append(self._logarithm.of(value))
        self._since_selection += 1

    def forecast(self, steps: int) -> Forecast:
        """Fit the log ratios, forecast them, and add them to the last level."""
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
