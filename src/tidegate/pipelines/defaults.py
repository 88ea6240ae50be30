"""Defaults of state columns: what a column is in rows that were written before there was one.

They are noted in the metadata of the columns, so they go wherever the columns go: into checkpoints
as well, where the default that held when a column was added stays.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tidegate.errors import AskedWrongly, nearest

DEFAULT = b"tidegate.default"
"""The metadata of a column with its default, as a record batch with one row."""
_NAME = "default"


def with_defaults(schema: pa.Schema, defaults: Mapping[str, Any], what: str) -> pa.Schema:
    """The columns with these defaults; a value that a column cannot have is refused."""
    for name, value in defaults.items():
        if name not in schema.names:
            raise AskedWrongly(
                f"{what}: defaults names '{name}', which is no column of the state"
                f"{nearest(name, schema.names)}"
            )
        place, column = schema.get_field_index(name), schema.field(name)
        try:
            packed = _packed_value(value, column)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            packed = None
        if packed is None:
            raise AskedWrongly(
                f"{what}: the default {value!r} of the state column '{name}' is not of its type "
                f"{column.type}{'' if column.nullable else ', which has no null'}; give a value "
                "that is"
            )
        noted = {**(column.metadata or {}), DEFAULT: packed}
        schema = schema.set(place, column.with_metadata(noted))
    return schema


def _packed_value(value: Any, column: pa.Field) -> bytes | None:
    """A value as bytes in the column's type; None if it is null where there is none."""
    if value is None and not column.nullable:
        return None
    one = pa.record_batch([pa.array([value], column.type)], names=[_NAME])
    return bytes(one.serialize())


def default_of(column: pa.Field) -> pa.Scalar:
    """What a column is in rows that were written before it: null, unless another was declared."""
    packed = (column.metadata or {}).get(DEFAULT)
    if packed is None:
        return pa.scalar(None, column.type)
    bare = pa.schema([pa.field(_NAME, column.type)])
    return pa.ipc.read_record_batch(pa.py_buffer(packed), bare).column(0)[0]
