"""Numbers for a JSON document: rounded, or None where there is no value."""


def rounded(value: float | None, digits: int) -> float | None:
    """Round to this many decimal places."""
    return None if value is None else round(value, digits)


def milliseconds(seconds: float | None) -> float | None:
    """Seconds as milliseconds, rounded to a tenth."""
    return rounded(None if seconds is None else seconds * 1000, 1)
