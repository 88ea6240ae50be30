"""A fold: how rows and earlier state of some groups become one state per group.

The groups are keys for a plain operator, (key, window) for windows and (key, session) for
sessions. Each of those only decides which row belongs to which group; what is kept per group is
the fold's business. Several state rows may fall into one group: that is how sessions merge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from tidegate.pipelines.functions.columns import Numbers, distinct_names
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

Columns = Mapping[str, pa.Array]


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows and state rows, each with the number of its group."""

    rows: pa.Table
    row_group: Numbers
    state: pa.Table
    state_group: Numbers
    count: int
    every: bool = False
    """Ask for the new state of every group, even of one that did not change."""


@dataclass(frozen=True, slots=True)
class Folded:
    """The new state of the groups that changed."""

    groups: Numbers
    columns: Columns
    """The fold's state columns, one value per entry of `groups`."""


class BoundFold(Protocol):
    """A fold that knows its columns."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        ...

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """What it keeps per group."""
        ...

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """What it tells of a group."""
        ...

    def fold(self, groups: Groups) -> Folded:
        """Rows and earlier state to new state."""
        ...

    def finish(self, columns: Columns) -> tuple[Numbers | None, list[pa.Array]]:
        """State to results, with the place of each result row's group (None: one row per group)."""
        ...


@runtime_checkable
class Fold(Protocol):
    """Something that can be kept per group, such as `count()` or `top_n(3, by="price")`."""

    def over(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundFold:
        """Check the columns it needs and settle what it keeps."""
        ...


def beside(keys: pa.Table, columns: list[pa.Array], schema: pa.Schema) -> pa.Table:
    """Key columns and more columns as one table of this schema."""
    return pa.Table.from_arrays([*keys.columns, *columns], schema=schema)


def with_key(rows: pa.Schema, key: tuple[str, ...], fields: tuple[pa.Field, ...]) -> pa.Schema:
    """The key's fields, then these."""
    return pa.schema([*(rows.field(name) for name in key), *fields])


@dataclass(frozen=True, slots=True)
class PerKey:
    """One state row per key."""

    fold: BoundFold
    upserts: pa.Schema
    output: pa.Schema

    def update(self, batch: KeyedBatch) -> Update:
        """Fold the batch into the state; one result for each key that changed, in key order."""
        count = batch.keys.num_rows
        folded = self.fold.fold(
            Groups(batch.rows, batch.row_key, batch.state, batch.state_key, count)
        )
        changed = len(folded.groups)
        keys = batch.keys if changed == count else batch.keys.take(pa.array(folded.groups))
        of, results = self.fold.finish(folded.columns)
        return Update(
            output=beside(keys if of is None else keys.take(pa.array(of)), results, self.output),
            upserts=beside(keys, list(folded.columns.values()), self.upserts),
            upsert_key=folded.groups,
        )


def bind_per_key(fold: Fold, rows: pa.Schema, key: tuple[str, ...], what: str) -> BoundKeyed:
    """A fold as a keyed function of its own."""
    bound = fold.over(rows, key)
    distinct_names([*key, *(field.name for field in bound.result)], what)
    distinct_names([*key, *(field.name for field in bound.state)], what)
    output = with_key(rows, key, bound.result)
    upserts = with_key(rows, key, bound.state)
    return BoundKeyed(
        update=PerKey(bound, upserts, output).update,
        state=pa.schema(list(bound.state)),
        output=output,
    )
