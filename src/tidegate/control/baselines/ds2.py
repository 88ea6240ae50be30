"""DS2 as in Flink's autoscaler: true processing rate, utilisation target, catch-up."""

import math
from collections import deque

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement


class Ds2:
    """parallelism = current x (target rate + backlog / catch-up) / (true rate x utilisation).

    The true processing rate is the rate of machines that never wait: throughput over the busy
    share, averaged over the metrics window. DS2 assumes linear scaling. It ignores utilisations
    within a boundary around the target, waits for the stabilisation time after a change, and never
    scales in below the largest need of the scale-down interval. The defaults are Flink's (target
    0.7, boundary 0.3, catch-up 30 minutes, stabilisation 5 minutes, scale-down interval an hour),
    except for the window: 5 minutes instead of 15.
    """

    name = "ds2"

    def __init__(
        self,
        *,
        utilisation: float = 0.7,
        boundary: float = 0.3,
        catch_up_minutes: float = 30.0,
        window_minutes: int = 5,
        stabilisation_minutes: float = 5.0,
        scale_down_minutes: int = 60,
    ) -> None:
        """It decides once a minute, so whoever asks more often gives shorter times, and the window
        and the scale-down interval in decisions."""
        self._utilisation = utilisation
        self._boundary = boundary
        self._catch_up_s = catch_up_minutes * 60.0
        self._loads: deque[float] = deque(maxlen=window_minutes)
        self._per_machine: deque[float] = deque(maxlen=window_minutes)
        self._wishes: deque[int] = deque(maxlen=scale_down_minutes)
        self._stabilisation_s = stabilisation_minutes * 60.0
        self._changed_at_s = -math.inf

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Decide every minute, on the metrics of the window."""
        busy = measurement.cores_busy
        self._loads.append(measurement.arrival_rate)
        if busy is not None and busy > 0:
            self._per_machine.append(measurement.processed_rate / busy)
        if not self._per_machine:
            return hold("no true processing rate is known yet")
        true_rate = sum(self._per_machine) / len(self._per_machine)
        load = sum(self._loads) / len(self._loads)
        wanted = load / self._utilisation + measurement.backlog_rows / self._catch_up_s
        if true_rate <= 0:
            return hold("no load")
        wish = constraints.allowed.clamp(math.ceil(wanted / true_rate))
        self._wishes.append(wish)
        current = measurement.cores_asked
        offered = load + measurement.backlog_rows / self._catch_up_s
        utilisation = offered / (true_rate * current)
        if abs(utilisation - self._utilisation) <= self._boundary * self._utilisation:
            return hold(f"utilisation {utilisation:.0%} is within its boundary")
        if measurement.at_s - self._changed_at_s < self._stabilisation_s:
            return hold("the last change is still in its stabilisation time")
        if wish < current:
            wish = min(current, max(self._wishes))
        if wish == current:
            return hold("the scale-down interval has seen a larger need")
        self._changed_at_s = measurement.at_s
        return Decision(cores=wish, reason=f"utilisation {utilisation:.0%} at the true rate")
