"""Forecasts of a trace, computed once and shared by all backtests over it.

Forecasts depend on the load alone; application, seed and policy only change the machines. All
forecasters here are equivariant (twice the load, twice the forecast), so a table in the trace's own
unit serves every application after one multiplication. Each entry is the live forecaster's output
at that minute, from the minutes before it.
"""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.forecast import Forecast
from tidegate.forecast.analogues import Analogues, WindowOutlook
from tidegate.forecast.arma import ArmaForecaster
from tidegate.sim.capacity.cluster import CYCLE_MINUTES, STARTUP_MINUTES

Vector = NDArray[np.float64]
T = TypeVar("T")


class ReplayedForecaster:
    """A `Forecaster` that reads its forecasts from a table."""

    def __init__(self, table: Mapping[int, Forecast], scale: float) -> None:
        self._table = table
        self._scale = scale
        self._seen = 0

    def observe(self, value: float, at_s: float) -> None:
        """Count the value; the table was made from the values themselves."""
        self._seen += 1

    def forecast(self, steps: int) -> Forecast:
        """The forecast that was made after as many values."""
        found = _at(self._table, self._seen)
        return Forecast(found.mean[:steps] * self._scale, found.variance[:steps] * self._scale**2)


class ReplayedOutlook:
    """A `LoadOutlook` that reads its outlooks from a table."""

    def __init__(self, table: Mapping[int, WindowOutlook], scale: float) -> None:
        self._table = table
        self._scale = scale
        self._seen = 0

    def observe(self, load: float, at_s: float) -> None:
        """Count the value; the table was made from the values themselves."""
        self._seen += 1

    def outlook(self) -> WindowOutlook:
        """The outlook that was made after as many values."""
        return _at(self._table, self._seen).scaled(self._scale)


def arma_table(trace: Vector) -> dict[int, Forecast]:
    """The paper's ARMA forecasts (fixed order, window of 100) at each t - U, U + S steps ahead."""
    forecaster = ArmaForecaster(reselect_steps=0)
    table = {}
    for seen, value in enumerate(trace.tolist(), start=1):
        forecaster.observe(value, seen * 60.0)
        if (seen + STARTUP_MINUTES) % CYCLE_MINUTES == 0:
            table[seen] = forecaster.forecast(STARTUP_MINUTES + CYCLE_MINUTES)
    return table


def outlook_table(trace: Vector, cycle_minutes: int) -> dict[int, WindowOutlook]:
    """Outlooks by analogues at each t - U, for cycles of this length."""
    analogues = Analogues(lead=STARTUP_MINUTES, length=cycle_minutes)
    table = {}
    for seen, value in enumerate(trace.tolist(), start=1):
        analogues.observe(value, seen * 60.0)
        if (seen + STARTUP_MINUTES) % cycle_minutes == 0:
            table[seen] = analogues.outlook()
    return table


def _at(table: Mapping[int, T], seen: int) -> T:
    try:
        return table[seen]
    except KeyError:
        raise TidegateError(
            f"There is no forecast after {seen} minutes: the policy's cycle differs from the "
            "table's; use the same cycle for both."
        ) from None
