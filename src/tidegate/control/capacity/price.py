"""What a late minute is worth: a price, calibrated online so that the QoS asked for is the QoS got.

To hold a QoS at the least cost is to minimise machine-minutes plus a price times the minutes that
come late, at the one price where the late minutes are 1 - rho of all. The price is found by
conformal risk control: for every price of a grid it is known what it would have chosen in each
past cycle, and how many minutes that would have been late on the loads that came; the smallest
price whose past rate is within the allowance is taken. The allowance itself is corrected by what
was truly late (adaptive conformal inference), so that a wrong capacity model or a changed load
cannot bias it for long.
"""

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

PRICES: Vector = np.geomspace(0.1, 200.0, 39)
"""Machine-minutes, as a multiple of the machines in use, that one late minute is worth."""
MEMORY_MINUTES = 5000.0
"""Past minutes count less by a factor e over this time."""
BELIEVED_MINUTES = 150.0
"""The outlook's own expectation counts like so many past minutes."""
HORIZON_MINUTES = 2500.0
"""A surplus or deficit of late minutes is made good over this time."""
TOLERANCE = 0.0025
"""The QoS may come out this much below rho (a quarter of a point): the price aims there, because
what it delivers beyond the target is paid for and not asked for."""
LEAST_ALLOWANCE, MOST_ALLOWANCE = 0.25, 2.5
"""Bounds of the corrected allowance, as multiples of what is aimed at."""


class Price:
    """Chooses the place in `PRICES` for the next cycle."""

    def __init__(self, rho: float, cycle_minutes: int = 1) -> None:
        self._allowed = 1.0 - rho + TOLERANCE
        self._cycle_minutes = cycle_minutes
        self._forgetting = math.exp(-cycle_minutes / MEMORY_MINUTES)
        self._late = np.zeros(len(PRICES))
        self._minutes = 0.0
        self._balance = 0.0

    @property
    def allowance(self) -> float:
        """Share of late minutes that the next choice may expect."""
        corrected = self._allowed + self._balance / HORIZON_MINUTES
        least, most = LEAST_ALLOWANCE * self._allowed, MOST_ALLOWANCE * self._allowed
        return min(max(corrected, least), most)

    def choose(self, expected_late: Vector) -> int:
        """Smallest price within the allowance; `expected_late` is the outlook's, per price."""
        believed = expected_late * (BELIEVED_MINUTES / self._cycle_minutes)
        rate = (self._late + believed) / (self._minutes + BELIEVED_MINUTES)
        within = np.flatnonzero(rate <= self.allowance)
        return int(within[0]) if len(within) else len(PRICES) - 1

    def settle(self, replayed_late: Vector, late: float) -> None:
        """A finished cycle: minutes that each price would have had late, and those that were."""
        self._late = self._forgetting * self._late + replayed_late
        self._minutes = self._forgetting * self._minutes + self._cycle_minutes
        limit = HORIZON_MINUTES * MOST_ALLOWANCE * self._allowed
        balance = self._balance + self._allowed * self._cycle_minutes - late
        self._balance = min(max(balance, -limit), limit)
