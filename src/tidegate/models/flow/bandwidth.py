"""The bandwidth of the links into a task, learned from how long tasks wait for their rows.

Flink-ER takes the bandwidth of a node from its network card (eq. 9). What a Spark task sees is what
is left of it after the shuffle, the sort behind it and the way into Python, and that can be
measured: a task that receives x bytes waits b + x / N for them. The line is fitted by least squares
over the batches, and old batches fade. Batches that are all alike tell nothing about N, and then no
limit is assumed.
"""

import math

_FADING = 0.98
"""The weight that earlier batches keep with each new one."""
_FEWEST = 6.0
"""Batches that a line is fitted to, at least, by weight."""
_SPREAD = 0.1
"""The sizes must deviate from their mean by this share of it, at least."""
_SURE = 3.0
"""The slope must be this many times its standard error; else the wait does not depend on size."""


class LinkBandwidth:
    """The fitted line of one operator's tasks."""

    def __init__(self) -> None:
        self._weight = 0.0
        self._mean_x = self._mean_y = 0.0
        self._xx = self._xy = self._yy = 0.0
        """Sums of the squared deviations from the means, and of their products."""

    def add(self, received_bytes: float, waited_s: float) -> None:
        """Learn from one task of a batch, or from the mean of its tasks."""
        self._weight *= _FADING
        self._xx, self._xy, self._yy = (_FADING * one for one in (self._xx, self._xy, self._yy))
        self._weight += 1.0
        off_x, off_y = received_bytes - self._mean_x, waited_s - self._mean_y
        self._mean_x += off_x / self._weight
        self._mean_y += off_y / self._weight
        left = 1.0 - 1.0 / self._weight
        self._xx += left * off_x * off_x
        self._xy += left * off_x * off_y
        self._yy += left * off_y * off_y

    @property
    def bytes_s(self) -> float:
        """N: bytes per second into one task; infinite while no limit has been seen."""
        spread = math.sqrt(self._xx / self._weight) if self._weight else 0.0
        if self._weight < _FEWEST or spread <= _SPREAD * self._mean_x:
            return math.inf
        slope = self._xy / self._xx
        residual = max(self._yy - slope * self._xy, 0.0) / (self._weight - 2.0)
        if slope <= _SURE * math.sqrt(residual / self._xx):
            return math.inf
        return 1.0 / slope
