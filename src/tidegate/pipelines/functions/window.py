"""Tumbling and sliding windows of event time: one state row per key and window."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import Mask, Numbers
from tidegate.pipelines.functions.combine import TIME, RowCombiner, panes_us
from tidegate.pipelines.functions.fold import Fold, Groups, combining_of
from tidegate.pipelines.functions.merges import Merges
from tidegate.pipelines.functions.spans import (
    NEVER_CLOSED_US,
    Emit,
    GivenEmit,
    Spans,
    SpanTable,
    check_fold,
    emit_of,
    rows_taken,
)
from tidegate.pipelines.functions.times import duration_us, microseconds_of
from tidegate.pipelines.identity import Identity, identity_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

PAIRS_PER_BLOCK = 1 << 22
"""Pairs of a row and a window that are in memory at once. In sliding windows a row counts many
times, so the rows of a batch are folded in blocks, each after those before it."""


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
        names = [field.name for field in self.table.fold.state]
        state = Windowed(known.key, known.start_us // self.every_us, batch.state.select(names))
        changed = state.none()
        late = np.zeros(batch.rows.num_rows, dtype=np.bool_)
        block = max(1, PAIRS_PER_BLOCK // self.reach)
        for start in range(0, max(1, batch.rows.num_rows), block):
            rows, row_key = batch.rows.slice(start, block), batch.row_key[start : start + block]
            changed, late[start : start + block] = self._folded(
                rows, row_key, batch.keys.num_rows, state, changed, over_us
            )
        if batch.rows.num_rows > block:
            changed = changed.in_order()
        start_us = changed.number * self.every_us
        spans = Spans(changed.key, start_us, start_us + self.size_us)
        columns = {name: changed.columns[name].combine_chunks() for name in names}
        closed = known.end_us <= over_us
        moved = np.zeros_like(closed)
        return self.table.update(batch, spans, columns, known, closed, moved, late)

    @property
    def reach(self) -> int:
        """The number of windows that a row lies in, at most."""
        return -(-self.size_us // self.every_us)

    def _folded(
        self,
        rows: pa.Table,
        row_key: Numbers,
        keys: int,
        state: "Windowed",
        changed: "Windowed",
        over_us: int,
    ) -> tuple["Windowed", Mask]:
        """The changed windows after these rows, and which of the rows were late.

        A window that earlier rows of the batch changed continues from there, another one from the
        state.
        """
        row, number, late = self._windows(rows, over_us)
        pairs = Pairs.of(row_key[row], number, keys)
        again = pairs.find(changed.key, changed.number)
        from_state = pairs.find(state.key, state.number)
        if len(changed.key):
            later = np.zeros(len(pairs.key), dtype=np.bool_)
            later[again[again >= 0]] = True
            known = np.flatnonzero(from_state >= 0)
            from_state[known[later[from_state[known]]]] = -1
        touched, touched_again = np.flatnonzero(from_state >= 0), np.flatnonzero(again >= 0)
        before = state.columns.take(pa.array(touched))
        if len(touched_again):
            before = pa.concat_tables([before, changed.columns.take(pa.array(touched_again))])
        folded = self.table.fold.fold(
            Groups(
                rows=rows_taken(rows, self.table.fold.needs, row),
                row_group=pairs.group,
                state=before,
                state_group=np.concatenate([from_state[touched], again[touched_again]]),
                count=len(pairs.key),
            )
        )
        new = np.zeros(len(pairs.key), dtype=np.bool_)
        new[folded.groups] = True
        stays = again < 0
        stays[touched_again] = ~new[again[touched_again]]
        columns = pa.Table.from_arrays(
            [folded.columns[name] for name in state.columns.column_names],
            schema=state.columns.schema,
        )
        after = Windowed(pairs.key[folded.groups], pairs.sub[folded.groups], columns)
        return changed.where(stays).and_then(after), late

    def _windows(self, rows: pa.Table, over_us: int) -> tuple[Numbers, Numbers, Mask]:
        """Pairs (row, window number) for all open windows of each row, and which rows are late."""
        time_us, present = microseconds_of(rows[self.table.event_time])
        newest = time_us // self.every_us
        number = newest[:, None] - np.arange(self.reach)
        end_us = number * self.every_us + self.size_us
        inside: Mask = (end_us > time_us[:, None]) & (end_us > over_us)
        if present is not None:
            inside &= present[:, None]
        row, nth = np.nonzero(inside)  # row by row, which keeps the order of the rows
        late: Mask = np.logical_not(np.any(inside, axis=1))
        return row, number[row, nth], late


@dataclass(frozen=True, slots=True)
class Windowed:
    """Windows of keys, with the fold's columns of each."""

    key: Numbers
    number: Numbers
    columns: pa.Table

    def none(self) -> "Windowed":
        """No window, with the same columns."""
        return Windowed(self.key[:0], self.number[:0], self.columns.slice(0, 0))

    def where(self, chosen: Mask) -> "Windowed":
        """The chosen windows."""
        if chosen.all():
            return self
        return Windowed(
            self.key[chosen], self.number[chosen], self.columns.filter(pa.array(chosen))
        )

    def and_then(self, others: "Windowed") -> "Windowed":
        """These windows, then the others."""
        if not len(self.key):
            return others
        return Windowed(
            np.concatenate([self.key, others.key]),
            np.concatenate([self.number, others.number]),
            pa.concat_tables([self.columns, others.columns]),
        )

    def in_order(self) -> "Windowed":
        """The same by key and number."""
        order = np.lexsort((self.number, self.key))
        columns = self.columns.take(pa.array(order))
        return Windowed(self.key[order], self.number[order], columns)


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
        combiner = _combiner(table, rows, every_us, size_us)
        return replace(bound, identity=self.identity(), combiner=combiner)


def _combiner(table: SpanTable, rows: pa.Schema, every_us: int, size_us: int) -> RowCombiner | None:
    """Combines rows per key and pane before the windows.

    A sliding window has several panes, whose rows may come mixed. So it takes a fold that does not
    look at the order of rows, or combined rows that keep it.
    """
    of = combining_of(table.fold, rows)
    if of is None or not (of.merges == Merges.IN_ANY_ORDER or of.keeps_rows or every_us == size_us):
        return None
    combined = replace(table, fold=of.behind, event_time=TIME)
    update = BoundWindow(combined, every_us, size_us).update
    pane_us = panes_us(every_us, size_us)
    return RowCombiner.of_panes(of, update, rows, table.key, table.event_time, pane_us)


def window(
    fold: Fold,
    *,
    every: str,
    size: str | None = None,
    event_time: str = "timestamp",
    delay: str = "0 seconds",
    emit: GivenEmit = "close",
) -> Windows:
    """`fold` per key and window: a window of `size` (default: `every`) begins at each `every`.

    A window is closed when the newest event is `delay` past its end. `emit="close"` (or "append")
    emits each window once, when it is closed; `emit="update"` emits every window that changed,
    after each micro-batch.
    """
    check_fold(fold, "window")
    return Windows(fold, every, size or every, event_time, delay, emit_of(emit, "window"))
