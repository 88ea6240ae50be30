"""Which logo each feature of a frame belongs to: the work of the matcher (DRS V-A.1).

A feature and the nearest feature of a logo are a matching pair if their L2 distance is below a
threshold, and clearly below the distance to every other logo (Lowe's ratio test), so that what
all logos have in common speaks for none.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tidegate.apps.vld.features import Descriptors, logo_features

DISTANCE = 200
"""The threshold of the L2 distance; descriptors are about 512 long."""
RATIO = (4, 5)
"""How much nearer than all other logos the nearest one must be, as a fraction."""
MATCHES = 5
"""A logo is in a frame if more of the frame's features than this match it."""

Logos = npt.NDArray[np.int32]


def matching_logos(found: Descriptors) -> Logos:
    """The logo of each matching pair, in the order of the frame's features."""
    if not len(found):
        return np.empty(0, dtype=np.int32)
    known = _known()
    ours = found.astype(np.float32)
    # |a - b|^2 = |a|^2 + |b|^2 - 2 ab, and |a|^2 is the same for all that a is compared with.
    apart = known.squares - 2.0 * (ours @ known.columns)
    nearest = np.minimum.reduceat(apart, known.begins, axis=1)
    squares = nearest.astype(np.int64) + (ours * ours).sum(axis=1).astype(np.int64)[:, None]
    logo = squares.argmin(axis=1)
    first, second = np.partition(squares, 1, axis=1)[:, :2].T
    near = first < DISTANCE**2
    clear = RATIO[1] ** 2 * first < RATIO[0] ** 2 * second
    return np.asarray(logo[near & clear], dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The features of all logos in one matrix."""

    columns: npt.NDArray[np.float32]
    """One column per feature."""
    squares: npt.NDArray[np.float32]
    """The squared length of each."""
    begins: npt.NDArray[np.int64]
    """The first column of each logo."""


@lru_cache(maxsize=1)
def _known() -> _Known:
    features = logo_features()
    rows = np.concatenate(features).astype(np.float32)
    sizes = [len(one) for one in features]
    begins = np.cumsum([0, *sizes[:-1]])
    return _Known(np.ascontiguousarray(rows.T), (rows * rows).sum(axis=1), begins)
