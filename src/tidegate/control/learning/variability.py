"""Squared coefficients of variation (scv) of arrivals and of service times, with their errors.

GI/G/k (DRS eq. 5) needs the scv of the gaps between arrivals and of the service times. Neither is
seen row by row: tasks note the arrival of every N_m-th row, rounded to a slot of time, and how long
a block of rows took. The estimators here account for both. Each says how wide it is, as a standard
error.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_REMEMBERED = 10_000
"""Gaps, windows or blocks that an estimate is made from."""
_LEAST = 30
"""With fewer, the scv is taken to be 1, that of a Poisson process or an exponential time."""
_DRIFT = 1000
"""The mean gap may change between blocks of so many: a load that changes is not variable gaps."""
_SLOTS_PER_GAP = 4.0
"""Gaps of fewer slots are not resolved: then rows are counted per window of time."""
_ROWS_PER_WINDOW = 32.0
"""Rows of such a window. Counts of few rows have not converged to the scv of the gaps."""
_WINDOWS_AT_ONCE = 4.0
"""Windows are counted for at least so many of them together."""
_THINNED = 4.0
"""A window of thinned parts has so many noted rows for each row of a part between two of them, so
that it matters little where the samples begin."""
_VARIED = 0.2
"""Block sizes must vary by this share, or slow tasks and variable rows look alike."""


@dataclass(frozen=True, slots=True)
class Scv:
    """An estimate of a squared coefficient of variation."""

    value: float = 1.0
    error: float = 0.0
    """Its standard error; 0 while nothing is known and 1 is assumed."""


class ArrivalScv:
    """The scv of the gaps between arrivals, from counts of sampled rows per slot of time."""

    def __init__(self) -> None:
        self._gaps: deque[float] = deque(maxlen=_REMEMBERED)
        """In slots, between rows that were noted."""
        self._windows: deque[float] = deque(maxlen=_REMEMBERED)
        """Rows per window, over the expected number: for gaps that are shorter than slots."""
        self._pending: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        """Slots and counts that are not counted in windows yet."""
        self._last_slot: int | None = None
        self._every = 1

    def add(
        self,
        slots: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
        every: int,
        parts: int = 1,
    ) -> None:
        """The rows of one more batch: the slots with noted rows in them, and how many in each.

        One row in `every` is noted, in each of so many parts by itself. Slots are in ascending
        order.
        """
        if every != self._every:
            self._forget(self._gaps, self._windows)
        self._every = every
        if self._last_slot is not None:
            later = slots > self._last_slot
            slots, counts = slots[later], counts[later]
        if len(slots) == 0:
            return
        first = self._last_slot
        self._last_slot = int(slots[-1])
        noted = int(counts.sum())
        width = int(slots[-1]) - int(slots[0]) + 1
        # Every fourth row of two parts is not every fourth row of the whole: gaps say nothing.
        resolved = width / noted >= _SLOTS_PER_GAP or len(slots) == 1
        if resolved and (every == 1 or parts == 1):
            self._forget(self._windows)
            gaps = np.diff(np.repeat(slots, counts).astype(np.float64))
            if first is not None:
                gaps = np.concatenate([[float(slots[0]) - first], gaps])
            self._gaps.extend(gaps.tolist())
            return
        self._forget(self._gaps)
        self._pending.append((slots, counts))
        thinned = every if parts > 1 else 1
        self._count(max(_ROWS_PER_WINDOW, _THINNED * thinned * parts), parts if every > 1 else 0)

    def _count(self, window_rows: float, thinned: int) -> None:
        """Count the pending rows in windows, once there are enough of them.

        Each of so many thinned parts adds the variance of where its sample begins and ends.
        """
        slots = np.concatenate([slots for slots, _ in self._pending])
        counts = np.concatenate([counts for _, counts in self._pending])
        noted, width = float(counts.sum()), int(slots[-1]) - int(slots[0]) + 1
        if noted < _WINDOWS_AT_ONCE * window_rows:
            return
        self._pending.clear()
        per_window = max(round(window_rows * width / noted), 1)
        whole = width // per_window
        if whole < 2:
            return
        inside = slots - slots[0] < whole * per_window
        windows = (slots[inside] - slots[0]) // per_window
        rows = np.bincount(windows, counts[inside], minlength=whole)
        # Half the squared differences of neighbours: a load that drifts does not count.
        found = (np.diff(rows) ** 2 / 2.0 - 0.25 * thinned) / float(rows.mean())
        self._windows.extend(found.tolist())

    def _forget(self, *which: "deque[float]") -> None:
        """Forget what was found in another way: it is of another load."""
        for found in which:
            if found:
                found.clear()
                self._pending.clear()

    @property
    def scv(self) -> Scv:
        """The estimate from the newest rows."""
        if len(self._gaps) >= _LEAST:
            return self._of_gaps()
        if len(self._windows) >= _LEAST:
            found = np.array(self._windows)
            value = max(float(found.mean()), 0.0)
            # Neighbouring differences share a window, so half of them count.
            error = value * math.sqrt(3.0 / len(found))
            return Scv(self._every * value, self._every * error)
        return Scv()

    def _of_gaps(self) -> Scv:
        gaps = np.array(self._gaps)
        blocks = np.array_split(gaps, max(len(gaps) // _DRIFT, 1))
        means = [float(block.mean()) for block in blocks]
        if min(means) <= 0.0:
            return Scv()
        # The scv of N_m gaps together is a part of that of one. Rounding to slots adds 1/6.
        each = [
            max(float(block.var(ddof=1)) - 1.0 / 6.0, 0.0) / mean**2
            for block, mean in zip(blocks, means, strict=True)
        ]
        value = float(np.mean(each))
        scaled = np.concatenate([b / m for b, m in zip(blocks, means, strict=True)]) - 1.0
        spread = float(np.var(scaled**2 - 2.0 * value * scaled))
        return Scv(self._every * value, self._every * math.sqrt(spread / len(gaps)))


class BatchArrivalScv:
    """The scv of arrivals that come by the batch: N rows after T seconds, and so on.

    Such a process varies in the long run like one of single rows whose gaps have an scv of
    Var(N - lambda T) / E[N] (renewal-reward theorem). Batches that are large because they were
    long in coming vary nothing.
    """

    def __init__(self) -> None:
        self._batches: deque[tuple[float, float]] = deque(maxlen=200)

    def add(self, rows: float, span_s: float) -> None:
        """One more batch, and the time since the one before it."""
        if span_s > 0.0:
            self._batches.append((rows, span_s))

    @property
    def scv(self) -> Scv:
        """The estimate from the newest batches."""
        if len(self._batches) < _LEAST:
            return Scv()
        rows, spans_s = np.array(self._batches).T
        if rows.sum() <= 0.0:
            return Scv()
        beyond = rows - rows.sum() / spans_s.sum() * spans_s
        value = float(beyond.var(ddof=1) / rows.mean())
        return Scv(value, value * math.sqrt(2.0 / len(rows)))


class ServiceScv:
    """The scv of the service time of a row, from the times of blocks of rows.

    The times of b rows add up, so the variance of a block's time is b sigma^2: it has to be
    divided by the rows, and not by their square as the mean time per row would have it. A task
    that is slow as a whole (its machine is busy) adds a variance that grows with b^2, which is
    told apart where blocks differ in size.
    """

    def __init__(self) -> None:
        self._rows: deque[float] = deque(maxlen=_REMEMBERED)
        self._spent_s: deque[float] = deque(maxlen=_REMEMBERED)

    def add(self, rows: int, spent_s: float) -> None:
        """One more block of rows, and the time that it took."""
        if rows > 0 and spent_s > 0.0:
            self._rows.append(float(rows))
            self._spent_s.append(spent_s)

    @property
    def scv(self) -> Scv:
        """The estimate from the newest blocks."""
        if len(self._rows) < _LEAST:
            return Scv()
        rows, spent_s = np.array(self._rows), np.array(self._spent_s)
        varied = float(rows.std() / rows.mean()) >= _VARIED
        fixed_s, row_s = _line(rows, spent_s, 1.0 / rows) if varied else (0.0, 0.0)
        if not varied or row_s <= 0.0 or fixed_s < 0.0:
            fixed_s, row_s = 0.0, float(spent_s.sum() / rows.sum())
        per_row = (spent_s - fixed_s - row_s * rows) ** 2 / rows
        value, error = float(per_row.mean()), float(per_row.std()) / math.sqrt(len(rows))
        if not varied:
            # In even blocks, slow tasks look like variable rows. So the value is an upper bound.
            scv = value / row_s**2
            even = float(rows.mean()) > 1.5
            return Scv(min(scv, 1.0), scv) if even else Scv(scv, error / row_s**2)
        found, slow = _line(rows, per_row, np.ones(len(rows)))
        if slow > 0.0:
            value = max(found, 0.0)
            error *= math.sqrt(1.0 + float(rows.mean() ** 2 / rows.var()))
        return Scv(value / row_s**2, error / row_s**2)


def _line(x: Vector, y: Vector, weight: Vector) -> tuple[float, float]:
    """Intercept and slope of the weighted line through some points."""
    total = float(weight.sum())
    mean_x, mean_y = float(weight @ x) / total, float(weight @ y) / total
    slope = float(weight @ ((x - mean_x) * (y - mean_y))) / float(weight @ (x - mean_x) ** 2)
    return mean_y - slope * mean_x, slope
