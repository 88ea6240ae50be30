"""Durations as people write them: `500ms`, `2s`, `2 seconds`, `1.5 min`."""

import math
import re
from decimal import Decimal

from tidegate.errors import AskedWrongly, nearest

# Decimal, so that 5 us is the double nearest to 0.000005 and no other.
_SECONDS_PER_UNIT = {
    "us": Decimal("0.000001"),
    "microsecond": Decimal("0.000001"),
    "microseconds": Decimal("0.000001"),
    "ms": Decimal("0.001"),
    "millisecond": Decimal("0.001"),
    "milliseconds": Decimal("0.001"),
    "s": Decimal(1),
    "sec": Decimal(1),
    "second": Decimal(1),
    "seconds": Decimal(1),
    "min": Decimal(60),
    "minute": Decimal(60),
    "minutes": Decimal(60),
    "h": Decimal(3600),
    "hour": Decimal(3600),
    "hours": Decimal(3600),
}
_DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z]+)\s*")


def parse_duration(text: str) -> float:
    """Parse a positive duration such as `500ms` or `2 seconds` to seconds. The unit is required."""
    if not isinstance(text, str):
        raise AskedWrongly(
            f"{text!r} is not a duration; write text with a number and a unit, such as '2 seconds'"
        )
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
    seconds = float(Decimal(number) * scale)
    if not 0.0 < seconds < math.inf:
        raise AskedWrongly(f"'{text}' is not a positive duration; write for example 500ms or 2s")
    return seconds


def format_duration(seconds: float, *, round_up: bool = False) -> str:
    """Format a duration with four significant digits, in the unit a person would choose.

    Use `round_up` for a bound that must still hold when someone types the printed value back in.
    """
    units = (("s", 1.0), ("ms", 1e3), ("us", 1e6))
    unit, per_second = next((pair for pair in units if seconds * pair[1] >= 1.0), units[-1])
    value = seconds * per_second
    if round_up and value > 0.0:
        step = 10.0 ** (math.floor(math.log10(value)) - 3)
        value = math.ceil(value / step) * step
    return f"{value:.4g} {unit}"
