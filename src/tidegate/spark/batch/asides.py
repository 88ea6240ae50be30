"""Rows that an operator puts aside, such as late ones: how they leave its task beside its output.

A task returns one table. Its output has all columns but the last ones; a row that is put aside has
only one of those, a struct. Behind the operator both are parted again, and every row is computed
once, because the table is kept until the micro-batch ends.
"""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.pipelines.graph import Aside, Segment

Asides = Mapping[str, pa.Schema]
"""The columns of the rows that are put aside, by the reason why."""


def column_of(kind: str) -> str:
    """The name of the column with the rows that are put aside for this reason."""
    return f"__{kind}"


def asides_of(segment: Segment, operator: str) -> dict[str, pa.Schema]:
    """What is read of the rows that an operator puts aside; empty where nobody reads them."""
    found = [n for n in segment.nodes if isinstance(n, Aside) and operator in n.inputs]
    return {node.kind: node.schema for node in sorted(found, key=lambda node: node.kind)}


def with_asides(columns: pa.Schema, asides: Asides) -> pa.Schema:
    """The columns of a task's table; all may be null, because a row has only some of them."""
    if not asides:
        return columns
    return pa.schema(
        [
            *(column.with_nullable(True) for column in columns),
            *(pa.field(column_of(kind), _struct(schema)) for kind, schema in asides.items()),
        ]
    )


def put_aside(output: pa.Table, asides: Asides, rows: Mapping[str, pa.Table]) -> pa.Table:
    """The output of a task with the rows that were put aside below it.

    These may have hidden columns of the output behind their own.
    """
    if not asides:
        return output
    schema = with_asides(output.schema, asides)
    nothing = [pa.nulls(output.num_rows, _struct(asides[kind])) for kind in asides]
    tables = [pa.Table.from_arrays([*output.columns, *nothing], schema=schema)]
    for kind, own in asides.items():
        table = rows.get(kind)
        if table is None or not table.num_rows:
            continue
        count = table.num_rows
        hidden = set(table.column_names[len(own) :])
        columns = [
            table.column(column.name) if column.name in hidden else pa.nulls(count, column.type)
            for column in output.schema
        ]
        for other in asides:
            kept = pa.nulls(count, _struct(asides[other]))
            columns.append(_structs(table, own) if other == kind else kept)
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables)


def output_of(frame: DataFrame, asides: Asides) -> DataFrame:
    """The operator's output, without what was put aside."""
    columns = [column_of(kind) for kind in asides]
    for column in columns:
        frame = frame.where(F.col(column).isNull())
    return frame.drop(*columns)


def aside_of(frame: DataFrame, kind: str, hidden: tuple[str, ...]) -> DataFrame:
    """The rows that were put aside for one reason, with some of the hidden columns."""
    column = column_of(kind)
    return frame.where(F.col(column).isNotNull()).select(f"{column}.*", *hidden)


def _struct(schema: pa.Schema) -> pa.DataType:
    return pa.struct([column.with_nullable(True) for column in schema])


def _structs(table: pa.Table, schema: pa.Schema) -> pa.Array:
    kind = _struct(schema)
    # Spark names the time zone of the session in its tables, and the schema has UTC.
    arrays = [table.column(one.name).cast(one.type).combine_chunks() for one in schema]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))
