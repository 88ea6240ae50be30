"""A utilisation target with hysteresis, as in Kubernetes' HorizontalPodAutoscaler."""

import math
from collections import deque

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement


class UtilisationThreshold:
    """desired = ceil(current x utilisation / target), with a tolerance of 10 %. It never scales in
    below the largest need of the last five minutes (the HPA's stabilisation window)."""

    name = "hpa"

    def __init__(
        self,
        *,
        target: float = 0.7,
        tolerance: float = 0.1,
        stabilisation_minutes: int = 5,
    ) -> None:
        self._target = target
        self._tolerance = tolerance
        self._wishes: deque[int] = deque(maxlen=stabilisation_minutes)

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Decide every minute (the HPA decides every 15 seconds)."""
        if measurement.cores_busy is None:
            return hold("no utilisation is measured")
        current = measurement.cores_granted
        if measurement.cores_asked > current:
            self._wishes.append(measurement.cores_asked)
            return hold("machines are starting")
        utilisation = measurement.cores_busy / max(current, 1)
        ratio = utilisation / self._target
        wish = current
        if abs(ratio - 1.0) > self._tolerance:
            wish = constraints.allowed.clamp(math.ceil(current * ratio))
        self._wishes.append(wish)
        wish = max(self._wishes) if wish < current else wish
        if wish == current:
            return hold(f"utilisation {utilisation:.0%} is near its target")
        return Decision(
            cores=wish, reason=f"utilisation {utilisation:.0%}, target {self._target:.0%}"
        )
