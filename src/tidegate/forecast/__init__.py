"""Forecasts of the load with their uncertainty. Pure: time comes in as data."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Forecast:
    """Mean and variance of the load at steps 1..k after the last observation."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    def highest(self, skip: int = 0, sigmas: float = 2.0) -> tuple[float, float]:
        """Mean and variance of the step with the highest expected load (MST eq. 14).

        `skip` leaves out the first steps: a decision made U steps before its cycle of S steps
        forecasts U + S steps, but has to cover only the last S.
        """
        mean, variance = self.mean[skip:], self.variance[skip:]
        at = int(np.argmax(mean + sigmas * np.sqrt(variance)))
        return float(mean[at]), float(variance[at])


class Forecaster(Protocol):
    """Observes one value per step, in time order, and forecasts the next steps."""

    def observe(self, value: float, at_s: float) -> None:
        """Learn the load of one step that ended `at_s` seconds after the epoch."""
        ...

    def forecast(self, steps: int) -> Forecast:
        """Mean and variance of the load of the next 1..steps steps."""
        ...
