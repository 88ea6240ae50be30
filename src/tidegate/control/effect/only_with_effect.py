"""Adds no core where the last scale-outs had no effect, whichever policy asks for it."""

import dataclasses

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.effect.scale_outs import ScaleOutWatch
from tidegate.control.measurement import Measurement
from tidegate.control.operator_tasks import shared, tasks_on
from tidegate.control.policy import Policy
from tidegate.control.wrapper import Wrapper


class OnlyWithEffect(Wrapper):
    """The inner policy, cut to the cores that there are while more have no effect.

    The controller lets the watch see a tick before it asks for a decision. What sheds is around
    this policy, so it knows that no more cores will come.
    """

    def __init__(self, inner: Policy, watch: ScaleOutWatch) -> None:
        super().__init__(inner)
        self._watch = watch

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner decision without more cores, and a note why."""
        decision = self._inner.decide(measurement, constraints)
        found = self._watch.no_effect
        if found is None:
            return decision
        decision = dataclasses.replace(decision, notes=(*decision.notes, found.words))
        asked = measurement.cores_asked
        most = max(found.to_cores, asked, constraints.allowed.least)
        if decision.cores is None or decision.cores <= most:
            return decision
        usable = min(asked, measurement.cores_granted) if most == asked else most
        idle = sum(segment.tasks for segment in measurement.segments) < usable
        changes = most > asked or (bool(decision.tasks) and idle)
        return dataclasses.replace(
            decision,
            reason=f"{decision.reason}; but {found.times} scale-outs in a row had no effect, so"
            f" it stays at {most} cores",
            cores=None if most == asked else most,
            tasks=tasks_on(measurement, shared(measurement, usable)) if changes else {},
            expected_latency_s=None,
        )
