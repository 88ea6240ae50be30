"""Cores come in whole executors: rounds what a policy asks for up to them."""

import dataclasses

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.policy import Policy
from tidegate.control.wrapper import Wrapper


class WholeExecutors(Wrapper):
    """The inner policy, with cores in multiples of an executor's.

    Without it a policy that finds 3 cores enough would let one of 4 go at every tick, and nothing
    would come of it where an executor has two.
    """

    def __init__(self, inner: Policy, cores_per_executor: int) -> None:
        super().__init__(inner)
        self._cores = cores_per_executor

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner decision, in whole executors; a change that comes to none holds."""
        decision = self._inner.decide(measurement, constraints)
        if decision.cores is None:
            return decision
        cores = -(-decision.cores // self._cores) * self._cores
        if cores != measurement.cores_asked:
            return dataclasses.replace(decision, cores=cores)
        reason = (
            f"{decision.reason}; that is {cores // self._cores} executors of {self._cores} cores,"
            " as asked for"
        )
        return dataclasses.replace(decision, cores=None, reason=reason, expected_latency_s=None)
