"""Balances shards (Elasticutor 3.1): few moves, until no task exceeds theta times the mean load.

Each round moves one shard from the fullest to the emptiest task: the shard that lowers the larger
of the two loads most. So no round raises delta, and the rounds end because each lowers the sum of
squares. A shard hotter than a task's fair share bounds delta from below; it is reported.

A shard that stays on its node moves no state (3.2: state is shared inside a node). If the tasks'
nodes are known, a move inside the node of the fullest task is preferred, provided that it gains
about as much as the best move, or brings that task down to theta.

Where executors differ in speed, the load of a task is the time that its executor takes for it: all
of the above holds for times.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly

THETA = 1.2
"""The paper's bound of delta."""
_NEAR_FLOOR = 1.05
"""If a hot shard bounds delta from below, balancing stops within this factor of the bound."""

_CHANGED = 0.1
"""A part of the rows that goes to other shards than before, beyond chance, is a change."""
WORTH_IT = 0.97
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
    by_speed: bool = False
    """Whether the tasks differ in speed, so that the imbalance is one of times."""

    @property
    def worth_it(self) -> bool:
        """Whether there are moves, and they lower delta by more than a little."""
        return bool(self.moves) and self.after <= WORTH_IT * self.before


def imbalance(
    loads: npt.ArrayLike,
    route: Sequence[int] | npt.ArrayLike,
    tasks: int,
    speeds: Sequence[float] = (),
) -> float:
    """delta: the load of the fullest task over the mean; 1 if there is no load.

    With the `speeds` of the tasks: the longest time over that of a perfect division.
    """
    totals = np.bincount(np.asarray(route, np.int64), np.asarray(loads, np.float64), tasks)
    if not len(speeds):
        mean = float(totals.mean())
        return float(totals.max()) / mean if mean > 0.0 else 1.0
    speed = np.asarray(speeds, np.float64)
    mean = float(totals.sum() / speed.sum())
    return float((totals / speed).max()) / mean if mean > 0.0 else 1.0


def balance(
    loads: npt.ArrayLike,
    route: Sequence[int] | npt.ArrayLike,
    tasks: int,
    theta: float = THETA,
    nodes: Sequence[str] = (),
    speeds: Sequence[float] = (),
) -> Balance:
    """Find moves that bring delta down to theta, or as close as moves of single shards can.

    `nodes` names the node of each task. With it, no more shards leave their node than without, and
    delta is at most theta or what it would be without. `speeds` are those of the tasks, where they
    are not all alike.
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
    if len(speeds) and (len(speeds) != tasks or not all(one > 0.0 for one in speeds)):
        raise AskedWrongly(
            f"{len(speeds)} speeds for {tasks} tasks; give one above 0 for each task, or none"
        )
    speed = np.asarray(speeds, np.float64) if len(speeds) else np.ones(tasks)
    before = imbalance(load, old, tasks, speeds)
    mean = float(load.sum()) / float(speed.sum())
    if before <= theta or mean <= 0.0:
        return Balance({}, before, before, None, 0 if nodes else None, len(speeds) > 0)
    hottest = int(np.argmax(load))
    floor = float(load[hottest]) / (mean * float(speed.max()))
    aim = theta if floor <= theta else _NEAR_FLOOR * floor
    new = old.copy()
    after = _refine(load, new, speed, mean, aim, np.arange(tasks))
    crossing = None
    if nodes:
        home = _numbered(nodes)
        crossing = _crossing(home, old, new)
        if crossing:
            near = old.copy()
            reached = _refine(load, near, speed, mean, aim, home)
            fewer = _crossing(home, old, near)
            # The other order of moves may end at a higher delta; then keep the first result.
            if fewer < crossing and reached <= max(aim, after):
                new, after, crossing = near, reached, fewer
    changed = np.flatnonzero(new != old)
    moves = {int(shard): int(new[shard]) for shard in changed}
    hot = HotShard(hottest, floor) if floor > theta else None
    return Balance(moves, before, after, hot, crossing, len(speeds) > 0)


def _numbered(nodes: Sequence[str]) -> npt.NDArray[np.int64]:
    """The number of each task's node."""
    numbers = {node: number for number, node in enumerate(dict.fromkeys(nodes))}
    return np.array([numbers[node] for node in nodes], np.int64)


def _crossing(home: Any, old: Any, new: Any) -> int:
    """How many shards leave their node."""
    return int(np.count_nonzero(home[old] != home[new]))


@nb.njit(cache=True)
def _refine(loads: Any, route: Any, speed: Any, mean: float, aim: float, home: Any) -> float:
    """Move one shard per round, in place, and return delta; a task's shards are a linked list.

    `totals` are times: loads over the speeds of their tasks.
    """
    tasks = len(speed)
    totals = np.zeros(tasks)
    head = np.full(tasks, -1, np.int64)
    following = np.full(len(loads), -1, np.int64)
    for shard in range(len(loads)):
        task = route[shard]
        totals[task] += loads[shard] / speed[task]
        following[shard] = head[task]
        head[task] = shard
    while True:
        fullest = np.argmax(totals)
        emptiest: Any = np.argmin(totals)
        if totals[fullest] <= aim * mean:
            break
        best, best_before, best_left = _best_move(
            loads,
            head[fullest],
            following,
            totals[fullest] - totals[emptiest],
            speed[fullest],
            speed[emptiest],
        )
        if best < 0:
            break
        beside = _emptiest_beside(totals, home, fullest)
        if beside >= 0 and home[emptiest] != home[fullest]:
            near, near_before, near_left = _best_move(
                loads,
                head[fullest],
                following,
                totals[fullest] - totals[beside],
                speed[fullest],
                speed[beside],
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
        totals[fullest] -= loads[best] / speed[fullest]
        totals[emptiest] += loads[best] / speed[emptiest]
    return float(totals.max() / mean)


@nb.njit(cache=True)
def _best_move(
    loads: Any, first: int, following: Any, gap: float, here: float, there: float
) -> tuple[int, int, float]:
    """The shard of a task whose move lowers the larger of two tasks most; -1 if none does.

    `here` and `there` are the speeds of the fuller and the emptier task. Also returned are the
    shard before it in the list, and how far the larger task afterwards lies above the emptier one
    now, which is the quantity minimised.
    """
    best = -1
    best_before = -1
    best_left = gap
    before = -1
    shard = first
    while shard >= 0:
        left = max(gap - loads[shard] / here, loads[shard] / there)
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
        self.changed = known and other_shares(self._loads, fresh)
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


def other_shares(before: Loads | None, fresh: Loads) -> bool:
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
