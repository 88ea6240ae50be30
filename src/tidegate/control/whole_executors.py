"""Rounds the cores that a policy asks for up to whole executors."""

import dataclasses

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.policy import Policy
from tidegate.control.wrapper import Wrapper


class WholeExecutors(Wrapper):
    """The inner policy, with cores in multiples of an executor's cores.

    Without it, a policy that finds 3 of 4 cores enough would try to release one at every tick, in
    vain where an executor has two. The inner policy is told of the multiple, so that it can divide
    whole executors among its tasks by itself.
    """

    def __init__(self, inner: Policy, cores_per_executor: int) -> None:
        super().__init__(inner)
        self._cores = cores_per_executor

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner decision, in whole executors; if the number stays the same, it holds."""
        constraints = dataclasses.replace(constraints, step=self._cores)
        decision = self._inner.decide(measurement, constraints)
        if decision.cores is None:
            return decision
        cores = -(-decision.cores // self._cores) * self._cores
        if cores != measurement.cores_asked:
            return dataclasses.replace(decision, cores=cores)
        reason = (
            f"{decision.reason}; that is {cores // self._cores} executors of {self._cores} cores,"
            " the same number as before"
        )
        return dataclasses.replace(decision, cores=None, reason=reason, expected_latency_s=None)
