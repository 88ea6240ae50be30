"""Remembers how many cores there were, and whether they were enough for all tasks.

Where a cluster grants cores late, tasks may be there before them. A batch whose tasks wait for
cores tells nothing of the effect of more cores.
"""

from collections import deque

from tidegate.control.measurement import Measurement

_REMEMBERED = 600
"""Ticks that a batch may last and still be judged."""


class GrantedCores:
    """Sees every tick in time order."""

    def __init__(self) -> None:
        self._ticks: deque[tuple[float, bool]] = deque(maxlen=_REMEMBERED)
        """The time of each tick, and whether there was a core for every task."""
        self.before = 1
        """Cores at the last tick."""

    def observe(self, measurement: Measurement) -> None:
        """Add a tick."""
        tasks = sum(segment.tasks for segment in measurement.segments)
        self._ticks.append((measurement.at_s, tasks <= measurement.cores_granted))
        self.before = measurement.cores_granted

    def were_enough(self, at_s: float) -> bool:
        """Whether there was a core for every task at the last tick before this time."""
        for tick_s, enough in reversed(self._ticks):
            if tick_s <= at_s:
                return enough
        return False
