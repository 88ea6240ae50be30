"""Rows get the columns of a table that stays as it is: it is looked up where the rows are."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import AskedWrongly
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions.columns import Numbers, whole
from tidegate.pipelines.functions.enrich import check_enrich, enriched
from tidegate.pipelines.packing import packing_of
from tidegate.pipelines.schema import arrow_schema

MOST_BYTES = 64 << 20
"""A larger table would take long to reach every Python worker."""


@dataclass(frozen=True, slots=True)
class Column:
    """A key column of the table: its distinct values, sorted where they are whole numbers."""

    values: pa.Array
    numbers: Numbers | None

    def codes(self, column: pa.ChunkedArray) -> Numbers:
        """The place of each value among the distinct ones, or -1."""
        array = whole(column, self.values.type)
        if self.numbers is None:
            found = pc.index_in(array, value_set=self.values, skip_nulls=True)
            codes: Numbers = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            return codes
        if not len(self.numbers):
            return np.full(len(array), -1, dtype=np.int64)
        zero = pa.scalar(0).cast(array.type)
        asked = _numbers(array.fill_null(zero) if array.null_count else array)
        place = np.searchsorted(self.numbers, asked).clip(max=len(self.numbers) - 1)
        there = self.numbers[place] == asked
        if array.null_count:
            there &= array.is_valid().to_numpy(zero_copy_only=False)
        return np.where(there, place, -1)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A map function that adds the table's columns to rows."""

    key: tuple[str, ...]
    columns: tuple[Column, ...]
    place: Numbers
    """The table's keys as one number each, sorted."""
    row: Numbers
    """The row of the table with each of these keys."""
    table: pa.Table
    """The columns that are added."""
    output: pa.Schema
    keeps_all: bool

    def __call__(self, rows: pa.Table) -> pa.Table | Derived:
        """Look a block of rows up."""
        code = np.zeros(rows.num_rows, dtype=np.int64)
        found = np.ones(rows.num_rows, dtype=np.bool_)
        for name, column in zip(self.key, self.columns, strict=True):
            its = column.codes(rows.column(name))
            found &= its >= 0
            code = code * len(column.values) + its
        if len(self.place):
            place = np.searchsorted(self.place, code).clip(max=len(self.place) - 1)
            found &= self.place[place] == code
            row = self.row[place]
        else:
            row, found = np.zeros(rows.num_rows, dtype=np.int64), np.zeros_like(found)
        if self.keeps_all:
            added = self.table.take(pa.array(row, mask=~found))
            return pa.Table.from_arrays([*rows.columns, *added.columns], schema=self.output)
        added = self.table.take(pa.array(row[found]))
        kept = rows.filter(pa.array(found))
        table = pa.Table.from_arrays([*kept.columns, *added.columns], schema=self.output)
        return Derived(table, found)


def lookup_of(
    rows: pa.Schema,
    given: Any,
    key: tuple[str, ...],
    table_key: tuple[str, ...],
    how: str,
    suffix: str,
    what: str,
) -> Lookup:
    """Check a table, and make its keys ready to be searched."""
    table = _table(given, what)
    packing_of((rows, table.schema), (key, table_key), None, what)  # refuses keys that differ
    check_enrich(how, table.schema, table_key, what)
    if table.nbytes > MOST_BYTES:
        raise AskedWrongly(
            f"{what}: the table has {table.nbytes >> 20} MB, and {MOST_BYTES >> 20} fit; give it "
            "as a stream, or join it to the source's DataFrame before the pipeline"
        )
    columns = []
    code = np.zeros(table.num_rows, dtype=np.int64)
    there = np.ones(table.num_rows, dtype=np.bool_)
    for name in table_key:
        column = _column(table.column(name))
        its = column.codes(table.column(name))
        there &= its >= 0  # a null is equal to no other value
        code = code * len(column.values) + its
        columns.append(column)
    if math.prod(len(column.values) for column in columns) >= 2**62:
        raise AskedWrongly(f"{what}: the table's key has too many columns to be looked up by")
    kept = np.flatnonzero(there)
    order = kept[np.argsort(code[kept], kind="stable")]
    place = code[order]
    if (place[1:] == place[:-1]).any():
        twice = order[int(np.argmax(place[1:] == place[:-1]))]
        odd = table.select(list(table_key)).slice(int(twice), 1).to_pylist()[0]
        raise AskedWrongly(
            f"{what}: the table has the key {odd} more than once; give one row for each key"
        )
    output, added = enriched(rows, table.schema, table_key, how, suffix)
    return Lookup(key, tuple(columns), place, order, table.select(added), output, how == "left")


def _table(given: Any, what: str) -> pa.Table:
    """The table in memory: an Arrow table as it is, a DataFrame computed once."""
    if getattr(given, "isStreaming", False):
        raise AskedWrongly(
            f"{what}: this DataFrame is a stream; add it with .source(...), and enrich with that"
        )
    to_arrow = getattr(given, "toArrow", None)
    table = to_arrow().cast(arrow_schema(given.schema)) if callable(to_arrow) else given
    if not isinstance(table, pa.Table):
        raise AskedWrongly(
            f"{what}: expected an Arrow table, a DataFrame or a stream of this pipeline, not a "
            f"{type(given).__name__}"
        )
    return table.combine_chunks()


def _column(column: pa.ChunkedArray) -> Column:
    values = pc.unique(column).drop_null()
    if not _is_whole(values.type):
        return Column(values, None)
    numbers = np.sort(_numbers(values))
    return Column(values, numbers)


def _is_whole(kind: pa.DataType) -> bool:
    return bool(
        (pa.types.is_integer(kind) and not pa.types.is_uint64(kind))
        or pa.types.is_timestamp(kind)
        or pa.types.is_date32(kind)
    )


def _numbers(array: pa.Array) -> Numbers:
    """Whole numbers, dates and times as 64-bit integers."""
    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    elif pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    numbers: Numbers = array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers
