"""count, sum and mean: what is added up.

Rows are added to the earlier total one after the other in the order they came, so that the cut
into micro-batches does not change a single bit of a float sum.
"""

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.functions.columns import (
    Mask,
    Numbers,
    column_of,
    nullable,
    number_column,
    valid,
    values_of,
    whole,
)
from tidegate.pipelines.functions.fold import Columns, Groups
from tidegate.pipelines.functions.measure import BoundMeasure, Measure
from tidegate.pipelines.shedding import WEIGHT

Values = NDArray[Any]

_RANGE = 2**63
_FAR_OFF = 2.0**62


@dataclass(frozen=True, slots=True)
class Summand:
    """What each row adds: the product of its factors, 1 if there are none.

    Rows with a null factor, or a null in a `present` column, add nothing, as in SQL.
    """

    factors: tuple[str, ...]
    present: tuple[str, ...]
    type: pa.DataType
    what: str
    spread: str | None = None
    """A weight w that enters as w (w - 1): what a row adds to the variance of an estimate."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        spread = () if self.spread is None else (self.spread,)
        return (*self.present, *self.factors, *spread)

    def rows(self, groups: Groups) -> tuple[Numbers, Values | None]:
        """Groups and values of the rows that add something; None where every value is 1."""
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
        """Earlier totals of each group plus its rows, and whether there was anything to add."""
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
        """A wrapped total is off by 2^64; look closer only where the largest value could do it."""
        reach = builtins.sum(
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
                f"{self.what}: a total outgrew 64 bits; cast the column to double in a map before"
            )


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


@dataclass(frozen=True, slots=True)
class BoundEstimate:
    """A total or a mean of the rows that were kept, with its standard error.

    Every row was kept by a draw of its own with probability 1 / w, so an estimate's variance is
    estimated by the sum of w (w - 1) y^2 over the kept rows: y is 1 for a count, x for a sum and
    (x - mean) / (sum of w) for a mean (Horvitz and Thompson 1952; for the mean by linearisation).
    """

    inner: "BoundTotal | BoundMean"
    spreads: tuple[Summand, ...]
    """Sums of w (w - 1) y^2; for a mean those of w (w - 1) times 1, x and x^2."""

    @property
    def name(self) -> str:
        """The estimate's name; its error has `_se` behind it."""
        return self.inner.name

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that it reads."""
        names = (name for part in (self.inner, *self.spreads) for name in part.needs)
        return tuple(dict.fromkeys(names))

    @property
    def _spread_fields(self) -> tuple[pa.Field, ...]:
        return tuple(
            pa.field(f"{self.name}__spread{power or ''}", pa.float64())
            for power in range(len(self.spreads))
        )

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """What the estimate keeps, and the spreads."""
        return (*self.inner.state, *self._spread_fields)

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The estimate and its standard error."""
        return (*self.inner.result, pa.field(f"{self.name}_se", pa.float64()))

    def add(self, groups: Groups) -> Columns:
        """Earlier sums plus rows."""
        pairs = zip(self._spread_fields, self.spreads, strict=True)
        spreads = {
            field.name: pa.array(spread.total(groups, field.name)[0]) for field, spread in pairs
        }
        return {**self.inner.add(groups), **spreads}

    def tell(self, columns: Columns) -> list[pa.Array]:
        """The estimate and its standard error; null where there is nothing to estimate."""
        told = self.inner.tell(columns)
        spreads = [values_of(columns[field.name]) for field in self._spread_fields]
        present = valid(told[0])
        here: Mask = np.ones(len(told[0]), dtype=np.bool_) if present is None else present
        if isinstance(self.inner, BoundTotal):
            error = np.sqrt(np.maximum(spreads[0], 0.0))
        else:
            mean = values_of(told[0])
            weight = values_of(columns[self.inner.state[0].name])
            variance = spreads[2] - 2.0 * mean * spreads[1] + mean**2 * spreads[0]
            root = np.sqrt(np.maximum(variance, 0.0))
            error = np.divide(root, weight, out=np.zeros(len(root)), where=here)
        return [*told, nullable(error, here)]


