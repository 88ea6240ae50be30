"""Tables that users' functions return, checked against the declared columns.

A type is changed only where every value keeps its meaning: integers to wider ones, whole numbers to
floats that hold them exactly, finer units of time. Text for a number, or a number for text, is a
mistake in the function or in the declaration, and a cast would hide it.
"""

import pyarrow as pa

from tidegate.errors import TidegateError, nearest


def conform(table: pa.Table, wanted: pa.Schema, what: str) -> pa.Table:
    """The table with the wanted columns, in order; an error names the operator and the column."""
    for name in wanted.names:
        if name not in table.column_names:
            raise TidegateError(
                f"{what}: the column '{name}' is missing{nearest(name, table.column_names)}"
            )
    extra = [name for name in table.column_names if name not in wanted.names]
    if extra:
        raise TidegateError(
            f"{what}: the column '{extra[0]}' was not declared{nearest(extra[0], wanted.names)}"
        )
    table = table.select(wanted.names)
    for column in wanted:
        found = table.schema.field(column.name).type
        if found == column.type:
            continue
        if not keeps_meaning(found, column.type):
            raise TidegateError(
                f"{what}: the column '{column.name}' is {found}, but {column.type} was declared, "
                "and a cast could change its values; return the declared type, or declare the type "
                "that is returned"
            )
        try:
            cast = table.column(column.name).cast(column.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TidegateError(
                f"{what}: the column '{column.name}' is {found}, and not all of its values fit the "
                f"declared {column.type} ({error})"
            ) from None
        table = table.set_column(table.schema.get_field_index(column.name), column, cast)
    return table


def keeps_meaning(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a value means the same in both types. A checked cast then refuses single values.

    Arrow checks whole numbers, decimals and times for values that do not fit. It does not check
    whether a float loses digits in a shorter float, so that is refused by type.
    """
    is_a = pa.types
    if found == wanted or is_a.is_null(found):
        return True
    if is_a.is_dictionary(found):
        return keeps_meaning(found.value_type, wanted)
    if is_a.is_floating(found):
        longer = is_a.is_floating(wanted) and wanted.bit_width >= found.bit_width
        return bool(longer or is_a.is_integer(wanted))
    if is_a.is_integer(found):
        numbers = (is_a.is_integer, is_a.is_floating, is_a.is_decimal)
        return any(kind(wanted) for kind in numbers)
    if is_a.is_decimal(found):
        return bool(is_a.is_decimal(wanted) and wanted.scale >= found.scale)
    if is_a.is_timestamp(found):
        # Without a time zone, a time is taken as UTC; the other way round the zone would be lost.
        return is_a.is_timestamp(wanted) and not (found.tz and not wanted.tz)
    if _is_text(found):
        return _is_text(wanted)
    if _is_binary(found):
        return _is_binary(wanted)
    if _is_list(found):
        return _is_list(wanted) and keeps_meaning(found.value_type, wanted.value_type)
    if is_a.is_struct(found):
        return is_a.is_struct(wanted) and _fields_keep_meaning(found, wanted)
    same_kind = (is_a.is_date, is_a.is_duration, is_a.is_time)
    if is_a.is_map(found):
        return (
            is_a.is_map(wanted)
            and keeps_meaning(found.key_type, wanted.key_type)
            and keeps_meaning(found.item_type, wanted.item_type)
        )
    return any(kind(found) and kind(wanted) for kind in same_kind)


def _fields_keep_meaning(found: pa.StructType, wanted: pa.StructType) -> bool:
    one, other = list(found), list(wanted)
    return [field.name for field in one] == [field.name for field in other] and all(
        keeps_meaning(a.type, b.type) for a, b in zip(one, other, strict=True)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    is_a = pa.types
    return bool(
        is_a.is_binary(kind)
        or is_a.is_large_binary(kind)
        or is_a.is_fixed_size_binary(kind)
        or is_a.is_binary_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    is_a = pa.types
    return bool(is_a.is_list(kind) or is_a.is_large_list(kind) or is_a.is_fixed_size_list(kind))
