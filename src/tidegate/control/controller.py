"""The control loop without Spark: at every tick, a measurement goes in and a record comes out.

The controller does what no policy should have to know about. It scales nothing on stale
measurements, lets the model learn, asks for the pipeline's share of the application's cores, and
holds every decision to the bounds, the time between changes (T_ra), the cooldowns, the excluded
periods and the dry run. The fraction of rows to keep is exempt from waiting: shedding is the last
remedy, and neither it nor the return from it can wait. The clock comes in with the measurement, so
Spark, the simulator and a replay make the same decisions from the same numbers.
`control/assemble.py` builds controllers.
"""

import copy
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
from tidegate.control.remembering import Remembering
from tidegate.errors import AskedWrongly
from tidegate.units import format_duration

ShareOf: TypeAlias = Callable[[Claim], int | None]
"""Takes a pipeline's claim and returns its share of the application's cores; None: no limit."""


LEARNED_VERSION = 1
"""The format of what a controller has learned; another version is not read."""


@runtime_checkable
class Believer(Protocol):
    """A policy that reports what its models believe."""

    @property
    def beliefs(self) -> dict[str, float]:
        """The named numbers behind the last decision."""
        ...


class Learner(Protocol):
    """A model that learns from every tick before the policy decides."""

    def learn(self, measurement: Measurement) -> None:
        """Learn from the measurement of one tick."""
        ...


class Finder(Protocol):
    """Finds the operator that limits the pipeline."""

    def find(self, measurement: Measurement) -> Bottleneck | None:
        """The bottleneck; None without load, or while the operators' costs are unknown."""
        ...


class Noter(Protocol):
    """Sees every tick, and says what a person should know about it."""

    def notes(self, measurement: Measurement) -> tuple[str, ...]:
        """The notes for the tick's record."""
        ...


class ShardBalancer(Protocol):
    """Adds shard moves to a decision."""

    def balanced(self, decision: Decision, measurement: Measurement) -> Decision:
        """The decision, with shard moves for the tasks that will run after it."""
        ...


def alone(claim: Claim) -> int | None:
    """The share of a pipeline that is alone in its application: no limit but its bounds."""
    return None


