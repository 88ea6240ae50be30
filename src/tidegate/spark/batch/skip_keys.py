"""Calls a keyed function, and leaves out the keys that it cannot process.

A key is the smallest part that can be left out: its rows change its state one after the other, so
the function must see all of them or none. All rows of such a key in the micro-batch are put aside,
and its state stays as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.pipelines.keyed import KeyedBatch, Update
from tidegate.spark.batch.narrow import narrowed
from tidegate.spark.state.conform import conform
from tidegate.spark.state.task import Keeper

Numbers = NDArray[np.int64]
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class SkippedKeys:
    """What a function could not process in one micro-batch."""

    rows: Numbers = field(default_factory=lambda: _NONE)
    """The rows of the keys that were left out, in their order."""
    errors: Sequence[str] = ()
    """What the function raised on the key of each of them."""
    count: int = 0
    """How many there are; the timer of a key without rows counts as one."""
    error: str | None = None
    """The first error."""


def emitted(keeper: Keeper, update: Update) -> pa.Table:
    """The rows that a function emits, as they were declared."""
    if not isinstance(update, Update):
        raise TypeError(f"the function returned {type(update).__name__}, expected tg.Update")
    if update.output is None:
        return keeper.bound.output.empty_table()
    return conform(update.output, keeper.bound.output, f"operator '{keeper.operator}': output")


def skipping(keeper: Keeper, batch: KeyedBatch) -> tuple[Update, SkippedKeys]:
    """The update of all keys that the function can process, and what it cannot."""

    def called(begin: int, end: int) -> Update:
        update = keeper.bound.update(only(batch, begin, end))
        return replace(update, output=emitted(keeper, update))

    found = narrowed(called, batch.keys.num_rows, f"operator '{keeper.operator}'")
    if not found.failed:
        return found.done[0][2], SkippedKeys()
    place = np.full(batch.keys.num_rows, -1, dtype=np.int64)
    place[[one.place for one in found.failed]] = np.arange(len(found.failed))
    of_row = place[batch.row_key]
    rows = np.flatnonzero(of_row >= 0)
    without_rows = np.setdiff1d(place[place >= 0], of_row[rows])
    errors = [found.failed[number].error for number in of_row[rows].tolist()]
    skipped = SkippedKeys(rows, errors, len(rows) + len(without_rows), found.failed[0].error)
    return together(batch, found.done), skipped


def only(batch: KeyedBatch, begin: int, end: int) -> KeyedBatch:
    """The part of a batch that is about the keys [begin, end)."""
    if begin == 0 and end == batch.keys.num_rows:
        return batch
    rows = (batch.row_key >= begin) & (batch.row_key < end)
    state = (batch.state_key >= begin) & (batch.state_key < end)
    return replace(
        batch,
        rows=batch.rows.filter(pa.array(rows)),
        keys=batch.keys.slice(begin, end - begin),
        row_key=batch.row_key[rows] - begin,
        state=batch.state.filter(pa.array(state)),
        state_key=batch.state_key[state] - begin,
        state_due=None if batch.state_due is None else batch.state_due[state],
    )


def together(batch: KeyedBatch, parts: Sequence[tuple[int, int, Update]]) -> Update:
    """The updates of parts of a batch as one."""
    late = np.zeros(batch.rows.num_rows, dtype=np.bool_)
    for begin, end, update in parts:
        if update.late is not None:
            mine = np.flatnonzero((batch.row_key >= begin) & (batch.row_key < end))
            late[mine[update.late]] = True
    updates = [(begin, update) for begin, _, update in parts]
    upserts, upsert_key = _joined([(b, u.upserts, u.upsert_key) for b, u in updates])
    drops, drop_key = _joined([(b, u.drops, u.drop_key) for b, u in updates])
    output, _ = _joined([(b, u.output, None) for b, u in updates])
    return Update(
        output=output,
        upserts=upserts,
        drops=drops,
        upsert_key=upsert_key,
        drop_key=drop_key,
        late_rows=sum(update.late_rows for _, update in updates),
        late=late if any(update.late is not None for _, update in updates) else None,
    )


def _joined(
    parts: Sequence[tuple[int, pa.Table | None, Numbers | None]],
) -> tuple[pa.Table | None, Numbers | None]:
    """Tables one below the other, and the numbers of their keys in the whole batch."""
    some = [(begin, table, key) for begin, table, key in parts if table is not None]
    if not some:
        return None, None
    table = pa.concat_tables([table for _, table, _ in some], promote_options="permissive")
    keys = [np.asarray(key) + begin for begin, _, key in some if key is not None]
    return table, np.concatenate(keys) if len(keys) == len(some) else None
