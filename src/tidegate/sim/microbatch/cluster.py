"""A simulated cluster whose nodes come late or never, fail, and are slow for a while.

An application asks for a number of cores, and the cluster works towards that number of nodes, as
Spark's cluster managers do: a node that fails, or that was started and never came, is replaced.
Each node takes a time of its own to come up. In a shortage the cluster has fewer nodes to give. All
of it follows from the seed.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from tidegate.errors import AskedWrongly

Vector = npt.NDArray[np.float64]

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A time in which the application may have only so many nodes; those that it has stay."""

    begin_s: float
    end_s: float
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWorld:
    """What the nodes of a cluster are like."""

    nodes: int = 1000
    cores_each: int = 4
    grant_s: float = 90.0
    """The median time from a request to the moment when a node is up."""
    spread: float = 0.3
    """Of the logarithm of that time."""
    late: float = 0.0
    """The share of started nodes that take `late_times` as long."""
    late_times: float = 5.0
    lost: float = 0.0
    """The share of started nodes that never come up; after `retry_s` others are started."""
    retry_s: float = 600.0
    failures_a_day: float = 0.0
    """How often a node fails in a day, on average; it is repaired after `repair_s`."""
    repair_s: float = 1800.0
    detect_s: float = 10.0
    """How long until a batch that lost a node begins again."""
    slow_a_day: float = 0.0
    """How often a node becomes slow in a day, on average: tasks on it take `slow_times` as long for
    `slow_s`."""
    slow_s: float = 600.0
    slow_times: float = 10.0
    speeds: tuple[float, ...] = ()
    """The speeds of the nodes in the order in which they are started, in turn; empty: all are 1."""
    speculation: float | None = None
    """As `spark.speculation.multiplier`: a task that takes so many times the median is run again on
    another core. None: it is not, which is Spark's default."""
    shortages: tuple[Shortage, ...] = ()
    memory_bytes: int | None = None
    """What the workers of a node may have together; None: nothing limits them."""
    base_bytes: int = 100_000_000
    """What a worker of each core has before it reads a row."""
    seed: int = 1

    def speed(self, number: int) -> float:
        """The speed of the node with this number, from 1 on, while nothing is wrong with it."""
        return self.speeds[(number - 1) % len(self.speeds)] if self.speeds else 1.0

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.cores_each < 1 or not self.grant_s > 0.0:
            raise AskedWrongly(
                "a cluster needs nodes with cores, and time to grant them; give more than 0 of each"
            )
        if not 0.0 <= self.late + self.lost < 1.0:
            raise AskedWrongly(
                f"{self.late:g} of the nodes late and {self.lost:g} lost leave none that come in"
                " time; give shares that add up to less than 1"
            )


@dataclass(slots=True)
class _Node:
    """A node of the application that is up."""

    number: int
    speed: float = 1.0
    """That of its kind, or less while it is slow."""


@dataclass(slots=True)
class ClusterCounts:
    """What has happened to the nodes of an application."""

    granted: int = 0
    late: int = 0
    lost: int = 0
    failed: int = 0
    slow: int = 0


