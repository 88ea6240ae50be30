"""The attributes of an instance in one whole number: sixteen levels each, four bits.

A number is the cheapest column to send and to store, and 64 random bits are an instance.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

BITS = 4
LEVELS = 1 << BITS
MOST_ATTRIBUTES = 64 // BITS
CLASSES = 2


def level_of(packed: Ints, attribute: int | Ints) -> Ints:
    """The level of an attribute of each instance, from 0 to 15."""
    found: Ints = (packed >> (BITS * attribute)) & (LEVELS - 1)
    return found
