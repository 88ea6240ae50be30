"""Tells a gap (the load was not counted) from a lull (there was no load), online.

A gap starts when a steady load falls to almost nothing from one reading to the next. A lull is
reached gradually, or by a load that is often near zero. During a gap the last level is kept. The
reading that ends a gap is not used either: a collector that comes back sees part of an interval,
or all that had piled up. So the return to the old level does not look like a surge.
"""

import statistics
from collections import deque
from enum import Enum

import numpy as np


class Kind(Enum):
    """The kind of a reading."""

    LOAD = "load"
    GAP = "gap"
    EDGE = "edge"
    """The first reading after a gap: part of an interval, or more than one."""


class GapDetector:
    """Classifies readings one by one. It is scale-free: counts and megabytes per second both work.

    A drop is a fall to the share `remains` of the level or less. It starts a gap when the last
    `memory` readings were steady: their median lay at least `steadiness` deviations above the new
    reading, and the last two had not fallen yet. After `longest` readings the gap is taken as a
    lull.
    """

    def __init__(
        self,
        memory: int = 15,
        remains: float = 0.05,
        steadiness: float = 5.0,
        longest: int = 180,
    ) -> None:
        self._recent: deque[float] = deque(maxlen=memory)
        self._remains = remains
        self._steadiness = steadiness
        self._longest = longest
        self._gap_length = 0
        self._level = 0.0

    def observe(self, value: float) -> Kind:
        """Classify the next reading."""
        if self._gap_length:
            return self._inside(value)
        if self._starts(value):
            self._level = float(np.median(self._recent))
            self._gap_length = 1
            return Kind.GAP
        self._recent.append(value)
        return Kind.LOAD

    def _inside(self, value: float) -> Kind:
        if value > self._remains * self._level:
            self._gap_length = 0
            return Kind.EDGE
        self._gap_length += 1
        if self._gap_length > self._longest:
            self._gap_length = 0
            self._recent.clear()
            self._recent.append(value)
            return Kind.LOAD
        return Kind.GAP

    def _starts(self, value: float) -> bool:
        if len(self._recent) < 5:
            return False
        level = statistics.median(self._recent)  # of so few values it is quicker than NumPy's
        if not value <= self._remains * level:
            return False
        recent = np.array(self._recent)
        if float(recent.min()) <= self._remains * level:
            return False  # the load was this low recently, so this is nothing new
        spread = 1.2533 * float(np.mean(np.abs(recent - level)))
        third = len(recent) // 3
        trend = abs(float(np.median(recent[-third:]) - np.median(recent[:third])))
        left_already = float(recent[-2:].max()) < 0.5 * level
        return not left_already and level - value > self._steadiness * spread + trend