class SimulatedCluster:
    """The nodes of one application, from event to event."""

    def __init__(self, world: ClusterWorld, cores: int) -> None:
        self._world = world
        self._random = np.random.default_rng(world.seed)
        self._events: list[tuple[float, int, Callable[[float], bool]]] = []
        """When something happens, its number, and what: it returns whether a node was lost."""
        self._happened = 0
        self._up: dict[int, _Node] = {}
        """The nodes that are up, oldest first."""
        self._coming: dict[int, None] = {}
        """Started nodes that are not up yet, oldest first."""
        self._broken = 0
        self._number = 0
        self._waiting: list[tuple[int, float]] = []
        """Requests not granted yet, oldest first: nodes in all, and the time of the request."""
        self.observed_grant_s: float | None = None
        """The time that requests took so far, as Spark's negotiator learns it."""
        self.counts = ClusterCounts()
        self._target = self._nodes_for(cores)
        for _ in range(min(self._target, world.nodes)):
            self._comes_up(self._next_number(), 0.0)
        for one in world.shortages:
            self._at(one.end_s, self._begins_or_ends)

    @property
    def cores(self) -> int:
        """The cores that are up."""
        return len(self._up) * self._world.cores_each

    @property
    def asked(self) -> int:
        """The cores that were asked for, in whole nodes."""
        return self._target * self._world.cores_each

    @property
    def speeds(self) -> Vector:
        """The speed of each core that is up, node by node."""
        speeds = np.fromiter((node.speed for node in self._up.values()), np.float64, len(self._up))
        return np.repeat(speeds, self._world.cores_each)

    @property
    def names(self) -> tuple[str, ...]:
        """The node of each core that is up."""
        each = range(self._world.cores_each)
        return tuple(f"node {number}" for number in self._up for _ in each)

    @property
    def next_s(self) -> float:
        """When something happens next; infinity: nothing will."""
        return self._events[0][0] if self._events else math.inf

    def step(self) -> bool:
        """Let the next event happen; returns whether a node was lost by it."""
        at_s, _, happens = heapq.heappop(self._events)
        return happens(at_s)

    def ask(self, cores: int, at_s: float, first: Sequence[str] = ()) -> None:
        """Ask for this many cores in all; those that are too many are released, newest first.

        Nodes that are named `first` go before others.
        """
        self._target = self._nodes_for(cores)
        while self._coming and len(self._up) + len(self._coming) > self._target:
            self._coming.popitem()
        for number in [number for number in self._up if f"node {number}" in first]:
            if len(self._up) > self._target:
                del self._up[number]
        while len(self._up) > self._target:
            self._up.popitem()
        self._waiting = [one for one in self._waiting if one[0] <= self._target]
        if self._target > max([len(self._up), *(count for count, _ in self._waiting)]):
            self._waiting.append((self._target, at_s))
        self._start_missing(at_s)

    def _nodes_for(self, cores: int) -> int:
        return max(1, -(-cores // self._world.cores_each))

    def _at(self, at_s: float, happens: Callable[[float], bool]) -> None:
        self._happened += 1
        heapq.heappush(self._events, (at_s, self._happened, happens))

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _start_missing(self, at_s: float) -> None:
        """Start as many nodes as are missing, as far as the cluster has them."""
        world = self._world
        there = world.nodes - self._broken
        for one in world.shortages:
            if one.begin_s <= at_s < one.end_s:
                there = min(there, one.nodes)
        missing = min(self._target, there) - len(self._up) - len(self._coming)
        for _ in range(missing):
            number = self._next_number()
            self._coming[number] = None
            takes_s = world.grant_s * math.exp(self._random.normal(0.0, world.spread))
            luck = self._random.random()
            if luck < world.lost:
                self.counts.lost += 1
                self._at(at_s + world.retry_s, partial(self._given_up, number))
                continue
            if luck < world.lost + world.late:
                self.counts.late += 1
                takes_s *= world.late_times
            self._at(at_s + takes_s, partial(self._granted, number))

    def _granted(self, number: int, at_s: float) -> bool:
        if number in self._coming:  # else the request was taken back meanwhile
            del self._coming[number]
            self.counts.granted += 1
            self._comes_up(number, at_s)
            while self._waiting and self._waiting[0][0] <= len(self._up):
                took_s = at_s - self._waiting.pop(0)[1]
                known = self.observed_grant_s
                self.observed_grant_s = took_s if known is None else 0.5 * (known + took_s)
        return False

    def _given_up(self, number: int, at_s: float) -> bool:
        self._coming.pop(number, None)
        return self._begins_or_ends(at_s)

    def _begins_or_ends(self, at_s: float) -> bool:
        """There may be more nodes to have than before."""
        self._start_missing(at_s)
        return False

    def _comes_up(self, number: int, at_s: float) -> None:
        world = self._world
        self._up[number] = _Node(number, world.speed(number))
        if world.failures_a_day > 0.0:
            lasts_s = self._random.exponential(_DAY_S / world.failures_a_day)
            self._at(at_s + lasts_s, partial(self._fails, number))
        if world.slow_a_day > 0.0:
            self._at(at_s + self._until_slow_s(), partial(self._becomes_slow, number))

    def _until_slow_s(self) -> float:
        return float(self._random.exponential(_DAY_S / self._world.slow_a_day))

    def _fails(self, number: int, at_s: float) -> bool:
        if self._up.pop(number, None) is None:
            return False
        self.counts.failed += 1
        self._broken += 1
        self._at(at_s + self._world.repair_s, self._repaired)
        self._start_missing(at_s)
        return True

    def _repaired(self, at_s: float) -> bool:
        self._broken -= 1
        return self._begins_or_ends(at_s)

    def _becomes_slow(self, number: int, at_s: float) -> bool:
        if number in self._up:
            self.counts.slow += 1
            self._up[number].speed = self._world.speed(number) / self._world.slow_times
            self._at(at_s + self._world.slow_s, partial(self._recovers, number))
        return False

    def _recovers(self, number: int, at_s: float) -> bool:
        if number in self._up:
            self._up[number].speed = self._world.speed(number)
            self._at(at_s + self._until_slow_s(), partial(self._becomes_slow, number))
        return False


@dataclass(frozen=True, slots=True, eq=False)
class NodeCores:
    """The cores that a batch runs on."""

    speeds: Vector = field(default_factory=lambda: np.ones(1))
    """The speed of each."""
    speculation: float | None = None
    names: tuple[str, ...] = ()
    """The node of each."""

    def places(self, tasks: int) -> tuple[str, ...]:
        """The node of each of so many tasks; empty without names."""
        names = self.names
        return tuple(names[task % len(names)] for task in range(tasks)) if names else ()

    def times(self, loads: Vector) -> Vector:
        """The time of each task for its load, which a core of speed 1 does in as many seconds.

        Tasks are put on the cores in turn. A task that takes `speculation` times the median is run
        again from then on, on a core that takes the median.
        """
        times = loads / np.resize(self.speeds, len(loads))
        if self.speculation is not None:
            usual = float(np.median(times))
            times = np.minimum(times, np.maximum(loads, (self.speculation + 1.0) * usual))
        return np.asarray(times, dtype=np.float64)
