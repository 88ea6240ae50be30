"""Aggregates that end: a fold per key, where a column of the key says when the key is complete.

This is Spark's append mode for aggregates. A key that is grouped by a day or an hour gets no more
rows once the watermark has passed it. Then it is emitted once and leaves the state.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import (
    Mask,
    Numbers,
    column_of,
    distinct_names,
    time_column,
)
from tidegate.pipelines.functions.fold import BoundFold, Columns, Fold, Groups, with_key
from tidegate.pipelines.functions.spans import (
    NEVER_CLOSED_US,
    Emit,
    GivenEmit,
    check_fold,
    emit_of,
)
from tidegate.pipelines.functions.times import delay_us, microseconds_of, times_of
from tidegate.pipelines.identity import Identity, identity_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

WHAT = "closing"
CLOSES = "closes_at"
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class BoundClosing:
    """Folds rows into keys that are open, and removes keys that are complete."""

    fold: BoundFold
    at: str
    lasts_us: int
    emit: Emit
    upserts: pa.Schema
    output: pa.Schema

    def update(self, batch: KeyedBatch) -> Update:
        """Fold the rows of open keys, and drop closed ones."""
        over_us = NEVER_CLOSED_US if batch.watermark_us is None else batch.watermark_us
        closes_us, late_key = self._closes(batch, over_us)
        late: Mask = late_key[batch.row_key]
        row = np.flatnonzero(~late)
        names = [field.name for field in self.fold.state]
        state = batch.state.select(names)
        changed = np.zeros(batch.keys.num_rows, dtype=np.bool_)
        changed[batch.row_key[row]] = True
        group, known = np.cumsum(changed) - 1, np.flatnonzero(changed[batch.state_key])
        folded = self.fold.fold(
            Groups(
                batch.rows.take(pa.array(row)) if late.any() else batch.rows,
                group[batch.row_key[row]],
                state.take(pa.array(known)),
                group[batch.state_key[known]],
                int(np.count_nonzero(changed)),
            )
        )
        number = np.flatnonzero(changed)[folded.groups]
        closed = np.flatnonzero(late_key[batch.state_key])
        gone = batch.state_key[closed]
        if self.emit == "update":
            output = self._output(batch, number, folded.columns)
        else:
            last = state.take(pa.array(closed))
            columns = {name: last[name].combine_chunks() for name in names}
            output = self._output(batch, gone, columns)
        keys = batch.keys.take(pa.array(number))
        closes = times_of(closes_us[number], _TIME)
        return Update(
            output=output,
            upserts=pa.Table.from_arrays(
                [*keys.columns, closes, *folded.columns.values()], schema=self.upserts
            ),
            upsert_key=number,
            drops=batch.keys.take(pa.array(gone)),
            drop_key=gone,
            late=late,
        )

    def _closes(self, batch: KeyedBatch, over_us: int) -> tuple[Numbers, Mask]:
        """When each key closes, and which keys are closed; a key without a time always is."""
        column = batch.keys[self.at].combine_chunks()
        if not pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us"))
        at_us, present = microseconds_of(column)
        closes_us = at_us + self.lasts_us
        closed: Mask = closes_us <= over_us
        if present is not None:
            closed |= ~present
        return closes_us, closed

    def _output(self, batch: KeyedBatch, number: Numbers, columns: Columns) -> pa.Table:
        of, results = self.fold.finish(columns)
        keys = batch.keys.take(pa.array(number if of is None else number[of]))
        return pa.Table.from_arrays([*keys.columns, *results], schema=self.output)


@dataclass(frozen=True, slots=True)
class Closing:
    """A keyed function: a fold per key, until the watermark has passed the time in the key."""

    fold: Fold
    at: str
    lasts: str
    event_time: str
    delay: str
    emit: Emit

    def identity(self) -> Identity:
        """What is kept, and until when."""
        return {
            "function": WHAT,
            "of": identity_of(self.fold),
            "at": self.at,
            "lasts_us": delay_us(self.lasts, f"{WHAT}: lasts"),
            "event_time": self.event_time,
        }

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check durations and columns; a state row is due when its key closes."""
        kind = column_of(rows, self.at, WHAT).type
        if self.at not in key:
            raise AskedWrongly(
                f"{WHAT}: '{self.at}' is not a column of the key ({', '.join(key)}); add it to key="
            )
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise AskedWrongly(
                f"{WHAT}: the column '{self.at}' is {kind}, expected a timestamp or a date; cast "
                "it in a map before this operator"
            )
        time_column(rows, self.event_time, WHAT)
        bound = self.fold.over(rows, key)
        upserts = with_key(rows, key, (pa.field(CLOSES, _TIME), *bound.state))
        output = with_key(rows, key, bound.result)
        distinct_names(upserts.names, WHAT)
        distinct_names(output.names, WHAT)
        lasts_us = delay_us(self.lasts, f"{WHAT}: lasts")
        update = BoundClosing(bound, self.at, lasts_us, self.emit, upserts, output).update
        return BoundKeyed(
            update=update,
            state=pa.schema([upserts.field(i) for i in range(len(key), len(upserts))]),
            output=output,
            due=CLOSES,
            event_time=self.event_time,
            delay_us=delay_us(self.delay, f"{WHAT}: delay"),
            identity=self.identity(),
        )


def closing(
    fold: Fold,
    *,
    at: str,
    lasts: str = "0 seconds",
    event_time: str = "timestamp",
    delay: str = "0 seconds",
    emit: GivenEmit = "close",
) -> Closing:
    """`fold` per key, where the column `at` of the key says which time the key is about.

    A key is complete when the newest event is `delay` past `at` plus `lasts`: an hour, for keys
    that are grouped by the hour. It is then removed from the state. `emit="close"` (or "append")
    emits each key once, at that moment; `emit="update"` emits every key that changed, after each
    micro-batch. Rows that come later are late.
    """
    check_fold(fold, WHAT)
    return Closing(fold, at, lasts, event_time, delay, emit_of(emit, WHAT))
