"""Durations and event times in whole microseconds."""

import re

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import Mask, Numbers, valid, values_of, whole
from tidegate.units import parse_duration

_ZERO = re.compile(r"\s*0*\.?0+\s*([A-Za-z]+)\s*")


def duration_us(text: str, what: str) -> int:
    """A positive duration such as `10 minutes`."""
    microseconds = round(parse_duration(text) * 1e6)
    if microseconds < 1:
        raise AskedWrongly(f"{what}: '{text}' is shorter than a microsecond; give a longer one")
    return microseconds


def delay_us(text: str, what: str) -> int:
    """A duration that may be nothing: `0 seconds`."""
    nothing = _ZERO.fullmatch(text)
    if nothing is None:
        return duration_us(text, what)
    parse_duration(f"1 {nothing[1]}")  # the unit is checked all the same
    return 0


def time_type(field: pa.Field) -> pa.DataType:
    """Timestamps of the state: microseconds, in the zone of the rows."""
    return pa.timestamp("us", field.type.tz)


def microseconds_of(column: pa.ChunkedArray | pa.Array) -> tuple[Numbers, Mask | None]:
    """Event times since the epoch, and which of them are there (None: all)."""
    array = whole(column, column.type)
    if array.type.unit != "us":
        array = array.cast(pa.timestamp("us", array.type.tz), safe=False)
    return values_of(array.view(pa.int64())), valid(array)


def times_of(microseconds: Numbers, type_: pa.DataType) -> pa.Array:
    """Microseconds as timestamps."""
    return pa.array(np.ascontiguousarray(microseconds)).view(type_)
