"""Totals and means that know their columns: what they keep per group and what they tell of it."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.pipelines.functions.columns import nullable, values_of
from tidegate.pipelines.functions.fold import Columns, Groups
from tidegate.pipelines.functions.summand import Summand


@dataclass(frozen=True, slots=True)
class BoundTotal:
    """Keeps one total per group."""

    name: str
    summand: Summand
    null_if_none: bool
    """A sum of nothing is null; a count of nothing is 0."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.summand.needs

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """The total so far."""
        return (pa.field(self.name, self.summand.type),)

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The total."""
        return self.state

    def add(self, groups: Groups) -> Columns:
        """Earlier totals plus rows."""
        total, seen = self.summand.total(groups, self.name)
        return {self.name: nullable(total, seen) if self.null_if_none else pa.array(total)}

    def tell(self, columns: Columns) -> list[pa.Array]:
        """The total itself."""
        return [columns[self.name]]


@dataclass(frozen=True, slots=True)
class BoundMean:
    """Keeps (count, total) per group."""

    name: str
    counted: Summand
    summand: Summand

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.summand.needs

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """Count and total so far."""
        return (
            pa.field(f"{self.name}__count", self.counted.type),
            pa.field(f"{self.name}__total", self.summand.type),
        )

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The mean."""
        return (pa.field(self.name, pa.float64()),)

    def add(self, groups: Groups) -> Columns:
        """Earlier counts and totals plus rows."""
        count, total = self.state
        return {
            count.name: pa.array(self.counted.total(groups, count.name)[0]),
            total.name: pa.array(self.summand.total(groups, total.name)[0]),
        }

    def tell(self, columns: Columns) -> list[pa.Array]:
        """Total by count; null without a value."""
        count, total = (values_of(columns[field.name]) for field in self.state)
        some = count != 0
        mean = np.divide(total, count, out=np.zeros(len(total)), where=some)
        return [nullable(mean, some)]
