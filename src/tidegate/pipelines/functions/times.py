"""Durations and event times in whole microseconds."""

import re

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import Mask, Numbers, valid, values_of, whole
from tidegate.units import parse_duration

_ZERO = re.compile(r"\s*0*\.?0+\s*([A-Za-z]+)\s*")


def duration_us(text: str, what: str) -> int:
    """Parse a positive duration such as `10 minutes` to microseconds."""
    microseconds = round(parse_duration(text) * 1e6)
    if microseconds < 1:
        raise AskedWrongly(f"{what}: '{text}' is shorter than a microsecond; give a longer one")
    return microseconds


def delay_us(text: str, what: str) -> int:
    """Parse a duration that may be zero, such as `0 seconds`, to microseconds."""
    nothing = _ZERO.fullmatch(text)
    if nothing is None:
        return duration_us(text, what)
    parse_duration(f"1 {nothing[1]}")  # check the unit nevertheless
    return 0


def time_type(field: pa.Field) -> pa.DataType:
    """The type of the state's timestamps: microseconds, in the time zone of the rows."""
    return pa.timestamp("us", field.type.tz)


def microseconds_of(column: pa.ChunkedArray | pa.Array) -> tuple[Numbers, Mask | None]:
    """Event times in microseconds since the epoch, and which are not null (None if all are)."""
    array = whole(column, column.type)
    if array.type.unit != "us":
        array = array.cast(pa.timestamp("us", array.type.tz), safe=False)
    return values_of(array.view(pa.int64())), valid(array)


def times_of(microseconds: Numbers, type_: pa.DataType) -> pa.Array:
    """Microseconds since the epoch as timestamps."""
    return pa.array(np.ascontiguousarray(microseconds)).view(type_)
