"""A sequence of numbers as a row of small bars."""

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "_.-:=+*#"
"""For terminals that cannot show block characters."""


def sparkline(values: Sequence[float], *, top: float | None = None, plain: bool = False) -> str:
    """One bar per value, from 0 to `top` (by default the largest value)."""
    bars = PLAIN_BARS if plain else BARS
    top = max(values, default=0.0) if top is None else top
    if top <= 0:
        return bars[0] * len(values)
    last = len(bars) - 1
    return "".join(bars[min(last, max(0, round(value / top * last)))] for value in values)
