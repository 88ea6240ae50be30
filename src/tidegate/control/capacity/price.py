"""The price of a late minute, calibrated online so that the policy meets its QoS target.

A minute is late when its load reaches the capacity. Meeting a QoS target at the least cost means
minimising machine-minutes plus a price times late minutes, at the price for which the late minutes
are 1 - rho of all. Conformal risk control finds it: for every price of a grid it is known how many
machines it would have chosen in each past cycle, and how many minutes would then have been late.
The smallest price whose past rate is within the allowance is taken. The actual late minutes correct
the allowance (adaptive conformal inference), so that a wrong capacity model or a changed load
cannot bias it for long.
"""

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

PRICES: Vector = np.geomspace(0.1, 200.0, 39)
"""The machine-minutes that one late minute is worth, as multiples of the machines in use."""
MEMORY_MINUTES = 5000.0
"""The weight of past minutes falls by a factor e over this time."""
BELIEVED_MINUTES = 150.0
"""The outlook's expectation counts like this many past minutes."""
HORIZON_MINUTES = 2500.0
"""A surplus or deficit of late minutes is compensated over this time."""
TOLERANCE = 0.0025
"""The QoS may end up this much below rho (a quarter of a point). The price aims there, because
QoS beyond the target costs machines and nobody asked for it."""
LEAST_ALLOWANCE, MOST_ALLOWANCE = 0.25, 2.5
"""Bounds of the corrected allowance, as multiples of the uncorrected one."""


class Price:
    """Chooses the price for the next cycle, as an index into `PRICES`."""

    def __init__(self, rho: float, cycle_minutes: int = 1) -> None:
        self._allowed = 1.0 - rho + TOLERANCE
        self._cycle_minutes = cycle_minutes
        self._forgetting = math.exp(-cycle_minutes / MEMORY_MINUTES)
        self._late = np.zeros(len(PRICES))
        self._minutes = 0.0
        self._balance = 0.0

    @property
    def allowance(self) -> float:
        """The share of late minutes that the next choice may expect."""
        corrected = self._allowed + self._balance / HORIZON_MINUTES
        least, most = LEAST_ALLOWANCE * self._allowed, MOST_ALLOWANCE * self._allowed
        return min(max(corrected, least), most)

    def choose(self, expected_late: Vector) -> int:
        """The smallest price within the allowance; `expected_late` has minutes per price."""
        believed = expected_late * (BELIEVED_MINUTES / self._cycle_minutes)
        rate = (self._late + believed) / (self._minutes + BELIEVED_MINUTES)
        within = np.flatnonzero(rate <= self.allowance)
        return int(within[0]) if len(within) else len(PRICES) - 1

    def settle(self, replayed_late: Vector, late: float) -> None:
        """Learn from a finished cycle: late minutes at each price, and the actual late minutes."""
        self._late = self._forgetting * self._late + replayed_late
        self._minutes = self._forgetting * self._minutes + self._cycle_minutes
        limit = HORIZON_MINUTES * MOST_ALLOWANCE * self._allowed
        balance = self._balance + self._allowed * self._cycle_minutes - late
        self._balance = min(max(balance, -limit), limit)
