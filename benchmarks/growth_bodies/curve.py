"""A curve of milliseconds over a quantity, and the exponent with which it grows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.benching import Aim, at_most
from tidegate.errors import AskedWrongly


def exponent(xs: Sequence[float], ys: Sequence[float]) -> float:
    """b of the curve y = c x^b that fits best, by least squares on logarithms."""
    if len(xs) != len(ys) or len(set(xs)) < 2 or min(*xs, *ys) <= 0.0:
        raise AskedWrongly(
            f"no exponent can be fitted to x = {list(xs)} and y = {list(ys)}; give at least two"
            " points with different x, and numbers above 0"
        )
    slope, _ = np.polyfit(np.log(np.asarray(xs)), np.log(np.asarray(ys)), 1)
    return float(slope)


@dataclass(frozen=True, slots=True)
class Curve:
    """What one part of the work takes, by the quantity that was varied."""

    by: str
    """The quantity: tasks, shards, operators, keys or batches."""
    part: str
    """The part of the work."""
    xs: tuple[float, ...]
    ms: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """How it grows: 0 not at all, 1 linearly."""
        return exponent(self.xs, self.ms)

    @property
    def steepest(self) -> float:
        """The exponent between the two largest values: a constant part hides the growth there
        least."""
        return exponent(self.xs[-2:], self.ms[-2:])

    @property
    def growth(self) -> float:
        """The last value over the first."""
        return self.ms[-1] / self.ms[0]

    def row(self) -> dict[str, Any]:
        """The line of a table."""
        points = ", ".join(f"{x:g}: {ms:.3g}" for x, ms in zip(self.xs, self.ms, strict=True))
        return {
            "by": self.by,
            "part": self.part,
            "ms": points,
            "exponent": round(self.exponent, 3),
            "exponent at the end": round(self.steepest, 3),
            "last over first": round(self.growth, 2),
        }

    def at_most_linear(self) -> Aim:
        """The aim that it grows no faster than linearly."""
        return at_most(f"{self.by}, {self.part}: exponent", round(self.exponent, 3), 1.0)

    def flat(self) -> Aim:
        """The aim that it does not grow by more than a tenth."""
        return at_most(f"{self.by}, {self.part}: last over first", round(self.growth, 3), 1.1)


def curves(by: str, points: Iterable[tuple[float, dict[str, float]]]) -> list[Curve]:
    """A curve for each part, from the seconds of all parts at each value."""
    found = sorted(points, key=lambda point: point[0])
    xs = tuple(x for x, _ in found)
    return [
        Curve(by, part, xs, tuple(1e3 * parts[part] for _, parts in found)) for part in found[0][1]
    ]
