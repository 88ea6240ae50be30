"""Spark's dynamic allocation, as it treats a stream."""

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement


class DynamicAllocation:
    """Looks at waiting tasks only: while there are any it asks for 1, 2, 4, ... more each round;
    an executor goes when it has been idle for the timeout.

    A stream's batches give every executor a task every few seconds, so none is idle for 60 s while
    the load is more than a trickle: it grows and hardly ever shrinks (what SPARK-24815 is about).
    Here one is idle for its timeout when less than `busy_share` of all cores was at work.
    """

    name = "spark-dynamic-allocation"

    def __init__(self, *, busy_share: float = 0.05) -> None:
        self._busy_share = busy_share
        self._more = 1

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Every minute: the backlog timeout is a second, the idle timeout a minute."""
        if measurement.saturated:
            wish = constraints.allowed.clamp(measurement.cores_asked + self._more)
            self._more *= 2
            if wish == measurement.cores_asked:
                return hold("tasks wait, but there are no more machines")
            return Decision(cores=wish, reason="tasks are waiting")
        self._more = 1
        busy = measurement.cores_busy
        if busy is not None and busy / max(measurement.cores_granted, 1) < self._busy_share:
            wish = constraints.allowed.clamp(measurement.cores_granted - 1)
            if wish < measurement.cores_asked:
                return Decision(cores=wish, reason="an executor was idle for its timeout")
        return hold("every executor has had tasks within its idle timeout")
