"""What every capacity model learns from: samples of saturated intervals."""

import math
from collections.abc import Iterable

from tidegate.errors import AskedWrongly

Samples = Iterable[tuple[int, float]]
"""Measured pairs (machines, maximum sustainable throughput)."""


def check_sample(m: int, throughput: float) -> None:
    """Raise an error for a sample that cannot come from a saturated interval."""
    if m < 1 or int(m) != m:
        raise AskedWrongly(
            f"A capacity sample has {m} machines: give a whole number of at least 1."
        )
    if not (0.0 < throughput < math.inf):
        raise AskedWrongly(
            f"The capacity sample at {m} machines is {throughput}, but a throughput must be "
            "positive: measure a saturated interval."
        )
