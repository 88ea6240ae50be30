"""Times as the page writes them."""

from datetime import UTC, datetime


def clock_time(at_s: float) -> str:
    """The time of day in UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%H:%M:%S")
