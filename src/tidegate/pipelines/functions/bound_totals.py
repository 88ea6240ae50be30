"""Totals and means bound to their columns: the state that they keep, and their results."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.pipelines.functions.columns import nullable, values_of
from tidegate.pipelines.functions.fold import Columns, Groups
from tidegate.pipelines.functions.merges import Merges
from tidegate.pipelines.functions.summand import Summand


@dataclass(frozen=True, slots=True)
class BoundTotal:
    """A total per group."""

    name: str
    summand: Summand
    null_if_none: bool
    """Whether the total of no values is null, as for a sum, or 0, as for a count."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        return self.summand.needs

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """The total so far."""
        return (pa.field(self.name, self.summand.type),)

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The total."""
        return self.state

    @property
    def merges(self) -> Merges:
        """As its summand."""
        return self.summand.merges

    def exact(self, rows: pa.Table) -> bool:
        """As its summand."""
        return self.summand.exact(rows)

    def add(self, groups: Groups) -> Columns:
        """Add the rows to the earlier totals."""
        total, seen = self.summand.total(groups, self.name)
        return {self.name: nullable(total, seen) if self.null_if_none else pa.array(total)}

    def results(self, columns: Columns) -> list[pa.Array]:
        """The total itself."""
        return [columns[self.name]]


@dataclass(frozen=True, slots=True)
class BoundMean:
    """A mean per group, kept as a count and a total."""

    name: str
    counted: Summand
    summand: Summand

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        return self.summand.needs

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """The count and the total so far."""
        return (
            pa.field(f"{self.name}__count", self.counted.type),
            pa.field(f"{self.name}__total", self.summand.type),
        )

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The mean."""
        return (pa.field(self.name, pa.float64()),)

    @property
    def merges(self) -> Merges:
        """As both its summands."""
        return min(self.counted.merges, self.summand.merges)

    def exact(self, rows: pa.Table) -> bool:
        """As both its summands."""
        return self.counted.exact(rows) and self.summand.exact(rows)

    def add(self, groups: Groups) -> Columns:
        """Add the rows to the earlier counts and totals."""
        count, total = self.state
        return {
            count.name: pa.array(self.counted.total(groups, count.name)[0]),
            total.name: pa.array(self.summand.total(groups, total.name)[0]),
        }

    def results(self, columns: Columns) -> list[pa.Array]:
        """The total divided by the count; null if there is no value."""
        count, total = (values_of(columns[field.name]) for field in self.state)
        some = count != 0
        mean = np.divide(total, count, out=np.zeros(len(total)), where=some)
        return [nullable(mean, some)]
