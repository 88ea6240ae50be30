"""Spark's dynamic allocation, as it behaves with a stream."""

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement


class DynamicAllocation:
    """Sees pending tasks only: while there are any it requests 1, 2, 4, ... more executors, and it
    releases an executor that was idle for the timeout.

    A stream's batches give every executor a task every few seconds, so with more than a trickle of
    load no executor is idle for 60 s: it scales out and hardly ever in (the subject of
    SPARK-24815). Here an executor counts as idle when less than `busy_share` of all cores was busy.
    """

    name = "spark-dynamic-allocation"

    def __init__(self, *, busy_share: float = 0.05) -> None:
        self._busy_share = busy_share
        self._more = 1

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Decide every minute; the backlog timeout is a second, the idle timeout a minute."""
        if measurement.saturated:
            wish = constraints.allowed.clamp(measurement.cores_asked + self._more)
            self._more *= 2
            if wish == measurement.cores_asked:
                return hold("tasks are pending, but there are no more machines")
            return Decision(cores=wish, reason="tasks are pending")
        self._more = 1
        busy = measurement.cores_busy
        if busy is not None and busy / max(measurement.cores_granted, 1) < self._busy_share:
            wish = constraints.allowed.clamp(measurement.cores_granted - 1)
            if wish < measurement.cores_asked:
                return Decision(cores=wish, reason="an executor was idle for its timeout")
        return hold("every executor has had tasks within its idle timeout")
