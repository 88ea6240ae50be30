"""Folds: they combine new rows and the earlier state of each group into a new state.

A group is a key in a plain operator, (key, window) in a window, and (key, session) in a session.
The operator decides which row belongs to which group, and the fold what is kept per group. Several
state rows may belong to one group: that is how sessions merge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from tidegate.pipelines.functions.columns import Numbers, distinct_names
from tidegate.pipelines.functions.combine import RowCombiner
from tidegate.pipelines.functions.merges import Merges
from tidegate.pipelines.identity import identity_of
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
    """Return the new state of every group, even of those that did not change."""


@dataclass(frozen=True, slots=True)
class Folded:
    """The new state of the groups that changed."""

    groups: Numbers
    columns: Columns
    """The fold's state columns, one value per entry of `groups`."""


class KeptPerGroup(Protocol):
    """The columns of something that is kept per group."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        ...

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """The columns that it keeps per group."""
        ...

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The columns that it emits per group."""
        ...


class BoundFold(KeptPerGroup, Protocol):
    """A fold bound to the schema of its rows."""

    def fold(self, groups: Groups) -> Folded:
        """Combine rows and earlier state into new state."""
        ...

    def finish(self, columns: Columns) -> tuple[Numbers | None, list[pa.Array]]:
        """Turn state into results, with each result row's group (None: one row per group)."""
        ...


class FoldCombining(Protocol):
    """Combines the rows of each group into few rows, which another fold takes in their place."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        ...

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns of the combined rows."""
        ...

    @property
    def most(self) -> int:
        """The most combined rows that a group can have."""
        ...

    @property
    def merges(self) -> Merges:
        """How far the order of the rows matters."""
        ...

    @property
    def keeps_rows(self) -> bool:
        """Whether combined rows are some of the rows themselves, in their order."""
        ...

    @property
    def behind(self) -> BoundFold:
        """The fold that takes combined rows; it keeps the same state."""
        ...

    def exact(self, rows: pa.Table) -> bool:
        """Whether these rows may be combined; if not, each of them stays a row of its own."""
        ...

    def combine(
        self, rows: pa.Table, group: Numbers, count: int
    ) -> tuple[Numbers | None, list[pa.Array]]:
        """Combined rows, with the group of each (None: one per group, in their order).

        Every group that has rows keeps at least one.
        """
        ...


@runtime_checkable
class Combinable(Protocol):
    """A fold whose rows can be combined before it."""

    def combining(self, rows: pa.Schema) -> FoldCombining | None:
        """How rows with these columns are combined; None: they cannot be, exactly."""
        ...


def combining_of(fold: BoundFold, rows: pa.Schema) -> FoldCombining | None:
    """How the rows of a fold may be combined before it; None: not exactly."""
    return fold.combining(rows) if isinstance(fold, Combinable) else None


@runtime_checkable
class Fold(Protocol):
    """A function whose state can be kept per group: `count()`, `top_n(3, by="price")`."""

    def over(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundFold:
        """Check the columns that it needs, and fix the columns that it keeps."""
        ...


def keyed_table(keys: pa.Table, columns: list[pa.Array], schema: pa.Schema) -> pa.Table:
    """A table of this schema from key columns and further columns."""
    return pa.Table.from_arrays([*keys.columns, *columns], schema=schema)


def with_key(rows: pa.Schema, key: tuple[str, ...], fields: tuple[pa.Field, ...]) -> pa.Schema:
    """A schema of the key's fields, then these fields."""
    return pa.schema([*(rows.field(name) for name in key), *fields])


@dataclass(frozen=True, slots=True)
class PerKey:
    """A fold per key, with one state row for each."""

    fold: BoundFold
    upserts: pa.Schema
    output: pa.Schema

    def update(self, batch: KeyedBatch) -> Update:
        """Fold the batch into the state, and emit the keys that changed, in key order."""
        count = batch.keys.num_rows
        folded = self.fold.fold(
            Groups(batch.rows, batch.row_key, batch.state, batch.state_key, count)
        )
        changed = len(folded.groups)
        keys = batch.keys if changed == count else batch.keys.take(pa.array(folded.groups))
        of, results = self.fold.finish(folded.columns)
        return Update(
            output=keyed_table(
                keys if of is None else keys.take(pa.array(of)), results, self.output
            ),
            upserts=keyed_table(keys, list(folded.columns.values()), self.upserts),
            upsert_key=folded.groups,
        )


def bind_per_key(fold: Fold, rows: pa.Schema, key: tuple[str, ...], what: str) -> BoundKeyed:
    """Bind a fold as a keyed function, with one state row per key."""
    bound = fold.over(rows, key)
    distinct_names([*key, *(field.name for field in bound.result)], what)
    distinct_names([*key, *(field.name for field in bound.state)], what)
    output = with_key(rows, key, bound.result)
    upserts = with_key(rows, key, bound.state)
    of = combining_of(bound, rows)
    combiner = None
    if of is not None:
        combiner = RowCombiner.of_keys(of, PerKey(of.behind, upserts, output).update, rows, key)
    return BoundKeyed(
        update=PerKey(bound, upserts, output).update,
        state=pa.schema(list(bound.state)),
        output=output,
        needs=bound.needs,
        combiner=combiner,
        identity=identity_of(fold),
    )
