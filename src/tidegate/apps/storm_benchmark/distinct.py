"""The distinct values of a column as a fold: a sorted list of them for each group.

Intel's unique visitor keeps a set of users for each page and slot of its window. With this fold,
`window` does the same on columns.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.pipelines.functions.columns import Numbers, column_of, whole
from tidegate.pipelines.functions.fold import BoundFold, Columns, Folded, Groups
from tidegate.pipelines.identity import Identity

LISTS = pa.list_(pa.int64())


@dataclass(frozen=True, slots=True)
class BoundDistinct:
    """Keeps the distinct values of each group. A group without a new value is not written again."""

    column: str
    as_: str

    @property
    def needs(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """The values so far."""
        return (pa.field(f"{self.as_}__values", LISTS),)

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """How many there are."""
        return (pa.field(self.as_, pa.int64()),)

    def fold(self, groups: Groups) -> Folded:
        """Add the values of the rows to those of the state."""
        lists = whole(groups.state[self.state[0].name], LISTS)
        parents = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
        known = groups.state_group[parents]
        group = np.concatenate([known, groups.row_group])
        value = np.concatenate(
            [lists.flatten().to_numpy(), whole(groups.rows[self.column], pa.int64()).to_numpy()]
        )
        values, rank = np.unique(value, return_inverse=True)
        codes = np.unique(group * max(1, len(values)) + rank)
        group, rank = np.divmod(codes, max(1, len(values)))
        counts = np.bincount(group, minlength=groups.count)
        changed = counts != np.bincount(known, minlength=groups.count)
        changed |= np.bincount(groups.state_group, minlength=groups.count) > 1
        if groups.every:
            changed[:] = True
        kept = values[rank[changed[group]]]
        return Folded(np.flatnonzero(changed), {self.state[0].name: _lists(kept, counts[changed])})

    def finish(self, columns: Columns) -> tuple[Numbers | None, list[pa.Array]]:
        """The length of each list."""
        return None, [pc.list_value_length(columns[self.state[0].name]).cast(pa.int64())]


def _lists(values: Numbers, lengths: Numbers) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), type=LISTS)


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many distinct values a column of whole numbers, without nulls, has in each group."""

    column: str
    as_: str

    def identity(self) -> Identity:
        """The column; the name of the result is in the name of the state's column."""
        return {"function": "distinct", "column": self.column}

    def over(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundFold:
        """Check that the column is there."""
        column_of(rows, self.column, "distinct")
        return BoundDistinct(self.column, self.as_)
