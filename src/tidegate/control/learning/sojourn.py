"""How long rows were in the pipeline, from compact summaries of when they arrived.

A row's sojourn lasts from its arrival to the end of its batch, and that end is known only when the
batch is over. So the tasks only count arrivals per fixed slot of time (`Stamps`, a few bytes per
millisecond whatever the rate), and this module computes the statistics once the end is known.
Counts of several tasks and batches can be added; percentiles could not.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from tidegate.control.measurement import Latency

SLOT_US = 1000
"""Width of a slot. Percentiles are above the true ones by less than this, and never below them."""


@dataclass(frozen=True, slots=True, eq=False)
class Stamps:
    """When some rows arrived, per slot of `SLOT_US`."""

    slots: npt.NDArray[np.int64]
    """The slots with rows in them (microseconds since the epoch // SLOT_US), in ascending order."""
    counts: npt.NDArray[np.int64]
    """Rows that arrived in each."""
    beyond_us: int
    """Sum over the rows of the microseconds since the start of their slot; keeps the mean exact."""

    @classmethod
    def of(cls, arrival_us: npt.NDArray[np.int64]) -> Self:
        """The summary of rows by the microseconds (since the epoch) of their arrival."""
        slots, beyond = np.divmod(arrival_us, SLOT_US)
        if len(slots) == 0:
            return cls(slots, slots, 0)
        first = int(slots.min())
        width = int(slots.max()) - first + 1
        if width <= 4 * len(slots) + 1024:
            counts = np.bincount(slots - first, minlength=width)
            filled = np.flatnonzero(counts)
            return cls(filled + first, counts[filled], int(beyond.sum()))
        filled, counts = np.unique(slots, return_counts=True)
        return cls(filled, counts, int(beyond.sum()))

    @property
    def rows(self) -> int:
        """How many rows are summarised."""
        return int(self.counts.sum())

    @property
    def newest_us(self) -> int:
        """The slot of the last arrival, in microseconds since the epoch; 0 without rows."""
        return int(self.slots[-1]) * SLOT_US if len(self.slots) else 0


def merged(parts: Sequence[Stamps]) -> Stamps:
    """The summary of all the parts' rows."""
    if len(parts) == 1:
        return parts[0]
    slots, places = np.unique(
        np.concatenate([part.slots for part in parts] or [np.empty(0, np.int64)]),
        return_inverse=True,
    )
    counts = np.zeros(len(slots), dtype=np.int64)
    if parts:
        np.add.at(counts, places, np.concatenate([part.counts for part in parts]))
    return Stamps(slots, counts, sum(part.beyond_us for part in parts))


@dataclass(frozen=True, slots=True, eq=False)
class BatchStamps:
    """The arrivals of a finished batch, and its end."""

    stamps: Stamps
    end_us: int
    """When the batch ended, since the epoch."""


def mean_sojourn_s(batch: BatchStamps) -> float | None:
    """The mean sojourn over the rows of one batch; `None` when it has none."""
    stamps = batch.stamps
    if not stamps.rows:
        return None
    # Differences are small numbers; a sum of times since the epoch would overflow.
    waits_us = _waits_us(batch)
    waited_us = int((waits_us * stamps.counts).sum()) - stamps.beyond_us
    return max(waited_us, 0) / stamps.rows / 1e6


def _waits_us(batch: BatchStamps) -> npt.NDArray[np.int64]:
    """How long the rows of each slot were there; none leaves before it has come, by any clock."""
    return np.maximum(batch.end_us - batch.stamps.slots * SLOT_US, 0)


def sojourn(batches: Sequence[BatchStamps]) -> Latency | None:
    """Mean and percentiles over all rows of the batches; `None` when there is no row.

    A percentile is the nearest rank: the smallest sojourn that this share of the rows do not
    exceed.
    """
    rows = sum(batch.stamps.rows for batch in batches)
    if rows == 0:
        return None
    waits_us = np.concatenate([_waits_us(batch) for batch in batches])
    counts = np.concatenate([batch.stamps.counts for batch in batches])
    beyond_us = sum(batch.stamps.beyond_us for batch in batches)
    mean_us = max(int((waits_us * counts).sum()) - beyond_us, 0) / rows
    order = np.argsort(waits_us)
    reached = np.cumsum(counts[order])
    ranks = [-(-percent * rows // 100) for percent in (50, 95, 99)]
    p50_us, p95_us, p99_us = waits_us[order][np.searchsorted(reached, ranks)]
    return Latency(
        mean_s=mean_us / 1e6,
        p50_s=float(p50_us) / 1e6,
        p95_s=float(p95_us) / 1e6,
        p99_s=float(p99_us) / 1e6,
    )


class SojournWindow:
    """The sojourn of the rows completed during the last `window_s` seconds."""

    def __init__(self, window_s: float) -> None:
        self._window_us = round(window_s * 1e6)
        self._batches: deque[BatchStamps] = deque()

    def add(self, batch: BatchStamps) -> None:
        """Add a finished batch; batches must be added in the order in which they ended."""
        self._batches.append(batch)

    def latency(self, now_us: int) -> Latency | None:
        """Latency over the batches that ended in the window up to `now_us`; drops older ones."""
        while self._batches and self._batches[0].end_us <= now_us - self._window_us:
            self._batches.popleft()
        return sojourn(tuple(self._batches))