class Controller:
    """Runs a policy within its limits. `tick` is the only method to call."""

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
        noter: Noter | None = None,
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
        self._noter = noter
        self._assembly = assembly
        self._tick = 0
        self._at_s: float | None = None
        self._recalled: dict[str, Any] | None = None
        self._from: str | None = None
        """Where the numbers of the first decision are from; None if it has none."""
        self._began_s: float | None = None
        self._changed_s = -math.inf
        self._granted_at_change = 0
        self._predicted_s: float | None = None

    def tick(self, measurement: Measurement, share_of: ShareOf = alone) -> Record:
        """Decide on one measurement. The caller acts on the decision when the record has `acted`.

        `share_of` is given the pipeline's claim, which already includes what the model learned from
        this tick. It returns the cores that the application's other pipelines leave to this one.
        """
        self._tick += 1
        self._at_s = measurement.at_s
        if self._began_s is None:
            self._began_s = measurement.at_s
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
        if self._noter is not None:
            notes = (*decision.notes, *self._noter.notes(measurement))
            decision = dataclasses.replace(decision, notes=notes)
        held_back = None if decision.holds else self._held_back(decision, measurement)
        if held_back is not None and decision.keep is not None:
            decision, held_back = _only_keep(decision, held_back), None
        held_back = self._noted(decision, held_back, measurement)
        return self._record(measurement, decision, held_back, predicted_s, bottleneck, share)

    @property
    def began_with(self) -> str | None:
        """Where its first numbers are from, in words; None if it began with none."""
        return self._from

    def learned(self) -> dict[str, Any]:
        """What was learned until the last tick, as plain JSON values; empty before the first."""
        if self._at_s is None:
            return {}
        parts: dict[str, object] = {"model": self._learner, "policy": self.policy}
        found = {
            name: part.learned() for name, part in parts.items() if isinstance(part, Remembering)
        }
        return {"version": LEARNED_VERSION, "at_s": self._at_s, "named": self.policy.name, **found}

    def recall(self, learned: Mapping[str, Any], now_s: float) -> str | None:
        """Begin with what the controller of an earlier run learned; call it before the first tick.

        The model is the same for every policy. A policy begins with what a policy of its own name
        learned. Returns why the whole document is left aside; None if it is not. After an error
        the controller is as it was before: what was half recalled would not fit together.
        """
        version = learned.get("version")
        if version != LEARNED_VERSION:
            return f"its format has version {version}, and this release reads {LEARNED_VERSION}"
        fresh = copy.deepcopy((self._learner, self.policy, self._claim))
        try:
            self._recall(learned, now_s)
        except Exception:
            self._learner, self.policy, self._claim = fresh
            raise
        return None

    def _recall(self, learned: Mapping[str, Any], now_s: float) -> None:
        age_s = max(now_s - float(learned["at_s"]), 0.0)
        if not math.isfinite(age_s):
            raise ValueError("the time at which it was learned is not a finite number")
        parts: dict[str, object] = {"model": self._learner}
        if learned.get("named") == self.policy.name:
            parts["policy"] = self.policy
        for name, part in parts.items():
            if isinstance(part, Remembering):
                part.recall(learned.get(name, {}), age_s)
        self._recalled = {"now_s": now_s, "learned": dict(learned)}
        self._from = f"begins with what a run learned that ended {format_duration(age_s)} ago"

    def _noted(
        self, decision: Decision, held_back: str | None, measurement: Measurement
    ) -> str | None:
        """Remember a change that is made; return why it is held back, a dry run included."""
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
        """Scale nothing on a stale measurement, but release cores that other pipelines need."""
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
        if self._tick == 1 and self._from is not None:
            decision = dataclasses.replace(decision, notes=(*decision.notes, self._from))
        return Record(
            tick=self._tick,
            policy=self.policy.name,
            target_s=self._target_s,
            measurement=measurement,
            decision=decision,
            acted=not decision.holds and held_back is None,
            held_back=held_back,
            # A record is JSON, which has no infinity.
            beliefs={name: value for name, value in beliefs.items() if math.isfinite(value)},
            predicted_latency_s=predicted_s,
            bottleneck=bottleneck,
            share=share,
            assembly=self._assembly if self._tick == 1 else None,
            recalled=self._recalled if self._tick == 1 else None,
        )

    def _held_back(self, decision: Decision, measurement: Measurement) -> str | None:
        """Why the change may not be made now, or None. T_ra does not apply to shard moves alone."""
        limits = self._limits
        grows = decision.cores is not None and decision.cores > measurement.cores_asked
        shrinks = decision.cores is not None and decision.cores < measurement.cores_asked
        for period in limits.excluded:
            emergency = limits.emergencies and grows and measurement.saturated
            if period.holds(measurement.at_s) and not emergency:
                return f"no changes between {period} UTC"
        if decision.cores is None and not decision.tasks:
            return None
        begun_s = measurement.at_s - (self._began_s or 0.0)
        if begun_s < limits.first_after_s:
            return f"{begun_s:.0f} s since the start, first change after {limits.first_after_s:g} s"
        since_s = measurement.at_s - self._changed_s
        # New tasks on cores that were just granted complete the last change, so T_ra can be waived.
        now = {operator.name: operator.tasks for operator in measurement.operators}
        widens = all(count > now.get(name, 0) for name, count in decision.tasks.items())
        come = measurement.cores_granted > self._granted_at_change
        arrived = decision.cores is None and come and widens
        if since_s < limits.t_ra_s and not arrived:
            return f"{since_s:.0f} s since the last change, T_ra is {limits.t_ra_s:g} s"
        if grows and since_s < limits.scale_out_cooldown_s:
            return f"cooling down for {limits.scale_out_cooldown_s:g} s before adding cores"
        if shrinks and since_s < limits.scale_in_cooldown_s:
            return f"cooling down for {limits.scale_in_cooldown_s:g} s before releasing cores"
        return None


def _only_keep(decision: Decision, held_back: str) -> Decision:
    """The decision reduced to what it sheds, which is never held back.

    Rows have to be shed precisely because more cores may not be added now.
    """
    notes = decision.notes
    if not dataclasses.replace(decision, keep=None, keep_by_class={}).holds:
        notes += (f"only the fraction of rows kept changes: {held_back}",)
    return dataclasses.replace(
        decision, cores=None, tasks={}, moves={}, deal={}, preview={}, notes=notes
    )


def _limited(decision: Decision, bottleneck: Bottleneck | None) -> Decision:
    """Name the operator that limits the pipeline in the reason for a change of cores or tasks."""
    changes = decision.cores is not None or bool(decision.tasks)
    if bottleneck is None or not bottleneck.limits or not changes:
        return decision
    return dataclasses.replace(decision, reason=f"{decision.reason}; {bottleneck.words}")


def _within_bounds(decision: Decision, measurement: Measurement, allowed: Bounds) -> Decision:
    """Clamp the decision to the bounds, whatever the policy asked for."""
    cores = decision.cores
    notes = decision.notes
    if cores is not None:
        cores = allowed.clamp(cores)
        if cores != decision.cores:
            notes += (
                f"the policy asked for {decision.cores} cores; {allowed.least} to"
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
