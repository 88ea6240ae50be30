"""Draws at random which rows of a simulated batch are kept, class by class, as on Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tidegate.control.shedding.keep import Keep
from tidegate.sim.microbatch.world import Vector


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a batch after shedding, in buckets of arrival time."""

    arrived_s: Vector
    counts: Vector
    """Rows kept in each bucket."""
    offered: float
    """Rows that the batch was offered."""
    by_class: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Rows offered and kept, by class."""


def kept_rows(
    arrived_s: Vector,
    counts: Vector,
    keep: Keep,
    class_shares: Mapping[str, float],
    random: np.random.Generator | None,
) -> KeptRows:
    """Shed rows of a batch. Without `random`, fractions of rows are shed: the mean of the draw."""
    offered = float(counts.sum())
    if not class_shares:
        kept = counts if keep.fraction >= 1.0 else _thinned(counts, keep.fraction, random)
        return KeptRows(arrived_s, kept, offered)
    left, left_share = counts, 1.0
    kept = np.zeros(len(counts))
    by_class = {}
    for name, share in class_shares.items():
        mine = _thinned(left, min(share / left_share, 1.0), random) if left_share > 0.0 else left
        left, left_share = left - mine, left_share - share
        fraction = keep.by_class.get(name, keep.fraction)
        stays = mine if fraction >= 1.0 else _thinned(mine, fraction, random)
        by_class[name] = (float(mine.sum()), float(stays.sum()))
        kept = kept + stays
    return KeptRows(arrived_s, kept, offered, by_class)


def _thinned(counts: Vector, share: float, random: np.random.Generator | None) -> Vector:
    """This share of the rows of each bucket, chosen at random."""
    if random is None:
        return counts * share
    return random.binomial(counts.astype(np.int64), share).astype(np.float64)
