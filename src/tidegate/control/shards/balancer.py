"""Adds to the decision of each tick what concerns shards: which of them move, and when to preview.

The loads of shards are learned from the batches before (`balance`). Where that is too late again
and again, because hot keys change often, rows are counted before they are routed (`preview`). Where
executors differ in speed, shards are balanced by the time that they take there.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tidegate.control.decision import Decision
from tidegate.control.learning.executor_speeds import (
    ExecutorSpeeds,
    executor_words,
    times_words,
)
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.control.shards.balance import THETA, Balance, ShardLoads, balance
from tidegate.control.shards.preview import Previews
from tidegate.control.shards.route import rescaled
from tidegate.units import format_share

_BLIND_TICKS = 10
"""So long shards stay where they are if it is not known which task runs on which executor, while
executors differ: they were put there by speed."""


@dataclass(slots=True)
class Balancer:
    """Balances the keyed operators of a pipeline every `every_batches` batches."""

    theta: float = THETA
    every_batches: int = 2
    half_life_s: float = 2.0
    most_operators: int = 8
    """The most operators to balance in one tick, those with the most to gain first, so that a tick
    stays short."""
    speeds: ExecutorSpeeds = field(default_factory=ExecutorSpeeds)
    """How fast the executors are, learned here and told by others."""
    _loads: dict[str, ShardLoads] = field(default_factory=dict)
    _blind: dict[str, int] = field(default_factory=dict)
    """For how many ticks the places of an operator's tasks have not been known."""
    _previews: Previews = field(default_factory=Previews)
    _batches: int = 0
    _changed: bool = False
    """Whether the shares of an operator's shards have just changed: that does not wait."""

    def observe(self, measurement: Measurement) -> None:
        """Learn the shards' loads from a tick's measurement."""
        self._batches += sum(len(segment.batches) for segment in measurement.segments)
        self._changed = False
        self._previews.observe(measurement)
        self.speeds.observe(measurement)
        for operator in measurement.operators:
            blind = len(operator.executors) != operator.tasks
            self._blind[operator.name] = self._blind.get(operator.name, 0) + 1 if blind else 0
            if np.any(operator.shard_rows):
                loads = self._loads.setdefault(operator.name, ShardLoads(self.half_life_s))
                loads.observe(operator.shard_rows, measurement.at_s)
                self._changed |= loads.changed

    def moves(
        self, measurement: Measurement, tasks: Mapping[str, int], *, now: bool = False
    ) -> tuple[dict[str, Balance], list[str]]:
        """The balances that move shards, per operator, and notes for a person.

        `tasks` has the operators whose number of tasks changes with the same decision: they are
        balanced on their new route, because an even count of shards is not an even load. With
        `now` it does not wait for `every_batches` batches.
        """
        found: dict[str, Balance] = {}
        notes: list[str] = []
        if self._batches < self.every_batches and not (now or self._changed):
            return found, notes
        self._batches = 0
        for operator in _gain_first(measurement.operators)[: self.most_operators]:
            answer = self._balance(operator, tasks.get(operator.name, operator.tasks))
            if answer is None:
                continue
            # With a preview, the batch finds the moves that suit its own rows.
            if answer.worth_it and not operator.preview:
                found[operator.name] = answer
            if answer.hot is not None:
                notes.append(
                    f"shard {answer.hot.shard} of '{operator.name}' alone has"
                    f" {answer.hot.share:.2g} times a task's fair share of the rows: neither other"
                    " tasks for it nor more cores help, a finer key does"
                )
        return found, notes

    def balanced(self, decision: Decision, measurement: Measurement) -> Decision:
        """The decision with moves of shards, for the tasks that it leaves in force.

        A body applies a decision's tasks first and its moves then, so both take effect with the
        same batch.
        """
        self.observe(measurement)
        if decision.moves:
            return decision
        balances, notes = self.moves(measurement, decision.tasks, now=bool(decision.tasks))
        preview, why = self._previews.changes(measurement)
        reason = "; ".join([decision.reason, *why])
        operators = {one.name: one for one in measurement.operators}
        for name, found in balances.items():
            count = len(found.moves)
            shards = "1 shard" if count == 1 else f"{count} shards"
            away = f", {found.crossing} to another node" if found.crossing else ""
            reason += f"; moving {shards} of '{name}'{away}: {_outcome(found)}"
            if found.by_speed:
                reason += _slow_words(operators[name], self.speeds)
        moves = {name: found.moves for name, found in balances.items()}
        return dataclasses.replace(
            decision,
            reason=reason,
            moves=moves,
            preview=preview,
            notes=decision.notes + tuple(notes),
        )

    def _balance(self, operator: OperatorMeasurement, tasks: int) -> Balance | None:
        observed = self._loads.get(operator.name)
        loads = None if observed is None else observed.loads
        fits = loads is not None and len(loads) == len(operator.route)
        if loads is None or not fits or not 2 <= tasks <= len(operator.route):
            return None
        if np.max(operator.route) >= operator.tasks:
            return None  # a change of tasks has not taken effect yet
        route = operator.route if tasks == operator.tasks else rescaled(operator.route, tasks)
        # With another number of tasks, it is not yet known where they will run.
        nodes = operator.nodes if len(operator.nodes) == tasks == operator.tasks else ()
        speeds = self._speeds_of(operator, tasks)
        return None if speeds is None else balance(loads, route, tasks, self.theta, nodes, speeds)

    def _speeds_of(self, operator: OperatorMeasurement, tasks: int) -> tuple[float, ...] | None:
        """The speeds of its tasks, empty where they are alike; None: they will be known soon."""
        if tasks != operator.tasks or not self.speeds.unlike:
            return ()
        if len(operator.executors) == tasks:
            speeds = self.speeds.of(operator.executors)
            return speeds if any(one != 1.0 for one in speeds) else ()
        return None if self._blind.get(operator.name, 0) < _BLIND_TICKS else ()


def _outcome(found: Balance) -> str:
    before, after = _more(found.before), _more(found.after)
    if found.by_speed:
        return f"its slowest task then takes {after} longer than the mean instead of {before}"
    return f"its fullest task then has {after} more than the mean instead of {before}"


def _slow_words(operator: OperatorMeasurement, speeds: ExecutorSpeeds) -> str:
    """The slowest executor that the shards were moved by."""
    speed, name = min(zip(speeds.of(operator.executors), operator.executors, strict=True))
    return f"; {executor_words(name)} is {times_words(speed)}" if speed < 1.0 else ""


def _more(imbalance: float) -> str:
    return format_share(max(imbalance - 1.0, 0.0))


def _gain_first(operators: Sequence[OperatorMeasurement]) -> list[OperatorMeasurement]:
    """Keyed operators, sorted by how much longer their fullest task works than the mean."""
    keyed = [operator for operator in operators if operator.route and not operator.dealt]
    return sorted(keyed, key=lambda one: (-one.busy_s * (one.imbalance - 1.0), -one.busy_s))
