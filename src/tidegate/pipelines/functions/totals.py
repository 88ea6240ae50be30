"""The functions count, sum and mean, and how they are bound to the columns of the rows."""

from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.bound_totals import BoundMean, BoundTotal
from tidegate.pipelines.functions.columns import column_of, number_column
from tidegate.pipelines.functions.estimate import BoundEstimate
from tidegate.pipelines.functions.measure import BoundMeasure, Measure
from tidegate.pipelines.functions.summand import Summand
from tidegate.pipelines.shedding import WEIGHT


def _sum_type(field: pa.Field, weight: str | None) -> pa.DataType:
    """The type of a total: int64, which is exact, for unweighted integers, else double."""
    exact = pa.types.is_integer(field.type) and weight is None
    return pa.int64() if exact else pa.float64()


def _weighted(rows: pa.Schema, weight: str | None, what: str) -> tuple[str, ...]:
    return () if weight is None else (number_column(rows, weight, what).name,)


@dataclass(frozen=True, slots=True)
class Count(Measure):
    """The number of rows, or of values that are not null."""

    column: str | None
    weight: str | None
    weighted: bool = False

    def measure(self, rows: pa.Schema, name: str | None) -> BoundMeasure:
        """Bind to the rows; the state is one number per group."""
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
        """Bind to the rows; the state is one total per group."""
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
        """Bind to the rows; the state is a count and a total per group."""
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
            f"{what}: weighted=True uses the column '{WEIGHT}' of rows that may be shed; give "
            f"weight='{weight}' without weighted, or leave weight out"
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

    `weight` names a column with the number of rows that each row represents. `weighted` is for
    rows that may be shed: it uses `_weight` to estimate the result over all offered rows, and adds
    a column with the standard error (the name with the suffix `_se`).
    """
    return Count(as_, column, _weight(weight, weighted, "count"), weighted)


def sum(
    column: str, *, weight: str | None = None, weighted: bool = False, as_: str | None = None
) -> Sum:
    """The total of `column` per key: exact for whole numbers, null if there is no value.

    `weight` and `weighted` are as for `count`.
    """
    return Sum(as_, column, _weight(weight, weighted, f"sum of '{column}'"), weighted)


def mean(
    column: str, *, weight: str | None = None, weighted: bool = False, as_: str | None = None
) -> Mean:
    """The mean of `column` per key; null if there is no value.

    `weight` and `weighted` are as for `count`.
    """
    return Mean(as_, column, _weight(weight, weighted, f"mean of '{column}'"), weighted)
