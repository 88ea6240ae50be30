"""Tell a gap (nobody counted) from a lull (nothing came), reading by reading.

A gap starts when a steady level falls to next to nothing from one reading to the next; a lull is
reached step by step, or by a series that often is near zero. While a gap lasts the level is kept,
and the reading that ends it is taken with care: a collector that comes back sees part of an
interval, or all that had piled up. So the way back to the old level is no surge.
"""

from collections import deque
from enum import Enum

import numpy as np


class Kind(Enum):
    """What a reading is."""

    LOAD = "load"
    GAP = "gap"
    EDGE = "edge"
    """The first reading after a gap: part of an interval, or more than one."""


class GapDetector:
    """Online; scale-free, so counts and megabytes per second do alike.

    A drop is to `remains` of the level or less. It starts a gap when the `memory` readings before
    were steady: the level stood at least `steadiness` spreads above the new reading, and the
    last two had not left it already. After `longest` readings the silence is believed.
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
        recent = np.array(self._recent)
        level = float(np.median(recent))
        if not value <= self._remains * level:
            return False
        if float(recent.min()) <= self._remains * level:
            return False  # it has been down here of late, so this is nothing new
        spread = 1.2533 * float(np.mean(np.abs(recent - level)))
        third = len(recent) // 3
        trend = abs(float(np.median(recent[-third:]) - np.median(recent[:third])))
        left_already = float(recent[-2:].max()) < 0.5 * level
        return not left_already and level - value > self._steadiness * spread + trend
