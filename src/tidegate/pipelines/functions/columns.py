"""Columns for the built-in functions: checks before anything starts, and Arrow to NumPy."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.errors import AskedWrongly, nearest

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SIGN = np.int64(np.iinfo(np.int64).max)


def column_of(rows: pa.Schema, name: str, what: str) -> pa.Field:
    """The field of this name; an error suggests the closest name there is."""
    if name not in rows.names:
        raise AskedWrongly(f"{what}: the rows have no column '{name}'{nearest(name, rows.names)}")
    return rows.field(name)


def number_column(rows: pa.Schema, name: str, what: str) -> pa.Field:
    """The field of a numeric column."""
    field = column_of(rows, name, what)
    if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
        raise AskedWrongly(
            f"{what}: the column '{name}' is {field.type}, expected a number; "
            "cast it to double or bigint in a map before this operator"
        )
    return field


def ordered_column(rows: pa.Schema, name: str, what: str) -> pa.Field:
    """The field of a column whose values have an order."""
    field = column_of(rows, name, what)
    if pa.types.is_nested(field.type) or pa.types.is_null(field.type):
        raise AskedWrongly(
            f"{what}: the column '{name}' is {field.type}, which has no order; "
            "give a column of numbers, times or strings"
        )
    return field


def time_column(rows: pa.Schema, name: str, what: str) -> pa.Field:
    """The field of a timestamp column."""
    field = column_of(rows, name, what)
    if not pa.types.is_timestamp(field.type):
        raise AskedWrongly(
            f"{what}: the event time '{name}' is {field.type}, expected a timestamp; "
            "cast it in a map before this operator"
        )
    return field


def distinct_names(names: Iterable[str], what: str) -> None:
    """Raise an error if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise AskedWrongly(
                f"{what}: two columns would be named '{name}'; rename one of them with as_"
            )
        seen.add(name)


def whole(column: pa.ChunkedArray | pa.Array, type_: pa.DataType) -> pa.Array:
    """A column as a single array of this type."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array if array.type == type_ else array.cast(type_)


def joined(state: pa.Table, name: str, rows: pa.Table, column: str, type_: pa.DataType) -> pa.Array:
    """A state column, followed by the column of the rows that may replace its values."""
    old, new = whole(state.column(name), type_), whole(rows.column(column), type_)
    if not len(old):
        return new
    return pa.concat_arrays([old, new])


def valid(array: pa.Array) -> Mask | None:
    """Which values are not null; None when none is null."""
    if not array.null_count:
        return None
    mask: Mask = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return mask


def values_of(array: pa.Array) -> NDArray[Any]:
    """The values of a numeric column, with 0 for null."""
    filled = array.fill_null(0) if array.null_count else array
    values: NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values


def nullable(values: NDArray[Any], present: Mask) -> pa.Array:
    """Values as a column, with null where none is present."""
    return pa.array(values) if present.all() else pa.array(values, mask=~present)


def sortable(array: pa.Array) -> Numbers:
    """Whole numbers in the order of the values; those of nulls are arbitrary.

    NaN is larger than every number and -0.0 equals 0.0, as in Spark. Values of other types, such as
    strings, are replaced by their ranks, so only results of the same call can be compared.
    """
    kind = array.type
    if pa.types.is_floating(kind):
        values = values_of(array.cast(pa.float64())) + 0.0
        values[np.isnan(values)] = np.nan  # make all NaNs the same positive one
        bits: Numbers = values.view(np.int64)
        return bits ^ ((bits >> np.int64(63)) & _SIGN)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        array = array.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif not pa.types.is_integer(kind) or pa.types.is_uint64(kind):
        array = pc.rank(array, sort_keys="ascending", tiebreaker="dense").cast(pa.int64())
    return values_of(array).astype(np.int64, copy=False)
