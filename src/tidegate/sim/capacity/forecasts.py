"""Forecasts of a trace, made once and shared: they depend on the load alone.

Application, seed and policy change what is asked for, never what arrives. All forecasters here are
equivariant (twice the load, twice the forecast), so a table made in the trace's own unit serves
every application after one multiplication. What is replayed is what the live forecaster said at
that minute, from the minutes before it.
"""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.forecast import Forecast
from tidegate.forecast.analogues import Analogues, Outlook
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
        """The table knows the values: only count."""
        self._seen += 1

    def forecast(self, steps: int) -> Forecast:
        """What was forecast after as many values."""
        said = _at(self._table, self._seen)
        return Forecast(said.mean[:steps] * self._scale, said.variance[:steps] * self._scale**2)


class ReplayedOutlook:
    """A `LoadOutlook` that reads its outlooks from a table."""

    def __init__(self, table: Mapping[int, Outlook], scale: float) -> None:
        self._table = table
        self._scale = scale
        self._seen = 0

    def observe(self, load: float, at_s: float) -> None:
        """The table knows the values: only count."""
        self._seen += 1

    def outlook(self) -> Outlook:
        """What was foreseen after as many values."""
        return _at(self._table, self._seen).scaled(self._scale)


def arma_table(trace: Vector) -> dict[int, Forecast]:
    """The paper's ARMA (order chosen once, window of 100) at each t - U, U + S steps ahead."""
    forecaster = ArmaForecaster(reselect_steps=0)
    table = {}
    for seen, value in enumerate(trace.tolist(), start=1):
        forecaster.observe(value, seen * 60.0)
        if (seen + STARTUP_MINUTES) % CYCLE_MINUTES == 0:
            table[seen] = forecaster.forecast(STARTUP_MINUTES + CYCLE_MINUTES)
    return table


def outlook_table(trace: Vector, cycle_minutes: int) -> dict[int, Outlook]:
    """The analogues' outlook at each t - U of cycles of this length."""
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
            f"No forecast was kept after {seen} minutes: the policy's cycle is not the table's."
        ) from None
