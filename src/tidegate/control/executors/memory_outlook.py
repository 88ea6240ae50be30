"""How much memory batches need on an executor: learned from what its workers had for the last ones.

What a worker needs beyond its interpreter grows with the rows that it has at once. It is taken to
be proportional to them, which is too much for a small batch and about right for one that matters;
a few megabytes of an otherwise empty worker are left aside. The fullest executor decides, because
its end is the end of the batch.
"""

import math
import statistics
from collections import deque
from dataclasses import dataclass

from tidegate.control.measurement import ExecutorMeasurement, Measurement

AIM = 0.7
"""How full the memory of an executor should be at most, after something was done about it."""
TOO_FULL = 0.75
"""From here on something is done. Garbage and what Spark needs beside it take their part too."""
_WINDOW_S = 60.0
_NOISE = 0.1
"""Less than this share of the limit tells nothing about rows."""
_NO_LESS, _MORE_CORES, _AS_MANY = 0.9, 1.3, 1.2
"""If an executor has still this share of its memory on so many times the cores, for rows that are
about as many, more cores do not help: one key has most of them."""


@dataclass(frozen=True, slots=True)
class _Sample:
    at_s: float
    fullest: ExecutorMeasurement
    rows: int
    cores: int

    @property
    def for_rows(self) -> float:
        """Bytes that were for rows, as they would be on one core and at once."""
        own = self.fullest.memory_bytes - self.fullest.base_bytes
        limit = self.fullest.limit_bytes or 0
        return float(own * self.cores * self.fullest.parts) if own > _NOISE * limit else 0.0


class MemoryOutlook:
    """The memory of one pipeline's executors."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()
        self._before: dict[int, _Sample] = {}
        """The last sample on each number of cores."""

    def observe(self, measurement: Measurement) -> None:
        """Learn from a tick."""
        while self._samples and measurement.at_s - self._samples[0].at_s > _WINDOW_S:
            self._samples.popleft()
        limited = [one for one in measurement.executors if one.limit_bytes]
        batches = [batch for segment in measurement.segments for batch in segment.batches]
        largest = max(batches, key=lambda one: one.rows, default=None)
        if not limited or largest is None or largest.rows <= 0:
            return
        fullest = max(limited, key=lambda one: one.fullness)
        # Its tasks are the cores that it began on; there may be others by now.
        sample = _Sample(measurement.at_s, fullest, largest.rows, largest.tasks)
        self._samples.append(sample)
        self._before[sample.cores] = sample

    @property
    def fullest(self) -> ExecutorMeasurement | None:
        """The executor that was the fullest of late; None if none has told."""
        found = max(self._samples, key=lambda one: one.fullest.fullness, default=None)
        return None if found is None else found.fullest

    @property
    def usual_rows(self) -> float:
        """The rows of a usual batch: one of many rows after a standstill does not count."""
        return statistics.median(one.rows for one in self._samples) if self._samples else 0.0

    def fullness(self, rows: float, cores: int) -> float:
        """How full the fullest executor would be with so many rows at once on so many cores."""
        there = self._there()
        if there is None:
            return 0.0
        base, limit = there
        return (base + self._row_bytes * rows / max(cores, 1)) / limit

    def cores_for(self, rows: float, share: float = AIM) -> int | None:
        """The fewest cores on which this share of its memory is enough; None: no number is."""
        there = self._there()
        if there is None:
            return 1
        base, limit = there
        room = share * limit - base
        need = self._row_bytes * rows
        return max(math.ceil(need / room), 1) if room > 0.0 else (None if need > 0.0 else 1)

    def parts_for(self, rows: float, cores: int) -> int:
        """In how many parts so many rows have to be processed on so many cores."""
        on_one = self.cores_for(rows)
        return 1 if on_one is None else max(math.ceil(on_one / max(cores, 1)), 1)

    @property
    def helps(self) -> bool:
        """Whether more cores have made executors less full, as far as that was tried."""
        if not self._samples:
            return True
        now = self._samples[-1]
        for cores, before in self._before.items():
            own, had = (one.for_rows / one.cores for one in (now, before))
            alike = 1.0 / _AS_MANY <= now.rows / before.rows <= _AS_MANY
            if now.cores >= _MORE_CORES * cores and alike and had and own >= _NO_LESS * had:
                return False
        return True

    @property
    def _row_bytes(self) -> float:
        return max((one.for_rows / one.rows for one in self._samples), default=0.0)

    def _there(self) -> tuple[float, float] | None:
        """The base and the limit of the fullest executor."""
        fullest = self.fullest
        if fullest is None or not fullest.limit_bytes:
            return None
        return float(fullest.base_bytes), float(fullest.limit_bytes)
