"""Keep a task on the executor that has its state.

Spark places the tasks behind a shuffle anywhere. A task that also reads a cached block is placed
where that block is. An *anchor* is a tiny cached frame with one row per task, partitioned like the
operator's rows, and the operator reads both (a cogroup of anchor and rows).

A new anchor is made when the number of tasks or the executors change. Spark chooses where its
blocks are (a shuffle prefers hosts, never an executor). So tasks are renumbered instead: the next
route is relabelled so that as many shards as possible stay on the executor that caches them, or on
its host where the executors of a host share a cache. After a rescale or the loss of an executor,
only the shards that must move do.

Spark puts the blocks where cores are free at that moment, so a busy executor may get none of them,
and would then get no task for as long as the anchor lasts. An anchor whose blocks are lopsided is
made again at once, a few times, and the most even one is kept. If that one is still lopsided, it is
made again later, each time after twice as many micro-batches.
"""

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.group_ops import PandasCogroupedOps

from tidegate.control.shards.route import Route, relabelled
from tidegate.spark.batch.worker import TASK

ExecutorNames = frozenset[str]
_serial = itertools.count()
ALONE: ExecutorNames = frozenset()
"""Everything runs in one process: there is no place to choose."""
TRIES = 3
"""How often an anchor is made at once until its blocks are even."""
FIRST_WAIT = 16
"""Micro-batches until a lopsided anchor is made again for the first time; then it doubles."""


def host_of(place: str) -> str:
    """The host in Spark's name of an executor; any other name is returned as it is."""
    if not place.startswith("executor_"):
        return place
    return place.removeprefix("executor_").rsplit("_", 1)[0]


