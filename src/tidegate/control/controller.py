"""The control loop without Spark: at every tick, a measurement goes in and a record comes out.

The controller does what no policy should have to know about. It scales nothing on stale
measurements, lets the model learn, asks for the pipeline's share of the application's cores, and
holds every decision to the bounds, the time between changes (T_ra), the cooldowns, the excluded
periods, the user's approval and the dry run. The fraction of rows to keep is exempt from waiting:
shedding is the last remedy, and neither it nor the return from it can wait. The clock comes in with
the measurement, so Spark, the simulator and a replay make the same decisions from the same numbers.
`control/assemble.py` builds controllers.
"""

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tidegate.control.all_notes import Noter
from tidegate.control.approval import Approve, Approved, approved_by
from tidegate.control.bottleneck import Bottleneck
from tidegate.control.bounds import Bounds
from tidegate.control.claim import Claim
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.floors import raised
from tidegate.control.give_way import give_way, release_to
from tidegate.control.limits import Limits
from tidegate.control.measurement import Measurement
from tidegate.control.no_effect import NoEffect
from tidegate.control.policy import Policy
from tidegate.control.record import Record
from tidegate.control.remembering import Remembering
from tidegate.errors import AskedWrongly
from tidegate.units import exact_duration, format_duration

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


class EffectWatch(Protocol):
    """Notices that more cores have no effect."""

    @property
    def no_effect(self) -> NoEffect | None:
        """Why no core should be added now; None: nothing speaks against it."""
        ...

    def observe(self, measurement: Measurement, bottleneck: Bottleneck | None = None) -> None:
        """Learn from a tick, before the policy decides on it."""
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
        effects: EffectWatch | None = None,
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
        self._effects = effects
        self._assembly = assembly
        self._tick = 0
        self._at_s: float | None = None
        self._recalled: dict[str, Any] | None = None
        self._from: str | None = None
        """Where the numbers of the first decision are from; None if it has none."""
        self._told = False
        """Whether a record has told what this controller was built from."""
        self._settings_note: str | None = None
        """What changed when it took over from a controller with other settings."""
        self._fits = True
        """Whether cores were decided since the bounds were changed, or a dry run has ended."""
        self._began_s: float | None = None
        self._changed_s = -math.inf
        self._granted_at_change = 0
        self._predicted_s: float | None = None

    def tick(
        self,
        measurement: Measurement,
        share_of: ShareOf = alone,
        approve: Approve | None = None,
    ) -> Record:
        """Decide on one measurement. The caller acts on the decision when the record has `acted`.

        `share_of` is given the pipeline's claim, which already includes what the model learned from
        this tick. It returns the cores that the application's other pipelines leave to this one.
        `approve` is asked before a change that nothing holds back; a dry run asks nobody.
        """
        self._tick += 1
        self._at_s = measurement.at_s
        if self._began_s is None:
            self._began_s = measurement.at_s
        if self._learner is not None and measurement.stale is None:
            self._learner.learn(measurement)
        share = None if self._claim is None else share_of(self._claim(measurement))
        ahead_s = measurement.grant_s or 0.0
        bounds = raised(self._bounds, self._limits.floors, measurement.at_s, ahead_s)
        constraints = Constraints(bounds, share)
        predicted_s = self._predicted_s
        if measurement.stale is not None:
            return self._on_old_numbers(measurement, constraints, predicted_s, approve)
        bottleneck = None if self._finder is None else self._finder.find(measurement)
        if self._effects is not None:
            self._effects.observe(measurement, bottleneck)
        decision = self.policy.decide(measurement, constraints)
        decision = _within_bounds(decision, measurement, constraints.allowed)
        if bounds.least > self._bounds.least:
            decision = _at_floor(decision, measurement, constraints.allowed.least)
        if not self._fits:
            whole = int((self._assembly or {}).get("cores_per_executor", 1))
            decision = _in_new_bounds(decision, measurement, bounds, whole)
        if self._balancer is not None:
            decision = self._balancer.balanced(decision, measurement)
        decision = _limited(decision, bottleneck)
        if self._noter is not None:
            notes = (*decision.notes, *self._noter.notes(measurement))
            decision = dataclasses.replace(decision, notes=notes)
        held_back = None if decision.holds else self._held_back(decision, measurement)
        if held_back is not None and decision.keep is not None:
            decision, held_back = _only_keep(decision, held_back), None
        done = self._approved(decision, held_back, measurement, constraints, approve)
        return self._record(measurement, done, predicted_s, bottleneck, share)

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
        fresh = copy.deepcopy((self._learner, self.policy, self._claim, self._effects))
        try:
            self._recall(learned, now_s)
        except Exception:
            self._learner, self.policy, self._claim, self._effects = fresh
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

    @property
    def learner(self) -> Learner | None:
        """The model that learns; a controller that takes over goes on with it."""
        return self._learner

    @property
    def assembly(self) -> Mapping[str, Any] | None:
        """What the controller was built from, as its records tell it."""
        return self._assembly

    def take_over(self, before: "Controller", note: str | None = None) -> None:
        """Go on where a controller with other settings ended; call it before the first tick.

        Ticks and times are counted on. What does not depend on settings is taken as it is, and a
        policy of the same name begins with what the other learned. The next record has the new
        assembly, and `note` says what has changed.
        """
        self._tick, self._at_s, self._began_s = before._tick, before._at_s, before._began_s
        self._changed_s, self._granted_at_change = before._changed_s, before._granted_at_change
        self._predicted_s = before._predicted_s
        self._finder, self._balancer, self._noter = before._finder, before._balancer, before._noter
        self._recalled, self._from = before._recalled, before._from
        untold = None if before._told else before._settings_note
        self._settings_note = note if untold is None else f"{untold}; {note}"
        same = self._bounds == before._bounds and self._limits.dry_run == before._limits.dry_run
        self._fits = before._fits and same
        mine, other = self.policy, before.policy
        if mine.name == other.name and isinstance(mine, Remembering):
            mine.recall(other.learned() if isinstance(other, Remembering) else {}, 0.0)

    def tell_again(self) -> None:
        """The last record was lost: the next one tells again what the controller is built from."""
        self._told = False

    def _approved(
        self,
        decision: Decision,
        held_back: str | None,
        measurement: Measurement,
        constraints: Constraints,
        approve: Approve | None,
    ) -> Approved:
        """Ask for approval of a change that nothing holds back, and note a change that is made.

        An approved change may be another one, which is held to the same limits.
        """
        done = Approved(decision, held_back)
        asks = held_back is None and not decision.holds and not self._limits.dry_run
        if asks and approve is not None:
            done = approved_by(approve, decision, measurement)
            if done.proposed is not None:
                decision = _within_bounds(
                    done.decision, measurement, constraints.allowed, "approve"
                )
                late = None if decision.holds else self._held_back(decision, measurement)
                done = dataclasses.replace(done, decision=decision, held_back=late)
        held_back = self._noted(done.decision, done.held_back, measurement)
        return dataclasses.replace(done, held_back=held_back)

    def _noted(
        self, decision: Decision, held_back: str | None, measurement: Measurement
    ) -> str | None:
        """Remember a change that is made; return why it is held back, a dry run included."""
        if decision.holds or held_back is not None:
            return held_back
        self._fits |= decision.cores is not None
        if decision.cores is not None or decision.tasks:
            self._changed_s = measurement.at_s
            self._granted_at_change = measurement.cores_granted
            if not self._limits.dry_run:
                self._predicted_s = decision.expected_latency_s
        return "dry run" if self._limits.dry_run else None

    def _on_old_numbers(
        self,
        measurement: Measurement,
        constraints: Constraints,
        predicted_s: float | None,
        approve: Approve | None,
    ) -> Record:
        """Scale nothing on a stale measurement, but release cores that other pipelines need."""
        way, share = give_way(measurement, constraints.share), constraints.share
        if way is None:
            decision = hold(f"{measurement.stale}: holding, nothing is scaled on old numbers")
            return self._record(measurement, Approved(decision), predicted_s, None, share)
        decision = dataclasses.replace(way, reason=f"{measurement.stale}: {way.reason}")
        held_back = self._held_back(decision, measurement)
        done = self._approved(decision, held_back, measurement, constraints, approve)
        return self._record(measurement, done, predicted_s, None, share)

    def _record(
        self,
        measurement: Measurement,
        done: Approved,
        predicted_s: float | None,
        bottleneck: Bottleneck | None,
        share: int | None,
    ) -> Record:
        decision, held_back = done.decision, done.held_back
        beliefs = dict(self.policy.beliefs) if isinstance(self.policy, Believer) else {}
        if predicted_s and measurement.latency is not None:
            beliefs["prediction_error"] = measurement.latency.mean_s / predicted_s - 1.0
        if self._tick == 1 and self._from is not None:
            decision = dataclasses.replace(decision, notes=(*decision.notes, self._from))
        if not self._told and self._settings_note is not None:
            notes = (*decision.notes, self._settings_note)
            decision = dataclasses.replace(decision, notes=notes)
        tells, self._told = not self._told, True
        return Record(
            tick=self._tick,
            policy=self.policy.name,
            target_s=self._target_s,
            measurement=measurement,
            decision=decision,
            acted=not decision.holds and held_back is None,
            held_back=held_back,
            proposed=done.proposed,
            # A record is JSON, which has no infinity.
            beliefs={name: value for name, value in beliefs.items() if math.isfinite(value)},
            predicted_latency_s=predicted_s,
            bottleneck=bottleneck,
            no_effect=None if self._effects is None else self._effects.no_effect,
            share=share,
            assembly=self._assembly if tells else None,
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
                return f"no changes within {period}"
        if decision.cores is None and not decision.tasks:
            return None
        begun_s = measurement.at_s - (self._began_s or 0.0)
        if begun_s < limits.first_after_s:
            return (
                f"the run began {begun_s:.0f} s ago, and the first change waits for"
                f" {exact_duration(limits.first_after_s)} (first_change)"
            )
        since_s = measurement.at_s - self._changed_s
        # New tasks on cores that were just granted complete the last change, so T_ra can be waived.
        now = {operator.name: operator.tasks for operator in measurement.operators}
        widens = all(count > now.get(name, 0) for name, count in decision.tasks.items())
        come = measurement.cores_granted > self._granted_at_change
        arrived = decision.cores is None and come and widens
        if since_s < limits.t_ra_s and not arrived:
            return (
                f"the last change was {since_s:.0f} s ago, and {exact_duration(limits.t_ra_s)} must"
                " lie between two (between_changes)"
            )
        if grows and since_s < limits.scale_out_cooldown_s:
            wait = exact_duration(limits.scale_out_cooldown_s)
            return f"cooling down for {wait} before adding cores"
        if shrinks and since_s < limits.scale_in_cooldown_s:
            wait = exact_duration(limits.scale_in_cooldown_s)
            return f"cooling down for {wait} before releasing cores"
        return None


def _only_keep(decision: Decision, held_back: str) -> Decision:
    """The decision reduced to what it sheds, which is never held back.

    Rows have to be shed precisely because more cores may not be added now.
    """
    notes = decision.notes
    if not dataclasses.replace(decision, keep=None, keep_by_class={}).holds:
        notes += (f"only the share of rows that are kept changes now: {held_back}",)
    return dataclasses.replace(
        decision, cores=None, tasks={}, moves={}, deal={}, parts={}, preview={}, notes=notes
    )


def _limited(decision: Decision, bottleneck: Bottleneck | None) -> Decision:
    """Name the operator that limits the pipeline in the reason for a change of cores or tasks."""
    changes = decision.cores is not None or bool(decision.tasks)
    if bottleneck is None or not bottleneck.limits or not changes:
        return decision
    return dataclasses.replace(decision, reason=f"{decision.reason}; {bottleneck.words}")


def _at_floor(decision: Decision, measurement: Measurement, least: int) -> Decision:
    """Ask for the cores of a floor, where the policy is content with fewer."""
    if decision.cores is not None or measurement.cores_asked >= least:
        return decision
    reason = f"the schedule (floors) asks for at least {least} cores now; {decision.reason}"
    return dataclasses.replace(decision, cores=least, reason=reason)


def _in_new_bounds(
    decision: Decision, measurement: Measurement, bounds: Bounds, whole: int
) -> Decision:
    """Go to bounds that were changed at run time at once, without the policy's usual patience.

    `whole` is the number of cores of an executor: no part of one can be released.
    """
    asked = measurement.cores_asked
    if decision.cores is not None or bounds.clamp(asked) == asked:
        return decision
    why = f"{bounds.least} to {bounds.most} cores are allowed from now on; {decision.reason}"
    if asked < bounds.least:
        return dataclasses.replace(decision, cores=bounds.least, reason=why)
    fewer = release_to(measurement, max(bounds.most // whole * whole, 1), why)
    return dataclasses.replace(decision, cores=fewer.cores, tasks=fewer.tasks, reason=why)


def _within_bounds(
    decision: Decision, measurement: Measurement, allowed: Bounds, who: str = "the policy"
) -> Decision:
    """Clamp the decision to the bounds, whatever `who` asked for."""
    cores = decision.cores
    notes = decision.notes
    if cores is not None:
        cores = allowed.clamp(cores)
        if cores != decision.cores:
            notes += (
                f"{who} asked for {decision.cores} cores; {allowed.least} to"
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