def _sum_type(field: pa.Field, weight: str | None) -> pa.DataType:
    """Whole numbers add up exactly in 64 bits; anything fractional or weighted in double."""
    exact = pa.types.is_integer(field.type) and weight is None
    return pa.int64() if exact else pa.float64()


def _weighted(rows: pa.Schema, weight: str | None, what: str) -> tuple[str, ...]:
    return () if weight is None else (number_column(rows, weight, what).name,)


@dataclass(frozen=True, slots=True)
class Count(Measure):
    """How many rows, or how many values that are not null."""

    column: str | None
    weight: str | None
    weighted: bool = False

    def measure(self, rows: pa.Schema, name: str | None) -> BoundMeasure:
        """Keeps one number per group."""
        what = "count"
        present = () if self.column is None else (column_of(rows, self.column, what).name,)
        weight = _weighted(rows, self.weight, what)
        type_ = pa.float64() if weight else pa.int64()
        default = "count" if self.column is None else f"count_{self.column}"
        total = BoundTotal(name or default, Summand(weight, present, type_, what), False)
        if not self.weighted:
            return total
        return BoundEstimate(total, (Summand((), present, pa.float64(), what, self.weight),))


@dataclass(frozen=True, slots=True)
class Sum(Measure):
    """The total of a column."""

    column: str
    weight: str | None
    weighted: bool = False

    def measure(self, rows: pa.Schema, name: str | None) -> BoundMeasure:
        """Keeps one total per group."""
        what = f"sum of '{self.column}'"
        field = number_column(rows, self.column, what)
        weight = _weighted(rows, self.weight, what)
        summand = Summand((self.column, *weight), (), _sum_type(field, self.weight), what)
        total = BoundTotal(name or f"sum_{self.column}", summand, True)
        if not self.weighted:
            return total
        squares = (self.column, self.column)
        return BoundEstimate(total, (Summand(squares, (), pa.float64(), what, self.weight),))


@dataclass(frozen=True, slots=True)
class Mean(Measure):
    """The mean of a column."""

    column: str
    weight: str | None
    weighted: bool = False

    def measure(self, rows: pa.Schema, name: str | None) -> BoundMeasure:
        """Keeps count and total per group."""
        what = f"mean of '{self.column}'"
        field = number_column(rows, self.column, what)
        weight = _weighted(rows, self.weight, what)
        mean = BoundMean(
            name or f"mean_{self.column}",
            Summand(weight, (self.column,), pa.float64() if weight else pa.int64(), what),
            Summand((self.column, *weight), (), _sum_type(field, self.weight), what),
        )
        if not self.weighted:
            return mean
        x, real = self.column, pa.float64()
        return BoundEstimate(
            mean,
            (
                Summand((), (x,), real, what, self.weight),
                Summand((x,), (), real, what, self.weight),
                Summand((x, x), (), real, what, self.weight),
            ),
        )


def _weight(weight: str | None, weighted: bool, what: str) -> str | None:
    if weighted and weight is not None:
        raise AskedWrongly(
            f"{what}: weighted=True takes the column '{WEIGHT}' of rows that may be shed; give "
            f"weight='{weight}' without it, or leave weight out"
        )
    return WEIGHT if weighted else weight


def count(
    column: str | None = None,
    *,
    weight: str | None = None,
    weighted: bool = False,
    as_: str | None = None,
) -> Count:
    """Rows per key, or values of `column` that are not null.

    `weight` names a column that says how many rows each row stands for. `weighted` is for rows
    that may be shed: it estimates what was offered by `_weight`, with the standard error in a
    column of its own (`_se` behind the name).
    """
    return Count(as_, column, _weight(weight, weighted, "count"), weighted)


def sum(
    column: str, *, weight: str | None = None, weighted: bool = False, as_: str | None = None
) -> Sum:
    """The total of `column` per key: exact for whole numbers, null without a value.

    `weighted`: as for `count`.
    """
    return Sum(as_, column, _weight(weight, weighted, f"sum of '{column}'"), weighted)


def mean(
    column: str, *, weight: str | None = None, weighted: bool = False, as_: str | None = None
) -> Mean:
    """The mean of `column` per key; null without a value.

    `weighted`: as for `count`.
    """
    return Mean(as_, column, _weight(weight, weighted, f"mean of '{column}'"), weighted)
