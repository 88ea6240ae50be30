"""How the columns of state may change over the years, and how rows of old files are read then.

The columns of a state file are its *layout*. When an operator gets another layout, its old files
stay as they are. Their rows are read through every later layout in turn: a wider type is a cast, a
new column is its default, a column that was given up is left out. A row is written in the newest
layout whenever its key changes or its file is merged, so no time is set aside for a conversion.
"""

from collections.abc import Sequence

import pyarrow as pa

from tidegate.pipelines.defaults import default_of

_EXACT_DIGITS = {16: 11, 32: 24, 64: 53}
"""For each width of a float: whole numbers of so many bits are exact in it."""


def widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether every value of the old type is the same value in the new one."""
    is_a = pa.types
    if old == new:
        return True
    if is_a.is_signed_integer(old):
        if is_a.is_signed_integer(new):
            return bool(new.bit_width >= old.bit_width)
        if is_a.is_floating(new):
            return bool(old.bit_width <= _EXACT_DIGITS[new.bit_width])
        return bool(is_a.is_decimal(new) and new.precision - new.scale >= _digits(old))
    if is_a.is_floating(old):
        return bool(is_a.is_floating(new) and new.bit_width >= old.bit_width)
    if is_a.is_decimal(old):
        longer = is_a.is_decimal(new) and new.bit_width >= old.bit_width
        whole = new.precision - new.scale >= old.precision - old.scale if longer else False
        return bool(whole and new.scale >= old.scale)
    if is_a.is_list(old) and is_a.is_list(new):
        return _field_widens(old.value_field, new.value_field)
    if is_a.is_struct(old) and is_a.is_struct(new):
        same = [field.name for field in old] == [field.name for field in new]
        return same and all(_field_widens(a, b) for a, b in zip(old, new, strict=True))
    return False


def _digits(kind: pa.DataType) -> int:
    """The most decimal digits of a whole number of this type."""
    return len(str(2 ** (kind.bit_width - 1)))


def _field_widens(old: pa.Field, new: pa.Field) -> bool:
    return (new.nullable or not old.nullable) and widens(old.type, new.type)


def read_through(rows: pa.Table, layouts: Sequence[pa.Schema]) -> pa.Table:
    """The rows in the last of these layouts, by way of the others.

    Step by step, because a column may have been given up and have come back with another meaning.
    """
    for layout in layouts:
        columns = [_column(rows, column) for column in layout]
        rows = pa.Table.from_arrays(columns, schema=layout)
    return rows


def _column(rows: pa.Table, wanted: pa.Field) -> pa.ChunkedArray | pa.Array:
    if wanted.name not in rows.column_names:
        return pa.repeat(default_of(wanted), rows.num_rows)
    column = rows.column(wanted.name)
    return column if column.type == wanted.type else column.cast(wanted.type)


def added(old: pa.Schema, new: pa.Schema) -> list[pa.Field]:
    """The columns that the new layout has and the old one has not."""
    return [column for column in new if column.name not in old.names]


def given_up(old: pa.Schema, new: pa.Schema) -> list[str]:
    """The columns that the old layout has and the new one has not."""
    return [name for name in old.names if name not in new.names]


def too_narrow(old: pa.Schema, new: pa.Schema) -> list[tuple[str, pa.DataType, pa.DataType]]:
    """Columns of both whose values do not all fit the new layout, with their types."""
    return [
        (column.name, old.field(column.name).type, column.type)
        for column in new
        if column.name in old.names and not widens(old.field(column.name).type, column.type)
    ]
