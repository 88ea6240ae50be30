"""Numbers for a JSON document: rounded, and None where there is none to tell."""


def rounded(value: float | None, digits: int) -> float | None:
    """To so many digits behind the point."""
    return None if value is None else round(value, digits)


def milliseconds(seconds: float | None) -> float | None:
    """To a tenth of a millisecond."""
    return rounded(None if seconds is None else seconds * 1000, 1)
