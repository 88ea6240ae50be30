"""min, max and latest: they pick one row of each group by the order of a column."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import (
    column_of,
    joined,
    ordered_column,
    sortable,
    valid,
)
from tidegate.pipelines.functions.fold import Columns, Groups
from tidegate.pipelines.functions.measure import BoundMeasure, Measure
from tidegate.pipelines.functions.merges import Merges
from tidegate.pipelines.identity import Identity


@dataclass(frozen=True, slots=True)
class Carried:
    """A column of the rows, and the state column with the picked row's value of it."""

    column: str
    field: pa.Field


@dataclass(frozen=True, slots=True)
class BoundPick:
    """Keeps the picked row of each group: the value that it was picked by, and other columns.

    A row whose `by` is null is never picked. Among equal rows the last one is picked.
    """

    by: Carried
    carried: tuple[Carried, ...]
    smallest: bool = False
    by_is_result: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        return tuple(carried.column for carried in (self.by, *self.carried))

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """The value that the row was picked by, then the other columns."""
        return self.by.field, *self.result[self.by_is_result :]

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The columns of the picked row that are emitted."""
        mine = (self.by,) if self.by_is_result else ()
        return tuple(carried.field for carried in (*mine, *self.carried))

    @property
    def merges(self) -> Merges:
        """Equal rows differ in what is carried, and equal floats in their bits (0.0 and -0.0)."""
        alike = not self.carried and not pa.types.is_floating(self.by.field.type)
        return Merges.IN_ANY_ORDER if alike else Merges.IN_ORDER

    def exact(self, rows: pa.Table) -> bool:
        """Values are kept as they are."""
        return True

    def add(self, groups: Groups) -> Columns:
        """Pick the best of the earlier pick and the new rows."""
        by = self._joined(groups, self.by)
        group = np.concatenate([groups.state_group, groups.row_group])
        order = sortable(by)
        if self.smallest:
            order = ~order
        at = np.arange(len(group))
        present = valid(by)
        if present is not None:
            at, group, order = at[present], group[present], order[present]
        best = np.full(groups.count, np.iinfo(np.int64).min)
        np.maximum.at(best, group, order)
        winners = order == best[group]
        place = np.full(groups.count, -1, dtype=np.int64)
        np.maximum.at(place, group[winners], at[winners])
        picked = pa.array(place, mask=place < 0) if (place < 0).any() else pa.array(place)
        columns = {self.by.field.name: by.take(picked)}
        for carried in self.carried:
            columns[carried.field.name] = self._joined(groups, carried).take(picked)
        return columns

    def results(self, columns: Columns) -> list[pa.Array]:
        """The emitted columns of the picked row."""
        return [columns[field.name] for field in self.result]

    def _joined(self, groups: Groups, carried: Carried) -> pa.Array:
        field = carried.field
        return joined(groups.state, field.name, groups.rows, carried.column, field.type)


@dataclass(frozen=True, slots=True)
class Extreme(Measure):
    """The smallest or the largest value of a column."""

    column: str
    smallest: bool

    @property
    def kind(self) -> str:
        """The name by which users call it."""
        return "min" if self.smallest else "max"

    def identity(self) -> Identity:
        """Its kind and its column."""
        return {"function": self.kind, "column": self.column}

    def measure(self, rows: pa.Schema, name: str | None) -> BoundMeasure:
        """Bind to the rows; the state is one value per group."""
        word = self.kind
        found = ordered_column(rows, self.column, f"{word} of '{self.column}'")
        field = pa.field(name or f"{word}_{self.column}", found.type)
        return BoundPick(Carried(self.column, field), (), self.smallest, by_is_result=True)


@dataclass(frozen=True, slots=True)
class Latest(Measure):
    """Columns of the row with the largest `by`."""

    columns: tuple[str, ...]
    by: str

    def measure(self, rows: pa.Schema, name: str | None) -> BoundMeasure:
        """Bind to the rows; the state is the row's columns and the value it was picked by."""
        what = "latest"
        if not self.columns:
            raise AskedWrongly("latest has no column; give at least one, as in latest('price')")
        by = ordered_column(rows, self.by, what)
        carried = []
        for column in self.columns:
            found = column_of(rows, column, what)
            if name is None:
                emitted = column
            else:
                emitted = name if len(self.columns) == 1 else f"{name}_{column}"
            carried.append(Carried(column, pa.field(emitted, found.type)))
        kept = pa.field(f"{carried[0].field.name}__by", by.type)
        return BoundPick(Carried(self.by, kept), tuple(carried))


def min(column: str, *, as_: str | None = None) -> Extreme:
    """The smallest value of `column` per key; null if there is no value."""
    return Extreme(as_, column, True)


def max(column: str, *, as_: str | None = None) -> Extreme:
    """The largest value of `column` per key; null if there is no value."""
    return Extreme(as_, column, False)


def latest(*columns: str, by: str = "timestamp", as_: str | None = None) -> Latest:
    """These columns of the row with the largest `by` per key; of equal rows, the last one.

    The results keep their names. `as_` renames a single column, and is a prefix for several.
    """
    return Latest(as_, columns, by)
