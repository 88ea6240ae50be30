"""Divides a budget by weight, with no share below its floor or above what is wanted."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


def water_fill(
    wants: Sequence[float], weights: Sequence[float], floors: Sequence[float], budget: float
) -> Vector:
    """The share of its want that each gets: clip(level * weight, floor, 1), using up the budget.

    The sum given grows piecewise linearly with the level, with corners where a share leaves its
    floor or reaches 1. The level is interpolated between two corners, so the budget is met exactly.
    Floors are kept even if they exceed the budget. If less than the budget is wanted, each gets all
    that it wants.
    """
    want = np.asarray(wants, np.float64)
    weight = np.asarray(weights, np.float64)
    floor = np.asarray(floors, np.float64)
    if len(want) == 0:
        return np.empty(0)
    corners = np.unique(np.concatenate([[0.0], floor / weight, 1.0 / weight]))
    shares = np.clip(np.outer(corners, weight), floor, 1.0)
    given = shares @ want
    if budget <= given[0]:
        return floor
    if budget >= given[-1]:
        return np.ones(len(want))
    after = int(np.searchsorted(given, budget, side="right"))
    low, high = given[after - 1], given[after]
    part = (budget - low) / (high - low)
    level = corners[after - 1] + part * (corners[after] - corners[after - 1])
    return np.asarray(np.clip(level * weight, floor, 1.0), np.float64)
