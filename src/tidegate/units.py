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
    "day": Decimal(86_400),
    "days": Decimal(86_400),
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
    """Format a duration with three significant digits, in the unit a person would choose.

    Use `round_up` for a bound that must still hold when someone types the printed value back in.
    """
    unit, size_s = _unit_of(seconds)
    value = seconds / size_s
    if round_up and value > 0.0:
        step = 10.0 ** (math.floor(math.log10(value)) - (_DIGITS - 1))
        value = math.ceil(value / step - 1e-9) * step
        value += 0.0 if value * size_s >= seconds * (1.0 - 1e-12) else step
    return f"{_plain(value)} {unit}"


def exact_duration(seconds: float) -> str:
    """Format a duration so that it is the same when it is read again: what a person has set."""
    for unit, size_s in _LONG:
        tenths = 10.0 * seconds / size_s
        if seconds >= 2.0 * size_s and abs(tenths - round(tenths)) < 1e-9:
            return f"{round(tenths) / 10.0:g} {unit}"
    unit, size_s = next((pair for pair in _SHORT if seconds >= pair[1]), _SHORT[-1])
    return f"{seconds / size_s:.12g} {unit}"


def format_share(share: float) -> str:
    """A share in per cent, with a decimal place only where whole numbers would say 0 or 100."""
    percent = 100.0 * share
    close = 0.0 < percent < 0.95 or 99.05 <= percent < 100.0
    return f"{percent:.1f} %" if close else f"{percent:.0f} %"


def counted(number: int, noun: str) -> str:
    """`1 core`, `2 cores`."""
    return f"{number:,d} {noun}" if number == 1 else f"{number:,d} {noun}s"


_DIGITS = 3
_LONG = (("h", 3600.0), ("min", 60.0))
"""Units that are chosen from two of them on: 90 s are not 1.5 min."""
_SHORT = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))


def _unit_of(seconds: float) -> tuple[str, float]:
    if seconds <= 0.0:
        return _SHORT[0]
    long = next((pair for pair in _LONG if seconds >= 2.0 * pair[1]), None)
    return long or next((pair for pair in _SHORT if seconds >= pair[1]), _SHORT[-1])


def _plain(value: float) -> str:
    """Three significant digits, and never an exponent."""
    if value >= 10.0 ** (_DIGITS - 1):
        return f"{value:,.0f}".replace(",", "")
    return f"{value:.{_DIGITS}g}"
