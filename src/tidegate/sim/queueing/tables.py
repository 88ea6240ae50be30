"""The engine's tables: growing flat arrays for events, queues and the trees of tuples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.sim.queueing import engine

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(slots=True)
class WaitingTuples:
    """A pool of entries for queued tuples; the free entries are a list from `engine.FREE`."""

    following: Ints
    root: Ints
    arrived: Floats

    @classmethod
    def of(cls, room: int) -> "WaitingTuples":
        """A pool of `room` free entries, linked in order."""
        following = np.arange(1, room + 1, dtype=np.int64)
        following[-1] = -1
        return cls(following, np.zeros(room, dtype=np.int64), np.zeros(room))

    def grow(self, state: Ints, room: int) -> None:
        """Grow to `room` entries; the new ones come before the old free ones in the list."""
        old = self.following.size
        following = np.arange(1, room + 1, dtype=np.int64)
        following[:old] = self.following
        following[-1] = state[engine.FREE]
        state[engine.FREE] = old
        self.following = following
        self.root = _longer(self.root, room)
        self.arrived = _longer(self.arrived, room)


@dataclass(slots=True)
class Roots:
    """One entry per external tuple: how many tuples of its tree are in the system, and times."""

    left: Ints
    arrived: Floats
    done: Floats
    visits: Floats
    """Sum of the sojourn times of all visits in the tree, in seconds."""

    @classmethod
    def of(cls, room: int) -> "Roots":
        """Room for this many external tuples."""
        return cls(np.zeros(room, dtype=np.int64), np.zeros(room), np.zeros(room), np.zeros(room))

    def grow(self, room: int) -> None:
        """Grow to `room` entries."""
        self.left = _longer(self.left, room)
        self.arrived = _longer(self.arrived, room)
        self.done = _longer(self.done, room)
        self.visits = _longer(self.visits, room)


@dataclass(slots=True)
class Cores:
    """One entry per core, the heap of running services, and each station's stack of idle cores."""

    heap_time: Floats
    heap_core: Ints
    station: Ints
    root: Ints
    arrived: Floats
    idle: Ints
    idle_count: Ints
    idle_first: Ints

    @classmethod
    def of(cls, allocation: Ints) -> "Cores":
        """All cores idle, with the first core of a station on top of its stack."""
        count = int(allocation.sum())
        first = np.concatenate(([0], np.cumsum(allocation)[:-1])).astype(np.int64)
        station = np.repeat(np.arange(allocation.size, dtype=np.int64), allocation)
        last = (first + allocation - 1)[station]
        idle = last - (np.arange(count, dtype=np.int64) - first[station])
        return cls(
            heap_time=np.full(count + 1, np.inf),
            heap_core=np.zeros(count + 1, dtype=np.int64),
            station=station,
            root=np.zeros(count, dtype=np.int64),
            arrived=np.zeros(count),
            idle=idle,
            idle_count=allocation.copy(),
            idle_first=first,
        )


def _longer(values: NDArray[Any], room: int) -> NDArray[Any]:
    longer = np.zeros(room, dtype=values.dtype)
    longer[: values.size] = values
    return longer
