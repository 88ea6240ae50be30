"""Sessions: sequences of events of one key with less than a gap between them.

An event opens the span [time, time + gap); overlapping spans of a key are one session. Events may
arrive in any order, so one event may merge two sessions.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.pipelines.functions.columns import Mask, Numbers
from tidegate.pipelines.functions.fold import Fold, Groups
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
from tidegate.pipelines.functions.totals import Count
from tidegate.pipelines.identity import Identity, identity_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

_MOST = 2**62


@dataclass(frozen=True, slots=True)
class BoundSessions:
    """The sessions of each key. One is open until the watermark reaches its last event plus gap."""

    table: SpanTable
    gap_us: int

    def update(self, batch: KeyedBatch) -> Update:
        """Merge rows into open sessions, and remove closed sessions from the state."""
        over_us = NEVER_CLOSED_US if batch.watermark_us is None else batch.watermark_us
        known = self.table.known(batch)
        row, rows = self._spans(batch, over_us)
        both = Spans(
            np.concatenate([known.key, rows.key]),
            np.concatenate([known.start_us, rows.start_us]),
            np.concatenate([known.end_us, rows.end_us]),
        )
        united, place = unite(both)
        known_place, row_place = place[: len(known.key)], place[len(known.key) :]

        has_rows = np.zeros(len(united.key), dtype=np.bool_)
        has_rows[row_place] = True
        number = np.cumsum(has_rows) - 1
        joined = has_rows[known_place]
        touched = np.flatnonzero(joined)
        folded = self.table.fold.fold(
            Groups(
                rows=rows_taken(batch.rows, self.table.fold.needs, row),
                row_group=number[row_place],
                state=self.table.state_columns(batch, touched),
                state_group=number[known_place[touched]],
                count=int(np.count_nonzero(has_rows)),
                every=True,  # a row that does not change the fold may still extend the session
            )
        )
        spans = united.take(has_rows)

        closed = ~joined & (known.end_us <= over_us)
        moved = joined & (known.start_us != united.start_us[known_place])
        late = np.ones(batch.rows.num_rows, dtype=np.bool_)
        late[row] = False
        return self.table.update(batch, spans, folded.columns, known, closed, moved, late)

    def _spans(self, batch: KeyedBatch, over_us: int) -> tuple[Numbers, Spans]:
        """The rows that are not late, and the span that each of them opens."""
        time_us, present = microseconds_of(batch.rows[self.table.event_time])
        in_time: Mask = time_us + self.gap_us > over_us
        if present is not None:
            in_time &= present
        row = np.flatnonzero(in_time)
        start_us = time_us[row]
        return row, Spans(batch.row_key[row], start_us, start_us + self.gap_us)


def unite(spans: Spans) -> tuple[Spans, Numbers]:
    """Merge overlapping spans of a key.

    Returns the merged spans, by key and start, and for each span the number of its merged one.
    """
    count = len(spans.key)
    if not count:
        return spans, np.empty(0, dtype=np.int64)
    order = _by_key_and_start(spans)
    key, start_us, end_us = spans.key[order], spans.start_us[order], spans.end_us[order]
    reach_us = _furthest_so_far(key, end_us)
    begins = np.ones(count, dtype=np.bool_)
    begins[1:] = (key[1:] != key[:-1]) | (start_us[1:] >= reach_us[:-1])
    place = np.empty(count, dtype=np.int64)
    place[order] = np.cumsum(begins) - 1
    ends = np.append(begins[1:], True)
    return Spans(key[begins], start_us[begins], reach_us[ends]), place


def _by_key_and_start(spans: Spans) -> Numbers:
    """The order by key, then start: a single sort where both fit into one number."""
    low = int(spans.start_us.min())
    width = int(spans.start_us.max()) - low + 1
    if width * (int(spans.key.max()) + 1) < _MOST:
        return np.argsort(spans.key * width + (spans.start_us - low))
    return np.lexsort((spans.start_us, spans.key))


def _furthest_so_far(key: Numbers, end_us: Numbers) -> Numbers:
    """For spans sorted by key, the running maximum of the ends within each key."""
    ends, rank = np.unique(end_us, return_inverse=True)
    lifted = np.maximum.accumulate(key * len(ends) + rank)  # every key above all smaller keys
    reach: Numbers = ends[lifted - key * len(ends)]
    return reach


@dataclass(frozen=True, slots=True)
class Sessions:
    """A keyed function: a fold per key and session."""

    fold: Fold
    gap: str
    event_time: str
    delay: str
    emit: Emit

    def identity(self) -> Identity:
        """How sessions are told apart, and what is kept in each."""
        return {
            "function": "sessions",
            "of": identity_of(self.fold),
            "gap_us": duration_us(self.gap, "session"),
            "event_time": self.event_time,
        }

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check durations and columns; a state row is due when its session ends."""
        what = "session"
        gap_us = duration_us(self.gap, what)
        table = SpanTable.bind(self.fold, rows, key, self.event_time, self.emit, what)
        bound = table.keyed(BoundSessions(table, gap_us).update, self.delay, what)
        return replace(bound, identity=self.identity())


def sessions(
    fold: Fold | None = None,
    *,
    gap: str,
    event_time: str = "timestamp",
    delay: str = "0 seconds",
    emit: GivenEmit = "close",
) -> Sessions:
    """`fold` (default: a count) per key and session: events with less than `gap` between them.

    A session ends `gap` after its last event, and is closed when the newest event is `delay` past
    that. `emit="close"` (or "append") emits each session once, when it is closed; `emit="update"`
    emits every session that changed, after each micro-batch.
    """
    fold = Count(None, None, None) if fold is None else fold
    check_fold(fold, "sessions")
    return Sessions(fold, gap, event_time, delay, emit_of(emit, "sessions"))
