"""Schemas as users declare them (Spark DDL or StructType), converted to and from Arrow."""

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from tidegate.errors import AskedWrongly, nearest

Declared = str | StructType
BINARY = "UTF8_BINARY"
"""Spark's name for strings that are compared byte by byte."""
_COLLATION = b"tidegate.collation"


def spark_schema(declared: Declared, what: str) -> StructType:
    """Parse a declared schema. An error in the DDL quotes its text."""
    if isinstance(declared, StructType):
        return declared
    try:
        parsed = StructType.fromDDL(declared)
    except PySparkException as error:
        line = str(error).strip().splitlines()[0]
        raise AskedWrongly(
            f"{what}: the schema '{declared}' is not Spark DDL such as 'ad string, n long' ({line})"
        ) from None
    if not isinstance(parsed, StructType):
        raise AskedWrongly(
            f"{what}: '{declared}' is a single type; name the columns, as in 'n long'"
        )
    return parsed


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of the tables that Spark passes to Python for this schema.

    Arrow strings have no collation, so a column's collation is noted in its metadata.
    """
    columns = to_arrow_schema(schema, timezone="UTC")
    for number, field in enumerate(schema.fields):
        name = getattr(field.dataType, "collation", BINARY)
        if name != BINARY:
            noted = columns.field(number).with_metadata({_COLLATION: name})
            columns = columns.set(number, noted)
    return columns


def require_binary(column: pa.Field, what: str) -> None:
    """Raise an error for a string column that is not compared by its bytes.

    By another collation different strings are equal, but Arrow and NumPy tell them apart.
    """
    found = (column.metadata or {}).get(_COLLATION)
    if found is not None:
        raise AskedWrongly(
            f"{what} '{column.name}' has the collation {found.decode()}; expected strings that are "
            f"compared by their bytes; convert it before the pipeline, as in "
            f"lower(collate({column.name}, '{BINARY}'))"
        )


def struct_of(schema: pa.Schema) -> StructType:
    """The Spark schema for an Arrow schema."""
    return from_arrow_schema(schema)


def require_columns(names: tuple[str, ...], schema: pa.Schema, what: str) -> None:
    """Raise an error for a missing column; it suggests the closest name there is."""
    for name in names:
        if name not in schema.names:
            raise AskedWrongly(f"{what}: there is no column '{name}'{nearest(name, schema.names)}")
