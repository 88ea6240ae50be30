"""Numbers for a JSON document: rounded, or None where there is no value."""

import math
from typing import Any


def rounded(value: float | None, digits: int) -> float | None:
    """Round to this many decimal places."""
    return None if value is None else round(value, digits)


def milliseconds(seconds: float | None) -> float | None:
    """Seconds as milliseconds, rounded to a tenth."""
    return rounded(None if seconds is None else seconds * 1000, 1)


def only_finite(value: Any) -> Any:
    """A document with None for numbers that JSON cannot have: infinite ones, and not a number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: only_finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [only_finite(one) for one in value]
    return value
