"""Summands: the number that each row adds to a total, and the totals of groups of rows.

Rows are added to the earlier total one by one, in their order, so that a sum of floats is the same
to the last bit however the rows are divided into micro-batches.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.pipelines.functions.columns import Mask, Numbers, valid, values_of, whole
from tidegate.pipelines.functions.fold import Groups
from tidegate.pipelines.functions.merges import Merges

Values = NDArray[Any]

_RANGE = 2**63
_FAR_OFF = 2.0**62


@dataclass(frozen=True, slots=True)
class Summand:
    """The number that each row adds: the product of its factors, or 1 if there are none.

    As in SQL, a row with a null factor, or a null in a `present` column, adds nothing.
    """

    factors: tuple[str, ...]
    present: tuple[str, ...]
    type: pa.DataType
    what: str
    spread: str | None = None
    """The column of a weight w that enters as w (w - 1), for the variance of an estimate."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        spread = () if self.spread is None else (self.spread,)
        return (*self.present, *self.factors, *spread)

    @property
    def merges(self) -> Merges:
        """Whole numbers can be added in any order; floats cannot, to the last bit."""
        return Merges.IN_ANY_ORDER if self.type == pa.int64() else Merges.NEVER

    def exact(self, rows: pa.Table) -> bool:
        """Whether no part of these rows can have a total of more than 64 bits."""
        if not self.factors:
            return True
        (name,) = self.factors  # totals of whole numbers have no weight
        ends = pc.min_max(rows[name]).as_py()
        if ends["min"] is None:
            return True
        return bool(rows.num_rows * max(-ends["min"], ends["max"]) < _RANGE)

    def rows(self, groups: Groups) -> tuple[Numbers, Values | None]:
        """Groups and values of the rows that add something; no values if each of them is 1."""
        chosen: Mask | None = None
        values: Values | None = None
        for name in self.needs:
            column = groups.rows[name]
            factor = name in self.factors or name == self.spread
            array = whole(column, self.type if factor else column.type)
            here = valid(array)
            if here is not None:
                chosen = here if chosen is None else chosen & here
            if factor:
                numbers = values_of(array)
                if name == self.spread:
                    numbers = numbers * (numbers - 1.0)
                values = numbers if values is None else values * numbers
        if chosen is None:
            return groups.row_group, values
        return groups.row_group[chosen], None if values is None else values[chosen]

    def total(self, groups: Groups, state: str) -> tuple[Values, Mask]:
        """The new total of each group, and whether it has any value, earlier or new."""
        old = whole(groups.state[state], self.type)
        old_present = valid(old)
        old_group, old_values = groups.state_group, values_of(old)
        if old_present is not None:
            old_group, old_values = old_group[old_present], old_values[old_present]
        group, values = self.rows(groups)
        total = np.zeros(groups.count, dtype=self.type.to_pandas_dtype())
        np.add.at(total, old_group, old_values)
        if values is None:
            total += np.bincount(group, minlength=groups.count).astype(total.dtype)
        else:
            np.add.at(total, group, values)
            if self.type == pa.int64():
                self._refuse_overflow(total, ((old_group, old_values), (group, values)))
        seen = np.zeros(groups.count, dtype=np.bool_)
        seen[old_group] = True
        seen[group] = True
        return total, seen

    def _refuse_overflow(self, total: Values, parts: tuple[tuple[Numbers, Values], ...]) -> None:
        """Raise an error if a total wrapped around, which makes it wrong by 2^64.

        Totals are checked only if the largest values could overflow at all.
        """
        reach = sum(
            len(values) * max(-int(values.min()), int(values.max()))
            for _, values in parts
            if len(values)
        )
        if reach < _RANGE:
            return
        rough = np.zeros(len(total))
        for group, values in parts:
            np.add.at(rough, group, values.astype(np.float64))
        if np.any(np.abs(rough - total) > _FAR_OFF):
            raise TidegateError(
                f"{self.what}: a total exceeds 64 bits; cast the column to double in a map before "
                "this operator"
            )
