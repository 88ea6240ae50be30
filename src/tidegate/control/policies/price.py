"""What a late minute is worth: a price, calibrated online so that the QoS asked for is the QoS got.

To hold a QoS at the least cost is to minimise machine-minutes plus a price times the minutes that
come late, at the one price where the late minutes are 1 - rho of all. The price is found by
conformal risk control: for every price of a grid it is known what it would have chosen in each
past cycle, and how many minutes that would have been late on the loads that came; the smallest
price whose past rate is within the allowance is taken. The allowance itself is corrected by what
was truly late (adaptive conformal inference), so that a wrong capacity model or a changed load
cannot bias it for long.
"""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

PRICES: Vector = np.geomspace(0.1, 1000.0, 41)
"""Machine-minutes, as a multiple of the machines in use, that one late minute is worth."""
FORGETTING = 0.998
"""Per cycle: half is forgotten in two and a half days of ten-minute cycles."""
BELIEVED_CYCLES = 15.0
"""The outlook's own expectation counts like so many past cycles."""
HORIZON_CYCLES = 250.0
"""A surplus or deficit of late minutes is made good over so many cycles."""
LEAST_ALLOWANCE, MOST_ALLOWANCE = 0.25, 2.5
"""Bounds of the corrected allowance, as multiples of 1 - rho."""


class Price:
    """Chooses the place in `PRICES` for the next cycle."""

    def __init__(self, rho: float, cycle_minutes: int) -> None:
        self._allowed = (1.0 - rho) * cycle_minutes
        self._late = np.zeros(len(PRICES))
        self._cycles = 0.0
        self._balance = 0.0

    @property
    def allowance(self) -> float:
        """Late minutes a cycle that the next choice may expect."""
        corrected = self._allowed + self._balance / HORIZON_CYCLES
        return float(
            np.clip(corrected, LEAST_ALLOWANCE * self._allowed, MOST_ALLOWANCE * self._allowed)
        )

    def choose(self, expected_late: Vector) -> int:
        """Smallest price within the allowance; `expected_late` is the outlook's, per price."""
        rate = (self._late + BELIEVED_CYCLES * expected_late) / (self._cycles + BELIEVED_CYCLES)
        within = np.flatnonzero(rate <= self.allowance)
        return int(within[0]) if len(within) else len(PRICES) - 1

    def replay(self, late: Vector) -> None:
        """How many minutes of a finished cycle each price would have had late."""
        self._late = FORGETTING * self._late + late
        self._cycles = FORGETTING * self._cycles + 1.0

    def settle(self, late: float) -> None:
        """How many minutes of a finished cycle were late in truth."""
        limit = HORIZON_CYCLES * MOST_ALLOWANCE * self._allowed
        self._balance = float(np.clip(self._balance + self._allowed - late, -limit, limit))
