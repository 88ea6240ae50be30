"""A keyed function run batch by batch without Spark and files, its state in a dictionary."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.event_progress import EventProgress
from tidegate.pipelines.functions.times import microseconds_of
from tidegate.pipelines.keyed import KeyedBatch, KeyedFunction
from tidegate.spark.state.conform import conform


class KeyedByHand:
    """One operator with one key column; it sees all rows of a batch, as a single task would."""

    def __init__(
        self, function: KeyedFunction, rows: pa.Schema, key: str, order_by: str | None = None
    ) -> None:
        self.bound = function.bind(rows, (key,))
        self.key, self.order_by = key, order_by
        self.late_rows = 0
        self._rows: dict[tuple[Any, Any], dict[str, Any]] = {}
        self._schema = pa.schema([rows.field(key), *self.bound.state])
        self._newest_us: int | None = None
        self._before_us: int | None = None

    def run(self, rows: pa.Table) -> pa.Table:
        """One micro-batch: updates the state and returns what the function emits."""
        self._before_us = self._newest_us
        if self.order_by is not None:
            rows = rows.sort_by(self.order_by)
        update = self.bound.update(self._batch(rows))
        self.late_rows += update.late_count
        for row in [] if update.drops is None else update.drops.to_pylist():
            if self.bound.within is None or self.bound.within in row:
                self._rows.pop(self._place(row))
        if update.upserts is not None:
            table = conform(update.upserts, self._schema, "upserts")
            for row in table.to_pylist():
                self._rows[self._place(row)] = row
        if self.bound.event_time is not None and rows.num_rows:
            times_us, _ = microseconds_of(rows[self.bound.event_time])
            self._newest_us = max(int(times_us.max()), self._newest_us or int(times_us.max()))
        if update.output is None:
            return self.bound.output.empty_table()
        return conform(update.output, self.bound.output, "output")

    @property
    def progress(self) -> EventProgress:
        """How far event time came, and how far before the last batch."""
        return EventProgress(self._newest_us, self._before_us)

    @property
    def state(self) -> pa.Table:
        """All state rows."""
        return self._table(list(self._rows.values()))

    def _batch(self, rows: pa.Table) -> KeyedBatch:
        watermark_us = None if self._newest_us is None else self._newest_us - self.bound.delay_us
        keys = rows[self.key].combine_chunks()
        if watermark_us is not None and self.bound.due is not None:
            state = self.state
            due_us, _ = microseconds_of(state[self.bound.due])
            due = state[self.key].filter(pa.array(due_us <= watermark_us)).combine_chunks()
            keys = pa.concat_arrays([keys, due])
        distinct = pc.unique(keys)
        place = {key: number for number, key in enumerate(distinct.to_pylist())}
        found = [row for (key, _), row in self._rows.items() if key in place]
        return KeyedBatch(
            rows=rows,
            keys=pa.table({self.key: distinct}),
            row_key=pc.index_in(rows[self.key], value_set=distinct).to_numpy().astype(np.int64),
            state=self._table(found),
            state_key=np.array([place[row[self.key]] for row in found], dtype=np.int64),
            at_us=0,
            watermark_us=watermark_us,
        )

    def _place(self, row: dict[str, Any]) -> tuple[Any, Any]:
        return row[self.key], None if self.bound.within is None else row[self.bound.within]

    def _table(self, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=self._schema)
