"""Balances shards (Elasticutor 3.1): few moves, until no task exceeds theta times the mean load.

Each round moves one shard from the fullest to the emptiest task: the shard that lowers the larger
of the two loads most. So no round raises delta, and the rounds end because each lowers the sum of
squares. A shard hotter than a task's fair share bounds delta from below; it is reported.

A shard that stays on its node moves no state (3.2: state is shared inside a node). If the tasks'
nodes are known, a move inside the node of the fullest task is preferred, provided that it gains
about as much as the best move, or brings that task down to theta.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.control.shards.route import rescaled
from tidegate.errors import AskedWrongly

THETA = 1.2
"""The paper's bound of delta."""
_NEAR_FLOOR = 1.05
"""If a hot shard bounds delta from below, balancing stops within this factor of the bound."""

_CHANGED = 0.1
"""A part of the rows that goes to other shards than before, beyond chance, is a change."""
_WORTH_IT = 0.97
"""Moves must lower delta to at most this share, or they are not worth the state they move."""

_ABOUT_AS_GOOD = 0.95
"""A move inside the node is preferred if it gains at least this share of the best move's gain."""

Loads = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HotShard:
    """A shard whose load alone exceeds a task's fair share."""

    shard: int
    share: float
    """Its load over the mean load of a task: no route can bring delta below this."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Moves of shards, and delta before and after them."""

    moves: Mapping[int, int]
    before: float
    after: float
    hot: HotShard | None = None
    """The hottest shard, if it keeps delta above theta."""
    crossing: int | None = None
    """How many of the moves leave their node; None if nodes are not known."""


def imbalance(loads: npt.ArrayLike, route: Sequence[int] | npt.ArrayLike, tasks: int) -> float:
    """delta: the load of the fullest task over the mean; 1 if there is no load."""
    totals = np.bincount(np.asarray(route, np.int64), np.asarray(loads, np.float64), tasks)
    mean = float(totals.mean())
    return float(totals.max()) / mean if mean > 0.0 else 1.0


def balance(
    loads: npt.ArrayLike,
    route: Sequence[int] | npt.ArrayLike,
    tasks: int,
    theta: float = THETA,
    nodes: Sequence[str] = (),
) -> Balance:
    """Find moves that bring delta down to theta, or as close as moves of single shards can.

    `nodes` names the node of each task. With it, no more shards leave their node than without, and
    delta is at most theta or what it would be without.
    """
    load = np.ascontiguousarray(loads, np.float64)
    old = np.array(route, np.int64)
    if not theta >= 1.0:
        raise AskedWrongly(f"theta is {theta:g}, but delta is never below 1; give 1 or more")
    if load.shape != old.shape or len(old) == 0 or not np.all(load >= 0.0):
        raise AskedWrongly("balance needs a route and a load of at least 0 for each of its shards")
    if tasks < 1 or int(old.min()) < 0 or int(old.max()) >= tasks:
        raise AskedWrongly(f"a route names a task that does not exist; tasks are 0 to {tasks - 1}")
    if nodes and len(nodes) != tasks:
        raise AskedWrongly(
            f"{len(nodes)} nodes for {tasks} tasks; give the node of each task, or none"
        )
    before = imbalance(load, old, tasks)
    mean = float(load.sum()) / tasks
    if before <= theta or mean <= 0.0:
        return Balance({}, before, before, crossing=0 if nodes else None)
    hottest = int(np.argmax(load))
    floor = float(load[hottest]) / mean
    aim = theta if floor <= theta else _NEAR_FLOOR * floor
    new = old.copy()
    after = _refine(load, new, tasks, mean, aim, np.arange(tasks))
    crossing = None
    if nodes:
        home = _numbered(nodes)
        crossing = _crossing(home, old, new)
        if crossing:
            near = old.copy()
            reached = _refine(load, near, tasks, mean, aim, home)
            fewer = _crossing(home, old, near)
            # The other order of moves may end at a higher delta; then keep the first result.
            if fewer < crossing and reached <= max(aim, after):
                new, after, crossing = near, reached, fewer
    changed = np.flatnonzero(new != old)
    moves = {int(shard): int(new[shard]) for shard in changed}
    hot = HotShard(hottest, floor) if floor > theta else None
    return Balance(moves, before, after, hot, crossing)


