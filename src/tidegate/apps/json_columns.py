"""JSON on columns: objects are written and read for a whole table at once, never row by row."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from tidegate.errors import TidegateError

_NEEDS_ESCAPE = r'["\\\x00-\x1f]'


def json_objects(columns: Mapping[str, pa.Array]) -> pa.Array:
    """One JSON object per row, as text, from columns of whole numbers, texts and structs.

    It is for generators, whose texts need no escapes; one that does is refused.
    """
    parts: list[pa.Array | str] = []
    begin = "{"
    for name, column in columns.items():
        text, quote = _shown(name, column)
        parts += [f'{begin}"{name}":{quote}', text]
        begin = f"{quote},"
    return pc.binary_join_element_wise(*parts, f"{begin[:-1]}}}", "")


def read_objects(texts: pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    """The fields that the schema names, one row per text.

    Other fields are ignored, and a field that is missing is null.
    """
    if not len(texts):
        return schema.empty_table()
    lines = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts.combine_chunks())
    content = pc.binary_join(lines, "\n")[0].as_buffer()
    # One thread, as Spark runs other tasks beside this one; one block, so that no row is too long.
    read = json.read_json(
        pa.BufferReader(content),
        read_options=json.ReadOptions(use_threads=False, block_size=content.size + 1),
        parse_options=json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if read.num_rows != len(texts):
        raise TidegateError(
            f"{len(texts)} texts have {read.num_rows} JSON objects; expected one object in each"
        )
    return read.select(schema.names)


def _shown(name: str, column: pa.Array) -> tuple[pa.Array, str]:
    """The values as JSON texts, and the quote that goes around each of them."""
    if pa.types.is_struct(column.type):
        inner = {field.name: column.field(place) for place, field in enumerate(column.type)}
        return json_objects(inner), ""
    if pa.types.is_integer(column.type):
        return column.cast(pa.string()), ""
    if pc.any(pc.match_substring_regex(column, pattern=_NEEDS_ESCAPE)).as_py():
        raise TidegateError(
            f"a text of the field '{name}' needs an escape, which generated texts must not"
        )
    return column, '"'
