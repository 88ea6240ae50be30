"""Which skew costs static routes on a few tasks what the paper's costs them on 256 cores.

A route that never changes is as fast as its fullest task. With more tasks, a hot key is a larger
part of a task's share. So 24 tasks feel a zipf exponent of 0.5 less than 256 cores do.
"""

from collections.abc import Mapping

import numpy as np

from tidegate.control.shards.balance import imbalance
from tidegate.control.shards.route import even_route
from tidegate.errors import AskedWrongly

PAPERS_SKEW = 0.5
SECOND_SKEW = 0.87
"""The second skew of figures 6 and 7: `matching_skew` of 24 tasks."""
KEYS = 10_000
_HASHES = 20
"""Ways to hash keys to shards over which delta is averaged."""


def static_delta(skew: float, tasks: int, shards: int, keys: int = KEYS) -> float:
    """Load of the fullest task over the mean, on an even route; the mean over random hashes."""
    weights = np.arange(1, keys + 1.0) ** -skew
    route = even_route(shards, tasks)
    found = []
    for number in range(_HASHES):
        shard_of = np.random.default_rng(number).integers(0, shards, keys)
        found.append(imbalance(np.bincount(shard_of, weights, shards), route, tasks))
    return float(np.mean(found))


def matching_skew(tasks: int = 24, shards: int = 768) -> float:
    """The skew with which static routes cost here what the paper's costs on 256 cores."""
    asked = static_delta(PAPERS_SKEW, 256, 8192)
    skews = np.arange(0.5, 1.21, 0.05)
    deltas = [static_delta(float(skew), tasks, shards) for skew in skews]
    return round(float(np.interp(asked, deltas, skews)), 3)


def asked_skew(extra: Mapping[str, str]) -> float:
    """The second skew, unless `skew` asks for another one."""
    text = extra.get("skew", str(SECOND_SKEW))
    try:
        skew = float(text)
    except ValueError:
        raise AskedWrongly(f"skew={text}: expected a number") from None
    if not 0.0 <= skew <= 10.0:
        raise AskedWrongly(f"skew={text}: give 0 to 10")
    return skew
