"""Finds partitions of a source that get many more rows than the others.

One task reads a partition, so a hot one keeps its task busy while others wait.
"""

from collections import deque

from tidegate.control.lag import PartitionLag

HOT = 2.0
"""A partition is hot if it gets this many times as many rows as the mean of the others."""
WINDOW_S = 30.0
"""Partitions are compared over so long."""
_LEAST_ROWS = 100
"""Over fewer rows than this, one partition is hotter than another by chance."""
_LEAST_S = 5.0


class HotPartitions:
    """Sees the partitions of one segment's sources tick by tick, in time order."""

    def __init__(self) -> None:
        self._ticks: deque[tuple[float, tuple[PartitionLag, ...]]] = deque()

    def observe(self, partitions: tuple[PartitionLag, ...], at_s: float) -> None:
        """Add a tick."""
        self._ticks.append((at_s, partitions))
        while self._ticks[0][0] < at_s - WINDOW_S:
            self._ticks.popleft()

    def found(self) -> list[tuple[PartitionLag, float]]:
        """Partitions that got many more rows than the others, with how many times as many."""
        if not self._ticks or self._ticks[-1][0] - self._ticks[0][0] < _LEAST_S:
            return []
        arrived: dict[tuple[str, int], int] = {}
        newest: dict[tuple[str, int], PartitionLag] = {}
        for _, partitions in self._ticks:
            for one in partitions:
                place = (one.topic, one.partition)
                arrived[place] = arrived.get(place, 0) + one.arrived_rows
                newest[place] = one
        total = sum(arrived.values())
        if len(arrived) < 2 or total < _LEAST_ROWS:
            return []
        found = []
        for place, rows in arrived.items():
            others = (total - rows) / (len(arrived) - 1)
            if rows > HOT * max(others, 1.0):
                found.append((newest[place], rows / max(others, 1.0)))
        return found
