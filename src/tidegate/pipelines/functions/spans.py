"""State rows for spans of event time: the common part of windows and sessions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.functions.columns import Mask, Numbers, distinct_names, time_column
from tidegate.pipelines.functions.fold import BoundFold, Columns, Fold, with_key
from tidegate.pipelines.functions.times import delay_us, microseconds_of, time_type, times_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

Emit = Literal["update", "close"]
GivenEmit = Literal["update", "close", "append"]
NEVER_CLOSED_US = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of event time as columns: the number of the key, start and end."""

    key: Numbers
    start_us: Numbers
    end_us: Numbers

    def take(self, chosen: Numbers | Mask) -> "Spans":
        """The chosen spans."""
        return Spans(self.key[chosen], self.start_us[chosen], self.end_us[chosen])


@dataclass(frozen=True, slots=True)
class SpanTable:
    """Converts spans to rows of the state and of the output.

    A span is [start, end). It is closed when the watermark reaches its end; the runtime then passes
    its state row in as due.
    """

    fold: BoundFold
    key: tuple[str, ...]
    event_time: str
    start: str
    end: str
    time: pa.DataType
    upserts: pa.Schema
    output: pa.Schema
    emit: Emit

    @classmethod
    def bind(
        cls,
        fold: Fold,
        rows: pa.Schema,
        key: tuple[str, ...],
        event_time: str,
        emit: Emit,
        what: str,
    ) -> "SpanTable":
        """Check the event time and the fold; `what` also prefixes the names of start and end."""
        time = time_type(time_column(rows, event_time, what))
        bound = fold.over(rows, key)
        span = (pa.field(f"{what}_start", time), pa.field(f"{what}_end", time))
        upserts = with_key(rows, key, (*span, *bound.state))
        output = with_key(rows, key, (*span, *bound.result))
        distinct_names(upserts.names, what)
        distinct_names(output.names, what)
        return cls(bound, key, event_time, span[0].name, span[1].name, time, upserts, output, emit)

    def keyed(self, update: Callable[[KeyedBatch], Update], delay: str, what: str) -> BoundKeyed:
        """A keyed function over these spans; a state row is due when its span ends."""
        return BoundKeyed(
            update=update,
            state=self.state,
            output=self.output,
            within=self.start,
            due=self.end,
            needs=self.fold.needs,
            event_time=self.event_time,
            delay_us=delay_us(delay, what),
        )

    @property
    def state(self) -> pa.Schema:
        """The state's columns without the key."""
        return pa.schema([self.upserts.field(i) for i in range(len(self.key), len(self.upserts))])

    def known(self, batch: KeyedBatch) -> Spans:
        """The spans in the state."""
        start_us, _ = microseconds_of(batch.state[self.start])
        end_us, _ = microseconds_of(batch.state[self.end])
        return Spans(batch.state_key, start_us, end_us)

    def state_columns(self, batch: KeyedBatch, chosen: Numbers) -> pa.Table:
        """The fold's columns of these state rows."""
        names = [field.name for field in self.fold.state]
        return batch.state.select(names).take(pa.array(chosen))

    def update(
        self,
        batch: KeyedBatch,
        spans: Spans,
        columns: Columns,
        known: Spans,
        closed: Mask,
        moved: Mask,
        late: Mask,
    ) -> Update:
        """Write changed spans to the state, and remove the known ones that closed or moved."""
        if self.emit == "update":
            output = self.to_output(batch, spans, columns)
        else:
            output = self.closed_output(batch, known, np.flatnonzero(closed))
        gone = known.take(closed | moved)
        return Update(
            output=output,
            upserts=self.to_upserts(batch, spans, columns),
            upsert_key=spans.key,
            drops=self.to_drops(batch, gone),
            drop_key=gone.key,
            late=late,
        )

    def to_upserts(self, batch: KeyedBatch, spans: Spans, columns: Columns) -> pa.Table:
        """State rows of these spans."""
        return self._table(batch, spans, list(columns.values()), self.upserts)

    def to_output(self, batch: KeyedBatch, spans: Spans, columns: Columns) -> pa.Table:
        """Result rows of these spans."""
        of, results = self.fold.finish(columns)
        return self._table(batch, spans if of is None else spans.take(of), results, self.output)

    def closed_output(self, batch: KeyedBatch, known: Spans, closed: Numbers) -> pa.Table:
        """Result rows of closed spans, by key and start."""
        ordered = closed[np.lexsort((known.start_us[closed], known.key[closed]))]
        table = self.state_columns(batch, ordered)
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        return self.to_output(batch, known.take(ordered), columns)

    def to_drops(self, batch: KeyedBatch, spans: Spans) -> pa.Table:
        """The rows that name the state rows to drop."""
        keys = batch.keys.take(pa.array(spans.key))
        return keys.append_column(self.start, times_of(spans.start_us, self.time))

    def _table(
        self, batch: KeyedBatch, spans: Spans, columns: list[pa.Array], schema: pa.Schema
    ) -> pa.Table:
        keys = batch.keys.take(pa.array(spans.key))
        times = [times_of(us, self.time) for us in (spans.start_us, spans.end_us)]
        return pa.Table.from_arrays([*keys.columns, *times, *columns], schema=schema)


def rows_taken(rows: pa.Table, needs: tuple[str, ...], chosen: Numbers) -> pa.Table:
    """The chosen rows, with only the columns that are needed."""
    index = pa.array(chosen)
    return pa.table({name: rows[name].take(index) for name in needs})


def check_fold(fold: object, what: str) -> None:
    """Raise an error unless the argument is a fold, which can be kept per span."""
    if not isinstance(fold, Fold):
        raise AskedWrongly(
            f"{what} was given a {type(fold).__name__}; expected count(), sum(), mean(), min(), "
            "max(), latest(), top_n() or an aggregate() of them"
        )


def emit_of(emit: str, what: str) -> Emit:
    """When results are emitted; Spark's word for "close" is "append"."""
    if emit in ("close", "append"):
        return "close"
    if emit == "update":
        return "update"
    raise AskedWrongly(f"{what}: unknown emit='{emit}'{nearest(emit, get_args(GivenEmit))}")
