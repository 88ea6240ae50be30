"""Tumbling and sliding windows of event time: one state row per key and window."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import Mask, Numbers
from tidegate.pipelines.functions.fold import Fold, Groups
from tidegate.pipelines.functions.spans import (
    NEVER_CLOSED_US,
    Emit,
    Spans,
    SpanTable,
    check_emit,
    check_fold,
    rows_taken,
)
from tidegate.pipelines.functions.times import duration_us, microseconds_of
from tidegate.pipelines.identity import Identity, identity_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update


@dataclass(frozen=True, slots=True)
class BoundWindow:
    """Windows [start, start + size) at every multiple of `every_us` since the epoch."""

    table: SpanTable
    every_us: int
    size_us: int

    def update(self, batch: KeyedBatch) -> Update:
        """Fold rows into their open windows, and remove closed windows from the state."""
        over_us = NEVER_CLOSED_US if batch.watermark_us is None else batch.watermark_us
        known = self.table.known(batch)
        row, number, late_rows = self._windows(batch, over_us)
        pairs = Pairs.of(batch.row_key[row], number, batch.keys.num_rows)
        place = pairs.find(known.key, known.start_us // self.every_us)
        touched = np.flatnonzero(place >= 0)
        folded = self.table.fold.fold(
            Groups(
                rows=rows_taken(batch.rows, self.table.fold.needs, row),
                row_group=pairs.group,
                state=self.table.state_columns(batch, touched),
                state_group=place[touched],
                count=len(pairs.key),
            )
        )
        start_us = pairs.sub[folded.groups] * self.every_us
        spans = Spans(pairs.key[folded.groups], start_us, start_us + self.size_us)
        closed = known.end_us <= over_us
        moved = np.zeros_like(closed)
        return self.table.update(batch, spans, folded.columns, known, closed, moved, late_rows)

    def _windows(self, batch: KeyedBatch, over_us: int) -> tuple[Numbers, Numbers, int]:
        """Pairs (row, window number) for all open windows of each row, and the late rows' count."""
        time_us, present = microseconds_of(batch.rows[self.table.event_time])
        newest = time_us // self.every_us
        reach = -(-self.size_us // self.every_us)
        number = newest[:, None] - np.arange(reach)
        end_us = number * self.every_us + self.size_us
        inside: Mask = (end_us > time_us[:, None]) & (end_us > over_us)
        if present is not None:
            inside &= present[:, None]
        row, nth = np.nonzero(inside)  # row by row, which keeps the order of the rows
        late_rows = len(time_us) - int(np.count_nonzero(inside.any(axis=1)))
        return row, number[row, nth], late_rows


@dataclass(frozen=True, slots=True)
class Pairs:
    """Distinct pairs (key, sub), sorted by key and then sub."""

    key: Numbers
    sub: Numbers
    group: Numbers
    """For each input pair, its number among the distinct ones."""
    codes: Numbers
    subs: Numbers

    @classmethod
    def of(cls, key: Numbers, sub: Numbers, keys: int) -> "Pairs":
        """Number the distinct pairs; `keys` is larger than any key."""
        subs = _distinct(sub)
        code = key * len(subs) + np.searchsorted(subs, sub)
        size = keys * len(subs)
        if size <= 4 * len(code) + (
            1 << 16
        ):  # a flag for each possible pair is cheaper than sorting
            there = np.zeros(size, dtype=np.bool_)
            there[code] = True
            codes = np.flatnonzero(there)
            group = (np.cumsum(there) - 1)[code]
        else:
            codes, group = np.unique(code, return_inverse=True)
        if not len(codes):
            return cls(codes, codes, codes, codes, subs)
        return cls(codes // len(subs), subs[codes % len(subs)], group, codes, subs)

    def find(self, key: Numbers, sub: Numbers) -> Numbers:
        """The number of each of these pairs, or -1 if it is not among the distinct ones."""
        if not len(self.codes):
            return np.full(len(key), -1, dtype=np.int64)
        nth = np.searchsorted(self.subs, sub).clip(max=len(self.subs) - 1)
        code = key * len(self.subs) + nth
        place = np.searchsorted(self.codes, code).clip(max=len(self.codes) - 1)
        found = (self.subs[nth] == sub) & (self.codes[place] == code)
        return np.where(found, place, -1)


def _distinct(numbers: Numbers) -> Numbers:
    """Distinct numbers, sorted; by flags if they lie close together, as window numbers do."""
    if not len(numbers):
        return numbers
    low = int(numbers.min())
    width = int(numbers.max()) - low + 1
    if width > 4 * len(numbers) + (1 << 16):
        return np.unique(numbers)
    there = np.zeros(width, dtype=np.bool_)
    there[numbers - low] = True
    return np.flatnonzero(there) + low


@dataclass(frozen=True, slots=True)
class Windows:
    """A keyed function: a fold per key and window of event time."""

    fold: Fold
    every: str
    size: str
    event_time: str
    delay: str
    emit: Emit

    def identity(self) -> Identity:
        """Which windows there are, and what is kept in each.

        Delay and emit are left out: they say when a window is closed and shown, not what it holds.
        """
        return {
            "function": "window",
            "of": identity_of(self.fold),
            "every_us": duration_us(self.every, "window"),
            "size_us": duration_us(self.size, "window"),
            "event_time": self.event_time,
        }

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check durations and columns; a state row is due when its window ends."""
        what = "window"
        every_us, size_us = duration_us(self.every, what), duration_us(self.size, what)
        if size_us < every_us:
            raise AskedWrongly(
                f"window: size '{self.size}' is shorter than every '{self.every}', so rows "
                "would fall between windows; give a size at least as long"
            )
        table = SpanTable.bind(self.fold, rows, key, self.event_time, self.emit, what)
        bound = table.keyed(BoundWindow(table, every_us, size_us).update, self.delay, what)
        return replace(bound, identity=self.identity())


def window(
    fold: Fold,
    *,
    every: str,
    size: str | None = None,
    event_time: str = "timestamp",
    delay: str = "0 seconds",
    emit: Emit = "close",
) -> Windows:
    """`fold` per key and window: a window of `size` (default: `every`) begins at each `every`.

    A window is closed when the newest event is `delay` past its end. `emit="close"` emits each
    window once, when it is closed; `emit="update"` emits every window that changed, after each
    micro-batch.
    """
    check_fold(fold, "window")
    check_emit(emit, "window")
    return Windows(fold, every, size or every, event_time, delay, emit)
