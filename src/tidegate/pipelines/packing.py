"""Rows of several inputs in one table, so that one shuffle brings them to one keyed operator.

Columns of the same type share a place in the table: the third string of one input stands where the
third string of another one stands. So a row is hardly wider than it was before, where a column for
each column of each input would be null in most rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import time_column
from tidegate.pipelines.schema import require_binary, require_columns

Numbers = NDArray[np.int64]
INPUT = "_input"
"""The number of the input that a row came from."""
_INPUT_TYPE = pa.int8()
MOST_INPUTS = 100


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each column of each input stands in the common table."""

    schema: pa.Schema
    """The common table: the number of the input, the key, then shared columns."""
    key: tuple[str, ...]
    """The key columns of the common table, which have the names of the first input's."""
    event_time: str | None
    """The column of the common table with the event times of all inputs."""
    inputs: tuple[pa.Schema, ...]
    """The columns of each input."""
    places: tuple[tuple[str, ...], ...]
    """For each input, the column of the common table in which each of its columns stands."""

    def of(self, number: int) -> dict[str, str]:
        """The column of an input that stands in a column of the common table."""
        return dict(zip(self.places[number], self.inputs[number].names, strict=True))

    def place(self, number: int, column: str) -> str:
        """The column of the common table in which a column of an input stands."""
        names: list[str] = self.inputs[number].names
        return self.places[number][names.index(column)]

    @property
    def layout(self) -> tuple[str, ...]:
        """For each input its columns and their places, as text."""
        return tuple(
            ", ".join(f"{name}: {place}" for name, place in zip(schema.names, its, strict=True))
            for schema, its in zip(self.inputs, self.places, strict=True)
        )

    def rows_of(self, number: int, rows: pa.Table) -> pa.Table:
        """The rows of one input, with its own columns, in their order."""
        mine = rows.column(INPUT).to_numpy() == number
        table = rows if mine.all() else rows.filter(pa.array(mine))
        names = self.inputs[number].names
        return table.select(list(self.places[number])).rename_columns(names)


def packing_of(
    inputs: Sequence[pa.Schema],
    keys: Sequence[tuple[str, ...]],
    event_times: Sequence[str] | None,
    what: str,
) -> Packing:
    """Share columns among inputs. Key columns share places in order, and so do the event times."""
    if len(inputs) > MOST_INPUTS:
        raise AskedWrongly(f"{what}: {len(inputs)} inputs; give at most {MOST_INPUTS}")
    _check_keys(inputs, keys, what)
    if event_times is not None:
        _check_times(inputs, keys, event_times, what)
    fields = [pa.field(INPUT, _INPUT_TYPE)]
    names = {INPUT}
    found = []
    for number, (schema, key) in enumerate(zip(inputs, keys, strict=True)):
        first = number == 0
        places: dict[str, str] = {}
        if not first:
            places.update(zip(key, keys[0], strict=True))
            if event_times is not None:
                places[event_times[number]] = event_times[0]
        for column in schema:
            if column.name in places:
                continue
            free = [
                field.name
                for field in fields[1 + len(keys[0]) :]
                if field.type == column.type and field.name not in places.values()
            ]
            if first or not free:
                place = _free_name(column.name, names)
                if first and place != column.name:
                    raise AskedWrongly(
                        f"{what}: the column '{column.name}' has a name that Tidegate uses itself; "
                        "rename it in a map before"
                    )
                names.add(place)
                fields.append(pa.field(place, column.type))
            else:
                place = column.name if column.name in free else free[0]
            places[column.name] = place
        if first:  # the key columns to the front, so that no other column takes their places
            fields[1:] = [f for k in key for f in fields if f.name == k] + [
                field for field in fields[1:] if field.name not in key
            ]
        found.append(tuple(places[name] for name in schema.names))
    time = None if event_times is None else event_times[0]
    return Packing(pa.schema(fields), keys[0], time, tuple(inputs), tuple(found))


def _check_keys(inputs: Sequence[pa.Schema], keys: Sequence[tuple[str, ...]], what: str) -> None:
    """Refuse keys that could not be equal."""
    for schema, key in zip(inputs, keys, strict=True):
        require_columns(key, schema, what)
        if len(key) != len(keys[0]) or len(set(key)) < len(key):
            raise AskedWrongly(
                f"{what}: the key ({', '.join(key)}) cannot be compared with "
                f"({', '.join(keys[0])}); name as many columns, each once"
            )
        for mine, its in zip(keys[0], key, strict=True):
            require_binary(schema.field(its), f"{what}: the key column")
            if schema.field(its).type != inputs[0].field(mine).type:
                raise AskedWrongly(
                    f"{what}: the key column '{mine}' is {inputs[0].field(mine).type} and '{its}' "
                    f"is {schema.field(its).type}; cast one of them in a map before"
                )


def _check_times(
    inputs: Sequence[pa.Schema],
    keys: Sequence[tuple[str, ...]],
    event_times: Sequence[str],
    what: str,
) -> None:
    """Refuse event times that could not be compared."""
    for schema, key, time in zip(inputs, keys, event_times, strict=True):
        kind = time_column(schema, time, what).type
        expected = inputs[0].field(event_times[0]).type
        if kind != expected:
            raise AskedWrongly(
                f"{what}: the event time '{event_times[0]}' is {expected} and '{time}' is {kind}; "
                "cast one of them in a map before"
            )
        if time in key:
            raise AskedWrongly(
                f"{what}: the event time '{time}' is part of the key, so rows would match at equal "
                "times only; give another event time, or leave it out of the key"
            )


def _free_name(wish: str, taken: set[str]) -> str:
    if wish not in taken:
        return wish
    return next(n for i in range(2, len(taken) + 3) if (n := f"{wish}_{i}") not in taken)