def _numbered(nodes: Sequence[str]) -> npt.NDArray[np.int64]:
    """The number of each task's node."""
    numbers = {node: number for number, node in enumerate(dict.fromkeys(nodes))}
    return np.array([numbers[node] for node in nodes], np.int64)


def _crossing(home: Any, old: Any, new: Any) -> int:
    """How many shards leave their node."""
    return int(np.count_nonzero(home[old] != home[new]))


@nb.njit(cache=True)
def _refine(loads: Any, route: Any, tasks: int, mean: float, aim: float, home: Any) -> float:
    """Move one shard per round, in place, and return delta; a task's shards are a linked list."""
    totals = np.zeros(tasks)
    head = np.full(tasks, -1, np.int64)
    following = np.full(len(loads), -1, np.int64)
    for shard in range(len(loads)):
        task = route[shard]
        totals[task] += loads[shard]
        following[shard] = head[task]
        head[task] = shard
    while True:
        fullest = np.argmax(totals)
        emptiest: Any = np.argmin(totals)
        if totals[fullest] <= aim * mean:
            break
        best, best_before, best_left = _best_move(
            loads, head[fullest], following, totals[fullest] - totals[emptiest]
        )
        if best < 0:
            break
        beside = _emptiest_beside(totals, home, fullest)
        if beside >= 0 and home[emptiest] != home[fullest]:
            near, near_before, near_left = _best_move(
                loads, head[fullest], following, totals[fullest] - totals[beside]
            )
            larger = totals[beside] + near_left  # of the two, afterwards
            gain = totals[fullest] - totals[emptiest] - best_left
            enough = larger <= aim * mean
            if near >= 0 and (enough or totals[fullest] - larger >= _ABOUT_AS_GOOD * gain):
                best, best_before, emptiest = near, near_before, beside
        if best_before < 0:
            head[fullest] = following[best]
        else:
            following[best_before] = following[best]
        following[best] = head[emptiest]
        head[emptiest] = best
        route[best] = emptiest
        totals[fullest] -= loads[best]
        totals[emptiest] += loads[best]
    return float(totals.max() / mean)


@nb.njit(cache=True)
def _best_move(loads: Any, first: int, following: Any, gap: float) -> tuple[int, int, float]:
    """The shard of a task whose move lowers the larger of two tasks most; -1 if none does.

    Also returned are the shard before it in the list, and how far the larger task afterwards lies
    above the emptier one now, which is the quantity minimised.
    """
    best = -1
    best_before = -1
    best_left = gap
    before = -1
    shard = first
    while shard >= 0:
        left = max(gap - loads[shard], loads[shard])
        if loads[shard] > 0.0 and left < best_left * (1.0 - 1e-12):
            best, best_before, best_left = shard, before, left
        before = shard
        shard = following[shard]
    return best, best_before, best_left


@nb.njit(cache=True)
def _emptiest_beside(totals: Any, home: Any, fullest: Any) -> int:
    """The emptiest other task on the node of the fullest; -1 if there is no other."""
    found = -1
    for task in range(len(totals)):
        if task == fullest or home[task] != home[fullest]:
            continue
        if found < 0 or totals[task] < totals[found]:
            found = task
    return found


class ShardLoads:
    """Load per shard with exponential decay: the weight of rows halves every `half_life_s`.

    When other keys become hot, the old loads are wrong at once and for several half-lives. So they
    are forgotten when the shares of the shards have changed by more than chance explains.
    """

    def __init__(self, half_life_s: float = 2.0) -> None:
        if not half_life_s > 0.0:
            raise AskedWrongly(
                f"a half-life of {half_life_s:g} s is not possible; give more than 0"
            )
        self._half_life_s = half_life_s
        self._loads: Loads | None = None
        self._at_s = 0.0
        self.changed = False
        """Whether the last rows had other shares than those before them."""

    def observe(self, rows: npt.ArrayLike, at_s: float) -> None:
        """Add the rows per shard of batches that ended since the last call, up to `at_s`."""
        fresh = np.array(rows, np.float64)
        known = self._loads is not None and self._loads.shape == fresh.shape
        self.changed = known and _other_shares(self._loads, fresh)
        if not known or self.changed:
            self._loads = fresh
        else:
            assert self._loads is not None
            self._loads *= 0.5 ** (max(at_s - self._at_s, 0.0) / self._half_life_s)
            self._loads += fresh
        self._at_s = at_s

    @property
    def loads(self) -> Loads | None:
        """The load of each shard, in decayed rows; None before the first observation."""
        return self._loads


def _other_shares(before: Loads | None, fresh: Loads) -> bool:
    """Whether a part of the rows went to other shards than before, beyond chance.

    The part is the total variation distance of the two distributions. By chance alone, two samples
    of n and m rows over s shards differ by about 0.4 sqrt(s (1/n + 1/m)).
    """
    if before is None:
        return False
    rows, others = float(fresh.sum()), float(before.sum())
    if min(rows, others) <= 0.0:
        return False
    shards = int(np.count_nonzero(before + fresh))
    by_chance = 0.4 * math.sqrt(shards * (1.0 / rows + 1.0 / others))
    return 0.5 * float(np.abs(fresh / rows - before / others).sum()) > _CHANGED + 1.5 * by_chance


@dataclass(slots=True)
class Balancer:
    """Balances the keyed operators of a pipeline every `every_batches` batches."""

    theta: float = THETA
    every_batches: int = 2
    half_life_s: float = 2.0
    most_operators: int = 8
    """The most operators to balance in one tick, those with the most to gain first, so that a tick
    stays short."""
    _loads: dict[str, ShardLoads] = field(default_factory=dict)
    _batches: int = 0
    _changed: bool = False
    """Whether the shares of an operator's shards have just changed: that does not wait."""

    def observe(self, measurement: Measurement) -> None:
        """Learn the shards' loads from a tick's measurement."""
        self._batches += sum(len(segment.batches) for segment in measurement.segments)
        self._changed = False
        for operator in measurement.operators:
            if any(operator.shard_rows):
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
            if answer.moves and answer.after <= _WORTH_IT * answer.before:
                found[operator.name] = answer
            if answer.hot is not None:
                notes.append(
                    f"shard {answer.hot.shard} of '{operator.name}' alone has"
                    f" {answer.hot.share:.2f} times a task's fair share: no route brings its"
                    f" imbalance below that; a finer key would"
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

    def _balance(self, operator: OperatorMeasurement, tasks: int) -> Balance | None:
        observed = self._loads.get(operator.name)
        loads = None if observed is None else observed.loads
        fits = loads is not None and len(loads) == len(operator.route)
        if loads is None or not fits or not 2 <= tasks <= len(operator.route):
            return None
        if max(operator.route) >= operator.tasks:
            return None  # a change of tasks has not taken effect yet
        route = operator.route if tasks == operator.tasks else rescaled(operator.route, tasks)
        # With another number of tasks, it is not yet known where they will run.
        nodes = operator.nodes if len(operator.nodes) == tasks == operator.tasks else ()
        return balance(loads, route, tasks, self.theta, nodes)


def _gain_first(operators: Sequence[OperatorMeasurement]) -> list[OperatorMeasurement]:
    """Keyed operators, sorted by how much longer their fullest task works than the mean."""
    keyed = [operator for operator in operators if operator.route]
    return sorted(keyed, key=lambda one: (-one.busy_s * (one.imbalance - 1.0), -one.busy_s))
