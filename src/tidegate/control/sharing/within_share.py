"""Keeps a policy within its pipeline's share of the application's cores."""

import dataclasses

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.operator_tasks import shared, tasks_on
from tidegate.control.wrapper import Wrapper


class WithinShare(Wrapper):
    """The inner policy, within the cores that the other pipelines leave (`control/sharing`).

    A policy that does not plan within its share is cut to it here. Cores that it holds beyond its
    share are released at once, without its usual patience: another pipeline needs them now.
    """

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner decision, cut to the pipeline's share."""
        decision = self._inner.decide(measurement, constraints)
        allowed = constraints.share
        asked = measurement.cores_asked if decision.cores is None else decision.cores
        if allowed is None or asked <= allowed:
            return decision
        has = allowed == measurement.cores_asked
        usable = min(allowed, measurement.cores_granted)
        narrow = sum(segment.tasks for segment in measurement.segments) < usable
        # A pipeline that has its share already may still start to use it; else nothing changes.
        changes = not has or (bool(decision.tasks) and narrow)
        spread = shared(measurement, usable if has else allowed)
        return dataclasses.replace(
            decision,
            reason=f"{decision.reason}; this pipeline's share of the application is"
            f" {allowed} cores",
            cores=None if has else allowed,
            tasks=tasks_on(measurement, spread) if changes else {},
            expected_latency_s=None,
        )
