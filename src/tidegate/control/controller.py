"""The control loop without its body: a measurement goes in, a record comes out, once a tick.

The controller does what no policy should have to know about. It stops stale numbers, lets the
model learn, asks the pipeline's share of the application's cores, and holds a decision to bounds,
to the time between changes (T_ra), cooldowns and excluded periods, and to a dry run. What to keep
is exempt from waiting: shedding is the last remedy, and the return from it cannot wait either. The
clock comes in with the measurement, so Spark, the simulator and a replay get the same decisions
from the same numbers. `control/assemble.py` puts controllers together.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tidegate.control.bottleneck import Bottleneck
from tidegate.control.bounds import Bounds
from tidegate.control.claim import Claim
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.give_way import give_way
from tidegate.control.limits import Limits
from tidegate.control.measurement import Measurement
from tidegate.control.policy import Policy
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly

ShareOf: TypeAlias = Callable[[Claim], int | None]
"""Tells those who share the cores what this pipeline claims, and answers with its share."""


@runtime_checkable
class Believer(Protocol):
    """A policy that can say what it believed."""

    @property
    def beliefs(self) -> dict[str, float]:
        """Names and numbers behind the last decision."""
        ...


class Learner(Protocol):
    """What is learned once a tick, before anybody decides."""

    def learn(self, measurement: Measurement) -> None:
        """Take in a tick."""
        ...


class Finder(Protocol):
    """Names the operator that limits the pipeline."""

    def find(self, measurement: Measurement) -> Bottleneck | None:
        """None while there is nothing to tell it from, or no load."""
        ...


class ShardBalancer(Protocol):
    """Adds moves of shards to a decision."""

    def balanced(self, decision: Decision, measurement: Measurement) -> Decision:
        """The decision with moves for the tasks that it leaves in force."""
        ...


def alone(claim: Claim) -> int | None:
    """The share of a pipeline that shares with nobody: no limit but its bounds."""
    return None


class Controller:
    """Runs a policy within its limits. `tick` is all there is to call."""

    def __init__(
        self,
        policy: Policy,
        *,
        bounds: Bounds,
        target_s: float | None = None,
        limits: Limits | None = None,
        learner: Learner | None = None,
        claim: Callable[[Measurement], Claim] | None = None,
        finder: Finder | None = None,
        balancer: ShardBalancer | None = None,
        assembly: Mapping[str, Any] | None = None,
    ) -> None:
        if not 1 <= bounds.least <= bounds.most:
            raise AskedWrongly(
                f"a minimum of {bounds.least} and a maximum of {bounds.most} cores cannot both"
                " hold; give a minimum from 1 up to the maximum"
            )
        self.policy = policy
        self._bounds = bounds
        self._target_s = target_s
        self._limits = limits or Limits()
        self._learner = learner
        self._claim = claim
        self._finder = finder
        self._balancer = balancer
        self._assembly = assembly
        self._tick = 0
        self._changed_s = -math.inf
        self._granted_at_change = 0
        self._predicted_s: float | None = None

    def tick(self, measurement: Measurement, share_of: ShareOf = alone) -> Record:
        """Decide on one measurement; the body acts on the decision when the record says `acted`.

        `share_of` gets the pipeline's claim, after this tick was learned from, and answers with the
        cores that the application's other pipelines leave to it.
        """
        self._tick += 1
        if self._learner is not None and measurement.stale is None:
            self._learner.learn(measurement)
        share = None if self._claim is None else share_of(self._claim(measurement))
        constraints = Constraints(self._bounds, share)
        predicted_s = self._predicted_s
        if measurement.stale is not None:
            return self._on_old_numbers(measurement, constraints, predicted_s)
        bottleneck = None if self._finder is None else self._finder.find(measurement)
        decision = self.policy.decide(measurement, constraints)
        decision = _within_bounds(decision, measurement, constraints.allowed)
        if self._balancer is not None:
            decision = self._balancer.balanced(decision, measurement)
        decision = _limited(decision, bottleneck)
        held_back = None if decision.holds else self._held_back(decision, measurement)
        if held_back is not None and decision.keep is not None:
            decision, held_back = _only_keep(decision, held_back), None
        held_back = self._noted(decision, held_back, measurement)
        return self._record(measurement, decision, held_back, predicted_s, bottleneck, share)

    def _noted(
        self, decision: Decision, held_back: str | None, measurement: Measurement
    ) -> str | None:
        """Remembers a change that is made; returns what holds it back, a dry run included."""
        if decision.holds or held_back is not None:
            return held_back
        if decision.cores is not None or decision.tasks:
            self._changed_s = measurement.at_s
            self._granted_at_change = measurement.cores_granted
            if not self._limits.dry_run:
                self._predicted_s = decision.expected_latency_s
        return "dry run" if self._limits.dry_run else None

    def _on_old_numbers(
        self, measurement: Measurement, constraints: Constraints, predicted_s: float | None
    ) -> Record:
        """Scale nothing, but give up cores that other pipelines need: silence is no claim."""
        way, share = give_way(measurement, constraints.share), constraints.share
        if way is None:
            decision = hold(f"{measurement.stale}: holding, nothing is scaled on old numbers")
            return self._record(measurement, decision, None, predicted_s, None, share)
        decision = dataclasses.replace(way, reason=f"{measurement.stale}: {way.reason}")
        held_back = self._noted(decision, self._held_back(decision, measurement), measurement)
        return self._record(measurement, decision, held_back, predicted_s, None, share)

    def _record(
        self,
        measurement: Measurement,
        decision: Decision,
        held_back: str | None,
        predicted_s: float | None,
        bottleneck: Bottleneck | None,
        share: int | None,
    ) -> Record:
        beliefs = dict(self.policy.beliefs) if isinstance(self.policy, Believer) else {}
        if predicted_s and measurement.latency is not None:
            beliefs["prediction_error"] = measurement.latency.mean_s / predicted_s - 1.0
        return Record(
            tick=self._tick,
            policy=self.policy.name,
            target_s=self._target_s,
            measurement=measurement,
            decision=decision,
            acted=not decision.holds and held_back is None,
            held_back=held_back,
            beliefs=beliefs,
            predicted_latency_s=predicted_s,
            bottleneck=bottleneck,
            share=share,
            assembly=self._assembly if self._tick == 1 else None,
        )

    def _held_back(self, decision: Decision, measurement: Measurement) -> str | None:
        """Why the change may not be made now; moves of shards alone are free of T_ra."""
        limits = self._limits
        grows = decision.cores is not None and decision.cores > measurement.cores_asked
        shrinks = decision.cores is not None and decision.cores < measurement.cores_asked
        for period in limits.excluded:
            emergency = limits.emergencies and grows and measurement.saturated
            if period.holds(measurement.at_s) and not emergency:
                return f"no changes between {period} UTC"
        if decision.cores is None and not decision.tasks:
            return None
        since_s = measurement.at_s - self._changed_s
        # Tasks that follow cores which have just come complete the last change.
        now = {operator.name: operator.tasks for operator in measurement.operators}
        widens = all(count > now.get(name, 0) for name, count in decision.tasks.items())
        come = measurement.cores_granted > self._granted_at_change
        arrived = decision.cores is None and come and widens
        if since_s < limits.t_ra_s and not arrived:
            return f"{since_s:.0f} s since the last change, T_ra is {limits.t_ra_s:g} s"
        if grows and since_s < limits.scale_out_cooldown_s:
            return f"cooling down for {limits.scale_out_cooldown_s:g} s before more cores"
        if shrinks and since_s < limits.scale_in_cooldown_s:
            return f"cooling down for {limits.scale_in_cooldown_s:g} s before fewer cores"
        return None


def _only_keep(decision: Decision, held_back: str) -> Decision:
    """What to keep is never held back: cores that may not come now are why rows must be shed."""
    notes = decision.notes
    if decision.cores is not None or decision.tasks or decision.moves:
        notes += (f"only what is kept changes: {held_back}",)
    return dataclasses.replace(decision, cores=None, tasks={}, moves={}, notes=notes)


def _limited(decision: Decision, bottleneck: Bottleneck | None) -> Decision:
    """With the operator that limits the pipeline in its reason, where cores or tasks change."""
    changes = decision.cores is not None or bool(decision.tasks)
    if bottleneck is None or not bottleneck.limits or not changes:
        return decision
    return dataclasses.replace(decision, reason=f"{decision.reason}; {bottleneck.words}")


def _within_bounds(decision: Decision, measurement: Measurement, allowed: Bounds) -> Decision:
    """The decision within the bounds, whatever the policy wished for."""
    cores = decision.cores
    notes = decision.notes
    if cores is not None:
        cores = allowed.clamp(cores)
        if cores != decision.cores:
            notes += (
                f"{decision.cores} cores were wished for; {allowed.least} to"
                f" {allowed.most} are allowed",
            )
    operators = {operator.name: operator for operator in measurement.operators}
    tasks = {}
    for name, count in decision.tasks.items():
        operator = operators.get(name)
        most = allowed.most
        least = 1
        if operator is not None:
            least = operator.least_tasks
            if operator.most_tasks is not None:
                most = min(most, operator.most_tasks)
        wanted = max(min(count, most), least)
        if operator is None or wanted != operator.tasks:
            tasks[name] = wanted
    if cores == measurement.cores_asked:
        cores = None
    return dataclasses.replace(decision, cores=cores, tasks=tasks, notes=notes)
