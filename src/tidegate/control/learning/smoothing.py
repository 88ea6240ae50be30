"""The two ways to smooth a measured quantity (DRS IV-A), per name."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from tidegate.errors import AskedWrongly


class Smooth(Protocol):
    """Turns measured values d(n) into smoothed ones D(n)."""

    def update(self, value: float) -> float:
        """Add a value, and return the smoothed one."""
        ...


class Alpha:
    """D(n) = alpha D(n-1) + (1 - alpha) d(n); the first value is taken as it is."""

    def __init__(self, alpha: float) -> None:
        if not 0.0 <= alpha < 1.0:
            raise AskedWrongly(f"alpha is {alpha:g}, but must be at least 0 and below 1")
        self._alpha = alpha
        self._value: float | None = None

    @property
    def value(self) -> float | None:
        """D(n); None before the first value."""
        return self._value

    def update(self, value: float) -> float:
        """Add a value; the weight of older ones shrinks by alpha."""
        if self._value is None:
            self._value = value
        else:
            self._value = self._alpha * self._value + (1.0 - self._alpha) * value
        return self._value


class Window:
    """D(n): the mean of the last w values, or of all while there are fewer."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise AskedWrongly(f"a smoothing window cannot have {size} values; give 1 or more")
        self._values: deque[float] = deque(maxlen=size)

    def update(self, value: float) -> float:
        """Add a value; a full window drops its oldest."""
        self._values.append(value)
        return sum(self._values) / len(self._values)


class Smoothing:
    """One smoother per named quantity, created when the name is first used."""

    def __init__(self, make: Callable[[], Smooth]) -> None:
        self._make = make
        self._smooths: dict[str, Smooth] = {}

    def update(self, name: str, value: float) -> float:
        """Add a value of the named quantity, and return the smoothed one."""
        if name not in self._smooths:
            self._smooths[name] = self._make()
        return self._smooths[name].update(value)


def smoother(alpha: float | None, window: int) -> Callable[[], Smooth]:
    """A maker of alpha-weighted averages, or without an alpha of means over a window."""
    return (lambda: Window(window)) if alpha is None else (lambda: Alpha(alpha))
