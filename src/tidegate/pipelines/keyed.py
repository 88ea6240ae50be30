"""What a keyed operator is given and what it gives back: columns, never one key at a time.

A keyed function is called once per task and micro-batch with all rows of the task and the state
rows of their keys. `row_key` and `state_key` number the distinct keys, so that an aggregation is a
`bincount` and not a join.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyedBatch:
    """The rows of one task in one micro-batch, with the state of their keys."""

    rows: pa.Table
    """The rows, in a fixed order: a replay sees the same (arrival order when asked for)."""
    keys: pa.Table
    """The distinct keys (key columns only): those of the rows, then those whose state is due."""
    row_key: Numbers
    """For each row, the number of its key in `keys`."""
    state: pa.Table
    """State rows of these keys: key columns, then the state's own columns."""
    state_key: Numbers
    """For each state row, the number of its key in `keys`."""
    at_us: int
    """When the micro-batch was planned, in microseconds since the epoch; the same on a replay."""
    watermark_us: int | None = None
    """No row older than this is expected any more; None until the operator has seen rows."""

    def aligned(self) -> pa.Table:
        """One state row per key, in the order of `keys`; null where a key has no state yet.

        Only for functions that keep at most one state row per key (no `within`).
        """
        place = np.full(self.keys.num_rows, -1, dtype=np.int64)
        place[self.state_key] = np.arange(len(self.state_key))
        return self.state.take(pa.array(place, mask=place < 0))

    def is_new(self) -> NDArray[np.bool_]:
        """For each key, whether it has no state yet."""
        new = np.ones(self.keys.num_rows, dtype=np.bool_)
        new[self.state_key] = False
        return new


@dataclass(frozen=True, slots=True)
class Update:
    """What a keyed function gives back; leave out what there is none of.

    `upsert_key` and `drop_key` number the keys as `KeyedBatch.keys` does. A function that has no
    such numbers leaves them out, and the rows are matched by their key columns.
    """

    output: pa.Table | None = None
    """Rows for the next operator."""
    upserts: pa.Table | None = None
    """State rows to insert or replace: key columns, then the state's columns."""
    drops: pa.Table | None = None
    """Keys (and, with `within`, the within column) whose state rows are to be removed."""
    upsert_key: Numbers | None = None
    drop_key: Numbers | None = None
    late_rows: int = 0
    """Rows that came too late for their time and changed nothing; reported, not hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundKeyed:
    """A keyed function that knows the schema of its rows: all that the runtime needs."""

    update: Callable[[KeyedBatch], Update]
    state: pa.Schema
    """The state's columns without the key columns."""
    output: pa.Schema
    within: str | None = None
    """A state column (integer or timestamp) that tells several state rows of one key apart."""
    due: str | None = None
    """A timestamp column of the state: a row that the watermark has reached is handed in again,
    once, whether its key has new rows or not."""
    event_time: str | None = None
    """The timestamp column of the rows that moves the watermark."""
    delay_us: int = 0
    """How far the watermark stays behind the newest event."""


class KeyedFunction(Protocol):
    """Anything that can be bound to the schema of its rows, such as `tg.count()`."""

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check the columns it needs and settle the schemas, before anything starts."""
        ...


@dataclass(frozen=True, slots=True)
class PlainFunction:
    """A user's own function of (rows, state), with the schemas that the user declared."""

    function: Callable[..., Update]
    state: pa.Schema
    output: pa.Schema
    within: str | None = None

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """The user's function behind the numbered form."""
        function = self.function

        def update(batch: KeyedBatch) -> Update:
            return function(batch.rows, batch.state)

        return BoundKeyed(update=update, state=self.state, output=self.output, within=self.within)
