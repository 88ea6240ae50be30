"""Durations as people write them: `500ms`, `2s`, `2 seconds`, `1.5 min`."""

import math
import re

from tidegate.errors import AskedWrongly, nearest

_SECONDS_PER_UNIT = {
    "us": 1e-6,
    "microsecond": 1e-6,
    "microseconds": 1e-6,
    "ms": 1e-3,
    "millisecond": 1e-3,
    "milliseconds": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
}
_DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z]+)\s*")


def parse_duration(text: str) -> float:
    """Seconds in a positive duration such as `500ms` or `2 seconds`; the unit is required."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise AskedWrongly(
            f"'{text}' is not a duration; write a positive number and a unit, such as 500ms or 2s"
        )
    number, unit = match.groups()
    scale = _SECONDS_PER_UNIT.get(unit.lower())
    if scale is None:
        raise AskedWrongly(
            f"'{text}' has an unknown unit of time '{unit}'{nearest(unit, _SECONDS_PER_UNIT)}"
        )
    seconds = float(number) * scale
    if not 0.0 < seconds < math.inf:
        raise AskedWrongly(f"'{text}' is not a positive duration; write for example 500ms or 2s")
    return seconds


def format_duration(seconds: float, *, round_up: bool = False) -> str:
    """A duration with four significant digits, in the unit a person would choose.

    `round_up` is for a bound that must still hold when the person types what was printed.
    """
    unit, scale = next(
        (pair for pair in (("s", 1.0), ("ms", 1e-3)) if seconds >= pair[1]), ("us", 1e-6)
    )
    value = seconds / scale
    if round_up and value > 0.0:
        step = 10.0 ** (math.floor(math.log10(value)) - 3)
        value = math.ceil(value / step) * step
    return f"{value:.4g} {unit}"