def working_executors(session: SparkSession) -> ExecutorNames:
    """Spark's names ("executor_HOST_ID") of the executors; empty when all is one process.

    Executors that were told to go are left out: they get no more tasks, and their caches vanish.
    """
    context = session.sparkContext._jsc.sc()
    if context.isLocal():
        return ALONE
    active = context.statusStore().executorList(True)
    backend = context.schedulerBackend()
    found = set()
    for number in range(active.size()):
        executor = active.apply(number)
        if executor.id() != "driver" and backend.isExecutorActive(executor.id()):
            found.add(f"executor_{executor.hostPort().rsplit(':', 1)[0]}_{executor.id()}")
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The anchor of one operator."""

    frame: DataFrame
    tasks: int
    executors: ExecutorNames
    places: tuple[str, ...]
    """The executor that holds each task's block, as Spark names it."""

    @property
    def surplus(self) -> int:
        """Blocks that the fullest executor has beyond its even share, and blocks without a place.

        Zero: every executor gets as many tasks as it can expect, or there is only one.
        """
        if not self.executors:
            return 0
        held = Counter(place for place in self.places if place)
        even = -(-self.tasks // len(self.executors))
        lost = self.tasks - held.total()
        return max(0, max(held.values(), default=0) - even) + lost


@dataclass(frozen=True, slots=True)
class Homes:
    """Where the shards of an operator were in a batch."""

    route: Route
    nodes: tuple[str, ...]
    """The place of each task."""

    def of_shards(self) -> list[str]:
        """The place of each shard."""
        return [self.nodes[task] for task in self.route]


class AnchorFrames(Protocol):
    """What gives an operator its anchor."""

    def of(self, operator: str, tasks: int, executors: ExecutorNames) -> DataFrame:
        """The anchor of an operator with so many tasks on these executors."""
        ...


@dataclass(slots=True)
class UnplacedAnchors:
    """Anchors that have the plan of real ones, and are put anywhere: for a rehearsal."""

    session: SparkSession
    _made: list[DataFrame] = field(default_factory=list)

    def of(self, operator: str, tasks: int, executors: ExecutorNames) -> DataFrame:
        """A new anchor; its blocks are computed when they are read."""
        self._made.append(_made(self.session, tasks, ALONE).frame)
        return self._made[-1]

    def release(self) -> None:
        """Drop the cached blocks."""
        for frame in self._made:
            frame.unpersist()
        self._made.clear()


@dataclass(slots=True)
class Anchors:
    """The anchors of a segment's operators, and the place of each shard's cache."""

    session: SparkSession
    shared: bool = False
    """Whether the executors of a host share a cache: then any of them has a shard's state."""
    _kept: dict[str, Anchor] = field(default_factory=dict)
    _homes: dict[str, "Homes"] = field(default_factory=dict)
    _nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The place of each task in the last batch."""
    _waits: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For operators with a lopsided anchor: micro-batches until it is made again, and how many it
    will wait after that."""

    def of(self, operator: str, tasks: int, executors: ExecutorNames) -> DataFrame:
        """The anchor of an operator with so many tasks on these executors."""
        return self._anchor(operator, tasks, executors).frame

    def follow(
        self,
        operator: str,
        route: Route,
        tasks: int,
        executors: ExecutorNames,
        *,
        stateful: bool = True,
    ) -> Route:
        """The route of a new batch, its tasks renumbered so that shards stay where they are.

        A map has no state to stay with. Its slots were dealt to tasks in certain places, so its
        tasks are renumbered only when these places have changed. They are executors even where
        those of a host share a cache: shares follow the speeds of executors.
        """
        if executors == ALONE:
            self._nodes.pop(operator, None)  # also a cluster that has lost all its executors
            return route
        self._tick(operator)
        anchor = self._anchor(operator, tasks, executors)
        by_host = self.shared and stateful
        nodes = tuple(host_of(place) if by_host else place for place in anchor.places)
        last = self._homes.get(operator)
        settled = not stateful and self._nodes.get(operator) == nodes
        # The slots of a map change with the number of its tasks.
        fits = last is not None and len(last.route) == len(route)
        # As long as nothing changes, every shard is at home.
        if last is not None and fits and not settled and last != Homes(route, nodes):
            route = relabelled(route, last.of_shards(), nodes)
        self._nodes[operator] = nodes
        self._homes[operator] = Homes(route, nodes)
        return route

    def nodes(self, operator: str) -> tuple[str, ...]:
        """The place of each task in the batch that is being planned; empty in one process."""
        return self._nodes.get(operator, ())

    def routed(self, operator: str, route: Route) -> None:
        """This batch has another route on the same tasks than the one that `follow` returned."""
        nodes = self._nodes.get(operator)
        if nodes is not None:
            self._homes[operator] = Homes(route, nodes)

    def let_go(self, operator: str) -> None:
        """Drop the anchor of an operator whose tasks may run anywhere again, if it has one."""
        kept = self._kept.pop(operator, None)
        if kept is not None:
            kept.frame.unpersist()
        for known in (self._waits, self._homes, self._nodes):
            known.pop(operator, None)

    def _anchor(self, operator: str, tasks: int, executors: ExecutorNames) -> Anchor:
        kept = self._kept.get(operator)
        if kept is not None and (kept.tasks, kept.executors) != (tasks, executors):
            kept.frame.unpersist()
            self._waits.pop(operator, None)
            kept = None
        elif kept is not None and (operator not in self._waits or self._waits[operator][0] > 0):
            return kept
        made = self._most_even(kept, tasks, executors)
        if made.surplus:
            _, wait = self._waits.get(operator, (0, FIRST_WAIT))
            self._waits[operator] = (wait, 2 * wait)
        else:
            self._waits.pop(operator, None)
        self._kept[operator] = made
        return made

    def _most_even(self, best: Anchor | None, tasks: int, executors: ExecutorNames) -> Anchor:
        """The first new anchor that is even, or after some tries the most even one.

        One that is there already stays unless another is more even: a new one moves state.
        """
        for _ in range(TRIES):
            made = _made(self.session, tasks, executors)
            if best is None:
                best = made
            elif made.surplus < best.surplus:
                best.frame.unpersist()
                best = made
            else:
                made.frame.unpersist()
            if not best.surplus:
                break
        assert best is not None
        return best

    def _tick(self, operator: str) -> None:
        """One more micro-batch has begun with a lopsided anchor."""
        if operator in self._waits:
            left, wait = self._waits[operator]
            self._waits[operator] = (left - 1, wait)

    def release(self) -> None:
        """Drop the cached blocks."""
        for anchor in self._kept.values():
            anchor.frame.unpersist()
        self._kept.clear()
        self._waits.clear()


def beside(anchor: DataFrame, rows: DataFrame, tasks: int) -> PandasCogroupedOps:
    """Each task's row of the anchor beside the rows that are sent to it, without another exchange.

    Rows of a single task need no column to be grouped by. With one, Spark would deal both sides out
    anew over all its shuffle partitions: a single partition is none of those that it can match.
    """
    by = (TASK,) if tasks > 1 else ()
    return anchor.groupBy(*by).cogroup(rows.groupBy(*by))


def _made(session: SparkSession, tasks: int, executors: ExecutorNames) -> Anchor:
    """A new anchor; on a cluster its blocks are computed, so that they have their places."""
    # Spark caches by plan: anchors with equal plans would share one cache and lose it together.
    first = next(_serial) << 32
    numbers = session.range(first, first + tasks, 1, tasks)
    rows = numbers.selectExpr(f"cast(id - {first} as int) as {TASK}")
    frame = rows.repartitionById(tasks, F.col(TASK)).persist()
    if executors == ALONE:
        return Anchor(frame, tasks, executors, ())
    frame.count()
    return Anchor(frame, tasks, executors, _places(frame, tasks))


def _places(frame: DataFrame, tasks: int) -> tuple[str, ...]:
    context = frame.sparkSession.sparkContext._jsc.sc()
    blocks = frame._jdf.queryExecution().withCachedData().cacheBuilder().cachedColumnBuffers()
    found = []
    for task in range(tasks):
        preferred = context.getPreferredLocs(blocks, task)
        found.append(str(preferred.head()) if preferred.nonEmpty() else "")
    return tuple(found)
