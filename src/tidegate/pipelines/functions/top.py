"""The largest rows of each group, kept as one list per group.

The state is one row with a list, not one row per rank: a lookup then ends at the newest file with
the key, and a change rewrites all ranks anyway.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import (
    Mask,
    Numbers,
    column_of,
    ordered_column,
    sortable,
    valid,
    whole,
)
from tidegate.pipelines.functions.fold import (
    BoundFold,
    Columns,
    FoldCombining,
    Folded,
    Groups,
    bind_per_key,
)
from tidegate.pipelines.functions.merges import Merges
from tidegate.pipelines.identity import Identity
from tidegate.pipelines.keyed import BoundKeyed

_TOP = "top"


@dataclass(frozen=True, slots=True)
class BoundTop:
    """Keeps the `n` largest rows of each group, largest first; among equal rows, the earlier."""

    n: int
    by: str
    fields: tuple[pa.Field, ...]
    rank: str

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        return tuple(field.name for field in self.fields)

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """One column: a list of rows."""
        return (pa.field(_TOP, pa.list_(pa.struct(self.fields))),)

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The rank, from 1, and the row's columns."""
        return pa.field(self.rank, pa.int32()), *self.fields

    def fold(self, groups: Groups) -> Folded:
        """Insert the rows that beat the last entry of their group; others cost one comparison."""
        lists = whole(groups.state[_TOP], self.state[0].type)
        kept_group = groups.state_group[_parents(lists)]
        columns = [
            pa.concat_arrays([old, whole(groups.rows[field.name], field.type)])
            for field, old in zip(self.fields, lists.flatten().flatten(), strict=True)
        ]
        by = columns[self.needs.index(self.by)]
        group = np.concatenate([kept_group, groups.row_group])
        order = sortable(by)
        kept = len(kept_group)

        comes_in = self._beats_the_last(order, group, kept, groups.count)
        present = valid(by)
        if present is not None:
            comes_in &= present[kept:]
        changed = np.bincount(groups.state_group, minlength=groups.count) > 1
        changed[groups.row_group[comes_in]] = True
        if groups.every:
            changed[:] = True
        chosen = np.flatnonzero(np.concatenate([changed[kept_group], comes_in]))

        ranked = chosen[np.lexsort((~order[chosen], group[chosen]))]  # stable: the earlier first
        group = group[ranked]
        ranked = ranked[_place_in_run(group) < self.n]
        counts = np.bincount(group, minlength=groups.count).clip(max=self.n)[changed]
        offsets = np.zeros(len(counts) + 1, dtype=np.int32)
        np.cumsum(counts, out=offsets[1:])
        rows = pa.array(ranked)
        structs = pa.StructArray.from_arrays(
            [column.take(rows) for column in columns], fields=list(self.fields)
        )
        top = pa.ListArray.from_arrays(pa.array(offsets), structs, type=self.state[0].type)
        return Folded(np.flatnonzero(changed), {_TOP: top})

    def _beats_the_last(self, order: Numbers, group: Numbers, kept: int, count: int) -> Mask:
        """For each row, whether its group's list has room or a smaller last entry."""
        full = np.bincount(group[:kept], minlength=count) >= self.n
        last = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(last, group[:kept], order[:kept])
        rows = group[kept:]
        beats: Mask = ~full[rows] | (order[kept:] > last[rows])
        return beats

    def combining(self, rows: pa.Schema) -> FoldCombining | None:
        """The largest rows of each part of the rows take their place."""
        return LargestRows(self)

    def finish(self, columns: Columns) -> tuple[Numbers | None, list[pa.Array]]:
        """One row per entry of the lists."""
        lists = columns[_TOP]
        of = _parents(lists)
        rank = (_place_in_run(of) + 1).astype(np.int32)
        return of, [pa.array(rank), *lists.flatten().flatten()]


@dataclass(frozen=True, slots=True)
class LargestRows:
    """Keeps the rows of each group that may be among its largest, in their order."""

    top: BoundTop

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        return self.top.needs

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The same columns."""
        return self.top.fields

    @property
    def most(self) -> int:
        """As many rows per group as a list has."""
        return self.top.n

    @property
    def merges(self) -> Merges:
        """Among equal rows the earlier one is larger."""
        return Merges.IN_ORDER

    @property
    def keeps_rows(self) -> bool:
        """They are rows."""
        return True

    @property
    def behind(self) -> BoundFold:
        """The same fold: it gets fewer rows."""
        return self.top

    def exact(self, rows: pa.Table) -> bool:
        """Values are kept as they are."""
        return True

    def combine(
        self, rows: pa.Table, group: Numbers, count: int
    ) -> tuple[Numbers | None, list[pa.Array]]:
        """The `n` largest rows of each group; of one in which no row has a value, the first."""
        by = whole(rows[self.top.by], rows.field(self.top.by).type)
        order, present = sortable(by), valid(by)
        rated = np.arange(len(group)) if present is None else np.flatnonzero(present)
        ranked = rated[np.lexsort((~order[rated], group[rated]))]  # stable: the earlier first
        ranked = ranked[_place_in_run(group[ranked]) < self.top.n]
        chosen = np.zeros(len(group), dtype=np.bool_)
        chosen[ranked] = True
        if present is not None:
            bare = np.ones(count, dtype=np.bool_)
            bare[group[ranked]] = False
            _, first = np.unique(group, return_index=True)
            chosen[first[bare]] = True
        places = np.flatnonzero(chosen)
        index = pa.array(places)
        columns = [whole(rows[field.name], field.type).take(index) for field in self.top.fields]
        return group[places], columns


def _parents(lists: pa.Array) -> Numbers:
    numbers: Numbers = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    return numbers


def _place_in_run(numbers: Numbers) -> Numbers:
    """The position of each number in its run of equal numbers, from 0; equal ones are adjacent."""
    at = np.arange(len(numbers))
    starts = np.ones(len(numbers), dtype=np.bool_)
    starts[1:] = numbers[1:] != numbers[:-1]
    return at - np.maximum.accumulate(np.where(starts, at, 0))


@dataclass(frozen=True, slots=True)
class Top:
    """A keyed function: the rows with the largest `by`."""

    n: int
    by: str
    of: tuple[str, ...] | None
    as_: str

    def identity(self) -> Identity:
        """How many rows are kept, and by what; their columns are columns of the state."""
        return {"function": "top_n", "n": self.n, "by": self.by}

    def over(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundFold:
        """Bind to the rows; each entry keeps `by` and `of`, or all columns but the key."""
        what = "top_n"
        ordered_column(rows, self.by, what)
        if self.of is None:
            names = [name for name in rows.names if name not in key]
        else:
            names = [self.by, *(name for name in self.of if name != self.by)]
        if self.by not in names:
            names.insert(0, self.by)
        fields = tuple(
            pa.field(name, column_of(rows, name, what).type) for name in dict.fromkeys(names)
        )
        return BoundTop(self.n, self.by, fields, self.as_)

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Bind as an operator of its own, with one list per key."""
        return bind_per_key(self, rows, key, "top_n")


def top_n(n: int, *, by: str, of: str | tuple[str, ...] | None = None, as_: str = "rank") -> Top:
    """The `n` rows with the largest `by` per key; `of` names the columns to keep.

    For each key whose list changed it emits the whole list, with the rank from 1 in a column `as_`.
    """
    if n < 1:
        raise AskedWrongly(f"top_n has n={n}; give at least 1")
    return Top(n, by, (of,) if isinstance(of, str) else of, as_)
