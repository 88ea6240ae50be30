"""Partial states: what an aggregate keeps of some rows, sent to the key's task in their place."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate.pipelines.functions.columns import Numbers, whole
from tidegate.pipelines.functions.fold import BoundFold, Columns, Folded, Groups
from tidegate.pipelines.functions.merges import Merges

PART = "__part_"
"""Stands in front of the names of state columns, which may be those of other columns."""
_NONE = np.empty(0, dtype=np.int64)


class MergeableFold(BoundFold, Protocol):
    """A fold that always has one state row per group, and whose states can be merged."""

    @property
    def merges(self) -> Merges:
        """Whether merged states are exactly the state of all rows."""
        ...

    def exact(self, rows: pa.Table) -> bool:
        """Whether the states of parts of these rows can be held exactly."""
        ...


@dataclass(frozen=True, slots=True)
class PartialStates:
    """Combines the rows of each group into the state that they alone would leave."""

    fold: MergeableFold
    rows: pa.Schema

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        return self.fold.needs

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The state's columns under names of their own."""
        return tuple(field.with_name(PART + field.name) for field in self.fold.state)

    @property
    def most(self) -> int:
        """One state per group."""
        return 1

    @property
    def merges(self) -> Merges:
        """How far the order of the rows matters."""
        return self.fold.merges

    @property
    def keeps_rows(self) -> bool:
        """A state is no row."""
        return False

    @property
    def behind(self) -> BoundFold:
        """Merges the states."""
        return MergedStates(self.fold, self.rows)

    def exact(self, rows: pa.Table) -> bool:
        """Whether every measure can hold its part exactly."""
        return self.fold.exact(rows)

    def combine(
        self, rows: pa.Table, group: Numbers, count: int
    ) -> tuple[Numbers | None, list[pa.Array]]:
        """One state per group."""
        nothing = pa.schema(list(self.fold.state)).empty_table()
        folded = self.fold.fold(Groups(rows, group, nothing, _NONE, count))
        return None, [folded.columns[field.name] for field in self.fold.state]


@dataclass(frozen=True, slots=True)
class MergedStates:
    """A fold over partial states: to the inner fold they are state rows after the earlier ones."""

    fold_of_rows: BoundFold
    rows: pa.Schema

    @property
    def needs(self) -> tuple[str, ...]:
        """The partial states' columns."""
        return tuple(PART + field.name for field in self.state)

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """As without combining."""
        return self.fold_of_rows.state

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """As without combining."""
        return self.fold_of_rows.result

    def fold(self, groups: Groups) -> Folded:
        """Merge the earlier states and the partial ones."""
        columns = [
            pa.concat_arrays(
                [
                    whole(groups.state.column(field.name), field.type),
                    whole(groups.rows.column(PART + field.name), field.type),
                ]
            )
            for field in self.state
        ]
        names = list(self.fold_of_rows.needs)
        return self.fold_of_rows.fold(
            Groups(
                rows=pa.schema([self.rows.field(name) for name in names]).empty_table(),
                row_group=_NONE,
                state=pa.Table.from_arrays(columns, schema=pa.schema(list(self.state))),
                state_group=np.concatenate([groups.state_group, groups.row_group]),
                count=groups.count,
                every=groups.every,
            )
        )

    def finish(self, columns: Columns) -> tuple[Numbers | None, list[pa.Array]]:
        """As without combining."""
        return self.fold_of_rows.finish(columns)
