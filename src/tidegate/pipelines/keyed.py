"""The input and output of a keyed function: whole columns, never one key at a time.

A keyed function is called once per task and micro-batch, with all rows of the task and the state
rows of their keys. `row_key` and `state_key` refer to the distinct keys by number, so that an
aggregation is a `bincount` and not a join.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.pipelines.identity import Identity, own_identity

Numbers = NDArray[np.int64]
Clock = Literal["event", "processing"]
ROWS = "__rows"
"""In combined rows: how many rows each of them stands for."""


@dataclass(frozen=True, slots=True)
class KeyedBatch:
    """The rows of one task in one micro-batch, with the state of their keys."""

    rows: pa.Table
    """The rows. Their order is the same in a replay; with `order_by` they are sorted by it."""
    keys: pa.Table
    """The distinct keys (key columns only): those of the rows, and those with due state rows."""
    row_key: Numbers
    """For each row, the number of its key in `keys`."""
    state: pa.Table
    """State rows of these keys: key columns, then the state's own columns."""
    state_key: Numbers
    """For each state row, the number of its key in `keys`."""
    at_us: int
    """When the micro-batch was planned, in microseconds since the epoch; the same on a replay."""
    watermark_us: int | None = None
    """Rows older than this are late; None until the operator has seen rows."""
    state_due: NDArray[np.bool_] | None = None
    """For each state row, whether its time has come since the batch before; None where no row can
    have one."""

    def aligned(self) -> pa.Table:
        """One state row per key, in the order of `keys`; null where a key has no state yet.

        It is only for functions with at most one state row per key (no `within`).
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
    """The result of a keyed function; all parts are optional.

    `upsert_key` and `drop_key` refer to `KeyedBatch.keys` by number. Without them, rows are matched
    by their key columns.
    """

    output: pa.Table | None = None
    """Rows for the next operator."""
    upserts: pa.Table | None = None
    """State rows to insert or replace: key columns, then the state's columns."""
    drops: pa.Table | None = None
    """Keys (and, with `within`, the within column) whose state rows are removed."""
    upsert_key: Numbers | None = None
    drop_key: Numbers | None = None
    late_rows: int = 0
    """Rows that came after their window or session had closed. They changed nothing; the runtime
    reports how many there were."""
    late: NDArray[np.bool_] | None = None
    """For each row of the batch, whether it was one of these; needed to take them aside."""

    @property
    def late_count(self) -> int:
        """How many rows were late, however the function says it."""
        if self.late is None:
            return self.late_rows
        return max(self.late_rows, int(np.count_nonzero(self.late)))


class Combiner(Protocol):
    """Combines rows where they are read, before they are sent to the tasks of their keys.

    What the function then makes of the combined rows equals, bit for bit, what it makes of the rows
    themselves. So a key with half of all rows is no more work for its task than any other.
    """

    @property
    def rows(self) -> pa.Schema:
        """The columns of combined rows: the key first, `ROWS` last."""
        ...

    @property
    def time(self) -> str | None:
        """The column of combined rows with their event time; None for a function without."""
        ...

    @property
    def pane_us(self) -> int | None:
        """Rows are combined per key and interval of event time of this length; None: per key."""
        ...

    @property
    def event_time(self) -> str | None:
        """The column of the rows that it takes the time from."""
        ...

    @property
    def any_order(self) -> bool:
        """Whether the order of the rows plays no part at all."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        ...

    @property
    def most(self) -> int:
        """The most combined rows of a key and interval."""
        ...

    def combine(self, rows: pa.Table, until_us: int) -> pa.Table:
        """The rows of each key as few rows, in the order in which keys appear.

        Rows with events after `until_us` do not count for the watermark.
        """
        ...

    @property
    def update(self) -> Callable[[KeyedBatch], Update]:
        """The keyed function, given combined rows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundKeyed:
    """A keyed function bound to the schema of its rows: all that the runtime needs."""

    update: Callable[[KeyedBatch], Update]
    state: pa.Schema
    """The state's columns without the key columns."""
    output: pa.Schema
    within: str | None = None
    """A state column (integer or timestamp) that distinguishes several state rows of one key."""
    due: str | None = None
    """A timestamp column of the state. When the clock reaches it, the function gets the state row
    once more, even if its key has no new rows."""
    clock: Clock = "event"
    """What tells the time of `due`: the watermark, or the micro-batch's own clock."""
    event_time: str | None = None
    """The timestamp column of the rows that advances the watermark."""
    delay_us: int = 0
    """How far the watermark stays behind the newest event."""
    needs: tuple[str, ...] | None = None
    """The columns of the rows that it reads besides the key, so that no other is sent to its tasks;
    None: all of them."""
    combiner: Combiner | None = None
    """How its rows may be combined before the shuffle; None: not without changing a result."""
    identity: Identity = field(default_factory=dict)
    """What gives the state its meaning, as JSON values; a checkpoint refuses another one. If empty,
    the module and name of the function are used."""


class KeyedFunction(Protocol):
    """Anything that can be bound to the schema of its rows, such as `tg.count()`."""

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check the columns that it needs, and fix the schemas, before anything starts."""
        ...


@dataclass(frozen=True, slots=True)
class Times:
    """The timer and the event time of a user's own function."""

    timer: str | None = None
    clock: Clock = "event"
    event_time: str | None = None
    delay_us: int = 0


NO_TIMES = Times()


@dataclass(frozen=True, slots=True)
class PlainFunction:
    """A user's own function of (rows, state) or (rows, state, batch), with its declared schemas."""

    function: Callable[..., Update]
    state: pa.Schema
    output: pa.Schema
    within: str | None = None
    times: Times = NO_TIMES

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Wrap the user's function so that it takes a `KeyedBatch`."""
        function = self.function
        whole = takes_batch(function)

        def update(batch: KeyedBatch) -> Update:
            return function(batch.rows, batch.state, *((batch,) if whole else ()))

        return BoundKeyed(
            update=update,
            state=self.state,
            output=self.output,
            within=self.within,
            due=self.times.timer,
            clock=self.times.clock,
            event_time=self.times.event_time,
            delay_us=self.times.delay_us,
            identity=own_identity(function),
        )


def takes_batch(function: Callable[..., object]) -> bool:
    """Whether a function requires a third argument, which is the `KeyedBatch`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False  # a function of C says nothing about its arguments
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in plain and one.default is one.empty]
    return len(needed) == 3
