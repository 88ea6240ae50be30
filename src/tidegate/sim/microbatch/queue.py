"""Rows that have not been processed yet, in buckets of arrival time."""

import math
from dataclasses import dataclass

import numpy as np

from tidegate.sim.microbatch.world import Vector


@dataclass(slots=True)
class RowQueue:
    """For each bucket: when it arrived at the source, when it is ready here, and its rows."""

    arrived_s: Vector
    ready_s: Vector
    rows: Vector
    taken: int = 0
    part: float = 0.0
    """Rows of the first bucket that is left, which were taken before: a read limit cut it."""
    first_s: float = math.inf
    """When the first row arrived; those that were there from the beginning do not count."""

    def __post_init__(self) -> None:
        arrived = (self.rows > 0.0) & (self.ready_s > 0.0)
        if arrived.any():
            self.first_s = float(self.ready_s[np.argmax(arrived)])

    def take(self, until_s: float, most: float = math.inf) -> tuple[Vector, Vector]:
        """Take rows that are ready, the oldest first, up to `most`.

        Returns their arrival times and counts.
        """
        end = int(np.searchsorted(self.ready_s, until_s, side="right"))
        begin, end = self.taken, max(end, self.taken)
        counts = self.rows[begin:end]
        if self.part > 0.0 and end > begin:
            counts = counts.copy()
            counts[0] -= self.part
        if not counts.sum() > most:
            self.taken, self.part = end, 0.0
            return self.arrived_s[begin:end], counts
        upto = np.cumsum(counts)
        last = int(np.searchsorted(upto, most))
        counts = counts[: last + 1].copy()
        counts[last] -= upto[last] - most
        self.part = float(counts[last]) + (self.part if last == 0 else 0.0)
        self.taken = begin + last
        return self.arrived_s[begin : begin + last + 1], counts

    def ready_until(self, until_s: float) -> Vector:
        """When the rows became ready that `take` would take now."""
        end = int(np.searchsorted(self.ready_s, until_s, side="right"))
        return self.ready_s[self.taken : end]

    def next_ready_s(self) -> float:
        """When the next rows will be ready.

        It looks at more and more buckets at a time: in a long run nearly all of them lie ahead.
        """
        begin, width = self.taken, 64
        while begin < len(self.rows):
            later = self.rows[begin : begin + width] > 0.0
            found = int(np.argmax(later))
            if later[found]:
                return float(self.ready_s[begin + found])
            begin, width = begin + width, 2 * width
        return math.inf

    def put(self, arrived_s: Vector, ready_s: float, rows: Vector) -> None:
        """Append rows that all become ready at the same time."""
        self.arrived_s = np.concatenate([self.arrived_s[self.taken :], arrived_s])
        ready = np.full(len(rows), ready_s)
        self.ready_s = np.concatenate([self.ready_s[self.taken :], ready])
        self.rows = np.concatenate([self.rows[self.taken :], rows])
        self.taken = 0

    def waiting(self, at_s: float) -> float:
        """Rows that are ready but have not been taken yet."""
        end = int(np.searchsorted(self.ready_s, at_s, side="right"))
        return max(float(self.rows[self.taken : end].sum()) - self.part, 0.0)

    def offered(self, begin_s: float, end_s: float) -> float:
        """Rows that became ready between two times."""
        first = int(np.searchsorted(self.ready_s, begin_s, side="right"))
        last = int(np.searchsorted(self.ready_s, end_s, side="right"))
        return float(self.rows[first:last].sum())
