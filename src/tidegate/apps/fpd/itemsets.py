"""Itemsets as single whole numbers: up to four words of 15 bits each, the smallest word lowest.

A number is the cheapest key to hash, send and store. Words count from 0 and are written one higher,
so that 0 bits mean "no word" and the number of words can be read off.
"""

from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

BITS = 15
MOST_WORDS = 4
"""The most words of an itemset: 4 * 15 bits leave the sign of a 64-bit number alone."""
VOCABULARY = (1 << BITS) - 1
"""The most words that there may be."""

_WORD = np.int64((1 << BITS) - 1)


def encoded(words: Ints) -> Ints:
    """One number for each row of a matrix of words, which increase from column to column."""
    shifts = np.arange(words.shape[1], dtype=np.int64) * BITS
    found: Ints = ((words + 1) << shifts).sum(axis=1)
    return found


def decoded(itemset: int) -> tuple[int, ...]:
    """The words of an itemset, in increasing order."""
    found = []
    while itemset:
        found.append((itemset & int(_WORD)) - 1)
        itemset >>= BITS
    return tuple(found)


def sizes(itemsets: Ints) -> Ints:
    """How many words each itemset has."""
    found = np.zeros(len(itemsets), dtype=np.int64)
    for place in range(MOST_WORDS):
        found += (itemsets >> (place * BITS)) > 0
    return found


def subsets_by_one(itemsets: Ints) -> tuple[Ints, Ints]:
    """All itemsets that lack one word of these, and for each the place of the one it is part of.

    Single words have none: the empty itemset is not a pattern.
    """
    size = sizes(itemsets)
    made, places = [], []
    for gone in range(MOST_WORDS):
        chosen = np.flatnonzero((size > 1) & (size > gone))
        one = itemsets[chosen]
        low = one & np.int64((1 << (gone * BITS)) - 1)
        high = (one >> ((gone + 1) * BITS)) << (gone * BITS)
        made.append(high | low)
        places.append(chosen)
    return np.concatenate(made), np.concatenate(places)


@cache
def choices(words: int, most: int) -> tuple[Ints, ...]:
    """All ways to choose 1, 2, ... up to `most` of so many words: a matrix of places for each."""
    return tuple(
        np.array(list(combinations(range(words), size)), dtype=np.int64)
        for size in range(1, min(words, most) + 1)
    )


def candidates(words: int, most: int) -> int:
    """How many itemsets of up to `most` words a tweet of so many words has."""
    return sum(len(places) for places in choices(words, most))
