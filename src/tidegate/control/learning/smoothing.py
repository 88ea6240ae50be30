"""The two ways to smooth a measured quantity (DRS IV-A), per name."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from tidegate.errors import AskedWrongly


class Smooth(Protocol):
    """Takes d(n), gives D(n)."""

    def update(self, value: float) -> float:
        """The smoothed value with this one in it."""
        ...


class Alpha:
    """D(n) = alpha D(n-1) + (1 - alpha) d(n); the first value is taken as it is."""

    def __init__(self, alpha: float) -> None:
        if not 0.0 <= alpha < 1.0:
            raise AskedWrongly(f"alpha is {alpha:g}, but must be at least 0 and below 1")
        self._alpha = alpha
        self._value: float | None = None

    def update(self, value: float) -> float:
        """Old metrics fade by alpha."""
        if self._value is None:
            self._value = value
        else:
            self._value = self._alpha * self._value + (1.0 - self._alpha) * value
        return self._value


class Window:
    """D(n): the mean of the last w values, or of all while there are fewer."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise AskedWrongly(f"a smoothing window of {size} values is not possible; give 1 up")
        self._values: deque[float] = deque(maxlen=size)

    def update(self, value: float) -> float:
        """The oldest value leaves a full window."""
        self._values.append(value)
        return sum(self._values) / len(self._values)


class Smoothing:
    """One smoother per named quantity, made when the name first comes."""

    def __init__(self, make: Callable[[], Smooth]) -> None:
        self._make = make
        self._smooths: dict[str, Smooth] = {}

    def update(self, name: str, value: float) -> float:
        """The smoothed value of this quantity."""
        if name not in self._smooths:
            self._smooths[name] = self._make()
        return self._smooths[name].update(value)
