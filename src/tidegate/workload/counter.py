"""Counter-based random numbers: the n-th is a hash of n, so any range can be reproduced alone."""

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15


def words(numbers: npt.NDArray[np.int64], seed: int, stream: int = 0) -> Words:
    """64 random bits per number: Steele, Lea and Flood's SplitMix64, started at any position."""
    offset = _mixed(np.array([(seed + stream * _GOLDEN) % 2**64], dtype=np.uint64))
    state = numbers.astype(np.uint64)
    state += np.uint64(1)
    state *= np.uint64(_GOLDEN)
    state += offset
    return _mixed(state)


def uniforms(bits: Words) -> npt.NDArray[np.float64]:
    """53 of the bits as numbers in [0, 1)."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(state: Words) -> Words:
    """SplitMix64's finaliser, in place."""
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return state
