"""The loop without its body: a measurement in, a record out, once per tick.

It holds what a policy should not have to know: bounds, the time between changes (T_ra), cooldowns,
excluded periods, dry run, stale numbers, and the shard balance. What to keep is exempt: shedding is
the last remedy, and returning from it cannot wait either. The clock comes in with the
measurement, so Spark, the simulator and a replay get the same decisions from the same numbers.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tidegate.control.bottleneck import Bottleneck, BottleneckFinder
from tidegate.control.capacity.cycle import Bounds
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.periods import Period
from tidegate.control.policy import Policy
from tidegate.control.record import Record
from tidegate.control.shards.balance import Balancer
from tidegate.control.sharing.division import give_way
from tidegate.errors import AskedWrongly


@runtime_checkable
class Believer(Protocol):
    """A policy that can say what it believed."""

    @property
    def beliefs(self) -> dict[str, float]:
        """Names and numbers behind the last decision."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When changes may be made."""

    t_ra_s: float = 0.0
    """T_ra: at least so long between two changes of cores or tasks (DRS IV-B)."""
    scale_out_cooldown_s: float = 0.0
    """After any change, so long before more cores."""
    scale_in_cooldown_s: float = 0.0
    """After any change, so long before fewer cores."""
    dry_run: bool = False
    """Decide and record, but act on nothing."""
    excluded: tuple[Period, ...] = ()
    """Times of the day in which nothing changes."""
    emergencies: bool = False
    """Whether a scale-out for a backlog may be made even then."""

    def __post_init__(self) -> None:
        if min(self.t_ra_s, self.scale_out_cooldown_s, self.scale_in_cooldown_s) < 0.0:
            raise AskedWrongly("T_ra and cooldowns are durations; give 0 seconds or more")


def excluded_periods(texts: Sequence[str]) -> tuple[Period, ...]:
    """Periods as a person writes them: `09:00-10:00`."""
    return tuple(Period.parse(text) for text in texts)


class Controller:
    """Runs a policy within its limits. `tick` is all there is to call."""

    def __init__(
        self,
        policy: Policy,
        *,
        bounds: Bounds,
        target_s: float | None = None,
        limits: Limits | None = None,
        balancer: Balancer | None = None,
    ) -> None:
        if not 1 <= bounds.least <= bounds.most:
            raise AskedWrongly(
                f"a minimum of {bounds.least} and a maximum of {bounds.most} cores cannot both"
                " hold; give a minimum from 1 up to the maximum"
            )
        self._policy = policy
        self._bounds = bounds
        self._target_s = target_s
        self._limits = limits or Limits()
        self._balancer = balancer
        self._finder = BottleneckFinder()
        self._tick = 0
        self._changed_s = -math.inf
        self._granted_at_change = 0
        self._predicted_s: float | None = None

    def tick(self, measurement: Measurement) -> Record:
        """Decide on one measurement; the body acts on the decision when the record says `acted`."""
        self._tick += 1
        predicted_s = self._predicted_s
        if measurement.stale is not None:
            return self._on_old_numbers(measurement, predicted_s)
        bottleneck = self._finder.find(measurement)
        decision = self._within_bounds(self._policy.decide(measurement), measurement)
        decision = _limited(self._balanced(decision, measurement), bottleneck)
        held_back = None if decision.holds else self._held_back(decision, measurement)
        if held_back is not None and decision.keep is not None:
            decision, held_back = _only_keep(decision, held_back), None
        held_back = self._noted(decision, held_back, measurement)
        return self._record(measurement, decision, held_back, predicted_s, bottleneck)

    def _noted(
        self, decision: Decision, held_back: str | None, measurement: Measurement
    ) -> str | None:
        """Remembers a change that is made; what holds it back, a dry run included."""
        if decision.holds or held_back is not None:
            return held_back
        if decision.cores is not None or decision.tasks:
            self._changed_s = measurement.at_s
            self._granted_at_change = measurement.cores_granted
            if not self._limits.dry_run:
                self._predicted_s = decision.expected_latency_s
        return "dry run" if self._limits.dry_run else None

    def _on_old_numbers(self, measurement: Measurement, predicted_s: float | None) -> Record:
        """Nothing is scaled, but what other pipelines need is not held by one that is silent."""
        way = give_way(measurement)
        if way is None:
            decision = hold(f"{measurement.stale}: holding, nothing is scaled on old numbers")
            return self._record(measurement, decision, None, predicted_s, None)
        decision = dataclasses.replace(way, reason=f"{measurement.stale}: {way.reason}")
        held_back = self._noted(decision, self._held_back(decision, measurement), measurement)
        return self._record(measurement, decision, held_back, predicted_s, None)

    def _record(
        self,
        measurement: Measurement,
        decision: Decision,
        held_back: str | None,
        predicted_s: float | None,
        bottleneck: Bottleneck | None,
    ) -> Record:
        beliefs = dict(self._policy.beliefs) if isinstance(self._policy, Believer) else {}
        if predicted_s and measurement.latency is not None:
            beliefs["prediction_error"] = measurement.latency.mean_s / predicted_s - 1.0
        return Record(
            tick=self._tick,
            policy=self._policy.name,
            target_s=self._target_s,
            measurement=measurement,
            decision=decision,
            acted=not decision.holds and held_back is None,
            held_back=held_back,
            beliefs=beliefs,
            predicted_latency_s=predicted_s,
            bottleneck=bottleneck,
        )

    def _within_bounds(self, decision: Decision, measurement: Measurement) -> Decision:
        """Never outside the bounds, whatever a policy says."""
        bounds = self._bounds.within(measurement.cores_allowed)
        cores = decision.cores
        notes = decision.notes
        if cores is not None:
            cores = bounds.clamp(cores)
            if cores != decision.cores:
                notes += (
                    f"{decision.cores} cores were wished for; {bounds.least} to"
                    f" {bounds.most} are allowed",
                )
        operators = {operator.name: operator for operator in measurement.operators}
        tasks = {}
        for name, count in decision.tasks.items():
            operator = operators.get(name)
            most = bounds.most
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

    def _balanced(self, decision: Decision, measurement: Measurement) -> Decision:
        """With the balancer's moves, for the tasks that the decision leaves in force.

        A body applies a decision's tasks first and its moves then, so both take effect with the
        same batch.
        """
        if self._balancer is None:
            return decision
        self._balancer.observe(measurement)
        if decision.moves:
            return decision
        balances, notes = self._balancer.moves(
            measurement, decision.tasks, now=bool(decision.tasks)
        )
        reason = decision.reason
        for name, found in balances.items():
            count = len(found.moves)
            shards = "1 shard" if count == 1 else f"{count} shards"
            away = f", {found.crossing} to another node" if found.crossing else ""
            reason += (
                f"; moving {shards} of '{name}'{away}:"
                f" imbalance {found.before:.2f} to {found.after:.2f}"
            )
        moves = {name: found.moves for name, found in balances.items()}
        return dataclasses.replace(
            decision, reason=reason, moves=moves, notes=decision.notes + tuple(notes)
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
