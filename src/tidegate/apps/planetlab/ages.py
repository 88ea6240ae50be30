"""How old rows and results are when they are there: ours beside the overload paper's measure.

The paper (section 2) measures results, not rows: the time of a result minus the oldest arrival that
contributed to it. Here a result is the average of one second, as far as it has come, that a batch
emits for a query; it is there when the batch has ended. The measure has two readings: by the oldest
of all rows in the result, or by the oldest of those that made it new, the rows that the batch has
added. A result over a whole second has a row that is a second old, so by the first reading no
target below a second could be held. The paper's controller holds 0.5 s. So it can only have
measured something like the second.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tidegate.apps.planetlab.queries import WINDOW_S
from tidegate.control.learning.sojourn import SLOT_US, BatchStamps

_WINDOW_SLOTS = WINDOW_S * 1_000_000 // SLOT_US
_REMEMBERED = 64
"""Windows whose oldest row is remembered; older ones get no more rows."""


@dataclass(slots=True, eq=False)
class AgeCounts:
    """Ages counted by the millisecond: as small as its oldest age, however many there are."""

    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def add(self, ages_ms: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> None:
        """Count some ages, each so many times; a clock that was set back makes none negative."""
        if not len(ages_ms):
            return
        more = np.bincount(np.maximum(ages_ms, 0), weights=times).astype(np.int64)
        if len(more) > len(self.counts):
            self.counts = np.pad(self.counts, (0, len(more) - len(self.counts)))
        self.counts[: len(more)] += more

    @property
    def total(self) -> int:
        """How many were counted."""
        return int(self.counts.sum())

    @property
    def mean_s(self) -> float:
        """Their mean; not a number without any."""
        if not self.total:
            return float("nan")
        return float(self.counts @ np.arange(len(self.counts))) / self.total / 1000.0

    def percentile_s(self, percent: float) -> float:
        """The smallest age that this share does not exceed; not a number without any."""
        if not self.total:
            return float("nan")
        rank = max(int(np.ceil(percent / 100.0 * self.total)), 1)
        return float(np.searchsorted(np.cumsum(self.counts), rank)) / 1000.0

    def cdf(self, percents: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The distribution at these percentiles: ages in seconds, and the shares up to them."""
        if not self.total:
            return (), ()
        return tuple(self.percentile_s(p) for p in percents), tuple(p / 100.0 for p in percents)


@dataclass(slots=True, eq=False)
class ResultAges:
    """The ages of rows and of results, batch by batch."""

    rows: AgeCounts = field(default_factory=AgeCounts)
    """Of every kept row: from its own arrival to the end of its batch."""
    newest_part: AgeCounts = field(default_factory=AgeCounts)
    """Of every result, by the oldest of the rows that the batch added to it."""
    oldest: AgeCounts = field(default_factory=AgeCounts)
    """Of every result, by the oldest of all rows that contributed to it."""
    _first_slot: dict[int, int] = field(default_factory=dict)
    """The first arrival of each window so far."""

    def add(self, batch: BatchStamps, *, judged: bool = True) -> None:
        """Add a finished batch. One that is not judged only tells when its windows began."""
        slots, times = batch.stamps.slots, batch.stamps.counts
        if not len(slots):
            return
        windows, places = np.unique(slots // _WINDOW_SLOTS, return_index=True)
        added = slots[places]  # slots ascend, so these are the oldest ones of the batch
        first = np.array(
            [
                min(slot, self._first_slot.get(window, slot))
                for window, slot in zip(windows.tolist(), added.tolist(), strict=True)
            ]
        )
        self._first_slot.update(zip(windows.tolist(), first.tolist(), strict=True))
        for window in sorted(self._first_slot)[:-_REMEMBERED]:
            del self._first_slot[window]
        if judged:
            once = np.ones(len(windows), dtype=np.int64)
            self.rows.add(_ages_ms(batch.end_us, slots), times)
            self.newest_part.add(_ages_ms(batch.end_us, added), once)
            self.oldest.add(_ages_ms(batch.end_us, first), once)


def _ages_ms(end_us: int, slots: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """From the middle of each slot to the end, so that the mean of many rows is not off."""
    return (end_us - slots * SLOT_US - SLOT_US // 2) // 1000
